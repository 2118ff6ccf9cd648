#!/usr/bin/env bash
# Installs the needed packages, builds, and trains LeNet with 2 servers and 2 workers in block mode
# on this machine. Prints the accuracy, and the places of the model, the curves and the logs. May be
# repeated, and is faster the second time.
#
#   ./demo.sh                  trains on digits that a built-in generator draws; downloads no data
#   ./demo.sh --data-dir DIR   trains on MNIST in DIR/mnist (also: KUMO_DATA=DIR ./demo.sh;
#                              data/fetch.sh mnist DIR downloads it)
set -euo pipefail
cd "$(dirname "$0")"
source cmake/setup.sh

data=${KUMO_DATA:-}
while [ $# -gt 0 ]; do
  case "$1" in
    --data-dir) data=${2:?--data-dir needs a directory}; shift 2 ;;
    --data-dir=*) data=${1#*=}; shift ;;
    -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "demo.sh: unknown argument $1; see ./demo.sh --help" >&2; exit 64 ;;
  esac
done

kumo_install_packages
programs=(kumo kumo-server kumo-worker kumo-data)
# The workers below compute on the CPU; on a machine with a GPU the next experiment may need it.
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
