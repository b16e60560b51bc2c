"""Words and phrases that have a better one in plain technical English, and the texts of a page to look for them in."""

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import regex

# Regular expressions of words and phrases that have a better one; a dash in front is an option, such as --against.
BANNED = (
    r"(tell|tells|telling|told)",
    r"(behind|beside|alike|usual|odd|heard)",
    r"(lack|lacks|lacked|lacking)",
    r"(stand|stands|stood)",
    r"(mend|mends|mended)",
    r"(dearer|dearest)",
    r"(its|their) kin",
    r"of one's own",
    r"of unknown (number|size|length)s?",
    r"as built",
    r"as the model is built",
    r"all-in",
    r"(not|nothing|is|are|was|were) apart",
    r"what (is|was|were) asked for",
    r"(is|are|was|were) to be expected",
    r"(is|are|was|were) (said|held)",
    r"held (against|by|to)",
    r"(hold|holds) of",
    r"cannot be(?= (?:a|an|the|one|here)\b|[.:;,])",
    r"(can|could|may|might|must|will) be such",
    r"(lie|lies) (on|in|at|beside|behind)",
    r"settled pace",
    r"nobody",
    r"(worse|better|other) way round",
    r"who (beats|is faster|prints)",
    r"the least that",
    r"no chance",
    r"as long as can be",
    r"for want of",
    r"at whatever",
    r"(?-i:(?:is|are) none)",
    r"by which \w+",
    r"utilisation",
)
FOUND = regex.compile(rf"(?<![-\w])(?:{'|'.join(BANNED)})(?![-\w])", regex.IGNORECASE)
# Attributes of a page that a person reads or hears.
READ = ("title", "aria-label", "placeholder", "alt")


def phrases(text: str) -> list[str]:
    """Each banned phrase of ``text`` with the words around it."""
    line = " ".join(text.split())
    return [line[max(0, at.start() - 30) : at.end() + 30].strip() for at in FOUND.finditer(line)]


class _Texts(HTMLParser):
    """The texts of a page that a person reads: those of its elements, and those in READ."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.data = ""
        self._within = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._within = tag if tag in ("script", "style") else ""
        if dict(attrs).get("id") == "page-data":
            self._within = "data"
        self.texts += [value for name, value in attrs if name in READ and value]

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within == "data":
            self.data += data
        elif not self._within and data.strip():
            self.texts.append(" ".join(data.split()))


def texts_of_page(html: str) -> list[str]:
    """Every text of a page, those of its charts as well."""
    page = _Texts()
    page.feed(html)
    return [*page.texts, *_strings(json.loads(page.data or "{}"))]


def _strings(value: Any) -> Iterator[str]:
    """The strings of a JSON document; those of code are no text."""
    if isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)
    elif isinstance(value, str) and " " in value and "datum" not in value and "==" not in value:
        yield value
