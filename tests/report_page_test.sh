#!/usr/bin/env bash
# The report in a browser: pages of 6 and of 32 cases have no error on the console; table and chart of plans filter each
# other, a click opens a plan, its timeline zooms, moves and shows for a box and for a gap the chain of what it waited for,
# which is that of trace.json; keys do what the pointer does; every link leads somewhere. The comparison of plans is
# printed first, whole; nothing is wider than its window of 500 pixels, the narrowest that a browser makes. Skipped (77)
# where there is no chromium or no pdftotext.
# Usage: tests/report_page_test.sh PFEIFE_EXP REPOSITORY
set -euo pipefail
pfeife_exp=$(realpath "$1") root=$(realpath "$2")
browser=
for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && browser=$name && break
done
[[ -n $browser ]] || { echo "skipped: no chromium here (Debian package chromium)" && exit 77; }
command -v pdftotext >/dev/null || { echo "skipped: no pdftotext here (Debian package poppler-utils)" && exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

{
  echo name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_bytes,weight_saved_bytes,temporary_bytes
  for layer in {a..p}; do echo "$layer,1,1,1,1000,1000000,100000,1000,0"; done
} >layers.csv
# config NAME CASES: a sweep of the layers above.
config() {
  printf '%s\n' "version: 1" "model: layers.csv" "cluster: $root/configs/clusters/3090_x8.yaml" \
    "cases: $2" "plan: {families: [1f1b, interleaved_1f1b], stages_per_rank: [1, 2]}" "baselines: [1f1b, gpipe]" >"$1.yaml"
}
config six '{devices: [4, 8], microbatches: [2, 4, 8]}'
config single '{devices: [8], microbatches: [24]}'
config many '{devices: [2, 4], microbatches: [2, 4, 8, 16], training.microbatch_size: [1, 2, 3, 4]}'

# What a reader does; the result is the text of an element of the page.
actions=$(cat "$root/tests/report_page_actions.js")

failed=0
# try NAME CASES MOST_BYTES
try() {
  "$pfeife_exp" "$1.yaml" --out "$1" --quiet >/dev/null
  local page=$1/report.html size link
  size=$(stat -c %s "$page")
  echo "$1: $size bytes"
  ((size < $3)) || { echo "$1: the page is larger than $3 bytes" && failed=1; }
  # The plan of the first case as its file for Perfetto has it.
  local cases=("$1"/*/)
  local first=${cases[0]%/}
  {
    sed -e "s/<body>/<body data-cases=\"$2\" data-folder=\"${first##*/}\">/" "$page"
    printf '<script type="application/json" id="trace">'
    cat "$first/planned/trace.json"
    printf '</script><script>%s</script>' "$actions"
  } >"$1/acted.html"
  timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --user-data-dir="$folder/profile" --host-resolver-rules='MAP * ~NOTFOUND' --enable-logging=stderr --v=0 \
    --window-size=500,900 --virtual-time-budget=5000 --dump-dom "file://$folder/$1/acted.html" >dom.txt 2>log.txt || { echo "$1: the browser failed" && tail -5 log.txt && failed=1; }
  while read -r link; do
    [[ -e $1/$(printf '%b' "${link//%/\\x}") ]] || { echo "$1: no file $link" && failed=1; }
  done < <(grep -oE 'href="\./[^"]*"' dom.txt | sed -E 's/^href="(.*)"$/\1/' | sort -u)
  (($(grep -cE 'href="\./[^"]*plans\.svg"' dom.txt) > 0)) || { echo "$1: no links to files" && failed=1; }
  grep -E 'CONSOLE' log.txt && failed=1
  grep -oE 'CHECKED: [^<]*' dom.txt | tail -1 | grep -v 'textContent' | tee said.txt || true
  grep -qx 'CHECKED: fine' said.txt || { echo "$1: not as it should be" && failed=1; }
}
try six 6 1000000
try many 32 2000000

# On paper: the comparison of plans first and whole, then the plan with its timeline; of one case both on the first page.
# printed NAME MOST_PAGES
printed() {
  local pages
  timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --user-data-dir="$folder/profile" --no-pdf-header-footer "--print-to-pdf=$1.pdf" "file://$folder/$1/report.html" 2>log.txt ||
    { echo "printing failed" && tail -5 log.txt && failed=1; }
  pages=$(grep -a -o '/Type */Page\b' "$1.pdf" | wc -l)
  echo "$1 prints on $pages pages"
  ((pages >= 2 && pages <= $2)) || { echo "expected 2 to $2 pages" && failed=1; }
  pdftotext -layout "$1.pdf" "$1.txt"
  awk -v RS='\f' -v name="$1" '
    NR == 1 && !(/a step/ && /1f1b/ && /to spare/) { print "the first page does not compare the plans" }
    /rank 0/ && /rank 3/ { timelines = timelines " " NR }
    END { if (!timelines || name == "single" && timelines !~ /^ 1/) print "timelines are on pages" timelines }
  ' "$1.txt" >torn.txt
  [[ ! -s torn.txt ]] || { cat torn.txt && failed=1; }
}
printed six 4
"$pfeife_exp" single.yaml --out single --quiet >/dev/null
printed single 4
exit $failed
