#!/usr/bin/env bash
# The README's first table has the figures that the program prints, and the pictures of that case in plots/examples, which
# README and gallery show, are what it draws.
# Usage: tests/readme_figures_test.sh BUILD REPOSITORY
set -euo pipefail
build=$(realpath "$1")
cd "$2"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
plots/make_vit_pictures "$build" "$folder"
failed=0
fail() {
  echo "$1" >&2
  failed=1
}
# Rows of the table on standard input, a space between cells: its width depends on the other cases.
rows() { sed -n '/^ *D  *N  plan/,/^$/p' | sed -E 's/^ +//; s/ +/ /g; s/ $//' | sed '/^$/d'; }
said=$(rows <README.md) now=$(rows <"$folder/table.txt")
(($(echo "$said" | wc -l) == 5)) || fail "README.md has no table of a head and four plans"
[[ $said == "$now" ]] || fail "README.md's first table is not what the program prints now:"$'\n'"$(diff <(echo "$said") <(echo "$now"))"
for picture in "$folder"/*.svg; do
  name=plots/examples/$(basename "$picture")
  cmp -s "$picture" "$name" || fail "$name is not what is drawn now; run plots/make_gallery"
done
exit $failed
