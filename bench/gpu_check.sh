#!/usr/bin/env bash
# GPU check: builds Kumo with CUDA from this repository and the packages that bench/gpu_bundle.sh has
# downloaded, runs the tests of the CUDA backend, checks its kernels with compute-sanitizer, compares
# its speed with PyTorch on the same card, and ends with one table. Exit code 1 if a step failed; the
# table shows a step that could not run as skipped, with the reason. Needs a GPU, CUDA with cuDNN,
# CMake, a C++20 compiler and, for the comparisons, a python3 with PyTorch.
#
#   bench/gpu_check.sh BUNDLE [BUILD]     BUNDLE: the folder of packages; BUILD: default build/gpu
#   bench/gpu_check.sh --list             prints the targets and the tests' filters, and does nothing
#
# KUMO_DATA: a folder with MNIST, for the training to .99 (skipped without). KUMO_TORCH_PYTHON: the
# Python with PyTorch (python3). KUMO_COMMIT: the commit of the sources if there is no git repository.
# KUMO_CHECK_S: seconds for all steps (570); a step is skipped if too little time is left.
# KUMO_CHECK_STEPS: only these steps, names with blanks between them. KUMO_CHECK_DEVICE=cpu tries the
# script itself without a GPU: trainings and measurements run on the CPU.
set -euo pipefail
{ [ $# = 1 ] || [ $# = 2 ]; } && [ "$1" != --help ] || { sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 64; }

tests=(layer_test cuda_backend_test input_loader_test cuda_training_test gradient_clipping_test
       weight_step_test)
targets=("${tests[@]}" train_speed device_codecs kumo kumo-server kumo-worker kumo-data
         kumo_backend_cuda_module)
# Each launch is slow under compute-sanitizer: the tests of the kernels, and the layers against their
# reference; for races the kernels that share memory between threads, which are codecs, losses and
# normalisations. A line: tool and the rest of the step's name, limit in seconds, test, filter.
sanitized=(
  "memcheck 75 cuda_backend_test CudaBackendTest.*-*MoreMemory*"
  "memcheck_inputs 60 input_loader_test *InputLoaderTest*/cuda:CudaInputLoader.*"
  "memcheck_net 75 cuda_training_test *OfEveryLayer*:*NarrowNumbers*"
  "memcheck_layers 75 layer_test *AgreesWithThePlainReference*"
  "racecheck 60 cuda_backend_test CudaBackendTest.*-*MoreMemory*"
  "racecheck_layers 60 layer_test *AgreesWithThePlainReference/*Normalisation*:*AgreesWithThePlainReference/Embedding*:Multibox.*"
)
if [ "$1" = --list ]; then  # for tests/models/gpu_check_test.py
  printf 'target %s\n' "${targets[@]}"
  printf 'sanitized %s\n' "${sanitized[@]}"
  exit
fi
bundle=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
source bench/gpu_packages.sh
build=${2:-build/gpu}
mkdir -p "$build/check"
build=$(cd "$build" && pwd)
check=$build/check
rm -f "$check"/*
export KUMO_TORCH_PYTHON=${KUMO_TORCH_PYTHON:-python3}
commit=${KUMO_COMMIT:-$(git describe --always --dirty 2>/dev/null || echo unknown)}
seconds=${KUMO_CHECK_S:-570}

# note NAME OUTCOME SECONDS REMARK: adds a line to the table and prints it.
note() {
  printf '%s\t%s\t%s\t%s\n' "$@" >>"$check/steps.tsv"
  printf '%4d s  %-18s %-8s %4s s  %s\n' "$SECONDS" "$@"
}
# step NAME LIMIT_S COMMAND...: runs the command for at most LIMIT_S, with its output in
# check/NAME.log.
step() {
  local name=$1 limit=$2 start=$SECONDS left=$((seconds - SECONDS)) code=0
  shift 2
  [ -z "${KUMO_CHECK_STEPS:-}" ] || [[ " $KUMO_CHECK_STEPS " == *" $name "* ]] || return 0
  if [ "$left" -lt 10 ]; then
    note "$name" skipped 0 "no time was left"
    return 0
  fi
  timeout --kill-after=10 "$((limit < left ? limit : left))" "$@" >"$check/$name.log" 2>&1 || code=$?
  local remark=
  case $code in
    0) ;;
    124 | 137) remark="took longer than $((limit < left ? limit : left)) s; see $check/$name.log" ;;
    *) remark="ended with $code; see $check/$name.log" ;;
  esac
  if [ "$code" != 0 ]; then
    note "$name" FAILED $((SECONDS - start)) "$remark"
    tail -n 30 "$check/$name.log"
    return 1
  fi
  if grep -q '^\[==========\] 0 tests ' "$check/$name.log"; then
    note "$name" FAILED $((SECONDS - start)) "no test has a name that its filter matches"
    return 1
  fi
  # With a GPU, a skipped test is a failure.
  local skipped
  skipped=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) tests*\..*/\1/p' "$check/$name.log" | head -n 1)
  if [ -n "$skipped" ]; then
    remark="$skipped tests skipped: $(sed -n '/: Skipped$/{n;p;q}' "$check/$name.log")"
    if [ -n "$gpu" ]; then
      note "$name" FAILED $((SECONDS - start)) "$remark"
      return 1
    fi
  fi
  [ "$name" = layer_test ] && [ -z "$gpu" ] && remark="no GPU: the CPU's layers only"
  note "$name" ok $((SECONDS - start)) "$remark"
}
# on_gpu NAME LIMIT_S COMMAND...: a step that needs a GPU.
on_gpu() {
  if [ -n "$gpu" ] || [ "$device" = cpu ]; then
    step "$@"
  elif [ -z "${KUMO_CHECK_STEPS:-}" ] || [[ " $KUMO_CHECK_STEPS " == *" $1 "* ]]; then
    note "$1" skipped 0 "no GPU"
  fi
}
finish() {
  local where=${gpu:-no GPU}
  [ "$device" = cuda ] || where="$where; all figures are of $device"
  "$python" bench/gpu_table.py "$check" "$where" "$commit"
}

# --- What this machine has

python=$(command -v python3)
device=${KUMO_CHECK_DEVICE:-cuda}
# Programs that are on the path already come first.
toolkit=${CUDA_HOME:-/usr/local/cuda}
export PATH=$PATH:$toolkit/bin:$toolkit/compute-sanitizer
gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1) || gpu=
architecture=90
if [ -n "$gpu" ]; then
  architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
else
  echo "no GPU answers nvidia-smi: builds for compute capability 9.0, and nothing of CUDA will run"
fi
# cuDNN may only be there as a Python package, whose library has no name without a version.
cudnn=()
toolkit=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)" || echo "$toolkit/bin/nvcc")")")
if ! echo '#include <cudnn.h>' | c++ -E -x c++ -I"$toolkit/include" - >/dev/null 2>&1; then
  folder=$("$KUMO_TORCH_PYTHON" -c \
    'import nvidia.cudnn as c; print(list(c.__path__)[0])' 2>/dev/null) || folder=
  library=$(compgen -G "$folder/lib/libcudnn.so.*" | head -n 1) || library=
  [ -z "$library" ] ||
    cudnn=(-DKUMO_CUDNN_INCLUDE="$folder/include" -DKUMO_CUDNN_LIBRARY="$library")
fi

# --- Build

build_all() {
  packages=$build/packages
  export -f kumo_machine_library kumo_unpack
  step packages 60 bash -c 'kumo_unpack "$@"' _ "$bundle" "$packages" || return 1
  export PKG_CONFIG_SYSROOT_DIR=$packages
  export PKG_CONFIG_LIBDIR=$packages/usr/lib/x86_64-linux-gnu/pkgconfig
  local flags
  mapfile -t flags < <(kumo_package_flags "$packages")
  step configure 120 cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DKUMO_CUDA=ON -DKUMO_CUDA_ARCHITECTURES="$architecture-real" -DKUMO_COMMIT="$commit" \
    "${cudnn[@]}" "${flags[@]}" || return 1
  step build "${KUMO_BUILD_S:-300}" cmake --build "$build" -j "$(nproc)" --target "${targets[@]}"
}
if ! build_all; then
  finish || true
  exit 1
fi

# --- Tests

failed=0
for test in "${tests[@]}"; do
  step "$test" 120 "$build/bin/$test" --gtest_brief=1 || failed=1
done
sanitizer=$(command -v compute-sanitizer || true)
if [ -z "$gpu" ]; then
  note sanitized skipped 0 "no GPU"
elif [ -z "$sanitizer" ]; then
  note sanitized skipped 0 "no compute-sanitizer"
else
  for line in "${sanitized[@]}"; do
    read -r name limit test filter <<<"$line"
    tool=(--tool "${name%%_*}" --error-exitcode 1)
    # Calls that fail are the backend's own to report; what libraries try and do without is no error.
    [[ $name != memcheck* ]] || tool+=(--report-api-errors no)
    step "$name" "$limit" "$sanitizer" "${tool[@]}" "$build/bin/$test" --gtest_brief=1 \
      --gtest_filter="$filter" || failed=1
  done
fi

# --- Measurements, the shortest first

bin=$build/bin
numbers=67108864 work=lenet,mlp,convnet target=.99
[ "$device" = cuda ] || numbers=1048576 work=lenet,mlp target=.97
on_gpu device_codecs 60 "$bin/device_codecs" --device "$device" --numbers "$numbers" \
  --repetitions 7 || failed=1
on_gpu train_speed 180 "$bin/train_speed" --device "$device" --work "$work" --repeats 5 \
  --seconds 0.4 || failed=1
if [ "$device" = cuda ]; then
  on_gpu resnet 180 "$bin/train_speed" --device cuda --work resnet --repeats 3 --seconds 2 || failed=1
fi
on_gpu blocks 120 "$python" bench/blocks.py --bin "$bin" --devices "$device" --runs 2 --seconds 2 \
  --json "$check/blocks.json" || failed=1
on_gpu worker_killed 120 "$python" bench/chaos.py --bin "$bin" --quick --only kill:worker \
  --set network.device="$device" --accuracy-within 0.01 --json "$check/chaos.json" || failed=1
if [ -n "${KUMO_DATA:-}" ]; then
  on_gpu time_to_accuracy 150 "$python" bench/time_to_accuracy.py --bin "$bin" --device "$device" \
    --runs 2 --target "$target" --json "$check/time_to_accuracy.json" || failed=1
else
  note time_to_accuracy skipped 0 "KUMO_DATA names no folder with MNIST"
fi
finish
exit "$failed"
