# Packages of bench/gpu_bundle.sh, unpacked into a folder of their own and used from there, also on
# another release of the system than theirs. Sourced by bench/gpu_check.sh.
#
# The packages shadow nothing of the machine: if the machine has a library of the same soname, that
# library is used (it may be newer, and a program must not load two), and LD_LIBRARY_PATH is set for
# the two programs of the bundle only.

# kumo_machine_library SONAME: prints the path of the machine's library; nothing if it has none.
kumo_machine_library() {
  { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null |
    awk -v soname="$1" '$1 == soname && /x86-64/ { print $NF; exit }'
}

# kumo_unpack BUNDLE PACKAGES: fills the folder PACKAGES, unless it exists.
kumo_unpack() {
  local bundle=$1 packages=$2 part=$2.part package link target own
  [ -d "$packages" ] && return 0
  rm -rf "$part"
  mkdir -p "$part"
  for package in "$bundle"/*.deb; do
    [ -e "$package" ] || { echo "$bundle has no packages: bench/gpu_bundle.sh makes them"; return 1; }
    dpkg -x "$package" "$part" || return 1
  done
  if [ -d "$part/lib" ]; then
    cp -a "$part/lib/." "$part/usr/lib/"
    rm -r "$part/lib"
  fi
  local libraries=$part/usr/lib/x86_64-linux-gnu
  for link in "$libraries"/*.so.*; do
    [ -e "$link" ] || continue  # went with its soname
    [ -z "$(kumo_machine_library "$(basename "$link")")" ] && continue
    target=$(readlink -f "$link")
    rm -f "$link" "$target"
  done
  # Links of the linker, such as libz.so, may now point nowhere.
  for link in "$libraries"/*.so; do
    [ -e "$link" ] && continue
    own=
    target=$(basename "$(readlink "$link")")
    while [ -z "$own" ] && [[ $target == *.so.* ]]; do  # libz.so.1.2.13, libz.so.1.2, libz.so.1
      [ -e "$libraries/$target" ] && own=$target || own=$(kumo_machine_library "$target")
      target=${target%.*}
    done
    [ -n "$own" ] && ln -sf "$own" "$link" || rm "$link"
  done
  # The private dependencies of the libraries concern static linking only, and the bundle lacks their
  # development packages.
  sed -i '/^\(Requires\|Libs\)\.private/d' "$libraries"/pkgconfig/*.pc
  local program
  for program in protoc pkgconf; do
    mv "$part/usr/bin/$program" "$part/usr/bin/$program.unpacked"
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$packages/usr/lib/x86_64-linux-gnu" \
      "$packages/usr/bin/$program.unpacked" >"$part/usr/bin/$program"
    chmod +x "$part/usr/bin/$program"
  done
  mv "$part" "$packages"
  # Packages of a newer system than this one fail here instead of in the middle of the build.
  "$packages/usr/bin/protoc" --version
}

# kumo_package_flags PACKAGES: CMake's arguments, one a line. The old kind of run path also holds for
# the libraries that a library of the bundle loads itself.
kumo_package_flags() {
  local libraries=$1/usr/lib/x86_64-linux-gnu
  local link="-Wl,--disable-new-dtags -Wl,-rpath,$libraries -Wl,-rpath-link,$libraries"
  printf '%s\n' "-DCMAKE_PREFIX_PATH=$1/usr" "-DCMAKE_EXE_LINKER_FLAGS=$link" \
    "-DCMAKE_MAKE_PROGRAM=$1/usr/bin/ninja" "-DPKG_CONFIG_EXECUTABLE=$1/usr/bin/pkgconf" \
    "-DProtobuf_PROTOC_EXECUTABLE=$1/usr/bin/protoc" \
    "-DKUMO_CHART_JS=$1/usr/share/javascript/chart.js/chart.min.js"
}
