"""The pages, the help and the messages are in plain technical English: short sentences, the words of the field."""

import itertools
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import regex
from helpers import ROOT, run_logparse
from plain_words import FOUND, phrases

from analysis.cli import COMMANDS

MOST_WORDS = 25
PAGES = (
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG", "SKILL")),
    *sorted((ROOT / "docs").glob("*.md")),
)
TEMPLATES = sorted((ROOT / "analysis/report").glob("*.j2"))

# A point after these ends no sentence.
SHORT_FORMS = regex.compile(r"\b(e\.g|i\.e|et al|vs|cf|no|approx)\.", regex.IGNORECASE)


def without_code(text: str) -> str:
    """A Markdown page without blocks of code, generated tables and pictures; a code span is one word."""
    for block in (r"^( *)```.*?^\1```$", r"^<!-- (\w+) -->$.*?^<!-- end of \w+ -->$", r"!\[[^]]*\]\([^)]*\)"):
        text = regex.sub(block, "", text, flags=regex.DOTALL | regex.MULTILINE)
    text = regex.sub(r"(?<=\n\n)(?: {4}.*\n)+", "", text)
    text = regex.sub(r"<a id=[^>]*></a>", "", text)
    return regex.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", regex.sub(r"`[^`]+`", "CODE", text))


def paragraphs(text: str) -> Iterator[str]:
    """Each paragraph and list item of a page as one line; headings and tables are left out."""
    lines: list[str] = []
    for line in [*without_code(text).splitlines(), ""]:
        item = regex.match(r"\s*(?:[-*]|\d+\.) ", line)
        if item or not line.strip() or line[0] in "|#":
            if lines:
                yield " ".join(lines)
            lines = []
        if line.strip() and line[0] not in "|#":
            lines.append(line[item.end() if item else 0 :].strip())


def sentences(text: str) -> Iterator[str]:
    """Each sentence of a page."""
    for paragraph in paragraphs(text):
        plain = SHORT_FORMS.sub(lambda found: found[0].replace(".", ""), paragraph)
        yield from regex.split(r"(?<=[.!?][)\"*]*)\s+(?=[\p{Lu}\d(\"*.-])", plain)


def word_count(sentence: str) -> int:
    """Words and numbers; a sign alone is no word."""
    return sum(regex.search(r"[\p{L}\d]", word) is not None for word in sentence.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sentences_of_a_page_are_short(page):
    text = page.read_text(encoding="utf-8")
    assert [f"{n} words: {s}" for s in sentences(text) if (n := word_count(s)) > MOST_WORDS] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_uses_plain_words(page):
    assert phrases(without_code(page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_headings_are_no_questions(page):
    text = without_code(page.read_text(encoding="utf-8"))
    assert [line for line in text.splitlines() if regex.match("#.*[?!.]$", line)] == []


def commands() -> Iterator[tuple[str, ...]]:
    """Each command, and each command of a group."""
    for name in COMMANDS:
        yield (name,)
        listed = run_logparse(name, "--help", cwd=ROOT).stdout.partition("\nCommands:\n")[2]
        yield from ((name, part) for part in regex.findall(r"^  ([a-z]\S*)", listed, regex.MULTILINE))


def test_help_uses_plain_words():
    found = {
        " ".join(command): phrases(regex.sub(r"`[^`]+`", "CODE", " ".join(text.split())))
        for command in commands()
        if (text := run_logparse(*command, "--help-all", cwd=ROOT).stdout)
    }
    assert len(found) > len(COMMANDS)
    assert {command: those for command, those in found.items() if those} == {}


def texts_of(table: object) -> Iterator[str]:
    """All texts of a TOML document."""
    if isinstance(table, dict):
        yield from itertools.chain.from_iterable(map(texts_of, table.values()))
    else:
        yield str(table)


def without_fields(text: str) -> str:
    """A message without its fields."""
    return regex.sub(r"\{[^{}]*\}|`[^`]+`", "X", text)


def test_messages_use_plain_words():
    words = tomllib.loads((ROOT / "analysis/present/words/en.toml").read_text(encoding="utf-8"))
    assert [found for text in texts_of(words) for found in phrases(without_fields(text))] == []


def test_texts_of_the_catalogue_use_plain_words():
    keys = tomllib.loads((ROOT / "logparse/languages/zh.toml").read_text(encoding="utf-8"))
    texts = [*keys, *itertools.chain.from_iterable(table for table in keys.values() if isinstance(table, dict))]
    assert len(texts) > 100
    assert [found for text in texts for found in phrases(without_fields(text))] == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_uses_plain_words(template: Path):
    shown = regex.sub(r"\{#.*?#\}|\{%.*?%\}|<[^>]*>", " ", template.read_text(encoding="utf-8"), flags=regex.DOTALL)
    assert phrases(shown) == []


def test_what_is_banned_is_found():
    text = "The usual step, beside which no line tells of any.\n\n```text\nodd\n```\n\n`odd` and --against.\n"
    assert [found[0] for found in FOUND.finditer(without_code(text))] == ["usual", "beside", "tells"]
    assert len(phrases(text)) == 5
    long = " ".join(["word"] * 26)
    assert [word_count(s) for s in sentences(f"# Title\n\nOne, e.g. two. {long.capitalize()}.\n\n- {long}\n")] == [
        3,
        26,
        26,
    ]
