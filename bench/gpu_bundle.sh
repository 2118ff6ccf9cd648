#!/usr/bin/env bash
# Downloads what bench/gpu_check.sh needs on a machine that has CUDA, CMake and a compiler but no
# package registry: Debian packages into a folder, below 60 MB. What is in the folder under *.deb
# goes. The list is that of cmake/setup.sh, without the programs that such a machine has.
#
#   bench/gpu_bundle.sh DIR
set -euo pipefail
[ $# = 1 ] && [ "$1" != --help ] || { sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 64; }
source "$(dirname "$0")/../cmake/setup.sh"
mkdir -p "$1"
cd "$1"
rm -f -- *.deb

present='^(g\+\+|cmake|ccache|mold|git|ca-certificates)$'
mapfile -t wanted < <(printf '%s\n' "${KUMO_PACKAGES[@]}" | grep -Ev "$present")
# Every machine with a compiler has these, or nothing of ours includes or links them. The C and C++
# libraries must never come from here: programs would load two of them.
left_out='^(gcc-|libc6|libc-dev-bin|libgcc-|libstdc\+\+|lib(asan|lsan|tsan|ubsan|itm|atomic|quadmath|gomp)[0-9]*$|linux-libc-dev|libcrypt|libicu|icu-|libxml2|libunwind-[0-9]|libtirpc|libnsl|rpcsvc|libkadm|libkdb5|libgssrpc|comerr-dev|krb5-multidev|libkrb5-dev|civetweb|libcivetweb|libcurl|libgnutls28-dev|lib(norm|pgm|bsd|md|sodium)-dev)'
apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
  --no-enhances "${wanted[@]}" | grep -v '^ \|<' | sort -u | grep -Ev "$left_out" |
  xargs apt-get download -q
for package in "${wanted[@]}"; do
  compgen -G "${package}_*.deb" >/dev/null ||
    { echo "gpu_bundle.sh: $package of cmake/setup.sh was left out" >&2; exit 1; }
done
bytes=$(du -cb -- *.deb | tail -n 1 | cut -f 1)
echo "$(ls -- *.deb | wc -l) packages, $bytes bytes, in $PWD"
[ "$bytes" -lt 60000000 ] || { echo "gpu_bundle.sh: that is more than 60 MB" >&2; exit 1; }
