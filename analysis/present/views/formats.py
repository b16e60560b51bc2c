"""The logs that can be read, or one of them with its labels: parts for people, a list for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.present.parts import Part, Sentence, Table
from analysis.run.tables import UNITS
from logparse.formats._base import LogFormat
from logparse.language import tr


def formats_parts(formats: Sequence[LogFormat], packages: Mapping[str, str]) -> list[Part]:
    """All formats, each with a line of it; ``packages`` are those that give formats, by the format's name."""
    return [
        part
        for fmt in formats
        for part in (_headline(fmt, packages), *(Sentence(line, cut=1) for line in _lines(fmt)[:1]))
    ]


def format_parts(fmt: LogFormat, packages: Mapping[str, str]) -> list[Part]:
    """One format: who prints it, which lines are looked at, what each label becomes, and lines it reads."""
    labels = tuple((label, reading.column, UNITS[reading.column]) for label, reading in fmt.labels.items())
    return [
        _headline(fmt, packages),
        Sentence(tr("reads lines that contain {markers}", markers=tr(" or ").join(map(repr, fmt.marker)))),
        Table((tr("label"), tr("column"), tr("unit")), labels, prose={1, 2}),
        *map(Sentence, _lines(fmt)),
    ]


def _headline(fmt: LogFormat, packages: Mapping[str, str]) -> Sentence:
    package = packages.get(fmt.name)
    title = tr("{value} (of the package {package})", value=fmt.title, package=package) if package else tr(fmt.title)
    return Sentence(tr("{name}: {values}", name=fmt.name, values=title))


def _lines(fmt: LogFormat) -> list[str]:
    """The lines that it was written by."""
    return [line.strip() for sample in fmt.samples for line in sample.text.splitlines()]


def formats_document(formats: Sequence[LogFormat], packages: Mapping[str, str]) -> list[dict[str, Any]]:
    """The JSON list, the same in every language."""
    return [
        {
            "name": fmt.name,
            "title": fmt.title,
            "package": packages.get(fmt.name),
            "markers": list(fmt.marker),
            "labels": {label: reading.column for label, reading in fmt.labels.items()},
            "samples": [sample.text for sample in fmt.samples],
        }
        for fmt in formats
    ]
