#!/usr/bin/env bash
# Trains LeNet with 2 servers and 2 workers in block mode, on this machine, and ends with the
# accuracy and where the model, the curves and the logs are. Installs what is needed and builds
# first; repeatable, and quick the second time.
#
#   ./demo.sh                  on a digit set that a built-in generator draws; nothing is downloaded
#   ./demo.sh --data-dir DIR   on MNIST in DIR/mnist (also: KUMO_DATA=DIR ./demo.sh;
#                              data/fetch.sh mnist DIR brings it)
set -euo pipefail
cd "$(dirname "$0")"
source cmake/setup.sh

data=${KUMO_DATA:-}
while [ $# -gt 0 ]; do
  case "$1" in
    --data-dir) data=${2:?--data-dir needs a directory}; shift 2 ;;
    --data-dir=*) data=${1#*=}; shift ;;
    -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "demo.sh: unknown argument $1 (--help tells)" >&2; exit 64 ;;
  esac
done

kumo_install_packages
programs=(kumo kumo-server kumo-worker kumo-data)
# The workers below compute on the CPU; where there is a GPU, others may want it next.
[ ! -e /dev/nvidia0 ] || programs+=(kumo_backend_cuda_module)
kumo_configure release
kumo_build release "${programs[@]}"
bin=build/release/bin

if [ -z "$data" ]; then
  data=out/digits
  if [ ! -e "$data/mnist/t10k-labels-idx1-ubyte.gz" ]; then
    echo "drawing a digit set into $data"
    "$bin/kumo-data" digits --out "$data"
  fi
fi

# A new run each time: the demonstration shows the training, not the resuming.
"$bin/kumo" launch experiments/mnist_lenet.conf --workers 2 --servers 2 \
  --set data.directory="$data" --set output.directory=out/demo \
  --set job.epochs=5 --set checkpoint.resume=never
"$bin/kumo" evaluate experiments/mnist_lenet.conf \
  --set data.directory="$data" --set output.directory=out/demo --set job.epochs=5
