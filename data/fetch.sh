#!/bin/sh
# Downloads a data set from its publishers or their mirrors and verifies it.
#
# usage: data/fetch.sh mnist|cifar10|shakespeare|voc [DIR]
#
#   mnist        the four files of MNIST, to DIR/mnist
#   cifar10      CIFAR-10 as published, unpacked to DIR/cifar10/cifar-10-batches-bin (170 MB)
#   shakespeare  works of Shakespeare (tinyshakespeare), to DIR/text/tinyshakespeare.txt
#   voc          Pascal VOC: trainval and test of 2007, trainval of 2012, as archives to DIR/voc (2.9 GB)
#
# DIR is $KUMO_DATA by default. A complete file is not downloaded again, an interrupted download goes
# on, and a file gets its name only after its SHA-256 was verified.
#
# Environment:
#   KUMO_FETCH_MIRRORS     other addresses, separated by spaces
#   KUMO_FETCH_SHA256SUMS  file of other checksums, in the format of sha256sum
#
# Exit codes: 0 all files are present; 64 wrong usage; 75 no mirror delivered a file (try again);
# 78 DIR is not writable, or a program is missing.
set -eu

readonly EXIT_USAGE=64 EXIT_UNAVAILABLE=75 EXIT_CONFIGURATION=78
readonly SETS="mnist, cifar10, shakespeare or voc"

usage() {
  sed -n '2,/^set -eu/{/^#/s/^# \{0,1\}//p;}' "$0"
}

fail() {
  code=$1
  shift
  echo "fetch.sh: $*" >&2
  exit "$code"
}

# Expected checksum of FILE, or nothing.
expected_sum() {
  if [ -n "${KUMO_FETCH_SHA256SUMS:-}" ]; then
    awk -v name="$1" '{ file = $2; sub(/^.*[\/*]/, "", file) } file == name { print $1; exit }' \
      "$KUMO_FETCH_SHA256SUMS"
    return
  fi
  case $1 in
    train-images-idx3-ubyte.gz)
      echo 71524e2cd1ad2968737f7f2f2ff69cbfc32df8ccddff51593f7cb2d4e0eb5b64 ;;
    train-labels-idx1-ubyte.gz)
      echo fe03b8bd7915f70bf5aa08be480aa413fbd85afcaa58b35d230d335f284fd88e ;;
    t10k-images-idx3-ubyte.gz)
      echo 5634745efa576a17e7d4cf5cd9d09123c75e6538e5114267c2d156edaf519341 ;;
    t10k-labels-idx1-ubyte.gz)
      echo ae18e77e031ccde52407f794d123116439864147d33ac992975f85dd4dc42af6 ;;
    cifar-10-binary.tar.gz)
      echo c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd ;;
    tinyshakespeare.txt)
      echo 86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed ;;
    VOCtrainval_06-Nov-2007.tar)
      echo 7d8cd951101b0957ddfd7a530bdc8a94f06121cfc1e511bb5937e973020c7508 ;;
    VOCtest_06-Nov-2007.tar)
      echo 6836888e2e01dca84577a849d339fa4f73e1e4f135d312430c4856b5609b4892 ;;
    VOCtrainval_11-May-2012.tar)
      echo e14f763270cf193d0b5f74b169f44157a4b0c6efa708f4dd0ff78ee691763bcb ;;
  esac
}

sum_of() {
  sha256sum <"$1" | cut -d ' ' -f 1
}

# Name of the file NAME on a mirror.
name_there() {
  case $1 in
    tinyshakespeare.txt) echo input.txt ;;
    VOC*2007.tar) echo "voc2007/$1" ;;
    VOC*2012.tar) echo "voc2012/$1" ;;
    *) echo "$1" ;;
  esac
}

# download URL FILE: continues an interrupted FILE.
download() {
  case $downloader in
    curl) curl --fail --location --silent --show-error --retry 3 --retry-delay 2 \
            --connect-timeout 20 --speed-limit 1000 --speed-time 30 \
            --continue-at - --output "$2" "$1" ;;
    wget) wget --quiet --tries=3 --waitretry=2 --timeout=30 --continue \
            --output-document="$2" "$1" ;;
  esac
}

# verified FILE NAME: succeeds if FILE has the checksum of NAME; removes FILE otherwise.
verified() {
  [ -f "$1" ] || return 1
  actual=$(sum_of "$1")
  wanted=$(expected_sum "$2")
  [ "$actual" = "$wanted" ] && return 0
  echo "fetch.sh: $2: SHA-256 is $actual, not $wanted; the file is removed" >&2
  rm -f "$1"
  return 1
}

# fetch NAME: downloads NAME from the first mirror with the right checksum.
fetch() {
  part=$folder/.$1.part
  for mirror in $mirrors; do
    # Twice: the remains of an earlier try may be wrong from the start.
    for try in 1 2; do
      echo "$1: from $mirror"
      had=0
      [ -s "$part" ] && had=1
      if download "$mirror/$(name_there "$1")" "$part"; then
        if verified "$part" "$1"; then
          mv -f "$part" "$folder/$1"
          return 0
        fi
      elif [ "$had" = 1 ]; then
        # A mirror refuses to continue behind the end of a complete file.
        if verified "$part" "$1"; then
          mv -f "$part" "$folder/$1"
          return 0
        fi
      fi
      [ "$had" = 1 ] || break
    done
  done
  return 1
}

case ${1:-} in
  -h | --help) usage; exit 0 ;;
  mnist)
    subfolder=mnist
    mirrors="https://ossci-datasets.s3.amazonaws.com/mnist
https://storage.googleapis.com/cvdf-datasets/mnist"
    files="train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz
t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz" ;;
  cifar10)
    subfolder=cifar10
    mirrors="https://www.cs.toronto.edu/~kriz"
    files=cifar-10-binary.tar.gz ;;
  shakespeare)
    subfolder=text
    mirrors="https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare"
    files=tinyshakespeare.txt ;;
  voc)
    subfolder=voc
    mirrors="http://host.robots.ox.ac.uk/pascal/VOC"
    files="VOCtrainval_06-Nov-2007.tar VOCtest_06-Nov-2007.tar VOCtrainval_11-May-2012.tar" ;;
  '') usage >&2; exit $EXIT_USAGE ;;
  *) fail $EXIT_USAGE "unknown data set '$1'; use $SETS: data/fetch.sh mnist [DIR]" ;;
esac
mirrors=${KUMO_FETCH_MIRRORS:-$mirrors}
[ $# -le 2 ] || fail $EXIT_USAGE "one argument too many: $3; data/fetch.sh $1 [DIR]"
directory=${2:-${KUMO_DATA:-}}
[ -n "$directory" ] || fail $EXIT_USAGE "no target folder: use data/fetch.sh $1 DIR, or set KUMO_DATA"

command -v sha256sum >/dev/null || fail $EXIT_CONFIGURATION "sha256sum is missing: install coreutils"
if command -v curl >/dev/null; then
  downloader=curl
elif command -v wget >/dev/null; then
  downloader=wget
else
  fail $EXIT_CONFIGURATION "neither curl nor wget is installed: install one of them"
fi
if [ -n "${KUMO_FETCH_SHA256SUMS:-}" ] && [ ! -r "$KUMO_FETCH_SHA256SUMS" ]; then
  fail $EXIT_CONFIGURATION "KUMO_FETCH_SHA256SUMS: $KUMO_FETCH_SHA256SUMS cannot be read"
fi

folder=$directory/$subfolder
mkdir -p "$folder" 2>/dev/null && [ -d "$folder" ] ||
  fail $EXIT_CONFIGURATION "$folder cannot be made; name another DIR"

for name in $files; do
  [ -n "$(expected_sum "$name")" ] ||
    fail $EXIT_CONFIGURATION "KUMO_FETCH_SHA256SUMS has no line for $name"
  if [ -f "$folder/$name" ] && [ "$(sum_of "$folder/$name")" = "$(expected_sum "$name")" ]; then
    echo "$name: there already"
    continue
  fi
  [ -w "$folder" ] || fail $EXIT_CONFIGURATION "$folder cannot be written; name another DIR"
  fetch "$name" || fail $EXIT_UNAVAILABLE "$name: no mirror delivered the complete file; try again later"
done
if [ "$1" = cifar10 ]; then
  echo "unpacks $files"
  tar -xzf "$folder/$files" -C "$folder" ||
    fail $EXIT_CONFIGURATION "$folder/$files cannot be unpacked; is the disk full?"
fi
echo "$1 is in $folder; use it with --set data.directory=$directory or KUMO_DATA=$directory"
if [ "$1" = cifar10 ]; then
  echo "experiments on CIFAR-10 read it with --set data.reader=cifar" \
    "--set data.train_images=cifar10/cifar-10-batches-bin" \
    "--set data.validation_images=cifar10/cifar-10-batches-bin/test_batch.bin"
fi
if [ "$1" = voc ]; then
  echo "read the archives with --set data.reader=voc --set data.classes=20" \
    "--set data.train_images=voc/VOCtrainval_06-Nov-2007.tar:trainval,voc/VOCtrainval_11-May-2012.tar:trainval" \
    "--set data.validation_images=voc/VOCtest_06-Nov-2007.tar:test"
fi
