#!/bin/sh
# subdirectory.sh BUILD_DIR CMAKE_ARGUMENT...: builds and runs the consumer that adds the source tree.
set -eux
here=$(cd "$(dirname "$0")" && pwd)
build=$1
shift
cmake -S "$here/subdirectory" -B "$build" -DCOBBLE_SOURCE_DIR="$here/../.." "$@"
cmake --build "$build"
"$build/consumer"
