#!/bin/sh
# format.sh CLANG_FORMAT SOURCE_DIR: every C++ file of the tree is formatted.
set -eu
cd "$2"
find include lib tests bench -name '*.[ch]pp' -print0 | xargs -0 "$1" --dry-run --Werror
