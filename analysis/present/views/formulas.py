"""By which formula a log's TFLOP/s was printed, as parts for people and as a document for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from analysis.identify import Candidate, Identification, ImpliedPeak
from analysis.present.as_json import note_document
from analysis.present.numbers import signed_percent
from analysis.present.parts import Heading, Part, Sentence, Table
from analysis.present.views.analyze import list_notes
from analysis.present.words import sentences_of, word
from logparse.findings import Note
from logparse.language import speaking, tr
from logparse.schema import SCHEMA_VERSION


def formulas_parts(
    name: str, identified: Identification, peak: ImpliedPeak | None, notes: Sequence[Note]
) -> list[Part]:
    """All parts, every formula first."""
    headings = ("  id", "TFLOP/s", tr("difference from the log"), tr("formula"))
    return [
        Heading(_title(name, identified.logged), "title"),
        Table(headings, tuple(map(_cells, identified.rows)), prose={3}, headed=True),
        Sentence(sentences_of(identified.findings)),
        *([Sentence(peak_text(peak))] if peak else []),
        list_notes(notes),
    ]


def _title(name: str, logged: float | None) -> str:
    printed = tr("no TFLOP/s") if logged is None else f"{logged:g}"
    return tr(
        "{name}: TFLOP/s per device at the median step; the log prints {printed}",
        name=name,
        printed=printed,
    )


def _cells(row: Candidate) -> tuple[str, ...]:
    value, difference = row.tflops_per_second_per_device, row.difference
    missing = tr("; needs {names}", names=tr(", ").join(row.missing)) if row.missing else ""
    return (
        ("* " if row.matches else "  ") + row.id,
        "-" if value is None else f"{value:,.2f}",
        "-" if difference is None else signed_percent(difference),
        tr(row.title) + missing,
    )


def peak_text(peak: ImpliedPeak) -> str:
    """Against which peak the log's MFU or HFU was taken."""
    return tr(
        "the log's {ratio} uses a peak of {middle:.4g} TFLOP/s ({low:.5g} to {high:.5g}): {devices}",
        ratio=word("metrics", peak.ratio),
        middle=peak.tflops_per_second,
        low=peak.low,
        high=peak.high,
        devices=tr(", ").join(_devices(peak)) or tr("no known device"),
    )


def _devices(peak: ImpliedPeak) -> list[str]:
    return [f"{device} ({p.tflops_per_second:g}, {p.dtype} {p.basis})" for device, p in peak.peaks]


def formulas_document(
    name: str, identified: Identification, peak: ImpliedPeak | None, notes: Sequence[Note]
) -> dict[str, Any]:
    """The JSON document, the same in every language."""
    with speaking("en"):
        return {
            "schema_version": SCHEMA_VERSION,
            "name": name,
            "logged_tflops_per_second_per_device": identified.logged,
            "scale": identified.scale,
            "matches": list(identified.matches),
            "sentence": sentences_of(identified.findings),
            "findings": [note_document(note) for note in identified.findings],
            "formulas": [asdict(row) for row in identified.rows],
            "implied_peak": _implied_document(peak) if peak else None,
            "notes": [note_document(note) for note in notes],
        }


def _implied_document(peak: ImpliedPeak) -> dict[str, Any]:
    return {
        "tflops_per_second": peak.tflops_per_second,
        "low": peak.low,
        "high": peak.high,
        "ratio": peak.ratio,
        "devices": _devices(peak),
        "sentence": peak_text(peak),
    }
