"""A run beside published rates: the rows that match it, how much of them it reaches, and the nearest where none does.

Comes in: what a run achieved and rows of ``analysis.published.rows``. Goes out: a Comparison.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import regex

from analysis.hardware.devices import find_device
from analysis.model.parameters import count_parameters
from analysis.model.shape import ModelShape
from analysis.published.rows import Baseline, contradicts_itself, find_baseline, published
from logparse.errors import UsageError
from logparse.language import tr

# The vocabulary is padded to a multiple of 128 x tensor parallel size; of published models none is nearer than this.
MOST_PADDING = 2048
NEAREST = 3
MOST_SAID = 3

# What logs print of these is not to be relied on: AscendSpeed's llama is gated, has an output matrix of its own, and
# prints neither. Padding and the depth of multi-token prediction belong to the run and not to the model.
NOT_COMPARED = (
    "gated_linear_unit",
    "untie_embeddings_and_output_weights",
    "multi_latent_attention",
    "padded_vocab_size",
    "mtp_num_layers",
)


@dataclass(frozen=True)
class Achieved:
    """A run, as far as it is known: ``rate`` in tokens/s/p, ``device`` by a name of devices.csv; None is unknown."""

    rate: float | None
    shape: ModelShape
    devices: int | None
    precision: str | None
    device: str | None = None
    seq_length: int | None = None
    lora: bool = False


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


def compare_run(run: Achieved, rows: Sequence[Baseline], name: str | None = None) -> Comparison:
    """Put ``run`` beside the rows of its model, size, devices and precision, or the row ``name``.

    Rows that do not state a precision come after those that do. Raises UsageError where no row is called ``name``, or
    that row publishes no tokens/s/p.
    """
    rated = tuple(row for row in rows if row.tokens_per_second_per_device is not None)
    chosen = (_chosen(rows, name),) if name else _matching(rated, run)
    if run.rate is None:
        return Comparison((), (), (tr("no published rate beside this run: its tokens/s/p is unknown"),))
    if chosen:
        return _beside(run, run.rate, chosen)
    if run.shape.missing(("num_layers", "hidden_size")):
        return Comparison((), (), (tr("no published rate beside this run: its layers or hidden size are unknown"),))
    nearest = tuple(sorted(rated, key=lambda row: _distance(row, run))[:NEAREST])
    names = ", ".join(row.name for row in nearest)
    said = tr(
        "no published rate for this model, number of devices and precision; the nearest rows: {names}", names=names
    )
    unknown = ", ".join(n for n, v in (("world_size", run.devices), ("precision", run.precision)) if v is None)
    if unknown:
        said += tr("; not known of this run: {names}", names=unknown)
    return Comparison((), nearest, (said,))


def _chosen(rows: Sequence[Baseline], name: str) -> Baseline:
    row = find_baseline(rows, name)
    if row.tokens_per_second_per_device is None:
        problem = tr("the baseline {name} publishes no tokens/s/p", name=row.name)
        raise UsageError(problem, remedy=tr("`logparse baselines` lists them all"))
    return row


# Which rows match.


def _matching(rows: Sequence[Baseline], run: Achieved) -> tuple[Baseline, ...]:
    """Rows that match, the user's own first, then the most alike; else in the order of the table."""
    found, theirs = [row for row in rows if _matches(row, run)], {row.name: row for row in published()}

    def unlike(row: Baseline) -> tuple[bool, ...]:
        own = theirs.get(row.name) is not row
        return (not own, row.precision is None, row.seq_length != run.seq_length, contradicts_itself(row))

    return tuple(sorted(found, key=unlike))


def _matches(row: Baseline, run: Achieved) -> bool:
    same_precision = row.precision is None or row.precision == run.precision
    return (
        run.devices is not None and row.devices == run.devices and same_precision and _same_model(row.shape, run.shape)
    )


def _same_model(published_shape: ModelShape, shape: ModelShape) -> bool:
    """Every size that both know is the same, and the two that tell most are known; a vocabulary may be padded."""
    if published_shape.missing(("num_layers", "hidden_size")) or shape.missing(("num_layers", "hidden_size")):
        return False
    names = [f.name for f in fields(ModelShape) if f.name not in NOT_COMPARED]
    both = [(getattr(published_shape, n), getattr(shape, n)) for n in names]
    plain, padded = published_shape.padded_vocab_size, shape.padded_vocab_size
    same_vocabulary = plain is None or padded is None or 0 <= padded - plain <= MOST_PADDING
    return same_vocabulary and _same_kind(published_shape, shape) and all(a == b for a, b in both if None not in (a, b))


def _same_kind(published_shape: ModelShape, shape: ModelShape) -> bool:
    """None is dense: a mixture of experts is not its dense twin."""
    return bool(published_shape.num_experts) == bool(shape.num_experts)


# What is said of them.


def _beside(run: Achieved, rate: float, rows: Sequence[Baseline]) -> Comparison:
    found = tuple(_against(row, run, rate, rows) for row in rows)
    said = [against.sentence for against in found[:MOST_SAID]]
    more = ", ".join(against.row.name for against in found[MOST_SAID:])
    if more:
        said.append(tr("{n} more published rows match: {names}", n=len(found) - MOST_SAID, names=more))
    return Comparison(found, (), tuple(said))


def _against(row: Baseline, run: Achieved, rate: float, rows: Sequence[Baseline]) -> Against:
    published_rate = row.tokens_per_second_per_device or 0.0
    share = rate / published_rate
    text = tr(
        "{rate} tokens/s/p = {share} of {publisher}'s published {published} for {row}",
        rate=f"{rate:,.0f}",
        share=f"{share:.0%}",
        publisher=row.publisher or row.name,
        published=f"{published_rate:,.0f}",
        row=", ".join(_told(row, run, rows)),
    )
    return Against(row, share, text + "".join(_asides(row, run)))


def _told(row: Baseline, run: Achieved, rows: Sequence[Baseline]) -> list[str]:
    """The row in words: what it is, what of it differs from the run or is not known of the run, what tells it apart."""
    parts = _description(row, run)
    alike = [other for other in rows if other.publisher == row.publisher and _description(other, run) == parts]
    if len(alike) > 1:
        parts.append(_mark(row, alike))
    elif row.mode is not None and (row.device is None or (row.lora and not run.lora)):
        parts.append(row.mode)
    return parts


def _description(row: Baseline, run: Achieved) -> list[str]:
    precision = tr("precision not stated") if row.precision is None else row.precision.upper()
    parts = [row.title, row.nodes, precision]
    if row.device is not None and not _same_device(row.device, run.device):
        parts.append(tr("on {device}", device=row.device.upper()))
    if row.seq_length is not None and _other_length(row, run):
        parts.append(tr("sequence length {n}", n=f"{row.seq_length:,}"))
    return [part for part in parts if part]


def _mark(row: Baseline, alike: Sequence[Baseline]) -> str:
    """What ``row`` alone has of those that read alike: its mode, its date, else its name."""
    for mark in (row.mode, row.date):
        if mark is not None and sum(mark in (other.mode, other.date) for other in alike) == 1:
            return mark
    return row.name


def _asides(row: Baseline, run: Achieved) -> list[str]:
    """Everything else that must be known before the two rates are compared."""
    asides = []
    if row.reference_tokens_per_second_per_device is not None:
        reference = f"{row.reference_tokens_per_second_per_device:,.0f}"
        asides.append(tr("; the reference system: {reference}", reference=reference))
    if contradicts_itself(row):
        asides.append(tr("; that row contradicts itself"))
    if run.lora and not row.lora:
        asides.append(tr("; this run trains low-rank adapters (LoRA), that row all weights"))
    if row.shape.padded_vocab_size is not None and run.shape.padded_vocab_size is None:
        asides.append(tr("; the vocabulary of this run is unknown, and with it whether the model is the same"))
    return asides


def _same_device(row: str, run: str | None) -> bool:
    """Whether the run's device is the row's, or one of those that the row's name stands for."""
    if run is None:
        return False
    try:
        named, used = find_device(row), find_device(run)
    except UsageError:
        return row.lower() == run.lower()
    return used.name in (named.name, *(find_device(member).name for member in named.members))


def _other_length(row: Baseline, run: Achieved) -> bool:
    return row.seq_length is not None and row.seq_length != run.seq_length


# Which are nearest where none matches.


def _distance(row: Baseline, run: Achieved) -> tuple[bool, bool, float, float, bool]:
    """Another model first by its kind and how much larger or smaller it is, then devices, then precision."""
    return (
        not _same_model(row.shape, run.shape),
        not _same_kind(row.shape, run.shape),
        _log_ratio(_parameters(row), _count(run.shape)),
        _log_ratio(row.devices, run.devices),
        row.precision != run.precision,
    )


def _log_ratio(one: float | None, other: float | None) -> float:
    return abs(math.log(one / other)) if one and other else math.inf


def _parameters(row: Baseline) -> float | None:
    counted = row.parameters or _count(row.shape)
    if counted is not None:
        return counted
    stated = regex.fullmatch(r"(\d+(?:\.\d+)?)([BT]).*", row.size)
    return float(stated[1]) * {"B": 1e9, "T": 1e12}[stated[2]] if stated else None


def _count(shape: ModelShape) -> float | None:
    """All parameters; 12 l h^2 + V h of a plain transformer where the shape does not tell all."""
    counted = count_parameters(shape)
    if counted is not None:
        return float(counted.total)
    layers, hidden = shape.num_layers, shape.hidden_size
    if layers is None or hidden is None:
        return None
    return 12.0 * layers * hidden**2 + (shape.padded_vocab_size or 0) * hidden
