#!/usr/bin/env bash
# Who may include whom, and how long the judge of certificates may be: prints every breach of a rule, and fails if
# there is one.
# Usage: tests/fences.sh [REPOSITORY]. The rules are those of README.md.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

# All includes as FILE:LINE:HEADER, <header> without its brackets, "header" with a leading quote.
includes() {
  local folders=() folder
  for folder in planner sim plots experiments runtime tests; do [[ -d $folder ]] && folders+=("$folder"); done
  grep -rnHE --include='*.h' --include='*.cc' --include='*.cu' '^[[:space:]]*#[[:space:]]*include' "${folders[@]}" |
    sed -E 's/^([^:]+:[0-9]+):[^<"]*(<([^>]+)>|("[^"]+)").*/\1:\3\4/'
}

# The rooms of a folder, the lowest first: a room includes itself and those before it. Files beside the rooms that are
# not named (doors, programs) stand above all of them.
rooms_of() {
  case $1 in
    planner/io) echo files/ tensors/ model/ cluster/ plan/ experiment/ results/ ;;
    planner/search) echo problem.h price/ cuts/ bound/ proof/ orders/ joint/ search. choices/ reference/ ;;
    runtime) echo device/ model/ transport/ launch/ execute/ profile/ train/ timed/ ;;
  esac
}

# level FOLDER FILE: the number of the file's room in that folder.
level() {
  local room number=0
  for room in $(rooms_of "$1"); do
    [[ $2 == "$1/$room"* ]] && echo $number && return
    number=$((number + 1))
  done
  echo 99
}

# The folders whose headers a file may include: a regular expression for what stands in quotes.
own_headers_of() {
  case $1 in
    planner/ir/*) echo '^"planner/ir/' ;;
    planner/schedule_tool/*) echo '^"planner/(ir|io|cost|schedules|schedule_tool)/' ;;  # judges what the search says
    planner/pfeife_schedule.cc) echo '^"(planner|plots)/' ;;  # a main: it wires
    planner/*) echo '^"planner/' ;;
    sim/*) echo '^"(sim|planner/ir|planner/io)/' ;;
    runtime/*) echo '^"(runtime|planner/ir|planner/io)/' ;;
    plots/*) echo '^"(plots|planner/ir)/' ;;
    *) echo '^"(planner|sim|plots|experiments|runtime|tests)/' ;;
  esac
}

# Where a third-party header may be: a regular expression for the file; empty for the standard library.
home_of() {
  case $1 in
    nlohmann/json_fwd.hpp) echo '^planner/io/|^tests/' ;;  # declares the type only; headers that readers share
    yaml-cpp/* | nlohmann/* | openssl/* | zip.h) echo '^planner/io/.*\.cc$|^tests/' ;;
    simgrid/* | xbt/* | xbt.h) echo '^sim/' ;;
    torch/* | ATen/* | c10/* | cuda* | nccl* | boost/asio*) echo '^runtime/|^tests/(runtime|gpu)/' ;;
    boost/program_options*) echo 'main' ;;
    fmt/*) echo '^planner/io/|main|^experiments/' ;;
    gtest/* | gmock/* | benchmark/* | coin/*) echo '^tests/' ;;
    unistd.h | dlfcn.h | fcntl.h | signal.h | malloc.h | sys/* | netdb.h | netinet/* | poll.h | spawn.h | immintrin.h) echo '^planner/io/|^planner/search/|^planner/cost/|^sim/|^runtime/|^experiments/|^tests/|main' ;;
    */* | *.h) echo 'nowhere' ;;
  esac
}

breaches=0
breach() {
  printf '%s: %s\n' "$1" "$2"
  breaches=$((breaches + 1))
}

while IFS=: read -r file line header; do
  if [[ $header == \"* ]]; then
    header=${header//\"/}
    [[ \"$header =~ $(own_headers_of "$file") ]] || breach "$file:$line" "may not include $header"
    for folder in planner/io planner/search runtime; do
      [[ $file == "$folder"/* && $header == "$folder"/* ]] || continue
      (($(level "$folder" "$header") <= $(level "$folder" "$file"))) ||
        breach "$file:$line" "may not include $header, which stands in a higher room"
    done
    continue
  fi
  home=$(home_of "$header")
  [[ -z $home || $file =~ $home ]] && continue
  [[ $home == *main* ]] && grep -qE '^int main\(' "$file" && continue
  breach "$file:$line" "may not include <$header>"
done < <(includes)

# What must be trusted stays short enough to be read: the table of planner/schedule_tool/README.md.
judges=planner/schedule_tool/README.md
while read -r file most; do
  lines=$(wc -l <"${judges%/*}/$file")
  ((lines <= most)) || breach "${judges%/*}/$file" "has $lines lines, and may have $most by $judges"
done < <([[ ! -e $judges ]] || sed -nE 's/^\| `([a-z_]+\.cc)` \| ([0-9]+) \|.*/\1 \2/p' "$judges")

if ((breaches > 0)); then
  echo "$breaches breaches of the rules of README.md, \"Who may include whom\", or of $judges." >&2
  exit 1
fi
