#!/usr/bin/env bash
# Downloads what bench/gpu_check.sh needs on a machine that has CUDA, CMake and a compiler but no
# package registry: Debian packages into a folder, below 50 MB.
#
#   bench/gpu_bundle.sh DIR
set -euo pipefail
[ $# = 1 ] && [ "$1" != --help ] || { sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 64; }
mkdir -p "$1"
cd "$1"

wanted=(
  libzmq3-dev libprotobuf-dev protobuf-compiler libboost-program-options-dev libgoogle-glog-dev
  libgtest-dev libgmock-dev libdnnl-dev zlib1g-dev libisal-dev pkgconf ninja-build
)
# Every machine with a compiler has these, or nothing of ours includes or links them.
left_out='^(gcc-|libc6|libc-dev-bin|libgcc-|libstdc\+\+|lib(asan|lsan|tsan|ubsan|itm|atomic|quadmath|gomp)[0-9]*$|linux-libc-dev|libcrypt|libicu|icu-|libxml2|libunwind-[0-9]|libtirpc|libnsl|rpcsvc|libkadm|libkdb5|libgssrpc|comerr-dev|krb5-multidev|libkrb5-dev|lib(lzma|norm|pgm|bsd|md|sodium)-dev)'
apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
  --no-enhances "${wanted[@]}" | grep -v '^ \|<' | sort -u | grep -Ev "$left_out" |
  xargs apt-get download -q
echo "$(ls -- *.deb | wc -l) packages, $(du -cb -- *.deb | tail -n 1 | cut -f 1) bytes, in $PWD"
