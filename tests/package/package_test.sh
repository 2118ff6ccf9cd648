#!/usr/bin/env bash
# Kumo's packages in a bare Debian, as a new user would: installed by apt, a training, removed again,
# and nothing left behind.
#
#   tests/package/package_test.sh PACKAGES CACHE
#
# PACKAGES: the folder with kumo_*.deb (cpack --preset package). CACHE: where the bare system is kept
# from run to run. Needs root, debootstrap, and the mirror that this machine's apt has; where one of
# them cannot be had it says so and ends with 77. All that it mounts is in a mount namespace of its own.
set -euo pipefail
packages=$(realpath "$1") cache=$(realpath -m "$2")

skip() {
  echo "skipped: $*"
  exit 77
}

if [ "${KUMO_OWN_MOUNTS:-}" != 1 ]; then
  compgen -G "$packages/kumo_*.deb" >/dev/null || skip "no kumo_*.deb in $packages: cpack --preset package"
  [ "$(id -u)" = 0 ] || skip "only root can make a bare system"
  command -v debootstrap >/dev/null || skip "there is no debootstrap"
  unshare --mount --propagation private true 2>/dev/null || skip "no mount namespace can be made here"
  export KUMO_OWN_MOUNTS=1
  exec unshare --mount --propagation private "$0" "$@"
fi

release=$(. /etc/os-release && echo "$VERSION_CODENAME")
distribution=$(. /etc/os-release && echo "${NAME%% *}")
bare=$cache/$release.tar
scratch=$(mktemp -d)
root=$scratch/root
finish() {
  umount "$root/proc" 2>/dev/null || true
  rm -rf --one-file-system "$scratch"
}
trap finish EXIT

# Of the distribution's own packages, as this machine's apt has them.
mirror() {
  apt-get indextargets --format "$1" 'Created-By: Packages' "Codename: $release" "Origin: $distribution" |
    sort -u
}

make_bare() {
  local uri components
  uri=$(mirror '$(REPO_URI)' | head -n 1)
  components=$(mirror '$(COMPONENT)' | paste -sd ,)
  [ -n "$uri" ] || skip "apt knows no mirror of $distribution $release"
  debootstrap --variant=minbase --components="$components" "$release" "$root" "$uri" \
    >"$scratch/log" 2>&1 || skip "no bare $release can be made here: $(tail -n 1 "$scratch/log")"
  rm -rf "$root"/var/cache/apt/archives/*.deb
  mkdir -p "$cache"
  tar -C "$root" -cf "$bare.tmp" . && mv "$bare.tmp" "$bare"
}

in_root() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
quietly() { "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }; }

# What a user types, in a home of his own and with his rights.
user() {
  echo "\$ $1"
  chroot --userspec=1000:1000 "$root" env -i HOME=/home/user PATH=/usr/bin:/bin KUMO_DATA=/home/user \
    bash -c "cd && $1"
}

# user_ends CODE COMMAND: what it says must have $3.
user_ends() {
  local code=0 said
  said=$(user "$2" 2>&1) || code=$?
  echo "$said"
  [ "$code" = "$1" ] || { echo "ended with $code instead of $1"; exit 1; }
  [[ $said == *"$3"* ]] || { echo "does not say: $3"; exit 1; }
}

# Every file, but for what apt, dpkg and the linker keep of their own work.
files() {
  (cd "$root" && find . -xdev \( -path ./proc -o -path ./var/cache -o -path ./var/log \
    -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./etc/ld.so.cache \) -prune \
    -o -printf '%p %y\n' | sort)
}

echo "== a bare $release"
mkdir "$root"
[ -f "$bare" ] || make_bare
[ -e "$root/etc" ] || tar -C "$root" -xf "$bare"
mount -t proc proc "$root/proc"
cp /etc/resolv.conf "$root/etc/resolv.conf"
in_root apt-get -o Acquire::Check-Valid-Until=false -o APT::Update::Error-Mode=any update \
  >"$scratch/log" 2>&1 || skip "the mirror does not answer: $(tail -n 1 "$scratch/log")"
install -d -o 1000 -g 1000 "$root/home/user"
install -D -t "$root/packages" "$packages"/kumo*.deb
files >"$scratch/before"

echo "== installation"
quietly in_root bash -c 'apt-get install -qy --no-install-recommends /packages/kumo_*.deb'
in_root dpkg-query -W -f '${Package} ${Version}: ${Depends}\n' kumo | tee "$scratch/depends"
if grep -qiE 'cuda|cublas|cudnn|nvidia' "$scratch/depends"; then
  echo "kumo depends on something of NVIDIA's"
  exit 1
fi

echo "== a new user"
user_ends 0 "kumo --version" "no module /usr/lib/kumo/backend_cuda.so (package kumo-cuda)"
user_ends 0 "kumo-data digits --out . --train 4000 --validation 1000" "4000 training"
user_ends 0 "kumo new my --from mnist_lenet" "kumo launch my.conf"
small="--set sync.warmup_samples=0 --set sync.block=5"
user_ends 0 "kumo check my.conf $small" "no problems"
user_ends 0 "kumo launch my.conf $small --set job.epochs=2" "done: validation accuracy"
user_ends 0 "kumo evaluate my.conf $small --set job.epochs=2" "validation/main/accuracy"
echo "== three more epochs, and a new head on what was learnt"
user_ends 0 "kumo launch my.conf $small --set job.epochs=5 --continue" "job.epochs 2 -> 5"
user_ends 0 "kumo new head --from my.conf" "kumo launch head.conf"
user_ends 0 "sed -i 's/\"fc2\"/\"head\"/' head.pbtxt; kumo launch head.conf $small --set job.epochs=1 --from out/my" \
  "starts with 6 of 8 tensors from out/my/checkpoints/"

echo "== what belongs to a user's shell and to GPUs"
on_gpu="kumo launch mnist_mlp --quiet --set output.directory=gpu --set network.device=cuda"
user_ends 78 "$on_gpu" "install the package kumo-cuda"
user_ends 0 "source /usr/share/bash-completion/completions/kumo; COMP_LINE='kumo lau' COMP_POINT=8;
  _kumo kumo lau kumo; echo \$COMPREPLY" launch

if compgen -G "$root/packages/kumo-cuda_*.deb" >/dev/null; then
  echo "== GPUs"
  quietly in_root bash -c 'apt-get install -qy --no-install-recommends /packages/kumo-cuda_*.deb'
  user_ends 0 "kumo --version" "CUDA    /usr/lib/kumo/backend_cuda.so"
  # There is no GPU here and nothing of NVIDIA's: what is missing is named, with the packages.
  user_ends 78 "$on_gpu" "it needs NVIDIA's packages"
  quietly in_root apt-get purge -qy kumo-cuda
  user_ends 0 "kumo --version" "no module"
fi

echo "== removal"
quietly in_root apt-get purge -qy kumo
quietly in_root apt-get autoremove -qy --purge
rm -rf "${root:?}/home/user"
install -d -o 1000 -g 1000 "$root/home/user"
files >"$scratch/after"
if ! diff "$scratch/before" "$scratch/after" >"$scratch/difference"; then
  echo "the removal has left something behind, or taken too much away:"
  cat "$scratch/difference"
  exit 1
fi
if in_root dpkg-query -W 'kumo*' 2>/dev/null | grep .; then
  echo "dpkg still knows it"
  exit 1
fi
echo "nothing is left: $(wc -l <"$scratch/after") files and folders as before"
