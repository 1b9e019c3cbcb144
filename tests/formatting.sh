#!/usr/bin/env bash
# Every source is what clang-format 14 makes of it by .clang-format: prints the first place in each that is not.
# Usage: tests/formatting.sh [REPOSITORY]. Exit code 1: some differ; 77: there is no clang-format 14.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

for program in clang-format-14 clang-format none; do
  "$program" --version 2>/dev/null | grep -q 'version 14\.' && break
done
if [[ $program == none ]]; then
  echo "clang-format 14 is not installed. On Debian 12: apt-get install clang-format" >&2
  exit 77
fi

# The sources, each followed by a NUL: what git tracks; without git, what lies in the folders.
sources() {
  if [[ $(git rev-parse --show-toplevel 2>/dev/null) == "$(pwd -P)" ]]; then
    git ls-files -z '*.h' '*.cc' '*.cu'
  else
    find planner sim plots experiments runtime tests configs \( -name '*.h' -o -name '*.cc' -o -name '*.cu' \) -print0
  fi
}

if ! differing=$(sources | xargs -0 -n 40 -P "$(nproc)" "$program" --dry-run -Werror --ferror-limit=1 2>&1); then
  grep -E ': error: ' <<<"$differing" | sed 's/: error: .*/: not as clang-format writes it/'
  echo "Run: $program -i FILES" >&2
  exit 1
fi
