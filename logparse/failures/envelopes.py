"""What a tool put around every line of a log: escapes of HTML, marks of a quote, labels.

It is taken off. The numbers of the lines stay, and prefixes that are known.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

import polars as pl
import regex

from logparse.failures.prefixes import read_prefixes
from logparse.inputs.blocks import TextBlock
from logparse.lazy_regex import lazy_regex

# How HTML writes a call of a traceback.
_HTML = "File &quot;"
# Marks of a comment or a quote, which are before all lines of a pasted log; of at least so many lines.
_QUOTED, FEWEST = r"^(?:#|>|//)(?: |$)", 3
# How the first line of a traceback and its calls begin; lines with either that are read.
_BEGIN, MOST_READ = lazy_regex(r"Traceback \(most recent call last\)|  File \""), 200
# Lines below one with a label, among which a call has it too; other processes print between. Characters of a label.
NEXT_CALL, LONGEST_LABEL = 4, 200


def without_envelopes(block: TextBlock) -> TextBlock:
    """``block`` with the lines alone."""
    texts = block.texts
    for strip in (_without_html, _without_quotes, _without_labels):
        texts = strip(texts)
    if texts is block.texts:
        return block
    text = "\n".join(texts) + "\n" * block.complete
    return TextBlock(block.source, block.first, block.count, block.complete, text.encode())


def _without_html(texts: pl.Series) -> pl.Series:
    if not texts.str.contains(_HTML, literal=True).any():
        return texts
    return pl.Series([html.unescape(text).replace("\n", " ") for text in texts], dtype=pl.String)


def _without_quotes(texts: pl.Series) -> pl.Series:
    marked = texts.str.contains(_QUOTED)
    if marked.sum() < FEWEST or texts.filter(~marked).str.contains(r"\S").any():
        return texts
    return texts.str.replace(_QUOTED, "")


def _without_labels(texts: pl.Series) -> pl.Series:
    """The lines without a label that a traceback shows: it is before its calls too. Digits may differ."""
    begins = texts.str.contains(_BEGIN.pattern).arg_true().head(MOST_READ).to_list()
    labels = list(dict.fromkeys(_labels(texts.to_list(), begins) if begins else ()))
    if not labels:
        return texts
    known = "".join(f"${{{n}}}" for n in range(1, len(labels) + 1))
    return texts.str.replace(f"^(?:{'|'.join(labels)})", known)


def _labels(texts: Sequence[str], begins: Sequence[int]) -> Iterator[str]:
    """The pattern of each label before a traceback, with the known prefixes before it as a group."""
    for at in begins:
        bare = read_prefixes(texts[at]).bare
        label, known = _unknown(bare), texts[at][: len(texts[at]) - len(bare)]
        if not label.strip():
            continue
        shape = f"({_shape(known)}){_shape(label)}"
        labelled = regex.compile(shape)
        matches = (labelled.match(text) for text in texts[at + 1 : at + 1 + NEXT_CALL])
        if any(match and read_prefixes(match.string[match.end() :]).bare.startswith('File "') for match in matches):
            yield shape


def _unknown(bare: str) -> str:
    """What is before a line of a traceback, up to a prefix that is known."""
    found = _BEGIN.search(bare)
    before = bare[: found.start()] if found else ""
    if len(before) > LONGEST_LABEL:
        return ""
    ends = (match.end() for match in regex.finditer(r"^|\s+|(?<=[^\s\w])(?=\S)", before))
    known = (end for end in ends if _BEGIN.match(bare, end) or _BEGIN.match(read_prefixes(bare[end:]).bare))
    return before[: next(known, len(before))]


def _shape(label: str) -> str:
    """A pattern of ``label`` with any digits, which polars reads too."""
    return regex.sub(r"\d+", r"\\d+", regex.sub(r"[\\.^$*+?{}\[\]|()]", r"\\\g<0>", label))
