#!/bin/sh
# installed.sh LIBRARY_BUILD_DIR WORK_DIR CMAKE_ARGUMENT...: installs a build, moves the installation elsewhere, and
# builds and runs the consumer on it, by find_package and by pkg-config.
set -eux
here=$(cd "$(dirname "$0")" && pwd)
library_build=$1
work=$2
shift 2

rm -rf "$work"
cmake --install "$library_build" --prefix "$work/staging"
prefix="$work/moved prefix"
mv "$work/staging" "$prefix"

cmake -S "$here/installed" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" "$@"
cmake --build "$work/build"
"$work/build/consumer"
"$work/build/interop_consumer"

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name cobble.pc)")
export PKG_CONFIG_PATH
library=$(find "$prefix" -name 'libcobble.so' -o -name 'libcobble.a')
case $library in
  *.a) link=--static ;;
  *) link=--shared ;;
esac
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$work/build/CMakeCache.txt")
eval "'$compiler' -std=c++20 '$here/main.cpp' -o '$work/pkg_config_consumer' $(pkg-config --cflags --libs $link cobble)"
LD_LIBRARY_PATH=$(dirname "$library") "$work/pkg_config_consumer"

if [ -x "$prefix/bin/cobble" ]; then "$prefix/bin/cobble" --help; fi
