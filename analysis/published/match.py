"""Compares a run with published rates: the rows that match, how much of them it reaches, else the nearest rows.

Comes in: what a run achieved and rows of ``analysis.published.baselines``. Goes out: a PublishedComparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache

import regex

from analysis.hardware.devices import find_device, is_cpu
from analysis.model.catalogue import same_kind, same_model
from analysis.model.parameters import count_parameters
from analysis.model.shape import ModelShape
from analysis.published.baselines import Baseline, contradicts_itself, find_baseline, published
from logparse.errors import UsageError
from logparse.findings import Note, info
from logparse.language import tr
from logparse.light_dataclass import dataclass

NEAREST = 3
# The most rows that are shown with a run.
MOST_SHOWN = 3
# A token costs about the same at lengths that differ by no more than this factor.
NEAR_LENGTH = 2
# The fewest rows for a percentile.
ENOUGH_ROWS = 10


@dataclass(frozen=True)
class Achieved:
    """A run, as far as it is known: ``rate`` in tokens/s/p, ``device`` by a name of devices.toml; None is unknown."""

    rate: float | None
    shape: ModelShape
    devices: int | None
    precision: str | None
    device: str | None = None
    seq_length: int | None = None
    lora: bool = False


@dataclass(frozen=True)
class Against:
    """A run compared with one published row; ``share`` is the run's tokens/s/p over the row's.

    ``findings`` are parts of one sentence: the share, and the caveats of the comparison. ``differs_in`` names the
    fields in which the run differs.
    """

    row: Baseline
    share: float
    findings: tuple[Note, ...]
    differs_in: tuple[str, ...] = ()


@dataclass(frozen=True)
class PublishedComparison:
    """A run compared with the rows that match it, best first, then with rows of its model that differ in something.

    Without either: the ``nearest`` rows, and the reason in ``findings``. ``chosen``: the user named the row.
    """

    matches: tuple[Against, ...]
    differing: tuple[Against, ...] = ()
    nearest: tuple[Baseline, ...] = ()
    findings: tuple[Note, ...] = ()
    chosen: bool = False


def compare_run(run: Achieved, rows: Sequence[Baseline], name: str | None = None) -> PublishedComparison:
    """Compare ``run`` with the rows of its model and number of devices, or with the row ``name``.

    A row matches if its precision, device and kind of training are the run's, as far as the row states them. The
    others follow, three in all. Raises UsageError where no row is called ``name``, or that row has no tokens/s/p.
    """
    rated = tuple(row for row in rows if row.tokens_per_second_per_device is not None)
    chosen = (_chosen(rows, name),) if name else _comparable(rated, run)
    if run.rate is None:
        return PublishedComparison((), findings=(info("rate_of_run_unknown"),))
    if chosen:
        compared = tuple(_against(row, run, run.rate, chosen) for row in chosen)
        matches = tuple(against for against in compared if name or not against.differs_in)
        differing = tuple(against for against in compared if against not in matches)
        return PublishedComparison(matches, differing[: max(MOST_SHOWN - len(matches), 0)], chosen=name is not None)
    if run.shape.missing(("num_layers", "hidden_size")):
        return PublishedComparison((), findings=(info("size_of_run_unknown"),))
    nearest = tuple(sorted(rated, key=lambda row: _distance(row, run))[:NEAREST])
    reason = info("no_row_matches", nearest=[row.name for row in nearest])
    return PublishedComparison((), nearest=nearest, findings=(reason, *_unknown(run)))


def place_among(compared: PublishedComparison) -> Note | None:
    """The percentile of the run among the rows that match it; None where they are too few."""
    of = len(compared.matches)
    if of < ENOUGH_ROWS:
        return None
    slower = sum(match.share > 1 for match in compared.matches)
    return info("place_among_published", percentile=round(100 * slower / of), of=of)


def _unknown(run: Achieved) -> Iterator[Note]:
    """A note on facts that rows are matched by and that are unknown of the run."""
    names = [name for name, value in (("world_size", run.devices), ("precision", run.precision)) if value is None]
    if names:
        yield info("run_lacks", names=names)


def _chosen(rows: Sequence[Baseline], name: str) -> Baseline:
    row = find_baseline(rows, name)
    if row.tokens_per_second_per_device is None:
        problem = tr("the baseline {name} has no tokens/s/p", name=row.name)
        raise UsageError(problem, remedy=tr("`logparse baselines` lists them all"))
    return row


# Which rows match.


def _comparable(rows: Sequence[Baseline], run: Achieved) -> tuple[Baseline, ...]:
    """Rows of the run's model and number of devices: those with fewer differences first, then the user's own."""
    same_size, theirs = [row for row in rows if _same_size(row, run)], {row.name: row for row in published()}

    def order(row: Baseline) -> tuple[object, ...]:
        own, other = theirs.get(row.name) is not row, differences(row, run)
        return (len(other), not own, row.precision is None, row.seq_length != run.seq_length, contradicts_itself(row))

    return tuple(sorted(same_size, key=order))


def _same_size(row: Baseline, run: Achieved) -> bool:
    return run.devices is not None and row.devices == run.devices and same_model(row.shape, run.shape)


def differences(row: Baseline, run: Achieved) -> tuple[str, ...]:
    """Fields that the row states and that are other or unknown of the run: the two rates alone prove nothing.

    The device does not count where that of the run is unknown.
    """
    other = {
        "precision": row.precision is not None and row.precision != run.precision,
        "device": is_cpu(run.device)
        or (None not in (row.device, run.device) and not _same_device(str(row.device), run.device)),
        "lora": row.lora != run.lora,
        "seq_length": not _near(row.seq_length, run.seq_length),
    }
    return tuple(name for name, differs in other.items() if differs)


def _near(length: int | None, other: int | None) -> bool:
    """Whether a token costs about the same at both lengths, as far as they are known."""
    return length is None or other is None or max(length, other) <= NEAR_LENGTH * min(length, other)


# Findings on the rows.


def _against(row: Baseline, run: Achieved, rate: float, rows: Sequence[Baseline]) -> Against:
    published_rate = row.tokens_per_second_per_device or 0.0
    share = rate / published_rate
    finding = info(
        "share_of_recorded" if row.recorded else "share_of_published",
        rate=rate,
        share=share,
        publisher=row.publisher or row.name,
        published=published_rate,
        row=_row_texts(row, run, rows),
    )
    differs_in = differences(row, run)
    differs = (info("row_differs", names=differs_in),) if differs_in else ()
    return Against(row, share, (finding, *differs, *_asides(row, run)), differs_in)


def _row_texts(row: Baseline, run: Achieved, rows: Sequence[Baseline]) -> list[str | Note]:
    """The row's name, its fields that differ from the run or are unknown of it, and a mark that no other row has."""
    parts = _description(row, run)
    same = [other for other in rows if other.publisher == row.publisher and _description(other, run) == parts]
    if len(same) > 1:
        parts.append(_mark(row, same))
    elif row.mode is not None and (row.device is None or (row.lora and not run.lora)):
        parts.append(row.mode)
    return parts


def _description(row: Baseline, run: Achieved) -> list[str | Note]:
    parts: list[str | Note] = [row.title, *([row.nodes] if row.nodes else [])]
    known = info("row_precision", precision=row.precision)
    parts.append(info("row_precision_not_stated") if row.precision is None else known)
    if row.device is not None and not _same_device(row.device, run.device):
        parts.append(info("row_device", device=row.device))
    if row.seq_length is not None and row.seq_length != run.seq_length:
        parts.append(info("row_seq_length", seq_length=row.seq_length))
    return parts


def _mark(row: Baseline, same: Sequence[Baseline]) -> str:
    """What only ``row`` has of the rows with the ``same`` description: its mode, its date, else its name."""
    for mark in (row.mode, row.date):
        if mark is not None and sum(mark in (other.mode, other.date) for other in same) == 1:
            return mark
    return row.name


def _asides(row: Baseline, run: Achieved) -> Iterator[Note]:
    """Everything else that must be known before the two rates are compared."""
    if row.reference_tokens_per_second_per_device is not None:
        yield info("row_reference", rate=row.reference_tokens_per_second_per_device)
    if contradicts_itself(row):
        yield info("row_contradicts_itself")
    if run.lora and not row.lora:
        yield info("row_without_lora")
    if row.shape.padded_vocab_size is not None and run.shape.padded_vocab_size is None:
        yield info("vocabulary_of_run_unknown")


def _same_device(row: str, run: str | None) -> bool:
    """Whether the run's device is the row's, or a member of the group that the row names."""
    if run is None:
        return False
    try:
        named, used = find_device(row), find_device(run)
    except UsageError:
        return row.lower() == run.lower()
    return used.name in (named.name, *(find_device(member).name for member in named.members))


# Which are nearest where none matches.


def _distance(row: Baseline, run: Achieved) -> tuple[bool, bool, float, float, bool]:
    """Another model first by its kind and how much larger or smaller it is, then devices, then precision."""
    return (
        not same_model(row.shape, run.shape),
        not same_kind(row.shape, run.shape),
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


@cache
def _count(shape: ModelShape) -> float | None:
    """All parameters; 12 l h^2 + V h of a plain transformer where the shape has not all sizes."""
    counted = count_parameters(shape)
    if counted is not None:
        return float(counted.total)
    layers, hidden = shape.num_layers, shape.hidden_size
    if layers is None or hidden is None:
        return None
    return 12.0 * layers * hidden**2 + (shape.padded_vocab_size or 0) * hidden
