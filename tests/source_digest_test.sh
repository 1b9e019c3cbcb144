#!/usr/bin/env bash
# The digests of the program's sources follow what they should, and nothing else.
# Usage: tests/source_digest_test.sh SOURCE_FOLDER
set -euo pipefail
script=$1/experiments/cmake/source_digest.cmake
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for part in planner/ir planner/schedules planner/schedule_tool sim runtime/train experiments/{plans,show} plots; do
  mkdir -p "$folder/tree/$part"
  echo "of $part" >"$folder/tree/$part/a.cc"
done

# digests: "PLANNING RUNTIME" of the tree.
digests() {
  cmake -DROOT="$folder/tree" -DOUT="$folder/digest.cc" -P "$script"
  grep -oE '[0-9a-f]{64}' "$folder/digest.cc" | paste -sd' '
}
failed=0
# expect CHANGES WHAT: after a change, "planning", "runtime" or "nothing" is another one than before.
expect() {
  local after now=()
  after=$(digests)
  [[ ${before% *} == "${after% *}" ]] || now+=(planning)
  [[ ${before#* } == "${after#* }" ]] || now+=(runtime)
  [[ ${now[*]:-nothing} == "$1" ]] || { echo "$2: ${now[*]:-nothing} changed, expected: $1"; failed=1; }
  before=$after
}

before=$(digests)
[[ $(wc -w <<<"$before") == 2 ]] || { echo "no two digests: $before"; exit 1; }
expect nothing "no change"
echo "another family" >"$folder/tree/planner/schedules/b.h"
expect planning "a family added"
echo "edited" >>"$folder/tree/planner/ir/a.cc"
expect planning "a source edited"
mv "$folder/tree/sim/a.cc" "$folder/tree/sim/c.cc"
expect planning "a source renamed"
echo "edited" >>"$folder/tree/runtime/train/a.cc"
expect runtime "the runtime edited"
touch "$folder/tree/planner/ir/a.cc"
echo "edited" | tee -a "$folder"/tree/{plots,experiments/show}/a.cc >>"$folder/tree/planner/schedule_tool/a.cc"
expect nothing "drawing, table and judge edited"
echo "edited" >>"$folder/tree/experiments/plans/a.cc"
expect planning "the making of plans edited"
exit $failed
