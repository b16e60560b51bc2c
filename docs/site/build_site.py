"""Build the documentation site: ``python docs/site/build_site.py out/site``.

Zensical makes two sites of the pages of ``docs/``: an English one, and a Chinese one in the folder ``zh``. The pages of
commands, causes and reports are made here, by the program itself.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from check_site import problems
from site_reports import page_with_reports, write_reports
from site_texts import causes, command_pages, list_of_commands, warnings_with_anchors

ROOT = Path(__file__).parents[2]
HERE = PurePosixPath("docs/site")
LANGUAGES = {"en": "English", "zh": "中文"}
LINK = re.compile(r"(?<=\]\()(?P<path>[^)#\s:]+)(?P<anchor>#[^)\s]*)?(?=\))")
_LISTED = re.compile(r"^## (?P<section>.+)|^- \[[^\]]+\]\((?P<page>[\w./-]+\.md)\)", re.MULTILINE)


def linked_files(source: PurePosixPath, text: str) -> Iterator[PurePosixPath]:
    """The file of the repository that each relative link of a page leads to."""
    for match in LINK.finditer(text):
        yield PurePosixPath(os.path.normpath(source.parent / match["path"]))


def sources() -> dict[PurePosixPath, str | None]:
    """Each file of the site by its path in the repository: docs/, and what its pages link to. Pages have their text."""
    waiting = [PurePosixPath(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*") if path.is_file()]
    found: dict[PurePosixPath, str | None] = {}
    while waiting:
        path = waiting.pop()
        if path in found or path.is_relative_to(HERE) or not (ROOT / path).is_file():
            continue
        found[path] = (ROOT / path).read_text(encoding="utf-8") if path.suffix == ".md" else None
        waiting += linked_files(path, found[path] or "")
    return found


def place(source: PurePosixPath) -> PurePosixPath:
    """Where a file of the repository is in the site."""
    inside = source.is_relative_to("docs")
    return source.relative_to("docs") if inside else "project" / source


def language_of(path: PurePosixPath) -> str:
    """The site that has a file."""
    return "zh" if path.parts[0] == "zh" else "en"


def with_site_links(source: PurePosixPath, text: str) -> str:
    """``text`` with each relative link as it is in the site. Zensical knows only the pages of one language."""
    here = place(source)

    def link(match: re.Match[str]) -> str:
        target = place(PurePosixPath(os.path.normpath(source.parent / match["path"])))
        path = os.path.relpath(target, here.parent)
        if language_of(target) != language_of(here):
            path = re.sub(r"(^|/)README\.md$", r"\1index.md", path).removesuffix(".md") + ".html"
        return path + (match["anchor"] or "")

    return LINK.sub(link, text)


def navigation(start: str, commands: Iterable[str]) -> list[Any]:
    """The pages in the order in which the first page lists them, by its headings; each command after their list."""
    sections: dict[str, list[Any]] = {}
    for match in _LISTED.finditer(start):
        if match["section"]:
            pages = sections[match["section"]] = [] if sections else ["README.md"]
        elif not match["page"].startswith(".."):
            pages.append(match["page"])
            pages += ({PurePosixPath(name).stem: name} for name in commands if match["page"] == "commands.md")
    return [{title: pages if pages != ["README.md"] else "README.md"} for title, pages in sections.items() if pages]


def settings(language: str, nav: list[Any]) -> dict[str, Any]:
    """What Zensical reads from mkdocs.yml, as JSON is YAML."""
    home = {"en": "", "zh": "../"}[language]
    links = {"en": f"{home}index.html", "zh": f"{home}zh/index.html"}
    lower = {"object": "pymdownx.slugs.slugify", "kwds": {"case": "lower"}}
    return {
        "site_name": "logparse",
        "nav": nav,
        "theme": {
            "language": language,
            "font": False,
            "features": ["content.code.copy", "navigation.footer", "navigation.indexes", "search.highlight"],
            "palette": [
                {"media": f"(prefers-color-scheme: {name})", "scheme": scheme}
                for name, scheme in (("light", "default"), ("dark", "slate"))
            ],
        },
        "plugins": [{"search": {}}, {"offline": {}}],
        "extra": {
            # Zensical loads a script of this name from a server, unless there is one.
            "polyfills": ["assets/iframe-worker.js"],
            "generator": False,
            "alternate": [{"name": LANGUAGES[code], "link": link, "lang": code} for code, link in links.items()],
        },
        "extra_css": ["assets/site.css"],
        "markdown_extensions": [
            {"toc": {"permalink": True, "slugify": lower}},
            *("attr_list", "def_list", "md_in_html", "tables", "pymdownx.highlight", "pymdownx.superfences"),
        ],
    }


def completed(source: PurePosixPath, text: str) -> str:
    """``text`` of a page, with what the program adds to it."""
    language = language_of(place(source))
    if source.name == "warnings.md":
        return warnings_with_anchors(text)
    if source.name == "gallery.md":
        return page_with_reports(text)
    for mark, write in (("<!-- causes -->", causes), ("<!-- commands -->", list_of_commands)):
        if mark in text:
            text = text.replace(mark, write(language))
    return text


def write_pages(folder: Path, language: str, files: Mapping[PurePosixPath, str | None]) -> None:
    """Everything that Zensical needs for a site."""
    docs = folder / "docs"
    base = PurePosixPath("zh" if language == "zh" else ".")
    for source, text in files.items():
        path = docs / place(source).relative_to(base)
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            shutil.copyfile(ROOT / source, path)
        else:
            path.write_text(completed(source, with_site_links(source, text)), encoding="utf-8")
    (docs / "commands").mkdir()
    commands = command_pages(language)
    for name, text in commands.items():
        (docs / name).write_text(text, encoding="utf-8")
    assets = docs / "assets"
    assets.mkdir()
    for name in ("iframe-worker.js", "site.css"):
        shutil.copyfile(ROOT / HERE / name, assets / name)
    nav = navigation((docs / "README.md").read_text(encoding="utf-8"), commands)
    (folder / "mkdocs.yml").write_text(json.dumps(settings(language, nav)), encoding="utf-8")


def build(out: Path) -> list[str]:
    """Build the site in place of ``out``. Returns what is wrong with it; then ``out`` is as it was."""
    out = out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    files = sources()
    with TemporaryDirectory(dir=out.parent) as work:
        for language in LANGUAGES:
            folder = Path(work) / language
            mine = {path: text for path, text in files.items() if language_of(place(path)) == language}
            write_pages(folder, language, mine)
            if wrong := _zensical(folder):
                return wrong
        site = Path(work) / "en/site"
        shutil.move(Path(work) / "zh/site", site / "zh")
        write_reports((ROOT / "docs/gallery.md").read_text(encoding="utf-8"), site / "gallery")
        if wrong := list(problems(site)):
            return wrong
        shutil.rmtree(out, ignore_errors=True)
        shutil.move(site, out)
    return []


def _zensical(folder: Path) -> list[str]:
    command = (sys.executable, "-m", "zensical", "build", "--strict")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    # Its links start at the root of a server.
    (folder / "site/404.html").unlink(missing_ok=True)
    return [] if done.returncode == 0 else [done.stdout + done.stderr]


if __name__ == "__main__":
    sys.exit("\n".join(build(Path(sys.argv[1]))) or None)
