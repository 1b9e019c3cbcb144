#!/usr/bin/env python3
"""Makes the site of the repository's pages with MkDocs: BUILD_FOLDER/site, from copies in BUILD_FOLDER/site-sources.

Usage: build_site.py BUILD_FOLDER. Pages are the Markdown files that git tracks. Files that pages link to are copied beside
them; a linked folder without a README gets a page that lists its files. Exit codes: 1 if MkDocs warns (a dead link, an
unknown heading), 77 if pip reaches no packages. Links in raw HTML are left to tests/site_test.sh.
"""

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path, PurePosixPath

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LINK = re.compile(r"(\]\(|\b(?:src|srcset|href)=\")([^)\"\s#]+)")
FENCED = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
TABLE_ROW = re.compile(r"^\|.*", re.MULTILINE)
CODE = re.compile(r"`[^`]+`")
BEFORE_LIST = re.compile(r"^(?![-*] |[0-9]+\. |[\s|#]).+\n(?=(?:[-*]|1\.) )", re.MULTILINE)


def tools(folder: Path) -> Path:
    """Returns the Python of an environment with the pinned packages; makes it once for each version of their list."""
    python, wanted, ready = folder / "bin/python", (HERE / "requirements.txt").read_text(), folder / "ready"
    if not ready.exists() or ready.read_text() != wanted:
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", HERE / "requirements.txt"]
        try:
            venv.create(folder, clear=True, with_pip=True)
            subprocess.run(pip, check=True)
        except subprocess.CalledProcessError as error:
            print(f"skipped: pip (Debian: python3-venv) does not bring {', '.join(wanted.split())}: {error}")
            sys.exit(77)
        ready.write_text(wanted)
    return python


def tracked() -> set[str]:
    """Returns the paths of the files that git tracks and that exist, from the root."""
    git = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True)
    if git.returncode != 0:
        sys.exit(f"the site is made of files that git tracks; build it in a clone: {git.stderr}")
    return {path for path in git.stdout.split("\0") if path and (ROOT / path).is_file()}


def for_python_markdown(text: str) -> str:
    """Returns a code host's Markdown with an empty line before each list, and no backslash before a bar of code in a table."""
    parts = FENCED.split(text)  # prose and code in turn
    for number in range(0, len(parts), 2):
        prose = BEFORE_LIST.sub(r"\g<0>\n", parts[number])
        parts[number] = TABLE_ROW.sub(lambda row: CODE.sub(lambda code: code[0].replace(r"\|", "|"), row[0]), prose)
    return "".join(parts)


def collect(sources: Path) -> None:
    """Writes the pages, and what they link to, into an empty folder."""
    files = tracked()
    shutil.rmtree(sources, ignore_errors=True)

    def copy(path: str) -> None:
        if path.endswith(".md"):
            return  # a page, written below
        (sources / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, sources / path)

    def linked(page: str, link: str) -> str:
        """Returns the link as the site needs it, and copies the file or folder that it leads to."""
        path = os.path.normpath(PurePosixPath(page).parent / link)
        inside = [file for file in files if file.startswith(path + "/")]
        if path in files:
            copy(path)
        elif inside and f"{path}/README.md" not in files:
            listing = ""
            for file in sorted(inside):
                copy(file)
                listing += "- [{0}]({0})\n".format(os.path.relpath(file, path))
            (sources / path / "README.md").write_text(f"# {path}\n\n{listing}")
        return link.rstrip("/") + "/README.md" if inside else link

    for page in fnmatch.filter(files, "*.md"):
        text = LINK.sub(lambda match: match[1] + linked(page, match[2]), (ROOT / page).read_text())
        (sources / page).parent.mkdir(parents=True, exist_ok=True)
        (sources / page).write_text(for_python_markdown(text))
    for asset in "style.css", "iframe-worker.js":
        copy(f"experiments/site/{asset}")


def on_config(config):
    """MkDocs calls this: replaces the patterns in nav by pages."""
    pages = sorted(path.relative_to(config.docs_dir).as_posix() for path in Path(config.docs_dir).rglob("*.md"))

    left = [page for page in pages if repr(page) not in str(config.nav)]

    def expanded(nav):
        for entry in nav:
            if isinstance(entry, dict):
                [(title, value)] = entry.items()
                yield {title: value if isinstance(value, str) else list(expanded(value))}
            elif "*" in entry:
                taken = fnmatch.filter(left, entry)
                left[:] = [page for page in left if page not in taken]
                yield from taken
            else:
                yield entry

    config.nav = list(expanded(config.nav))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: build_site.py BUILD_FOLDER")
    build = Path(sys.argv[1]).resolve()
    collect(build / "site-sources")
    command = [tools(build / "site-tools"), "-m", "mkdocs", "build", "--strict", "-f", HERE / "mkdocs.yml", "-d", build / "site"]
    os.environ.update(PFEIFE_SITE_SOURCES=str(build / "site-sources"), NO_MKDOCS_2_WARNING="1")
    sys.exit(subprocess.run(command).returncode)
