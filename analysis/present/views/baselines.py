"""Published rates, or one with its source and its checks: parts for people, a list for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from analysis.present.numbers import signed_percent
from analysis.present.parts import Heading, Part, Sentence, Sentences, Table
from analysis.published.baselines import Baseline, Check, check_row, contradicts_itself
from logparse.language import tr


def baselines_parts(rows: Sequence[Baseline]) -> list[Part]:
    """All rows, one a line."""
    headings = ("", tr("model"), tr("nodes"), "dtype", "seq", "tokens/s/p", tr("reference"), tr("s/step"), tr("date"))
    return [
        Heading(tr("{n} published rows; ! = inconsistent figures", n=len(rows)), "title"),
        # Precision, reference, seconds of a step, date, nodes, length, model: the name of a row has most of them.
        Table(headings, tuple(map(_cells, rows)), spare=(3, 6, 7, 8, 2, 4, 1)),
    ]


def _cells(row: Baseline) -> tuple[str, ...]:
    return (
        ("! " if contradicts_itself(row) else "") + row.name,
        row.title,
        row.nodes or "-",
        row.precision or "-",
        _number(row.seq_length),
        _number(row.tokens_per_second_per_device),
        _number(row.reference_tokens_per_second_per_device),
        _number(row.step_time_s),
        row.date or "-",
    )


def baseline_parts(row: Baseline) -> list[Part]:
    """One row: all that it states, then its figures against each other."""
    fields = _document(row) | {"sizes": " ".join(f"{name}={size}".lower() for name, size in row.sizes.items()) or None}
    facts = tuple((name, str(value)) for name, value in fields.items() if value is not None and name != "checks")
    return [Heading(row.name, "title"), Table(("", ""), facts, prose={1}), Sentences(list(map(_check, check_row(row))))]


def _check(check: Check) -> Sentence:
    text = tr(
        "{quantity}: published {published}, recomputed {recomputed} ({difference})",
        quantity=check.quantity,
        published=f"{check.published:,.6g}",
        recomputed=f"{check.recomputed:,.6g}",
        difference=signed_percent(check.difference),
    )
    return Sentence(text, "info" if check.agrees else "warning")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.10g}"


def baselines_document(rows: Sequence[Baseline]) -> list[dict[str, Any]]:
    """The JSON list, the same in every language."""
    return [_document(row) for row in rows]


def _document(row: Baseline) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(row).items() if name != "rounding"}
    checks = [asdict(check) | {"agrees": check.agrees} for check in check_row(row)]
    return {**fields, "contradicts_itself": contradicts_itself(row), "checks": checks}
