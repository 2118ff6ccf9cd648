#!/usr/bin/env bash
# Installs what is needed, builds and runs the tests. Repeatable; quick the second time.
#
#   ./test.sh          builds one configuration and runs all unit, property, simulation,
#                      multi-process and client tests
#   ./test.sh --all    and format, the sanitizer builds with each fuzzer for 20 s, clang-tidy (of
#                      what changed since it was clean), each benchmark once, and the packages in a
#                      bare system (3 minutes more to build them for all GPUs and to make that
#                      system; seconds later)
#
# KUMO_DATA=DIR lets the tests that want it read MNIST in DIR/mnist; without it they skip, saying so.
# Ends with CTest's summary and what was not run; exits non-zero when anything failed.
set -euo pipefail
cd "$(dirname "$0")"
source cmake/setup.sh

all=0
for argument in "$@"; do
  case "$argument" in
    --all) all=1 ;;
    -h | --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "test.sh: unknown argument $argument (--help tells)" >&2; exit 64 ;;
  esac
done

rooms=(common server worker models data cli)
packages=(python3-venv iproute2 curl jq)
[ "$all" = 0 ] || packages+=(clang clang-format clang-tidy libomp-dev debootstrap dpkg-dev file buildah mmdebstrap)
# On a person's machine they would start servers that answer to the network, and a browser is large.
[ "${CI:-}" != true ] || packages+=(openssh-server iproute2 prometheus chromium)
kumo_install_packages "${packages[@]}"

# For the tests that read our event files with TensorBoard itself; they skip where there is none.
get_tensorboard() {
  [ -x build/python/bin/tensorboard ] && return
  { rm -rf build/python && python3 -m venv build/python &&
    build/python/bin/pip install -q 'tensorboard>=2.12' 'setuptools<81'; } >/dev/null 2>&1
}
# For the tests of k8s/; they skip where it cannot be had.
get_kubernetes() {
  [ -x build/kubernetes/kubectl ] && return
  { rm -rf build/kubernetes && python3 -m venv build/kubernetes &&
    build/kubernetes/bin/pip install -q kubernetes-validate pyyaml &&
    build/kubernetes/bin/python3 tests/k8s/get_kubectl.py build/kubernetes/kubectl; } >/dev/null 2>&1
}
# For the tests of exports; they skip where it cannot be had.
get_onnx() {
  [ -e build/onnx/complete ] && return
  { rm -rf build/onnx && python3 -m venv build/onnx &&
    build/onnx/bin/pip install -q numpy safetensors onnx onnxruntime &&
    touch build/onnx/complete; } >/dev/null 2>&1
}
get_onnx &
onnx=$!
get_kubernetes &
kubernetes=$!
tensorboard=0
if [ -z "${KUMO_TENSORBOARD_PYTHON:-}" ] && ! python3 -c 'import tensorboard' 2>/dev/null; then
  get_tensorboard &
  tensorboard=$!
fi

echo "== build"
kumo_configure release -DKUMO_BENCH="$([ "$all" = 1 ] && echo ON || echo OFF)"
kumo_build release
if [ "$tensorboard" != 0 ]; then
  if wait "$tensorboard"; then
    export KUMO_TENSORBOARD_PYTHON="$PWD/build/python/bin/python3"
  else
    echo "TensorBoard cannot be had here: the tests that read our event files with it will skip"
  fi
fi
if [ -z "${KUMO_ONNX_PYTHON:-}" ] && wait "$onnx"; then
  export KUMO_ONNX_PYTHON="$PWD/build/onnx/bin/python3"
elif [ -z "${KUMO_ONNX_PYTHON:-}" ]; then
  echo "onnxruntime cannot be had here: the tests that read our exports with it will skip"
fi
if wait "$kubernetes"; then
  export KUMO_KUBERNETES_PYTHON="$PWD/build/kubernetes/bin/python3"
  export KUMO_KUBECTL="$PWD/build/kubernetes/kubectl"
else
  echo "kubectl and Kubernetes' schemas cannot be had here: the tests of k8s/ will skip"
fi

# kumo_test PRESET [CTEST-OPTION ...]
kumo_test() { ctest --preset "$1" -j "$(nproc)" --no-tests=error "${@:2}"; }

echo "== tests"
kumo_test release -LE 'bench|package'

if [ "$all" = 0 ]; then
  echo "not run: format, clang-tidy, the sanitizer builds, the benchmarks, the packages (./test.sh --all);" \
    "tests that were skipped are listed above"
  exit 0
fi

echo "== format"
find "${rooms[@]}" bench cmake tests \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) \
  -print0 | xargs -0 clang-format --dry-run --Werror

# Memory errors: all tests but those of whole processes, whose parts are tested here; and the fuzzers,
# which are part of that build. Races: the tests
# in which more than one thread runs.
for preset in asan tsan; do
  echo "== $preset"
  kumo_configure "$preset"
  kumo_build "$preset" kumo_tests
  KUMO_SIM_SEEDS=60 kumo_test "$preset"
done

echo "== clang-tidy"
cmake/clang_tidy.py --together build/asan build/release "${rooms[@]}"

echo "== benchmarks, each once"
kumo_test release -L bench

echo "== packages"
kumo_configure package
kumo_build package
rm -rf build/package/packages
cpack --preset package >/dev/null
kumo_test release -L package
