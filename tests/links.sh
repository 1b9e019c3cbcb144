#!/usr/bin/env bash
# Links in the READMEs to files and headings of this repository lead somewhere: prints those that do not, and fails.
# Usage: tests/links.sh [REPOSITORY]
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

# headings FILE: its headings as the ends of links.
headings() {
  sed -nE 's/^#+ +//p' "$1" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

broken=0
while IFS=: read -r file line link; do
  path=${link%%#*}
  target=$file
  [[ -z $path ]] || target=$(dirname "$file")/$path
  if [[ ! -e $target ]]; then
    echo "$file:$line: there is no $link"
  elif [[ $link == *#* && $target == *.md ]] && ! headings "$target" | grep -qxF -- "${link#*#}"; then
    echo "$file:$line: $target has no heading ${link#*#}"
  else
    continue
  fi
  broken=$((broken + 1))
done < <(find . -name '*.md' -not -path './build/*' -not -path './results/*' -exec grep -noHE '\]\([^) ]+\)' {} + |
  sed -E 's/\]\((.*)\)$/\1/' | grep -vE ':(https?|mailto):')
((broken == 0))
