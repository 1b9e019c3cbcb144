#!/usr/bin/env bash
# A machine without our packages: their headers, libraries and CMake files are hidden from this process and its children
# (a mount namespace), and lie in a folder, as somebody without root has them. Configures, and says what is missing where
# the folder lacks something.
# Usage: tests/prefix_test.sh [--build]   (also builds the programs and plans with them, without the simulator: minutes)
# Exit code 77: no mount namespace may be made here, or this is not Debian.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# libboost1.74-dev and such hold what libboost-program-options-dev only depends on.
packages() {
  dpkg-query -W -f='${Package}\n' 2>/dev/null |
    grep -E '^(libyaml-cpp-dev|nlohmann-json3-dev|libzip-dev|zlib1g-dev|libssl-dev|libboost.*-dev|libfmt-dev|libsimgrid-dev)$'
}

if [[ ${1:-} != --inside ]]; then
  command -v dpkg-query >/dev/null || exit 77
  place=$(mktemp -d)
  trap 'rm -rf "$place"' EXIT
  spaces=(unshare --mount)
  ((EUID == 0)) || spaces=(unshare --mount --map-root-user)
  "${spaces[@]}" true 2>/dev/null || { echo "no mount namespace may be made here" && exit 77; }
  mkdir "$place/prefix"
  # Files and links to files of the packages, below /usr as below the prefix.
  packages | xargs dpkg -L | sort -u | while read -r file; do
    if [[ $file == /usr/* && ! -d $file && -e $file ]]; then printf '%s\n' "${file#/usr/}"; fi
  done >"$place/files"
  tar -C /usr -c -T "$place/files" | tar -C "$place/prefix" -x
  # The link to a library leads to a file of the runtime package.
  find "$place/prefix" -xtype l | while read -r link; do
    cp -P "/usr/${link#"$place/prefix/"}".* "$(dirname "$link")/"
  done
  sed -i "s|^prefix=/usr|prefix=$place/prefix|" "$place"/prefix/lib/*/pkgconfig/*.pc
  rm "$place"/prefix/lib/*/pkgconfig/simgrid.pc  # SimGrid is nowhere
  "${spaces[@]}" "$0" --inside "$place" "${1:-}"
  exit
fi

place=$2
prefix=$place/prefix
sed -nE 's#^((include|lib/[^/]*/cmake|lib/cmake|share/cmake)/[^/]+).*#\1#p; s#^(lib/[^/]*/(pkgconfig/)?[^/]+)$#\1#p' "$place/files" | sort -u |
  grep -vxE 'include/(x86_64-linux-gnu|c\+\+)' | while read -r file; do
    if [[ -L /usr/$file ]]; then continue; fi  # the links of libraries, which nothing finds without the rest
    if [[ -d /usr/$file ]]; then mount -t tmpfs none "/usr/$file"; else mount --bind /dev/null "/usr/$file"; fi
  done
cd "$root"
options=(-DPFEIFE_RUNTIME=OFF -DPFEIFE_TESTS=OFF -DCMAKE_BUILD_TYPE=Release)
unset CMAKE_PREFIX_PATH

if cmake -S . -B "$place/none" "${options[@]}" >"$place/said" 2>&1; then
  echo "it configures although nothing is there" && exit 1
fi
for name in yaml-cpp nlohmann_json fmt Boost.Program_options OpenSSL libzip zlib; do
  grep -q "^ *$name: " "$place/said" || { cat "$place/said" && echo "$name is missing, but that is not said" && exit 1; }
done
grep -q 'CMAKE_PREFIX_PATH=FOLDER' "$place/said"

mv "$prefix/include/yaml-cpp" "$place/" && mv "$prefix"/lib/*/cmake/yaml-cpp "$place/cmake"
if CMAKE_PREFIX_PATH=$prefix cmake -S . -B "$place/one" "${options[@]}" >"$place/said" 2>&1; then
  echo "it configures without yaml-cpp" && exit 1
fi
[[ $(grep -c '^ *[A-Za-z_.-]*: .*conda-forge' "$place/said") == 1 ]] || { cat "$place/said" && exit 1; }
mv "$place/yaml-cpp" "$prefix/include/" && mv "$place/cmake" "$(echo "$prefix"/lib/*/cmake)/yaml-cpp"

CMAKE_PREFIX_PATH=$prefix cmake -S . -B "$place/build" "${options[@]}" >"$place/said" 2>&1 || { cat "$place/said" && exit 1; }
for found in yaml-cpp_DIR nlohmann_json_DIR fmt_DIR Boost_DIR OPENSSL_INCLUDE_DIR; do
  grep -q "^$found:PATH=$prefix/" "$place/build/CMakeCache.txt" || { echo "$found is not of the folder" && exit 1; }
done
if [[ ${3:-} == --build ]]; then
  cmake --build "$place/build" --parallel "$(nproc)" --target pfeife-exp pfeife-schedule >"$place/said" 2>&1 || {
    grep -E -A 8 ' error |error:|undefined|\*\*\*' "$place/said" | head -n 60 || tail -n 20 "$place/said"
    echo "it does not build" && exit 1
  }
  program=$place/build/experiments/pfeife-exp
  "$program" configs/two_stage.yaml --set engines=[estimate] --out "$place/out"
  if "$program" configs/two_stage.yaml --out "$place/simulated" >"$place/said" 2>&1 || ! grep -q libsimgrid-dev "$place/said"; then
    cat "$place/said" && echo "simulating without SimGrid does not say what to install" && exit 1
  fi
fi
