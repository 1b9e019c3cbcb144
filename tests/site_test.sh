#!/usr/bin/env bash
# The site of the repository's pages is made without a warning. Every link in it leads to a file and a heading, those in raw
# HTML too, and every picture of a <picture> is there; lists and tables are shown; nothing is loaded from other hosts; the reference of Python has every
# public name. In a browser, pages opened as files find words. Skipped (77) where git tracks nothing or pip reaches no packages.
# Usage: tests/site_test.sh BUILD_FOLDER REPOSITORY
set -euo pipefail
build=$(cd "$1" && pwd) repository=$(cd "$2" && pwd)
if ! git -C "$repository" rev-parse 2>/dev/null; then
  echo "skipped: $repository is no clone"
  exit 77
fi
python3 "$repository/experiments/site/build_site.py" "$build"

python3 - "$build/site" "$repository" <<'END'
import ast, re, sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

site, repository = (Path(argument).resolve() for argument in sys.argv[1:])


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.anchors, self.unread = [], [], set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key in ("href", "src", "srcset") and value:
                (self.links if tag == "a" else self.loaded).append(value)
            if key in ("id", "name") and value:
                self.anchors.add(value)

    def handle_data(self, text):
        if self.lasttag in ("p", "em", "strong", "code", "a"):  # a list or a table that was taken for a paragraph
            self.unread += re.findall(r"\n[-*|] .*", text)


mistakes = []
pages = {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
for path, page in pages.items():
    name = path.relative_to(site)
    mistakes += [f"{name} shows Markdown: {text.strip()}" for text in page.unread]
    mistakes += [f"{name} loads {link}" for link in page.loaded if urlsplit(link).netloc]
    for link in page.links + page.loaded:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.is_file():
            mistakes.append(f"{name}: there is no {link}")
        elif target in pages and parts.fragment and unquote(parts.fragment) not in pages[target].anchors:
            mistakes.append(f"{name}: no heading {link}")

# ConfigError and RuntimeFault are compiled: text of the page describes them.
package = ast.parse((repository / "python/pfeife/__init__.py").read_text())
public = next(ast.literal_eval(node.value) for node in package.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
reference = site / "python/REFERENCE.html"
shown = pages[reference].anchors
mistakes += [
    f"python/REFERENCE.md lacks pfeife.{name}"
    for name in public
    if f"pfeife.{name}" not in shown and f"<code>pfeife.{name}</code>" not in reference.read_text()
]
print(*mistakes, f"{len(pages)} pages, {sum(len(page.links + page.loaded) for page in pages.values())} links", sep="\n")
sys.exit(bool(mistakes) or len(pages) < 50)
END

for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null || continue
  profile=$(mktemp -d)
  trap 'rm -rf "$profile"' EXIT
  timeout 60 "$name" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --user-data-dir="$profile" \
    --virtual-time-budget=10000 --dump-dom "file://$build/site/index.html?q=recompute" >"$profile/dom" 2>"$profile/log" || true
  grep -qE '[0-9]+ matching documents' "$profile/dom" || { echo "$name finds no page with recompute" && tail -5 "$profile/log" && exit 1; }
  break
done
