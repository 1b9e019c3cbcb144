#!/usr/bin/env bash
# pfeife-schedule as a user calls it: verbs pipe, answers go to standard output, exit codes are 0 and 2.
# Usage: schedule_cli_test.sh PROGRAM
set -uo pipefail
program=$1
failures=0
check() {  # check WHAT EXPECTED FOUND
  [[ $3 == *"$2"* ]] && return
  echo "$1: expected '$2' in '$3'"
  failures=$((failures + 1))
}

line=$("$program" generate zbv --ranks 4 --microbatches 8 | "$program" lower - |
  "$program" time - --costs f=1,i=1,w=1,transfer=0.05 --queues rank | head -n 1)
check "pipe" "step time " "$line"
check "validate" "right: 4 ranks" "$("$program" generate zbv --ranks 4 --microbatches 8 | "$program" lower | "$program" validate -)"

"$program" generate gpipe --ranks 2 --microbatches 2 >/dev/null; check "generate" 0 $?
printf '0F0,0X0\n' | "$program" validate - >/dev/null 2>&1; check "wrong cell" 2 $?
check "wrong cell" "standard input:1:5: row 1, cell 2" "$(printf '0F0,0X0\n' | "$program" validate - 2>&1)"
printf '0F0\n' | "$program" validate - >/dev/null 2>&1; check "incomplete" 2 $?
"$program" generate zbv --ranks 2 --microbatches 4 --stages-per-rank 3 >/dev/null 2>&1; check "refused point" 2 $?
check "old option" "pfeife-schedule: --loops is called --stages-per-rank now" "$("$program" generate zbv --ranks 2 --microbatches 4 --loops 2 2>&1)"
"$program" generate gpipe --ranks -2 --microbatches 2 >/dev/null 2>&1; check "negative number" 2 $?
"$program" generate zb_greedy --ranks 4 --microbatches 8 --costs f=1,i=1,w=1,transfer=0.1 --memory 4 |
  "$program" validate - >/dev/null; check "order built for costs" 0 $?
"$program" generate gpipe --ranks 4 --microbatches 8 --memory 4 >/dev/null 2>&1; check "memory of a closed form" 2 $?
"$program" generate zb_greedy --ranks 4 --microbatches 8 --memory 0 >/dev/null 2>&1; check "no memory" 2 $?
check "unknown option" "'--microbatch'; see pfeife-schedule generate --help" \
  "$("$program" generate gpipe --ranks 4 --microbatch 8 2>&1)"
folder=$(mktemp -d)  # of a plan
"$program" generate gpipe --ranks 2 --microbatches 2 >"$folder/schedule.csv"
check "the folder of a schedule" "right: 2 ranks" "$("$program" validate "$folder" 2>&1)"
rm -r "$folder"
"$program" certify / >/dev/null 2>&1; check "a folder has no proof" 2 $?
check "a folder has no proof" "neither a plan.yaml nor a certificate.txt" "$("$program" certify / 2>&1)"
check "missing plan" "/nowhere.yaml: there is no such file" "$("$program" certify /nowhere.yaml 2>&1)"
"$program" frobnicate >/dev/null 2>&1; check "unknown verb" 2 $?
"$program" info /nowhere.csv >/dev/null 2>&1; check "missing file" 2 $?
check "endless input" "standard input: is larger than the 64 MiB" "$(yes | "$program" lower - 2>&1)"
yes | "$program" lower - >/dev/null 2>&1; check "endless input" 2 $?
check "name in a fault" 'cannot write /proc/a\n\x1b[31mb.svg' \
  "$("$program" generate gpipe --ranks 1 --microbatches 1 | "$program" show - --svg $'/proc/a\n\e[31mb.svg' 2>&1)"
# Pictures at the printed size; a PDF says who made it, or what to install; a browser's has one page of that size.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$program" generate 1f1b --ranks 2 --microbatches 2 >"$folder/s.csv"
"$program" show "$folder/s.csv" --svg "$folder/s.svg" --width 3.3in --no-legend --title 'a & b'; check "width" 0 $?
check "width" ' width="317"' "$(head -1 "$folder/s.svg")"
"$program" show "$folder/s.csv" --svg "$folder/c.svg" --column --height 1in --pgf "$folder/c.pgf"; check "column" 0 $?
check "column" ' width="317" height="96"' "$(head -1 "$folder/c.svg")"
check "pgf" '\begin{pgfpicture}' "$(sed -n 2p "$folder/c.pgf")"
check "title" 'a &amp; b' "$(cat "$folder/s.svg")"
check "no legend" 0 "$(grep -c 'critical path' "$folder/s.svg")"
check "no critical path" 0 "$("$program" show "$folder/s.csv" --svg "$folder/s.svg" --no-critical-path && grep -c 'critical path' "$folder/s.svg")"
"$program" show "$folder/s.csv" --svg "$folder/s.svg" --memory; check "memory of a schedule" 0 $?
check "memory of a schedule" "at most 2 microbatches in flight" "$(cat "$folder/s.svg")"
check "memory of a schedule" "in flight" "$("$program" show "$folder/s.csv" --memory | head -1)"
check "costs in the terminal" "0              5" "$("$program" show "$folder/s.csv" --costs f=1,b=3 | head -1)"
check "the terminal's width" 40 "$(COLUMNS=40 "$program" show "$folder/s.csv" --costs f=1,b=3 | wc -L)"
check "no title of standard input" 0 "$("$program" show - --svg "$folder/s.svg" <"$folder/s.csv" && grep -c '>-<' "$folder/s.svg")"
check "no converter" "install rsvg-convert" "$(PATH= "$program" show "$folder/s.csv" --svg "$folder/s.svg" --pdf "$folder/s.pdf" 2>&1)"
for converter in rsvg-convert inkscape cairosvg chromium; do
  where=$(command -v $converter) || continue
  mkdir "$folder/$converter"
  printf '#!/bin/sh\nPATH=%s exec %s "$@"\n' "$PATH" "$where" >"$folder/$converter/$converter"
  chmod +x "$folder/$converter/$converter"
  said=$(PATH=$folder/$converter "$program" show "$folder/s.csv" --svg "$folder/s.svg" --width 3.3in --pdf "$folder/$converter.pdf" 2>&1)
  check "$converter" "$converter.pdf made by $converter" "$said"
  check "$converter" "%PDF" "$(head -c 4 "$folder/$converter.pdf")"
  check "$converter" "MediaBox" "$(tr -d '\0' <"$folder/$converter.pdf" | grep -a -o MediaBox | head -1)"
done
"$program" --help >/dev/null; check "help" 0 $?
check "torch output" "0" "$("$program" generate 1f1b --ranks 2 --microbatches 2 | "$program" lower --full --torch | grep -c OPTIMIZER)"

exit $((failures > 0))
