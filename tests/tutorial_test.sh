#!/usr/bin/env bash
# The tutorial of planner/schedules does what it says: its `sh` blocks run in order in one folder, and what a `text` block
# shows is what the block before it prints. Usage: tutorial_test.sh PFEIFE_SCHEDULE PFEIFE_EXP REPOSITORY
set -euo pipefail
schedule=$1 exp=$2 repository=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin"
ln -s "$schedule" "$folder/bin/pfeife-schedule"
ln -s "$exp" "$folder/bin/pfeife-exp"
export PATH=$folder/bin:$PATH PFEIFE=$repository
cd "$folder"

# Blocks into files, 01.sh, 02.text, ...
awk '/^```(sh|text)$/ { kind = substr($0, 4); file = sprintf("%02d.%s", ++count, kind); next }
     /^```$/ { file = ""; next }
     file != "" { print > file }' "$PFEIFE/planner/schedules/TUTORIAL.md"

failed=0 blocks=0
for block in ??.*; do
  if [[ $block == *.sh ]]; then
    blocks=$((blocks + 1))
    bash -euo pipefail "$block" >printed 2>said || { echo "block $block fails:" && cat "$block" said && failed=1; }
  elif ! diff "$block" printed; then
    echo "block $block is not what the block before it prints"
    failed=1
  fi
done
# What the prose between the blocks promises.
((blocks == 6)) || { echo "expected 6 blocks of commands, found $blocks" && failed=1; }
[[ -s mine.svg && -s results/compare/report.html ]] || { echo "no figure or no report" && failed=1; }
exit "$failed"
