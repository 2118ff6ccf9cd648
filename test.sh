#!/usr/bin/env bash
# Installs the needed packages, builds, and runs the tests. May be repeated, and is faster the
# second time.
#
#   ./test.sh          builds one configuration and runs all unit, property, simulation,
#                      multi-process and client tests, except those with the label "long"
#   ./test.sh --all    also: the long tests, format, the sanitizer builds with each fuzzer, each
#                      source compiled alone, clang-tidy (both of files that changed since they
#                      passed), each benchmark once, and the packages in a bare system
#
# KUMO_DATA=DIR: tests that need MNIST read DIR/mnist; without it they are skipped with a message.
# Prints CTest's summary and the omitted parts; exits non-zero if a test or a check failed.
set -euo pipefail
cd "$(dirname "$0")"
source cmake/setup.sh

all=0
for argument in "$@"; do
  case "$argument" in
    --all) all=1 ;;
    -h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "test.sh: unknown argument $argument; see ./test.sh --help" >&2; exit 64 ;;
  esac
done

rooms=(common server worker models data cli)
packages=(python3-venv iproute2 curl jq)
[ "$all" = 0 ] || packages+=(clang clang-format clang-tidy debootstrap dpkg-dev file buildah mmdebstrap)
# Only in CI: these packages start servers that answer to the network, and a browser is large.
[ "${CI:-}" != true ] || packages+=(openssh-server iproute2 prometheus chromium)
kumo_install_packages "${packages[@]}"

if [ "$all" = 1 ]; then
  echo "== format"
  find "${rooms[@]}" bench cmake tests \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) \
    -print0 | xargs -0 -n 64 -P "$(nproc)" clang-format --dry-run --Werror
fi

# For tests that read event files with TensorBoard; they are skipped without it.
get_tensorboard() {
  [ -x build/python/bin/tensorboard ] && return
  { rm -rf build/python && python3 -m venv build/python &&
    build/python/bin/pip install -q 'tensorboard>=2.12' 'setuptools<81'; } >/dev/null 2>&1
}
# For tests of k8s/; they are skipped without it.
get_kubernetes() {
  [ -x build/kubernetes/kubectl ] && return
  { rm -rf build/kubernetes && python3 -m venv build/kubernetes &&
    build/kubernetes/bin/pip install -q kubernetes-validate pyyaml &&
    build/kubernetes/bin/python3 tests/k8s/get_kubectl.py build/kubernetes/kubectl; } >/dev/null 2>&1
}
# For tests of exports; they are skipped without it.
get_onnx() {
  [ -e build/onnx/complete ] && return
  { rm -rf build/onnx && python3 -m venv build/onnx &&
    build/onnx/bin/pip install -q numpy safetensors onnx onnxruntime &&
    touch build/onnx/complete; } >/dev/null 2>&1
}
# For tests of JAX models; they are skipped without it. Only in CI: it is large.
get_jax() {
  [ -e build/jax/complete ] && return
  { rm -rf build/jax && python3 -m venv build/jax && build/jax/bin/pip install -q jax optax numpy &&
    touch build/jax/complete; } >/dev/null 2>&1
}
# Debian's PyTorch, for tests of torch models; they are skipped without it. Only in CI: it is large.
torch=0
if [ "${CI:-}" = true ] && [ -z "${KUMO_TORCH_PYTHON:-}" ]; then
  kumo_install_packages python3-torch python3-pil >/dev/null 2>&1 &
  torch=$!
fi
jax=0
if [ "${CI:-}" = true ] && [ -z "${KUMO_JAX_PYTHON:-}" ]; then
  get_jax &
  jax=$!
fi
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
# --all: for a newer GPU than without it, so that the kernels' code for both is compiled.
if [ "$all" = 1 ]; then
  kumo_configure release -DKUMO_BENCH=ON -DKUMO_CUDA_ARCHITECTURES=90
else
  kumo_configure release -DKUMO_BENCH=OFF -DKUMO_CUDA_ARCHITECTURES=AUTO
fi
kumo_build release
if [ "$tensorboard" != 0 ]; then
  if wait "$tensorboard"; then
    export KUMO_TENSORBOARD_PYTHON="$PWD/build/python/bin/python3"
  else
    echo "TensorBoard is not available: tests that read event files with it are skipped"
  fi
fi
if [ -z "${KUMO_ONNX_PYTHON:-}" ] && wait "$onnx"; then
  export KUMO_ONNX_PYTHON="$PWD/build/onnx/bin/python3"
elif [ -z "${KUMO_ONNX_PYTHON:-}" ]; then
  echo "onnxruntime is not available: tests that read exports with it are skipped"
fi
if [ "$torch" != 0 ] && wait "$torch"; then
  export KUMO_TORCH_PYTHON=/usr/bin/python3
elif [ -z "${KUMO_TORCH_PYTHON:-}" ]; then
  echo "PyTorch is not there: tests of torch models are skipped"
fi
if [ "$jax" != 0 ] && wait "$jax"; then
  export KUMO_JAX_PYTHON="$PWD/build/jax/bin/python3"
elif [ -z "${KUMO_JAX_PYTHON:-}" ]; then
  echo "JAX is not there: tests of JAX models are skipped"
fi
if wait "$kubernetes"; then
  export KUMO_KUBERNETES_PYTHON="$PWD/build/kubernetes/bin/python3"
  export KUMO_KUBECTL="$PWD/build/kubernetes/kubectl"
else
  echo "kubectl and Kubernetes' schemas are not available: tests of k8s/ are skipped"
fi

# kumo_test PRESET [CTEST-OPTION ...]; twice as many as there are cores and one more, since processes wait
# for each other.
kumo_test() { ctest --preset "$1" -j "$((2 * $(nproc) + 1))" --no-tests=error "${@:2}"; }

echo "== tests"
export KUMO_SIM_SEEDS=${KUMO_SIM_SEEDS:-600}
if [ "$all" = 0 ]; then
  kumo_test release -LE 'bench|package|long'
  echo "not run: long tests, format, clang-tidy, the sanitizer builds, the benchmarks, the packages" \
    "(./test.sh --all); skipped tests are listed above"
  exit 0
fi
# The simulated GPU's tests run in the address sanitizer's build below.
kumo_test release -LE 'bench|package' -E '^simulated\.[A-Z]'

# The packages and the benchmarks mostly wait, for one process or for each other: they run beside the
# sanitizer builds, which keep all cores busy, and are printed after them. The packages are of the
# release build, which is configured as the preset `package` is, but with tests.
beside() {
  local failed=0
  echo "== packages"
  rm -rf build/package/packages
  cpack --config build/release/CPackConfig.cmake -G DEB -B build/package/packages >/dev/null || failed=1
  kumo_test release -L package || failed=1
  echo "== benchmarks, each once"
  kumo_test release -L bench || failed=1
  return "$failed"
}
set -m  # a process group of its own, which is ended with this script
beside >build/beside.log 2>&1 &
beside=$!
set +m
trap 'kill -- "-$beside" 2>/dev/null || true' EXIT

# asan: all tests except those of whole processes, and the fuzzers, which belong to that build.
# tsan: programs that test more than one thread, without their longest tests of one.
# Both: fewer simulated jobs, and not the tests of the simulation itself, which run hundreds until a
# planted bug is found or each rare way was taken.
sanitize() {  # PRESET TESTS-LEFT-OUT...
  echo "== $1"
  kumo_configure "$1"
  kumo_build "$1" kumo_tests
  KUMO_SIM_SEEDS=60 GTEST_FILTER="-$(printf '*%s*:' "${@:2}")" kumo_test "$1"
}
sanitize asan PlantedBug EveryRareWay
sanitize tsan PlantedBug EveryRareWay DamagedBytes ChangedBytes CutOffAtEveryByte MutatedFrames PowerCut IsAlignedAndZero \
  TrivialNorNoise EquallyFrequent WhatRoundingAdds GradientsAreThoseOfTheLoss EveryLossHas

echo "== each source alone"
cmake/compile_alone.py build/release "${rooms[@]}"

echo "== clang-tidy"
cmake/clang_tidy.py --together build/asan build/release "${rooms[@]}"

code=0
wait "$beside" || code=$?
cat build/beside.log
exit "$code"
