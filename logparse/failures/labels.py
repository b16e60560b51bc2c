"""The label that a tool puts before every line of a log, where no prefix of ours knows it: taken off by its shape.

A traceback shows it: the same label stands before its calls. Digits may differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl
import regex

from logparse.failures.prefixes import read_prefixes
from logparse.inputs.blocks import TextBlock

# How the first line of a traceback and its calls begin; lines with either that are read.
_BEGIN, MOST_READ = r"Traceback \(most recent call last\)|  File \"", 200
# Lines below one with a label, among which a call has it too; other processes print between. Characters of a label.
NEXT_CALL, LONGEST_LABEL = 4, 200
# Marks of a comment or a quote, which stand before all lines of a pasted log; of at least so many lines.
_QUOTED, LEAST_QUOTED = r"^(?:#|>|//)(?: |$)", 3


def without_labels(block: TextBlock) -> TextBlock:
    """``block`` without its labels; prefixes that are known stay. The numbers of its lines are the same."""
    unquoted = _without_quotes(block.texts)
    begins = unquoted.str.contains(_BEGIN).arg_true().head(MOST_READ).to_list()
    texts = unquoted
    for label in dict.fromkeys(_labels(unquoted.to_list(), begins) if begins else ()):
        texts = texts.str.replace(f"^{label}", "${1}")
    if texts is block.texts:
        return block
    text = "\n".join(texts) + "\n" * block.complete
    return TextBlock(block.source, block.first, block.count, block.complete, text.encode())


def _without_quotes(texts: pl.Series) -> pl.Series:
    marked = texts.str.contains(_QUOTED)
    if marked.sum() < LEAST_QUOTED or texts.filter(~marked).str.contains(r"\S").any():
        return texts
    return texts.str.replace(_QUOTED, "")


def _labels(texts: Sequence[str], begins: Sequence[int]) -> Iterator[str]:
    """The pattern of each label before a traceback, with the known prefixes before it as a group."""
    for at in begins:
        bare = read_prefixes(texts[at]).bare
        label, known = _unknown(bare), texts[at][: len(texts[at]) - len(bare)]
        if not label.strip() or len(label) > LONGEST_LABEL:
            continue
        shape = f"({_shape(known)}){_shape(label)}"
        labelled = regex.compile(shape)
        matches = (labelled.match(text) for text in texts[at + 1 : at + 1 + NEXT_CALL])
        if any(match and read_prefixes(match.string[match.end() :]).bare.startswith('File "') for match in matches):
            yield shape


def _unknown(bare: str) -> str:
    """What stands before a line of a traceback, up to a prefix that is known."""
    begin = regex.compile(_BEGIN)
    found = begin.search(bare)
    before = bare[: found.start()] if found else ""
    ends = (match.end() for match in regex.finditer(r"^|\s+|(?<=[^\s\w])(?=\S)", before))
    known = (end for end in ends if begin.match(bare, end) or begin.match(read_prefixes(bare[end:]).bare))
    return before[: next(known, len(before))]


def _shape(label: str) -> str:
    """A pattern of ``label`` with any digits, which polars reads too."""
    return regex.sub(r"\d+", r"\\d+", regex.escape(label, special_only=True))
