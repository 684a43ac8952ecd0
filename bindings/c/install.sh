#!/usr/bin/env bash
# Builds the libraries and installs them with headers and a pkg-config file: install.sh PREFIX [dev|release]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?where to install: install.sh PREFIX}"
prefix=$(cd "$1" && pwd)
profile=${2:-release}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/target}
(cd "$here" && cargo build --quiet --locked --lib --profile "$profile")
built=$CARGO_TARGET_DIR/$([[ $profile == dev ]] && echo debug || echo "$profile")
mkdir -p "$prefix"/{lib/pkgconfig,include}
cp "$built"/libhotset.so "$built"/libhotset.a "$prefix/lib/"
cp "$here"/include/hotset.{h,hpp} "$prefix/include/"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml" | head -1)
sed "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" "$here/hotset.pc.in" >"$prefix/lib/pkgconfig/hotset.pc"
