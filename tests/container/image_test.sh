#!/usr/bin/env bash
# Kumo's image, built by k8s/Dockerfile and tried without a container engine and without a registry:
# buildah in a chroot, on a Debian that mmdebstrap makes. What is built from are the packages that cpack
# has made, so that nothing is compiled here a second time.
#
#   tests/container/image_test.sh SOURCE CACHE
#
# SOURCE: the project, with build/package/packages/kumo_*.deb. CACHE: where the bare Debian is kept from
# run to run. KUMO_TEST_COMPILE=1: the image's own stage compiles instead, as where nothing is there but the
# sources (5 minutes on 2 cores). Where something is missing it says so and ends with 77.
set -euo pipefail
source=$(realpath "$1") cache=$(realpath -m "$2")
release=bookworm
most_mb=120
packages=given
[ "${KUMO_TEST_COMPILE:-}" != 1 ] || packages=built

skip() {
  echo "skipped: $*"
  exit 77
}
[ "$(id -u)" = 0 ] || skip "only root can make a bare system"
for tool in buildah mmdebstrap; do
  command -v "$tool" >/dev/null || skip "there is no $tool"
done
[ $packages = built ] || compgen -G "$source/build/package/packages/kumo_*.deb" >/dev/null ||
  skip "no kumo_*.deb in build/package/packages: cpack --preset package"
unshare --mount --propagation private true 2>/dev/null || skip "no mount namespace can be made here"
if [ "${KUMO_OWN_MOUNTS:-}" != 1 ]; then
  export KUMO_OWN_MOUNTS=1
  exec unshare --mount --propagation private "$0" "$@"
fi

scratch=$(mktemp -d)
# What is mounted below is another's, and is not removed with the folder.
finish() {
  if grep -q " $scratch/" /proc/self/mountinfo; then
    echo "$scratch is left as it is: something is mounted in it"
  else
    rm -rf --one-file-system "$scratch"
  fi
}
trap finish EXIT
image() {
  local command=$1
  shift
  buildah --root "$scratch/storage" --runroot "$scratch/run" --storage-driver vfs "$command" "$@"
}
quietly() { "$@" >"$scratch/log" 2>&1 || { tail -n 40 "$scratch/log"; exit 1; }; }

base=$cache/$release-slim.tar
if [ ! -f "$base" ]; then
  mkdir -p "$cache"
  mmdebstrap --format=tar --variant=minbase --include=ca-certificates --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' "$release" "$base.tmp" >"$scratch/log" 2>&1 ||
    skip "no bare $release can be made here: $(tail -n 1 "$scratch/log")"
  mv "$base.tmp" "$base"
fi
container=$(image from scratch)
quietly image add "$container" "$base"
quietly image commit --rm "$container" kumo-test-base

echo "== build"
quietly image bud --isolation chroot --build-arg BASE=localhost/kumo-test-base --build-arg PACKAGES=$packages \
  --build-arg VARIANT=cpu \
  -f "$source/k8s/Dockerfile" -t kumo-test "$source"

container=$(image from --pull-never kumo-test)
root=$(image mount "$container")
failed() {
  echo "$*"
  exit 1
}

echo "== what is in it"
bytes=$(du -sxb "$root" | cut -f 1)
echo "the image holds $((bytes / 1000000)) MB"
[ "$bytes" -lt $((most_mb * 1000000)) ] || failed "more than $most_mb MB"
for tool in gcc g++ cc make apt-get dpkg perl python3; do
  [ ! -e "$root/usr/bin/$tool" ] || failed "$tool is in it"
done
[ -z "$(find "$root" -xdev -perm /6000)" ] || failed "a program in it gives its user another's rights"
user=$(image inspect --format '{{.OCIv1.Config.User}}' "$container")
[ "$user" = 65532:65532 ] || failed "its user is $user"
[ -f "$root/usr/share/kumo/experiments/mnist_lenet.conf" ] || failed "experiments are missing"
[ -f "$root/usr/share/kumo/models/zoo/mnist_lenet.pbtxt" ] || failed "networks are missing"
[ -f "$root/var/lib/dpkg/status.d/libzmq5" ] || failed "descriptions of packages are missing"

echo "== what it does"
within() { image run --isolation chroot "$container" -- "$@"; }
for program in kumo kumo-server kumo-worker kumo-data; do
  within "$program" --version | head -n 1
done
[ "$(within id -u)" = 65532 ] || failed "it runs as another user"
within sh -c 'tar c -C /usr share/kumo | tar t' >/dev/null || failed "kubectl cp wants tar"
within sh -c 'curl --version >/dev/null && echo {} | jq .' >/dev/null || failed "what wait.sh needs is missing"
within touch /etc/written 2>/dev/null && failed "its user can write to its root"
within kumo-data digits --out /tmp/data --train 1000 --validation 200 >/dev/null
within sh -c 'cd /tmp && KUMO_DATA=/tmp/data kumo launch mnist_lenet --workers 1 --set job.epochs=1 \
  --set sync.warmup_samples=0 --set sync.block=5' | tail -n 1
code=0
within sh -c 'KUMO_TERMINATION_LOG=/tmp/last kumo-server mnist_lenet' 2>/dev/null || code=$?
[ "$code" = 78 ] || failed "a server without addresses ended with $code"
within cat /tmp/last | grep 'cluster.servers is not set' || failed "its last words are not in the termination log"
