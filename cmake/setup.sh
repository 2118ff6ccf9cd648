# Sourced by demo.sh and test.sh: the packages of Debian 12 and Ubuntu 24.04, and the build.

KUMO_PACKAGES=(
  g++ cmake ninja-build ccache pkg-config git ca-certificates
  libzmq3-dev libprotobuf-dev protobuf-compiler
  libgoogle-glog-dev libgtest-dev libgmock-dev libdnnl-dev zlib1g-dev libisal-dev
  libboost-program-options-dev libboost-context-dev mold
  libmicrohttpd-dev prometheus-cpp-dev libjs-chart.js
  libjpeg-dev libspng-dev libpugixml-dev nlohmann-json3-dev libarchive-dev liblzma-dev libbz2-dev
  libzstd-dev nettle-dev
)

# kumo_install_packages [MORE ...]: installs what is missing, and says what it does.
kumo_install_packages() {
  local missing=() package
  for package in "${KUMO_PACKAGES[@]}" "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
      missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local sudo=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
      echo "these packages are missing and there is no sudo: ${missing[*]}" >&2
      exit 78
    }
    sudo=(sudo)
  fi
  echo "installing ${missing[*]}"
  "${sudo[@]}" apt-get update -q
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qy --no-install-recommends "${missing[@]}" >/dev/null
}

# kumo_configure PRESET [-DOPTION=VALUE ...]: into build/PRESET.
kumo_configure() {
  local preset=$1 log
  shift
  log=$(mktemp)
  cmake --preset "$preset" -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
    -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    rm -f "$log"
    exit 1
  }
  rm -f "$log"
}

# kumo_build PRESET [TARGET ...]: builds in build/PRESET.
kumo_build() {
  local preset=$1
  shift
  # Compiler and linker of two cores take about 1 GiB each at most.
  cmake --build --preset "$preset" ${1:+--target "$@"}
}

# So that build folders in other places share what ccache keeps, precompiled headers included.
export CCACHE_NOHASHDIR=1 CCACHE_BASEDIR="$PWD" CCACHE_SLOPPINESS=pch_defines,time_macros
