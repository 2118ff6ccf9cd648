# Copies Kumo, a shell and the few tools that its containers need, with the libraries that these load,
# into a new folder that an image is made of. For each Debian package of which a file is copied the
# folder has its description (var/lib/dpkg/status.d), which is where scanners look for what is inside,
# and its copyright.
#
#   sh closure.sh FOLDER
set -eu
to=$1
tools='sh cat date echo env head id ls mkdir printf rm sleep sort tail tar tee test touch true wc curl jq'
programs='kumo kumo-server kumo-worker kumo-data'

mkdir -p "$to/tmp" "$to/etc" "$to/usr/bin" "$to/usr/lib" "$to/var/lib/dpkg/status.d"
chmod 1777 "$to/tmp"
for name in bin lib lib64 sbin; do
  mkdir -p "$to/usr/$name"
  ln -s "usr/$name" "$to/$name"
done
echo 'root:x:0:0:root:/:/sbin/nologin
kumo:x:65532:65532:kumo:/tmp:/sbin/nologin' >"$to/etc/passwd"
echo 'root:x:0:
kumo:x:65532:' >"$to/etc/group"
echo 'hosts: files dns' >"$to/etc/nsswitch.conf"

list=$(mktemp) owners=$(mktemp)
for name in $tools $programs; do command -v "$name"; done | grep / >"$list"
# Libraries, and the loader itself.
for file in $(cat "$list"); do
  ldd "$file" | sed -n 's|.*=> \(/[^ ]*\) .*|\1|p; s|^[[:space:]]*\(/[^ ]*\) .*|\1|p'
done | sort -u >>"$list"
# With the links that lead to them, all below usr.
for file in $(sort -u "$list"); do
  while [ -L "$file" ]; do
    echo "$file"
    target=$(readlink "$file")
    case $target in /*) file=$target ;; *) file=$(dirname "$file")/$target ;; esac
  done
  echo "$file"
done | sed -E 's#^/(bin|lib|lib64|sbin)/#/usr/\1/#' | sort -u |
  while read -r file; do
    mkdir -p "$to$(dirname "$file")"
    cp -a "$file" "$to$file"
    # Debian knows some by their names from before bin and lib were links into usr.
    { dpkg -S "$file" || dpkg -S "${file#/usr}"; } 2>/dev/null | sed '/^diversion by /d; s/: .*//'
  done | sort -u >"$owners"
mkdir -p "$to/usr/share"
cp -a /usr/share/kumo "$to/usr/share/"
mkdir -p "$to/etc/ssl/certs"
cp /etc/ssl/certs/ca-certificates.crt "$to/etc/ssl/certs/"
for package in $(cat "$owners") ca-certificates; do
  name=${package%%:*}
  dpkg -s "$package" >"$to/var/lib/dpkg/status.d/$name"
  mkdir -p "$to/usr/share/doc/$name"
  [ ! -f "/usr/share/doc/$name/copyright" ] || cp -L "/usr/share/doc/$name/copyright" "$to/usr/share/doc/$name/"
done
