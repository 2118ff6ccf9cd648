#!/usr/bin/env bash
# Kumo's wheel, as a new user has it: made from a build folder, installed by pip into a fresh virtual
# environment, a job with Python workers and one with Kumo's own, removed again, and nothing left behind.
#
#   tests/package/wheel_test.sh SOURCE BUILD
#
# The wheel is left in SOURCE/build/wheel. Where PyPI does not answer, it says so and ends with 77.
# KUMO_TORCH_PYTHON: a Python with torch, in which the installed package is tried too.
set -euo pipefail
source=$(realpath "$1") build=$(realpath "$2")
most_mb=40
# What each Linux of the wheel's tag has.
everywhere='ld-linux-x86-64|linux-vdso|libc|libm|libdl|librt|libpthread|libresolv|libutil|libstdc\+\+|libgcc_s|libz'

skip() {
  echo "skipped: $*"
  exit 77
}
failed() {
  echo "$*"
  exit 1
}

echo "== the wheel"
code=0
"$source/cmake/wheel.py" "$build" "$source/build/wheel" || code=$?
[ "$code" != 69 ] || skip "auditwheel cannot be had"
[ "$code" = 0 ] || failed "cmake/wheel.py ended with $code"
wheel=$(echo "$source"/build/wheel/kumo-*-py3-none-manylinux_2_*_x86_64.whl)
[ "$(stat -c %s "$wheel")" -lt $((most_mb * 1000000)) ] || failed "more than $most_mb MB"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
environment=$scratch/environment
python3 -m venv "$environment"
"$environment/bin/pip" install -q --disable-pip-version-check numpy || skip "numpy cannot be had"
files() { (cd "$environment" && find . -printf '%p %y\n' | sort); }
files >"$scratch/before"
"$environment/bin/pip" install -q --disable-pip-version-check --no-index "$wheel"
installation=$(echo "$environment"/lib/python3*/site-packages/kumo/installation)

echo "== libraries of this system that it needs"
find "$environment"/lib/python3*/site-packages/kumo* -type f -exec sh -c 'head -c 4 "$1" | grep -q ELF' - {} \; \
  -print >"$scratch/programs"
while read -r file; do ldd "$file"; done <"$scratch/programs" >"$scratch/libraries"
! grep 'not found' "$scratch/libraries" || failed "these are missing"
others=$(grep -v "$environment" "$scratch/libraries" |
  grep -vE "^\s(/lib64/)?($everywhere)(\.so|-)" || true)
[ -z "$others" ] || failed "$others"
echo "only those of every Linux, in $(wc -l <"$scratch/programs") files"

# What a user types, in an empty folder and with nothing but the environment.
mkdir "$scratch/home"
user() {
  echo "\$ $1"
  (cd "$scratch/home" && env -i HOME="$scratch/home" PATH="$environment/bin:/usr/bin:/bin" \
    KUMO_DATA="$scratch/home" PYTHONDONTWRITEBYTECODE=1 bash -euc "$1") >"$scratch/said" 2>&1 ||
    { code=$?; cat "$scratch/said"; failed "it ended with $code"; }
  tail -n 1 "$scratch/said"
}

echo "== a user's model"
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:.*=//p' "$build/CMakeCache.txt")
for program in kumo kumo-data kumo-server kumo-worker; do
  user "$program --version | grep '^$program $version'"
done
user "python3 -c 'import kumo; print(kumo.__version__)' | grep -x '$version'"
cp "$source/tests/python/own_model.py" "$scratch/home/train.py"
printf '%s\n' '[job]' 'epochs = 3' '[worker]' 'command = python3 train.py' '[sync]' 'partitions = 2' \
  'minibatch = 8' 'block = 2' '[schedule]' 'learning_rate = 0.05' >"$scratch/home/job.conf"
user "kumo launch job.conf --workers 2"
user "python3 -c 'import kumo; print(sorted(kumo.load_state_dict(\"out/job\")))'"
user "kumo manifests job.conf --worker-image mine:1"

echo "== Kumo's own networks"
user "kumo-data digits --out . --train 2000 --validation 500"
user "kumo new my --from mnist_lenet"
user "kumo launch my.conf --workers 1 --set job.epochs=1 --set sync.warmup_samples=0 --set sync.block=5"
user "kumo evaluate my.conf --set job.epochs=1 --set sync.warmup_samples=0 --set sync.block=5"

echo "== with torch"
torch=$(command -v "${KUMO_TORCH_PYTHON:-python3}")
if "$torch" -c 'import torch' 2>/dev/null; then
  # Both orders: whose libraries are loaded first must not matter.
  for order in 'torch, kumo' 'kumo, torch'; do
    user "PYTHONPATH=$installation/share/kumo/python $torch -c 'import $order; torch.set_num_threads(2); \
      print(torch.rand(300, 300).mm(torch.rand(300, 300)).shape, list(kumo.load_state_dict(\"out/job\"))[0])'"
  done
  # The page's example, copied.
  page=$source/docs/pytorch.md
  awk '/^```$/ && !inside { inside = 1; next } /^```$/ { exit } inside' "$page" |
    sed "s|python3|$torch|" >"$scratch/home/job.conf"
  awk '/^```python$/ { inside = 1; next } /^```$/ && inside { exit } inside' "$page" >"$scratch/home/train.py"
  user "kumo launch job.conf --workers 2 --set output.directory=torch"
else
  echo "left out: $torch has no torch (KUMO_TORCH_PYTHON names one that has)"
fi

echo "== removal"
"$environment/bin/pip" uninstall -qy kumo
files >"$scratch/after"
diff "$scratch/before" "$scratch/after" || failed "the removal has left something behind"
echo "nothing is left"
