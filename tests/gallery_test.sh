#!/usr/bin/env bash
# The gallery shows every picture of the repository and only such that exist, says the command that makes it, and its
# pictures are what the programs draw: one of them is drawn again. The README has three of them.
# Usage: tests/gallery_test.sh REPOSITORY PFEIFE_SCHEDULE
set -euo pipefail
cd "$1"
schedule=$2 failed=0
page=plots/GALLERY.md
fail() {
  echo "$1" >&2
  failed=1
}
# pictures PAGE: the files that it shows, as paths of the repository.
pictures() {
  grep -oE '(\]\(|src(set)?=")[^)"]*\.(svg|png)' "$1" | sed -E 's/^(\]\(|src(set)?=")//' | (cd "$(dirname "$1")" && xargs -r realpath -m --relative-to="$OLDPWD") | sort
}
shown=$(pictures $page)
there=$(find plots experiments tests/benchmarks \( -name '*.svg' -o -name '*.png' \) -not -path '*/build/*' | sort)
[[ $shown == "$there" ]] || fail "$page and the pictures that there are differ:"$'\n'"$(diff <(echo "$shown") <(echo "$there"))"
grep -q 'plots/make_gallery' $page && [[ -x plots/make_gallery ]] || fail "$page does not say how it is made"
(($(pictures README.md | wc -l) >= 3)) || fail "README.md has fewer than three pictures"
for picture in $(pictures README.md); do [[ -e $picture ]] || fail "README.md shows $picture, which is not there"; done

again=$(mktemp)
trap 'rm -f "$again"' EXIT
"$schedule" generate zbv --ranks 4 --microbatches 8 | "$schedule" show - --svg "$again" --title 'ZB-V, F = I = W'
cmp -s "$again" plots/examples/zbv.svg || fail "plots/examples/zbv.svg is not what is drawn now; run plots/make_gallery"
exit $failed
