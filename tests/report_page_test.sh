#!/usr/bin/env bash
# The report in a browser: pages of 6 and of 32 cases have no error on the console, their tables sort, a link to a case
# opens it, and every link to a file leads to one; six cases print on at most 15 pages, nothing torn from its heading, in
# type of at least 4 points; nothing is wider than its window of 500 pixels, the narrowest that a browser makes; a chart has
# one unit, no figure six decimals. Skipped (77) where there is no chromium or no pdftotext.
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
config many '{devices: [2, 4], microbatches: [2, 4, 8, 16], training.microbatch_size: [1, 2, 3, 4]}'

# What a reader does; the result is the text of an element of the page.
actions='<script>
addEventListener("load", async () => {
  const wrong = [], check = (holds, what) => holds || wrong.push(what);
  const table = document.querySelector("#results").parentElement.querySelector("table");
  const column = [...table.querySelectorAll("th")].findIndex(head => head.textContent.startsWith("Estimated, ms"));
  const values = () => [...table.tBodies[0].rows].map(row => Number(row.cells[column].dataset.value));
  const sorted = sign => values().every((value, i, all) => i === 0 || sign * (value - all[i - 1]) >= 0);
  const button = table.querySelectorAll("th button")[column];
  button.click();
  check(sorted(1), "rising");
  button.click();
  check(sorted(-1), "falling");
  const cases = [...document.querySelectorAll("#cases ~ details")];
  check(cases.length === Number(document.body.dataset.cases), "cases " + cases.length);
  check(document.documentElement.scrollWidth <= innerWidth, "the page is wider than its window");
  check(innerWidth <= 500, "the window has " + innerWidth);
  check(!cases.some(one => one.open), "cases are folded");
  location.hash = "#" + cases[3].id;
  await new Promise(resolve => setTimeout(resolve, 200));
  check(cases[3].open, "a link to a case opens it");
  for (const link of document.querySelectorAll("a[href^=\"#\"]"))
    check(document.getElementById(link.getAttribute("href").slice(1)), "no target of " + link.href);
  for (const chart of document.querySelectorAll("svg")) {
    const said = [...chart.querySelectorAll("text")].map(text => text.textContent);
    for (const units of [/\d (ns|µs|ms|s)(?![a-z])/, /\d ([KMGT]iB)/]) {
      const found = new Set();
      for (const text of said) for (const match of text.matchAll(new RegExp(units, "g"))) found.add(match[1]);
      check(found.size <= 1, "units " + [...found] + " in one chart: " + said[0]);
    }
    check(!said.some(text => /\d\.\d{6}/.test(text)), "six decimals in " + said[0]);
  }
  for (const cell of document.querySelectorAll("td"))
    check(!/\d\.\d{6}/.test(cell.textContent), "six decimals in " + cell.textContent);
  for (const one of document.querySelectorAll("svg")) one.dataset.height = one.viewBox.baseVal.height;
  dispatchEvent(new Event("beforeprint"));
  check(cases.every(one => one.open && one.querySelector("details.best").open), "printing opens the best plan of each case");
  const drawings = [...document.querySelectorAll("details.best svg")].filter(one => one.querySelector(".strips"));
  const strips = one => [...one.querySelectorAll(".strips")].some(part => part.style.display !== "none");
  check(drawings.every(one => one.viewBox.baseVal.height < 0.45 * one.viewBox.baseVal.width || !strips(one)),
    "a drawing that is too high is printed with its strips of memory");
  dispatchEvent(new Event("afterprint"));
  check(drawings.length > 0 && drawings.every(one =>
    strips(one) && one.viewBox.baseVal.height === Number(one.dataset.height)),
    "the drawings are as before after printing");
  for (const fold of document.querySelectorAll("details")) fold.querySelector("summary").click();
  check(!cases[3].open, "a fold closes");
  document.body.append(Object.assign(document.createElement("p"), {textContent: "CHECKED: " + (wrong.join("; ") || "fine")}));
});
</script>'

failed=0
# try NAME CASES MOST_BYTES
try() {
  "$pfeife_exp" "$1.yaml" --out "$1" --quiet >/dev/null
  local page=$1/report.html size link
  size=$(stat -c %s "$page")
  echo "$1: $size bytes"
  ((size < $3)) || { echo "$1: the page is larger than $3 bytes" && failed=1; }
  while read -r link; do
    [[ -e $1/$(printf '%b' "${link//%/\\x}") ]] || { echo "$1: no file $link" && failed=1; }
  done < <(grep -oE 'href="\./[^"]*"' "$page" | sed -E 's/^href="(.*)"$/\1/' | sort -u)
  (($(grep -cE 'href="\./[^"]*plan\.yaml"' "$page") > 0)) || { echo "$1: no links to files" && failed=1; }
  sed -e "s/<body>/<body data-cases=\"$2\">/" "$page" >"$1/acted.html"
  printf '%s' "$actions" >>"$1/acted.html"
  timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --user-data-dir="$folder/profile" --host-resolver-rules='MAP * ~NOTFOUND' --enable-logging=stderr --v=0 \
    --window-size=500,900 --virtual-time-budget=5000 --dump-dom "file://$folder/$1/acted.html" >dom.txt 2>log.txt || { echo "$1: the browser failed" && tail -5 log.txt && failed=1; }
  grep -E 'CONSOLE' log.txt && failed=1
  grep -oE 'CHECKED: [^<]*' dom.txt | tail -1 | grep -v 'textContent' | tee said.txt || true
  grep -qx 'CHECKED: fine' said.txt || { echo "$1: not as it should be" && failed=1; }
}
try six 6 5000000
try many 32 5000000

# On paper: the best plan of each case, opened; no page more than 15.
timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
  --user-data-dir="$folder/profile" --no-pdf-header-footer --print-to-pdf=six.pdf "file://$folder/six/report.html" 2>log.txt ||
  { echo "printing failed" && tail -5 log.txt && failed=1; }
pages=$(grep -a -o '/Type */Page\b' six.pdf | wc -l)
echo "six cases print on $pages pages"
((pages >= 6 && pages <= 15)) || { echo "expected 6 to 15 pages" && failed=1; }
# A heading stays with what it heads, a case with its plan and the timeline.
pdftotext -layout six.pdf six.txt
grep -oE '<h[23][^>]*>[^<]*' six/report.html | sed -E 's/^[^>]*>//; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g' | sort -u >headings.txt
awk -v RS='\f' -v FS='\n' '
  FILENAME == "headings.txt" { for (i = 1; i <= NF; ++i) heading[$i] = 1; next }
  {
    for (last = NF; last > 0 && $last ~ /^ *$/; --last) continue
    text = $last
    gsub(/^ +| +$/, "", text)
    if (text in heading) print "page " FNR " ends with the heading " text
    if (/best: /) timelines += /★ *(estimated|simulated)/ && /rank 0/
  }
  END { if (timelines != 6) print timelines + 0 " of 6 cases stand on one page with plan and timeline" }
' headings.txt six.txt >torn.txt
[[ ! -s torn.txt ]] || { cat torn.txt && failed=1; }
# What is written in boxes can be read: a box of text around type of 4 points is 4.6 high.
pdftotext -bbox six.pdf six.html
awk -F'"' '/<word/ && $9 ~ /^>[FB]?[0-9]+</ { height = $8 - $4; if (height < 4.6) ++small; ++all }
  END { print all + 0 " labels and figures printed, " small + 0 " too small"; exit !(all > 100 && small + 0 == 0) }' six.html ||
  { echo "labels of boxes are printed too small" && failed=1; }
exit $failed
