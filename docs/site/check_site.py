"""What is wrong with a built site: links that lead nowhere, and files that a page loads from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

# What a page loads of itself: by tag, the attribute. A link is followed only by a click, but for these kinds.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data", "link": "href"}
FOLLOWED = {"alternate", "next", "prev", "canonical"}
_ELSEWHERE = re.compile(r"^(?:https?:)?//", re.IGNORECASE)
_IN_STYLES = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)


@dataclass
class Page(HTMLParser):
    """The links, loads and anchors of a page."""

    path: Path
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        text = self.path.read_text(encoding="utf-8")
        self.feed(text)
        self.loads += _IN_STYLES.findall(re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take what a tag links to, loads, or is called."""
        given = {name: value or "" for name, value in attrs}
        self.anchors.add(given.get("id", ""))
        target = given.get(LOADED.get(tag, "href"))
        if target is None:
            return
        self.links.append(target)
        if tag in LOADED and given.get("rel") not in FOLLOWED:
            self.loads.append(target)


def problems(site: Path) -> Iterator[str]:
    """A sentence for each link to a file or an anchor that is not there, and for each load from elsewhere."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    for page in pages.values():
        yield from (f"{page.path}: loads {load}" for load in page.loads if _ELSEWHERE.match(load))
        yield from (f"{page.path}: no {link}" for link in dict.fromkeys(page.links) if not _is_there(link, page, pages))
    for style in sorted(site.rglob("*.css")):
        yield from (f"{style}: loads {load}" for load in _IN_STYLES.findall(style.read_text(encoding="utf-8")))


def _is_there(link: str, page: Page, pages: dict[Path, Page]) -> bool:
    path, anchor = urldefrag(link)
    if _ELSEWHERE.match(path) or re.match(r"(?:data|mailto|javascript|blob):", path):
        return True
    target = (page.path.parent / unquote(path)).resolve() if path else page.path.resolve()
    if target not in pages:
        return target.is_file()
    return anchor == "" or unquote(anchor) in pages[target].anchors
