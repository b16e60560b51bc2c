"""Published rates: what others say they reached.

Comes in: published.csv, a user's own file with the same columns. Goes out: rows, and where a row contradicts itself.
``analysis.matches`` puts a run beside them. A device of ``device`` is named as in devices.csv where it is
there; "nodes x devices" is as published. Rates are of one device. ``formula`` is the id, as in docs/identification.md,
by which the row's TFLOP/s or MFU was counted.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path

from analysis.flops.printed import PRINTED_FORMULAS
from analysis.models import Model, find_model
from analysis.peak import resolve_peak
from analysis.shape import ModelShape
from logparse.errors import InputError, UsageError, unknown_name
from logparse.language import msg, tr

# Publishers average times and rates apart; consistent rows of ModelLink and MindFormers differ by less than this.
AVERAGED_APART = 0.002


@dataclass(frozen=True)
class Baseline:
    """One published row; None is not stated. ``rounding`` is the relative half unit of the last printed digit."""

    name: str
    model: str
    size: str
    nodes: str | None
    devices: int | None
    device: str | None
    precision: str | None
    seq_length: int | None
    global_batch_size: int | None
    tokens_per_second_per_device: float | None
    reference_tokens_per_second_per_device: float | None
    step_time_s: float | None
    tflops_per_second_per_device: float | None
    mfu: float | None
    formula: str | None
    num_layers: int | None
    hidden_size: int | None
    padded_vocab_size: int | None
    publisher: str
    document: str
    date: str | None
    note: str | None
    rounding: Mapping[str, float]

    @property
    def title(self) -> str:
        """Model and size in one word."""
        return f"{self.model}-{self.size}"

    @property
    def catalogued(self) -> Model | None:
        """The model of the catalogue; None where it has none of that name."""
        try:
            return find_model(self.title)
        except UsageError:
            return None

    @property
    def shape(self) -> ModelShape:
        """Sizes of the row itself, else those of the catalogue."""
        own = {name: getattr(self, name) for name in ("num_layers", "hidden_size", "padded_vocab_size")}
        model = self.catalogued
        return ModelShape.from_quantities(
            ({} if model is None else _sizes(model)) | {k: v for k, v in own.items() if v}
        )


def _sizes(model: Model) -> dict[str, object]:
    return {**model.quantities(), "padded_vocab_size": model.vocab_size}


@dataclass(frozen=True)
class Check:
    """One published figure beside what the row's other figures give; relative ``tolerance``."""

    quantity: str
    published: float
    recomputed: float
    tolerance: float

    @property
    def difference(self) -> float:
        """Relative."""
        return self.published / self.recomputed - 1

    @property
    def agrees(self) -> bool:
        """Whether rounding, and averaging apart, explain the difference."""
        return abs(self.difference) <= self.tolerance


@cache
def published() -> tuple[Baseline, ...]:
    """Every row of published.csv, in its order."""
    text = resources.files("analysis").joinpath("published.csv").read_text(encoding="utf-8")
    return _rows(text, "published.csv")


def read_baselines(path: Path) -> tuple[Baseline, ...]:
    """Rows of the user's own file: CSV with the columns of published.csv, of which only name and model are needed.

    Raises InputError for a file that cannot be read, an unknown column or a value of another kind.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        problem = tr("cannot read {path}: {error}", path=path, error=error)
        raise InputError(problem, remedy=tr("give a CSV file in UTF-8")) from error
    return _rows(text, str(path))


def find_baseline(rows: Sequence[Baseline], name: str) -> Baseline:
    """The row called ``name``. Raises UsageError where there is none."""
    by_name = {row.name: row for row in rows}
    if name.lower() not in by_name:
        raise unknown_name(msg("baseline"), name, by_name, tr("`logparse baselines` lists them all"))
    return by_name[name.lower()]


def check_row(row: Baseline) -> tuple[Check, ...]:
    """The row against itself: tokens/s/p from its step time, TFLOP/s and MFU from its rate and formula."""
    return tuple(_checks(row))


def contradicts_itself(row: Baseline) -> bool:
    """Whether a published figure of the row cannot come from its others."""
    return not all(check.agrees for check in check_row(row))


def _checks(row: Baseline) -> Iterator[Check]:
    timed = _tokens_by_time(row)
    rate = row.tokens_per_second_per_device
    if timed is not None and rate is not None:
        yield _check(row, "tokens_per_second_per_device", rate, timed, "step_time_s")
    measured = timed if timed is not None else rate
    source = "step_time_s" if timed is not None else "tokens_per_second_per_device"
    flops = _flops_per_token(row)
    if measured is None or flops is None:
        return
    if row.tflops_per_second_per_device is not None:
        counted = measured * flops / 1e12
        yield _check(row, "tflops_per_second_per_device", row.tflops_per_second_per_device, counted, source)
    peak = resolve_peak(row.device, row.precision)[0] if row.device else None
    if row.mfu is not None and peak is not None:
        yield _check(row, "mfu", row.mfu, measured * flops / 1e12 / peak.peak_tflops_per_second, source)


def _check(row: Baseline, quantity: str, value: float, recomputed: float, source: str) -> Check:
    tolerance = row.rounding[quantity] + row.rounding[source] + AVERAGED_APART
    return Check(quantity, value, recomputed, tolerance)


def _tokens_by_time(row: Baseline) -> float | None:
    batch, length, seconds, devices = row.global_batch_size, row.seq_length, row.step_time_s, row.devices
    if batch is None or length is None or seconds is None or devices is None:
        return None
    return batch * length / seconds / devices


def _flops_per_token(row: Baseline) -> float | None:
    if row.formula is None or row.seq_length is None:
        return None
    return PRINTED_FORMULAS[row.formula].flops_per_token(row.shape, row.seq_length)


_NUMBERS = ("tokens_per_second_per_device", "reference_tokens_per_second_per_device", "step_time_s")
_FLOATS = {*_NUMBERS, "tflops_per_second_per_device", "mfu"}
_INTS = {"devices", "seq_length", "global_batch_size", "num_layers", "hidden_size", "padded_vocab_size"}
COLUMNS = tuple(f.name for f in fields(Baseline) if f.name != "rounding")
_ALWAYS = {"name", "model", "size", "publisher", "document"}


def _rows(text: str, where: str) -> tuple[Baseline, ...]:
    table = csv.DictReader(io.StringIO(text))
    for column in table.fieldnames or ():
        if column not in COLUMNS:
            error = unknown_name(msg("column"), column, COLUMNS, tr("the columns are those of analysis/published.csv"))
            raise InputError(error.problem, where=where, remedy=error.remedy)
    return tuple(_row(row, f"{where}, line {table.line_num}") for row in table)


def _row(texts: Mapping[str, str | None], where: str) -> Baseline:
    cells = {name: (texts.get(name) or "").strip() for name in COLUMNS}
    if not (cells["name"] and cells["model"]):
        raise InputError(tr("a row without a name or a model"), where=where, remedy=tr("fill in both columns"))
    cells["name"] = cells["name"].lower()
    values = {name: _value(name, cell, where) for name, cell in cells.items()}
    rounding = {name: _rounding(cells[name]) for name in _FLOATS if cells[name]}
    return Baseline(**values, rounding=rounding)  # type: ignore[arg-type]


def _value(name: str, cell: str, where: str) -> str | float | int | None:
    if not cell:
        return "" if name in _ALWAYS else None
    try:
        if name in _INTS:
            return int(cell)
        return _positive(cell) if name in _FLOATS else cell
    except ValueError as error:
        problem = tr("{name} is {cell!r}", name=name, cell=cell)
        raise InputError(problem, where=where, remedy=tr("write a number above 0, or leave it empty")) from error


def _positive(cell: str) -> float:
    value = float(cell)
    if not 0 < value < float("inf"):
        raise ValueError(cell)
    return value


def _rounding(cell: str) -> float:
    """Half a unit of the last digit, relative: 0.005 / 6.81 for "6.81"."""
    decimals = len(cell.partition(".")[2])
    return 0.5 * 10.0**-decimals / float(cell)
