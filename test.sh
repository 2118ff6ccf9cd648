#!/usr/bin/env bash
# Installs what is needed, builds and runs all tests. Repeatable; quick the second time.
#
#   ./test.sh          everything: format, build, unit, property, simulation and multi-process tests,
#                      benchmarks' smoke runs, sanitizer builds
#   ./test.sh --quick  without the sanitizer builds
#
# Ends with CTest's summary; exits non-zero when anything failed.
set -euo pipefail
cd "$(dirname "$0")"
source cmake/setup.sh

quick=0
for argument in "$@"; do
  case "$argument" in
    --quick) quick=1 ;;
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "test.sh: unknown argument $argument (--help tells)" >&2; exit 64 ;;
  esac
done

kumo_install_packages clang-format

echo "== format"
git ls-files '*.h' '*.cc' | xargs clang-format --dry-run --Werror

echo "== build"
kumo_build release

if [ "$quick" = 0 ]; then
  # Races and memory errors: the unit and simulation tests, where the protocol and the kernels are.
  for preset in asan tsan; do
    echo "== $preset"
    kumo_build "$preset"
    KUMO_SIM_SEEDS=60 ctest --preset "$preset" -j "$(nproc)" -LE 'multiproc|bench' --no-tests=error
  done
fi

echo "== tests"
ctest --preset release -j "$(nproc)" --no-tests=error
