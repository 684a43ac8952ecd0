#!/usr/bin/env bash
# Tests the recorder in an environment of its own: bindings/python/test.sh [PYTEST ARGUMENTS]
#
# HOTSET_BIN: the hotset to import and compare with [default: target/release, target/debug]
# VENV:       where the environment is made and kept [default: bindings/python/.venv]
# Both are absolute paths.
#
# Tests on llama.cpp itself are skipped, and say so, unless llama_cpp and gguf are in the environment:
# VENV/bin/pip install llama-cpp-python==0.3.36 gguf==0.19.0 (compiles llama.cpp: minutes).
set -euo pipefail
cd "$(dirname "$0")"

venv=${VENV:-.venv}
# uv unpacks torch and its libraries in a fifth of pip's time. It does not read pip's settings.
export UV_HTTP_TIMEOUT=180 VIRTUAL_ENV=$venv
[[ -z ${PIP_CERT:-} ]] || export SSL_CERT_FILE=$PIP_CERT
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
[[ -x $venv/bin/uv ]] || "$venv/bin/python" -m pip install --quiet uv==0.13.9
# triton compiles GPU kernels: a gigabyte that tests on a CPU do not touch.
"$venv/bin/uv" pip install --quiet --requirements requirements-test.txt \
  --overrides <(echo 'triton; sys_platform == "never"')
"$venv/bin/uv" pip install --quiet --no-deps --editable .
echo "environment ready after ${SECONDS} s"

OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 "$venv/bin/python" -m pytest --quiet -rs "$@"
