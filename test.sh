#!/usr/bin/env bash
# Installs what is needed, builds and runs all tests. Repeatable; quick the second time.
#
#   ./test.sh          everything: format, clang-tidy, build, unit, property, simulation and
#                      multi-process tests, benchmarks' smoke runs, sanitizer builds
#   ./test.sh --quick  without clang-tidy and the sanitizer builds
#
# KUMO_DATA=DIR lets the tests that want it read MNIST in DIR/mnist; without it they skip, saying so.
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

rooms=(common server worker models data cli)
kumo_install_packages clang-format clang-tidy libomp-dev python3-venv

echo "== format"
find "${rooms[@]}" bench tests -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' |
  xargs clang-format --dry-run --Werror

# The one test that reads our event files with TensorBoard itself; it skips where there is none.
if [ -z "${KUMO_TENSORBOARD_PYTHON:-}" ] && ! python3 -c 'import tensorboard' 2>/dev/null; then
  python=build/python/bin/python3
  if [ -x "$python" ] || { python3 -m venv build/python &&
    build/python/bin/pip install -q 'tensorboard>=2.12' 'setuptools<81'; } >/dev/null 2>&1; then
    export KUMO_TENSORBOARD_PYTHON="$PWD/$python"
  else
    rm -rf build/python
    echo "TensorBoard cannot be had here: the test that reads our event files with it will skip"
  fi
fi

echo "== build"
kumo_build release

if [ "$quick" = 0 ]; then
  echo "== clang-tidy"
  # What this machine can build: without CUDA not the folder cuda/, with it not its stand-in.
  sed -n "s|^ *\"file\": \"$PWD/\(.*\.cc\)\".*|\1|p" build/release/compile_commands.json |
    grep -E "^($(IFS='|'; echo "${rooms[*]}"))/" | grep -v kernel | sort -u |
    xargs -d '\n' -n 4 -P "$(nproc)" clang-tidy --quiet -p build/release 2>build/clang-tidy.err || {
    grep -v 'warnings\? generated' build/clang-tidy.err >&2
    exit 1
  }

  # Races and memory errors: the unit and simulation tests, where the protocol and the kernels are.
  for preset in asan tsan; do
    echo "== $preset"
    kumo_build "$preset"
    KUMO_SIM_SEEDS=60 ctest --preset "$preset" -j "$(nproc)" -LE 'multiproc|bench' --no-tests=error
  done
fi

echo "== tests"
ctest --preset release -j "$(nproc)" --no-tests=error
