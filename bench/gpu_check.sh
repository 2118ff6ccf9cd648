#!/usr/bin/env bash
# What needs a GPU, on a machine that has one: builds Kumo with CUDA from this repository and the
# packages that bench/gpu_bundle.sh has downloaded, runs the tests of the CUDA backend, looks at its
# kernels with compute-sanitizer, trains beside PyTorch on the same card, and ends with one table.
# Needs CUDA with cuDNN, CMake, a C++20 compiler and, for the comparison, a python3 with PyTorch.
#
#   bench/gpu_check.sh BUNDLE [BUILD]     BUNDLE: the folder of packages; BUILD: default build/gpu
set -euo pipefail
{ [ $# = 1 ] || [ $# = 2 ]; } && [ "$1" != --help ] || { sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 64; }
bundle=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
build=${2:-build/gpu}
mkdir -p "$build"
build=$(cd "$build" && pwd)

packages=$build/packages
libraries=$packages/usr/lib/x86_64-linux-gnu
if [ ! -d "$packages" ]; then
  for package in "$bundle"/*.deb; do dpkg -x "$package" "$packages"; done
fi
export PATH=$packages/usr/bin:$PATH
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PKG_CONFIG_SYSROOT_DIR=$packages PKG_CONFIG_LIBDIR=$libraries/pkgconfig:$packages/usr/share/pkgconfig

results=()
# step NAME COMMAND...: runs it with its output in BUILD/NAME.log, and notes how it ended.
step() {
  local name=$1 start=$SECONDS
  shift
  if "$@" >"$build/$name.log" 2>&1; then
    results+=("$(printf '%-28s ok      %4d s' "$name" $((SECONDS - start)))")
  else
    results+=("$(printf '%-28s FAILED  %4d s   %s' "$name" $((SECONDS - start)) "$build/$name.log")")
    tail -n 30 "$build/$name.log"
  fi
}

step configure cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DKUMO_CUDA=ON \
  -DCMAKE_CUDA_ARCHITECTURES=native -DCMAKE_PREFIX_PATH="$packages/usr"
step build cmake --build "$build" --target layer_test cuda_backend_test train_speed
for test in cuda_backend_test layer_test; do
  step "$test" "$build/bin/$test" --gtest_brief=1
  grep -h 'SKIPPED' "$build/$test.log" || true
done
if command -v compute-sanitizer >/dev/null; then
  step memcheck compute-sanitizer --tool memcheck --error-exitcode 1 "$build/bin/cuda_backend_test" \
    --gtest_brief=1 --gtest_filter='*Bit*:*Mask*:*NotFinite*'
fi
step train_speed env KUMO_TORCH_PYTHON="${KUMO_TORCH_PYTHON:-python3}" "$build/bin/train_speed" \
  --device cuda --work lenet,mlp,convnet --repeats 5

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
git describe --always --dirty 2>/dev/null || true
cat "$build/train_speed.log"
printf '%s\n' "${results[@]}"
[[ "${results[*]}" != *FAILED* ]]
