# Shared by bench/run, tests/run and .ci/run: what Debian packages each of them needs, and how missing ones are
# installed. To be sourced.

build_packages="cmake g++ ninja-build pkgconf libeigen3-dev libtbb-dev libhwloc-dev libzip-dev libsuitesparse-dev libgraphblas-dev libmetis-dev libhwy-dev"
program_packages="libcli11-dev libfmt-dev nlohmann-json3-dev libpng-dev libopenblas0-pthread"
bench_packages="libbenchmark-dev"
test_packages="doctest-dev binutils python3 python3-numpy"
ci_packages="clang-14 libclang-rt-14-dev clang-format-14"

# fail MESSAGE: ends with one line on stderr.
fail() {
  echo "$0: $1" >&2
  exit 1
}

# install_packages PACKAGE...: installs those that are missing.
install_packages() {
  command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
    fail "apt-get is not available; install what these Debian packages hold, then build with cmake: $*"

  local package missing=()
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0

  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "neither root nor sudo; have these Debian packages installed: ${missing[*]}"
    as_root=(sudo)
  fi
  echo "installing ${missing[*]}" >&2
  "${as_root[@]}" apt-get update -q >&2 || fail "apt-get update failed"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" >&2 ||
    fail "apt-get could not install ${missing[*]}"
}

# quietly LOG COMMAND...: runs a command with its output in a file, which is shown when the command fails.
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    return 1
  }
}
