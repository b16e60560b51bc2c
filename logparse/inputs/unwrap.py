"""What is around a line is taken off here, before any rule reads it: escapes, records, quotes, stamps, writers.

Comes in: the text of a file. Goes out: its lines as the program printed them, the clock before each, and, where asked
for, the lines without the launcher's name of their writer. The numbers of the lines stay. What a file shows is learnt
from its beginning, so that a log without envelopes costs nothing. What is not known is left as it is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from string import ascii_letters, digits

import polars as pl
import regex

from logparse.inputs.cut_lines import joined_where_cut
from logparse.inputs.json_records import lines_of_records
from logparse.inputs.stamps import STAMPS, Stamp
from logparse.inputs.writers import COLOUR, HOSTS, NAMED, TASKS, read_prefixes
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass

# Bytes and lines of the beginning of a file from which its envelopes are learnt.
SAMPLE_BYTES, SAMPLE_LINES = 2**16, 400
# The share of the lines that has an envelope of a log, at least, and how many of them.
MOST, FEWEST = 0.5, 3
# The first characters of stamps, of writers with names of their own, and of hosts.
_STAMP_BEGINS, _NAMED_BEGINS, _WORDS = f"[{digits}SMTWFJAOND", f"[({digits}lMTWFS", ascii_letters + digits
# A number or a host may be a word of the program itself, unless nearly every line begins with one.
NEARLY_ALL = 0.9
# What a logger prints after its stamp, which is then its own: a dash, a level, a bracket, a name and a colon.
_LOGGER = lazy_regex(r"(?:,\d+)?(?: ?[-|:] ?|\t)?\[?(?:[A-Z]{4,8}\b|[a-z_]+[.:][\w.]+|\[)| ?[-|] ")
# How editors and syslog write a carriage return, and what shows that it is one: a bar, or the end of a line.
_RETURNS = tuple((mark, re.escape(mark) + rb"(?:[^\n]{0,200}\d%\||\n|$)") for mark in (b"#015", b"^M"))
# What editors put before a text, to show the order of its bytes.
_ORDER = b"\xef\xbb\xbf"
# How HTML writes a call of a traceback.
_HTML = b"File &quot;"
# Marks of a comment or a quote, which are before all lines of a pasted log.
_QUOTED = rb"^(?:#|>|//)(?: |$)"
# Lines of a log that a person may have pasted.
MOST_PASTED = 2000
# How the first line of a traceback and its calls begin; lines with either that are read.
_BEGIN, MOST_READ = lazy_regex(r"Traceback \(most recent call last\)|  File \""), 200
# Lines below one with a label, among which a call has it too; other processes print between. Characters of a label.
NEXT_CALL, LONGEST_LABEL = 4, 200


@dataclass(frozen=True)
class Wrapping:
    """What is before most lines of a file: the ``stamp`` of a collector, and a pattern of the ``writer``.

    ``of_hosts``: the writers are hosts, by names that may be words of a program elsewhere.
    ``may_be_cut``: it is a whole short log, which a person may have pasted from a terminal.
    """

    stamp: Stamp | None = None
    writer: str = ""
    of_hosts: bool = False
    may_be_cut: bool = False

    @property
    def shows_stamps(self) -> bool:
        """Whether the lines are quoted with their stamps, as programs print them too."""
        return self.stamp is not None and self.stamp.is_read

    def host_of(self, text: str) -> tuple[str | None, str]:
        """The host that is before ``text``, if it is named, and the rest of the text."""
        label = regex.match(self.writer, text) if self.of_hosts else None
        if label is None:
            return None, text
        host = label[0].strip(" :|")
        return (None if host == "localhost" else host), text[label.end() :]


PLAIN = Wrapping()


def learn_wrapping(text: bytes, is_whole: bool = False) -> Wrapping:
    """The envelopes that the beginning of a file shows, or all of it."""
    lines = COLOUR.sub("", text[:SAMPLE_BYTES].decode("utf-8", "replace")).split("\n")
    some = list(islice((line for line in lines if line.strip()), SAMPLE_LINES))
    stamp = _stamp_of(some)
    if stamp is not None:
        some = [rest for line in some if (rest := stamp.compiled.sub("", line))]
    writer = _writer_of(some)
    return Wrapping(stamp, writer, HOSTS in writer, is_whole and text.count(b"\n") <= MOST_PASTED)


def _stamp_of(lines: Sequence[str]) -> Stamp | None:
    """The stamp of a collector before most ``lines``; the logger of the program prints what is after its own."""
    # To compile every spelling takes longer than to read a small log.
    if sum(line[0] in _STAMP_BEGINS for line in lines) < MOST * len(lines):
        return None
    for stamp in STAMPS:
        rests = [line[match.end() :] for line in lines if (match := stamp.compiled.match(line))]
        if len(rests) < max(FEWEST, MOST * len(lines)):
            continue
        logged = sum(bool(_LOGGER.match(rest)) for rest in rests)
        return None if stamp.may_be_of_logger and logged > MOST * len(rests) else stamp
    return None


def _writer_of(lines: Sequence[str]) -> str:
    """A pattern of the writers before ``lines``; empty where there are none."""
    for pattern, first, share in ((NAMED, _NAMED_BEGINS, 0), (TASKS, digits, NEARLY_ALL), (HOSTS, _WORDS, NEARLY_ALL)):
        least = max(FEWEST, share * len(lines))
        if sum(line[0] in first for line in lines) < least:
            continue
        begins = regex.compile(pattern)
        rests = [line[match.end() :] for line in lines if (match := begins.match(line))]
        if len(rests) >= least:
            # A blank after each is the launcher's; those of the program are before some lines only.
            return f"(?:{pattern}) ?" if all(rest[:1] in " \t" for rest in rests) else pattern
    return ""


def unescaped(text: bytes) -> bytes:
    """``text`` as the program printed it, where a tool wrote its line breaks, quotes or lines in another way."""
    text = text.removeprefix(_ORDER)
    for mark, evidence in _RETURNS:
        if mark in text and re.search(evidence, text):
            text = text.replace(mark, b"\r")
    if _HTML in text:
        lines = text.decode("utf-8", "surrogateescape").split("\n")
        text = "\n".join(html.unescape(line).replace("\n", " ") for line in lines).encode("utf-8", "surrogateescape")
    return lines_of_records(_without_quotes(text))


def _without_quotes(text: bytes) -> bytes:
    if text[:1] not in (b"#", b">", b"/"):
        return text
    lines = text.split(b"\n")
    marked = [line for line in lines if regex.match(_QUOTED, line)]
    if len(marked) < FEWEST or any(line.strip() for line in lines if not regex.match(_QUOTED, line)):
        return text
    return b"\n".join(regex.sub(_QUOTED, b"", line) for line in lines)


def opened(texts: pl.Series, wrapping: Wrapping) -> tuple[pl.Series, pl.Series | None]:
    """``texts`` without labels and stamps, and the clock of each stamp."""
    clocks = None
    if wrapping.stamp is not None:
        clocks = texts.to_frame("text").select(wrapping.stamp.read(pl.col("text"))).to_series()
        # What programs print too is of use where a line is quoted.
        texts = texts if wrapping.shows_stamps else texts.str.replace(wrapping.stamp.anchored, "")
    texts = _without_labels(texts)
    return (joined_where_cut(texts) if wrapping.may_be_cut else texts), clocks


def bare(texts: pl.Expr, wrapping: Wrapping) -> pl.Expr:
    """``texts`` without the stamps and the writers before them."""
    if wrapping.stamp is not None and wrapping.shows_stamps:
        texts = texts.str.replace(wrapping.stamp.anchored, "")
    return texts.str.replace(f"^(?:{wrapping.writer})", "") if wrapping.writer else texts


def _without_labels(texts: pl.Series) -> pl.Series:
    """The lines without a label that a traceback shows: it is before its calls too. Digits may differ."""
    begins = texts.str.contains(_BEGIN.pattern).arg_true().head(MOST_READ).to_list()
    labels = list(dict.fromkeys(_labels(texts.to_list(), begins) if begins else ()))
    if not labels:
        return texts
    prefixes = "".join(f"${{{n}}}" for n in range(1, len(labels) + 1))
    return texts.str.replace(f"^(?:{'|'.join(labels)})", prefixes)


def _labels(texts: Sequence[str], begins: Sequence[int]) -> Iterator[str]:
    """The pattern of each label before a traceback, with the known prefixes before it as a group."""
    for at in begins:
        text = read_prefixes(texts[at]).bare
        label, prefix = _unknown(text), texts[at][: len(texts[at]) - len(text)]
        if not label.strip():
            continue
        shape = f"({shape_of(prefix)}){shape_of(label)}"
        labelled = regex.compile(shape)
        matches = (labelled.match(text) for text in texts[at + 1 : at + 1 + NEXT_CALL])
        if any(match and read_prefixes(match.string[match.end() :]).bare.startswith('File "') for match in matches):
            yield shape


def _unknown(text: str) -> str:
    """What is before a line of a traceback, up to a prefix that is known."""
    begin = _BEGIN.search(text)
    before = text[: begin.start()] if begin else ""
    if len(before) > LONGEST_LABEL:
        return ""
    ends = (match.end() for match in regex.finditer(r"^|\s+|(?<=[^\s\w])(?=\S)", before))
    readable = (end for end in ends if _BEGIN.match(text, end) or _BEGIN.match(read_prefixes(text[end:]).bare))
    return before[: next(readable, len(before))]


def shape_of(label: str) -> str:
    """A pattern of ``label`` with any digits, which polars reads too."""
    return regex.sub(r"\d+", r"\\d+", regex.sub(r"[\\.^$*+?{}\[\]|()]", r"\\\g<0>", label))
