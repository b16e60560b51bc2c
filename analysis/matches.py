"""A run beside published rates: the rows that match it, how much of them it reaches, and the nearest where none does.

Comes in: a run's tokens/s/p, shape, devices and precision, and rows of ``analysis.baselines``. Goes out: a Comparison.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import regex

from analysis.baselines import Baseline, contradicts_itself, find_baseline
from analysis.parameters import count_parameters
from analysis.shape import ModelShape
from logparse.errors import UsageError
from logparse.language import tr

# The vocabulary is padded to a multiple of 128 x tensor parallel size; of published models none is nearer than this.
MOST_PADDING = 2048
NEAREST = 3


@dataclass(frozen=True)
class Against:
    """A run beside one published row; ``share`` is the run's tokens/s/p over the row's."""

    row: Baseline
    share: float
    sentence: str


@dataclass(frozen=True)
class Comparison:
    """Rows that match a run, the run beside each; without a match the nearest rows and a sentence that says so."""

    matches: tuple[Against, ...]
    nearest: tuple[Baseline, ...]
    sentences: tuple[str, ...]


def compare_run(
    rate: float | None,
    shape: ModelShape,
    devices: int | None,
    precision: str | None,
    rows: Sequence[Baseline],
    name: str | None = None,
) -> Comparison:
    """Put a run of ``rate`` tokens/s/p beside the rows of its model, size, devices and precision, or the row ``name``.

    Raises UsageError where no row is called ``name``, or that row publishes no tokens/s/p.
    """
    rated = tuple(row for row in rows if row.tokens_per_second_per_device is not None)
    chosen = (_chosen(rows, name),) if name else tuple(r for r in rated if _matches(r, shape, devices, precision))
    if rate is None:
        return Comparison((), (), (tr("no published rate beside this run: its tokens/s/p is unknown"),))
    if chosen:
        found = tuple(_against(row, rate) for row in chosen)
        return Comparison(found, (), tuple(against.sentence for against in found))
    nearest = tuple(sorted(rated, key=lambda row: _distance(row, shape, devices, precision))[:NEAREST])
    names = ", ".join(row.name for row in nearest)
    said = tr(
        "no published rate for this model, number of devices and precision; the nearest rows: {names}", names=names
    )
    return Comparison((), nearest, (said,))


def _chosen(rows: Sequence[Baseline], name: str) -> Baseline:
    row = find_baseline(rows, name)
    if row.tokens_per_second_per_device is None:
        problem = tr("the baseline {name} publishes no tokens/s/p", name=row.name)
        raise UsageError(problem, remedy=tr("`logparse baselines` lists them all"))
    return row


def _against(row: Baseline, rate: float) -> Against:
    published_rate = row.tokens_per_second_per_device or 0.0
    share = rate / published_rate
    text = tr(
        "{rate} tokens/s/p = {share} of {publisher}'s published {published} for {row}",
        rate=f"{rate:,.0f}",
        share=f"{share:.0%}",
        publisher=row.publisher,
        published=f"{published_rate:,.0f}",
        row=", ".join(part for part in (row.title, row.nodes, (row.precision or "").upper()) if part),
    )
    reference = row.reference_tokens_per_second_per_device
    if reference is not None:
        text += tr("; the reference system: {reference}", reference=f"{reference:,.0f}")
    if contradicts_itself(row):
        text += tr("; that row contradicts its own step time")
    return Against(row, share, text)


def _matches(row: Baseline, shape: ModelShape, devices: int | None, precision: str | None) -> bool:
    return (
        _same_model(row.shape, shape)
        and None not in (devices, precision)
        and ((row.devices, row.precision) == (devices, precision))
    )


def _same_model(published_shape: ModelShape, shape: ModelShape) -> bool:
    """Every size that both know is the same, and the two that tell most are known; a vocabulary may be padded."""
    if published_shape.missing(("num_layers", "hidden_size")) or shape.missing(("num_layers", "hidden_size")):
        return False
    names = [f.name for f in fields(ModelShape) if f.name not in ("padded_vocab_size", "mtp_num_layers")]
    both = [(getattr(published_shape, n), getattr(shape, n)) for n in names]
    plain, padded = published_shape.padded_vocab_size, shape.padded_vocab_size
    same_vocabulary = plain is None or padded is None or 0 <= padded - plain <= MOST_PADDING
    # None is dense: a mixture of experts is not its dense twin.
    same_kind = bool(published_shape.num_experts) == bool(shape.num_experts)
    return same_vocabulary and same_kind and all(a == b for a, b in both if None not in (a, b))


def _distance(
    row: Baseline, shape: ModelShape, devices: int | None, precision: str | None
) -> tuple[bool, float, float, bool]:
    """Another model first by how much larger or smaller it is, then devices, then precision."""
    sizes = _log_ratio(_parameters(row), _count(shape))
    return (
        not _same_model(row.shape, shape),
        sizes,
        _log_ratio(row.devices, devices),
        row.precision != precision,
    )


def _log_ratio(one: float | None, other: float | None) -> float:
    return abs(math.log(one / other)) if one and other else math.inf


def _parameters(row: Baseline) -> float | None:
    counted = _count(row.shape)
    if counted is not None:
        return counted
    stated = regex.fullmatch(r"(\d+(?:\.\d+)?)([BT]).*", row.size)
    return float(stated[1]) * {"B": 1e9, "T": 1e12}[stated[2]] if stated else None


def _count(shape: ModelShape) -> float | None:
    counted = count_parameters(shape)
    return None if counted is None else float(counted.total)
