"""What a format reads of a log and what not: parts for people, a document for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from analysis.present.parts import Heading, Part, Sentence, Table
from analysis.run.tables import UNITS
from logparse.draft.check import FormatCheck, ReadLine, UnreadLine
from logparse.formats._base import LogFormat
from logparse.language import msg, some, tr

# By reason: why a line was not read, in the counts; and how to repair that, for one line.
COUNTED: Mapping[str, str] = {
    "no_head": msg("a marker is found, but head does not match"),
    "no_marker": msg("head matches and a label is found, but no marker"),
    "no_pair": msg("head matches, but pair matches nothing after it"),
    "lacks": msg("head matches, but a required column is missing"),
    "malformed": msg("a value is not a valid number of its column"),
}
REMEDIES: Mapping[str, str] = {
    "no_head": msg("fix head, or make marker narrower if this is not a step line"),
    "no_marker": msg("add a literal of this line to marker, or make head narrower if this is not a step line"),
    "no_pair": msg("fix pair"),
    "lacks": msg("add its label, or remove the column from required"),
    "malformed": msg("add a suffix for the text after the number, or add the word to absent"),
}


def check_parts(fmt: LogFormat, check: FormatCheck, log: str) -> Iterator[Part]:
    """The counts, what to repair, and lines that were read with their rows."""
    yield from _counts(fmt, check, log)
    if check.examples:
        yield Heading(tr("lines that were not read"))
    for unread in check.examples:
        yield from _unread(unread)
    yield from _unknown(check)
    yield from _known(check)
    if check.first_read:
        yield Heading(tr("lines that were read"))
    for read in check.first_read:
        yield Sentence(_placed(read), cut=2)
        yield Sentence("  " + " · ".join(f"{name} {_value(name, value)}" for name, value in read.row.items()), "info")


def _counts(fmt: LogFormat, check: FormatCheck, log: str) -> Iterator[Sentence]:
    looking = check.read + sum(check.unread.values())
    counts = {"read": f"{check.read:,}", "n": f"{looking:,}", "lines": f"{check.lines:,}", "name": fmt.name, "log": log}
    kind = "plain" if check.complete else "warning"
    if looking:
        text = tr("{name} reads {read} of {n} lines that look like step lines, of {lines} lines in {log}", **counts)
        yield Sentence(text, kind)  # type: ignore[arg-type]
    else:
        markers = tr(" or ").join(map(repr, fmt.marker))
        text = tr(
            "{name} reads nothing: none of the {lines} lines in {log} contains {markers}", markers=markers, **counts
        )
        yield Sentence(text, "warning")
        yield Sentence(tr("{command} drafts a format from repeated lines", command=f"`logparse formats suggest {log}`"))
    for reason, n in check.unread.items():
        yield Sentence(tr("{n} × {reason}", n=f"{n:,}", reason=tr(COUNTED[reason])), "warning")


def _unread(line: UnreadLine) -> Iterator[Sentence]:
    yield Sentence(_placed(line), cut=2)
    yield Sentence("  " + tr("{reason}; {remedy}", reason=_why(line), remedy=tr(REMEDIES[line.reason])), "info")


def _why(line: UnreadLine) -> str:
    if line.reason == "no_head" and line.details[0]:
        pattern, _, rest = line.details
        return tr("head matches up to {pattern}; the next text is {text!r}", pattern=pattern, text=rest[:40])
    if line.reason == "malformed":
        return tr("the label {label!r} has the value {text!r}", label=line.details[0], text=line.details[1])
    if line.reason == "lacks":
        return tr("{names} is missing", names=tr(", ").join(line.details))
    return tr("head matches nowhere") if line.reason == "no_head" else tr(COUNTED[line.reason])


def _unknown(check: FormatCheck) -> Iterator[Part]:
    if not check.unknown:
        return
    yield Heading(tr("unknown labels"))
    rows = [
        (unknown.label, f"{unknown.n:,}", unknown.value[:40], some(unknown.near, 4) if unknown.near else "–")
        for unknown in check.unknown
    ]
    yield Table((tr("label"), tr("lines"), tr("first value"), tr("nearest")), rows, prose={2, 3}, headed=True)
    yield Sentence(tr("add each to labels with its column, or to ignored"), "info")


def _known(check: FormatCheck) -> Iterator[Part]:
    """What became of the labels of the format, where anything was read."""
    there, never = [k for k in check.labels if k.n], [k.label for k in check.labels if not k.n]
    if there:
        yield Heading(tr("labels of the format"))
        rows = [(k.label or '""', k.column, f"{k.n:,}", _value(k.column, k.value)) for k in there]
        yield Table((tr("label"), tr("column"), tr("lines"), tr("first value")), rows, prose={1}, headed=True)
    if there and never:
        yield Sentence(tr("labels not found: {labels}", labels=some(never)), "info")


def _placed(line: ReadLine | UnreadLine) -> str:
    place = tr("{source}, line {line}", source=line.source, line=line.line_number)
    return f"{place}: {line.text.strip()}" if line.text else place


def _value(column: str, value: object) -> str:
    return "–" if value is None else f"{value} {UNITS.get(column, '')}".rstrip()


def check_document(fmt: LogFormat, check: FormatCheck, logs: Sequence[str]) -> dict[str, Any]:
    """The JSON document, the same in every language."""
    return {
        "format": fmt.name,
        "logs": list(logs),
        "complete": check.complete,
        "lines": check.lines,
        "read": check.read,
        "unread": dict(check.unread),
        "unread_lines": [asdict(line) for line in check.examples],
        "unknown_labels": [asdict(label) for label in check.unknown],
        "labels": [asdict(label) for label in check.labels],
        "read_lines": [asdict(line) for line in check.first_read],
    }
