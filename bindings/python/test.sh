#!/usr/bin/env bash
# Builds the wheel and tests it, the recorder with it, in an environment of its own:
# bindings/python/test.sh [PYTEST ARGUMENTS]
#
# HOTSET_BIN: the hotset to compare with [default: target/release, target/debug]
# PROFILE:    cargo's profile of the wheel [default: dev, which the workspace's tests have built]
# MOST_BYTES: of the wheel [default: 12,000,000]
# VENV:       where the environment is made and kept [default: bindings/python/.venv]
# The first and the last are absolute paths.
#
# Tests on llama.cpp itself are skipped, and say so, unless llama_cpp and gguf are in the environment:
# VENV/bin/pip install llama-cpp-python==0.3.36 gguf==0.19.0 (compiles llama.cpp: minutes).
set -euo pipefail
cd "$(dirname "$0")"

# A wheel over this has something in it that does not belong there.
most_bytes=${MOST_BYTES:-$((12 * 1000 * 1000))}
venv=${VENV:-$PWD/.venv}
# uv unpacks torch and its libraries in a fifth of pip's time. It does not read pip's settings.
export UV_HTTP_TIMEOUT=180 VIRTUAL_ENV=$venv
[[ -z ${PIP_CERT:-} ]] || export SSL_CERT_FILE=$PIP_CERT
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
[[ -x $venv/bin/uv ]] || "$venv/bin/python" -m pip install --quiet uv==0.13.9
# triton compiles GPU kernels: a gigabyte that tests on a CPU do not touch.
"$venv/bin/uv" pip install --quiet --requirements requirements-test.txt \
  --overrides <(echo 'triton; sys_platform == "never"')
echo "environment ready after ${SECONDS} s"

# What the workspace built is used.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/../../target}
(cd native && cargo clippy --quiet --locked --all-targets -- -D warnings)
rm -rf dist
"$venv/bin/maturin" build --quiet --locked --profile "${PROFILE:-dev}" --strip --out dist
wheel=$(echo dist/hotset-*.whl)
bytes=$(stat -c %s "$wheel")
echo "$wheel: $bytes bytes after ${SECONDS} s"
if ((bytes > most_bytes)); then
  echo "the wheel has more than $most_bytes bytes" >&2
  exit 1
fi
# Its old name would go before it.
"$venv/bin/uv" pip uninstall --quiet hotset-recorder hotset 2>/dev/null || true
"$venv/bin/uv" pip install --quiet --no-deps "$wheel"

# From elsewhere: processes that tests start would find the package's folder before the installed wheel.
cd dist
OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 "$venv/bin/pytest" --quiet -rs -c ../pyproject.toml --rootdir .. "${@:-../tests}"
