#!/usr/bin/env bash
# A program of somebody else's: installs a build, builds README's program outside the tree, by CMake and by pkg-config, and
# runs it. The public headers (pfeife.h, those that it includes, the schedule families) open with an example that compiles.
# Usage: tests/install_test.sh BUILD_FOLDER
set -euo pipefail
build=$(cd "${1:?usage: tests/install_test.sh BUILD_FOLDER}" && pwd)
readme=$(cd "$(dirname "$0")/.." && pwd)/README.md
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
prefix=$place/installed

cmake --install "$build" --prefix "$prefix" >/dev/null
mkdir "$place/project"
sed -n '/^```cpp$/,/^```$/p' "$readme" | sed '/^```/d' >"$place/project/main.cc"
(($(wc -l <"$place/project/main.cc") <= 40)) || { echo "README's program has more than 40 lines" && exit 1; }
cat >"$place/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.22)
project(embedder LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(pfeife 0.2 REQUIRED)
add_executable(embedder main.cc)
target_link_libraries(embedder PRIVATE pfeife::pfeife)
END
cmake -S "$place/project" -B "$place/project/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$place/project/build" >/dev/null
cd "$place/project"
build/embedder "$prefix/share/pfeife/configs" >said || { cat said && exit 1; }
for file in timeline.svg plan/plan.yaml plan/schedule.csv plan/certificate.txt; do
  [[ -s $file ]] || { echo "the program did not write $file" && exit 1; }
done
grep -q '^1f1b .* s$' said && grep -q '^no plan is faster than' said || { cat said && exit 1; }
"$prefix/bin/pfeife-schedule" certify plan >/dev/null

flags=$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs pfeife)
# shellcheck disable=SC2086
c++ -std=c++20 main.cc $flags -o by_pkg_config
# It is the same program: that it starts and reads its files is enough.
status=0
./by_pkg_config "$place/nowhere" >/dev/null 2>said || status=$?
((status == 2)) && grep -q nowhere said || { cat said && echo "the program built by pkg-config does not run" && exit 1; }

headers=$prefix/include/pfeife
{
  printf '%s\n' '#include <cstdio>' '#include <pfeife/pfeife.h>' '#include "planner/schedules/families.h"'
  while read -r header; do
    # `//   code` above #pragma once.
    example=$(sed -n '/^#pragma once/q; s,^//   \([^#]\),\1,p' "$headers/$header")
    [[ $example ]] || { echo "$header does not open with an example" >&2 && exit 1; }
    printf 'void in_%s(pfeife::Model model, pfeife::Cluster cluster, pfeife::Planned planned, pfeife::Trace trace) {\n' "${header//[^a-z]/_}"
    printf 'using namespace pfeife;\n{\n%s\n}\n}\n' "$example"
  done < <({ echo pfeife.h && echo planner/schedules/families.h && sed -n 's,^#include "\(.*\)",\1,p' "$headers/pfeife.h"; } | sort -u)
} >examples.cc
# shellcheck disable=SC2086
c++ -std=c++20 -fsyntax-only examples.cc $flags

# The programs, moved elsewhere with what they need: also the simulator.
mv "$prefix" "$place/moved"
"$place/moved/bin/pfeife-exp" "$place/moved/share/pfeife/configs/two_stage.yaml" --out "$place/out" >said
grep -q simulated said || { cat said && exit 1; }
# What is installed with them is found by its name, from any folder.
mkdir "$place/elsewhere" && cd "$place/elsewhere"
"$place/moved/bin/pfeife-exp" fits llama3_8b h100_sxm_hosts --devices 8 >said || { cat said && exit 1; }
