#!/usr/bin/env bash
# A project that embeds the planner: installs a build, finds it as a package, and plans a pipeline.
# Usage: tests/install_test.sh BUILD_FOLDER
set -euo pipefail
build=$(cd "${1:?usage: tests/install_test.sh BUILD_FOLDER}" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

cmake --install "$build" --prefix "$place/installed" --component embed >/dev/null
mkdir "$place/project"
cat >"$place/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.22)
project(embedder LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(pfeife 0.2 REQUIRED)
add_executable(embedder main.cc)
target_link_libraries(embedder PRIVATE pfeife::pfeife_search pfeife::pfeife_io)
END
cat >"$place/project/main.cc" <<'END'
#include <cstdio>
#include "planner/io/plan/schedule_csv.h"
#include "planner/schedules/families.h"
int main() {
  const pfeife::ScheduleSpec spec{.family = "1f1b", .ranks = 2, .microbatches = 2};
  std::fputs(pfeife::write_schedule(pfeife::generate(spec)).c_str(), stdout);
}
END
cmake -S "$place/project" -B "$place/project/build" -DCMAKE_PREFIX_PATH="$place/installed" >/dev/null
cmake --build "$place/project/build" >/dev/null
found=$("$place/project/build/embedder")
expected=$'0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1'
[[ $found == "$expected" ]] || { printf 'expected\n%s\nfound\n%s\n' "$expected" "$found" && exit 1; }
