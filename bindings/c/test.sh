#!/usr/bin/env bash
# Builds, installs and tries the libraries for C: bindings/c/test.sh
#
# HOTSET_BIN: the hotset that judges the C++ engine's log [default: target/release, target/debug]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root/bindings/c"
# What the workspace built is used.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
hotset=${HOTSET_BIN:-}
for kind in release debug; do
  [[ -n $hotset || ! -x $root/target/$kind/hotset ]] || hotset=$root/target/$kind/hotset
done
[[ -x $hotset ]] || { echo "no hotset: build it, or set HOTSET_BIN" >&2; exit 1; }

cargo clippy --quiet --locked --all-targets -- -D warnings
cargo test --quiet --locked
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
./install.sh "$prefix" dev
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
if command -v pkg-config >/dev/null; then
  flags=$(pkg-config --cflags --libs hotset)
else
  flags="-I$prefix/include -L$prefix/lib -lhotset"
fi
strict="-Wall -Wextra -Wpedantic -Werror -g -O1"
# shellcheck disable=SC2086
cc -std=c11 $strict examples/engine.c -o "$prefix/engine_c" $flags
# shellcheck disable=SC2086
c++ -std=c++17 $strict examples/engine.cpp -o "$prefix/engine_cpp" $flags
# The static library too.
# shellcheck disable=SC2086
cc -std=c11 $strict examples/engine.c -o "$prefix/engine_static" -I"$prefix/include" "$prefix/lib/libhotset.a" \
  -lpthread -ldl -lm

if command -v valgrind >/dev/null; then
  valgrind --quiet --suppressions=valgrind.supp --leak-check=full --show-leak-kinds=definite,indirect,possible \
    --errors-for-leak-kinds=definite,indirect,possible --error-exitcode=9 "$prefix/engine_c"
  echo "engine.c: clean under valgrind"
else
  echo "engine.c: not under valgrind, which is not installed"
fi
"$prefix/engine_static" | grep -q ' 0 wrong experts'

"$hotset" trace slice --sequences 0 -o "$prefix/one.hst" 2>/dev/null
judge() { "$hotset" conform "$prefix/one.hst" "$1" --policy lru --capacity 25% --phase decode; }
"$prefix/engine_cpp" right "$prefix/one.hst" >"$prefix/right.jsonl"
judge "$prefix/right.jsonl" >/dev/null
"$prefix/engine_cpp" wrong "$prefix/one.hst" >"$prefix/wrong.jsonl"
code=0
judge "$prefix/wrong.jsonl" >"$prefix/judged" || code=$?
if [[ $code != 1 ]]; then
  echo "a wrong engine was not caught (exit code $code)" >&2
  exit 1
fi
echo "the C++ engine that evicts wrongly is caught:"
head -n 12 "$prefix/judged"
