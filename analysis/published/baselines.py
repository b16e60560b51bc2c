"""Published rates: what others report to have reached.

Comes in: published.csv, a user's own file with the same columns. Goes out: rows, and where a row contradicts itself.
``analysis.published.match`` compares a run with them.

``device`` is a name of devices.toml where the device is there; "nodes x devices" is as published. Rates are of one
device. ``formula`` is the id, as in docs/identification.md, by which the row's TFLOP/s or MFU was counted.
``parameters`` is the published count, for formulas that use it. ``sizes`` are the model's sizes that the catalogue does
not have or gives otherwise. ``mode`` distinguishes the run from others of its publisher.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache, cached_property
from importlib import resources
from pathlib import Path

from analysis.flops.printed import PRINTED_FORMULAS
from analysis.flops.six_n import FLOPS_PER_PARAMETER
from analysis.hardware.devices import resolve_peak
from analysis.model.catalogue import Model, catalogued
from analysis.model.parameters import count_parameters
from analysis.model.shape import ModelShape
from logparse.errors import InputError, LogparseError, UsageError, unknown_name
from logparse.language import msg, tr
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass, fields

# Publishers average times and rates apart; consistent rows of ModelLink and MindFormers differ by less than this.
AVERAGED_APART = 0.002


@dataclass(frozen=True)
class Baseline:
    """One published row; None is not stated. ``rounding`` is the relative half unit of the last printed digit.

    A ``recorded`` one is no publication but a run of the user's history; its publisher is the release.
    """

    name: str
    model: str
    size: str
    nodes: str | None
    devices: int | None
    device: str | None
    precision: str | None
    mode: str | None
    seq_length: int | None
    global_batch_size: int | None
    tokens_per_second_per_device: float | None
    reference_tokens_per_second_per_device: float | None
    step_time_s: float | None
    tflops_per_second_per_device: float | None
    mfu: float | None
    formula: str | None
    parameters: int | None
    sizes: Mapping[str, int | bool]
    publisher: str
    document: str
    date: str | None
    note: str | None
    rounding: Mapping[str, float]
    recorded: bool = False

    @property
    def title(self) -> str:
        """Model and size in one word."""
        return f"{self.model}-{self.size}" if self.size else self.model

    @property
    def lora(self) -> bool:
        """Whether low-rank adapters were trained."""
        return "lora" in (self.mode or "").lower()

    @cached_property
    def catalogued(self) -> Model | None:
        """The model of the catalogue; None where it has none of that name."""
        return catalogued(self.title)

    @cached_property
    def shape(self) -> ModelShape:
        """Sizes of the row itself, else those of the catalogue."""
        model = self.catalogued
        return ModelShape.from_quantities({**({} if model is None else _sizes(model)), **self.sizes})


def _sizes(model: Model) -> dict[str, object]:
    return {**model.quantities(), "padded_vocab_size": model.vocab_size}


@dataclass(frozen=True)
class Check:
    """One published figure and the same recomputed from the row's other figures; ``tolerance`` is relative."""

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
    text = resources.files("analysis.published").joinpath("published.csv").read_text(encoding="utf-8")
    return _rows(text, "published.csv")


def read_baselines(path: Path) -> tuple[Baseline, ...]:
    """Rows of the user's own file: CSV with the columns of published.csv, of which only name and model are needed.

    Raises InputError for a file that cannot be read, a column that is unknown or there twice, a name that is there
    twice, a line with more cells than columns or a value of another kind.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        problem = tr("cannot read {path}: {error}", path=path, error=error)
        raise InputError(problem, remedy=tr("give a CSV file in UTF-8")) from error
    return _rows(text, str(path))


def find_baseline(rows: Sequence[Baseline], name: str) -> Baseline:
    """The row called ``name``. Raises UsageError where there is none."""
    # The user's own rows come first, so the first of a name is meant.
    by_name = {row.name: row for row in reversed(rows)}
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
    peak = _peak(row)
    if row.mfu is not None and peak is not None:
        yield _check(row, "mfu", row.mfu, measured * flops / 1e12 / peak, source)


def _check(row: Baseline, quantity: str, value: float, recomputed: float, source: str) -> Check:
    # TFLOP/s and MFU are the rate times a constant, so the way of averaging makes no difference to them.
    slack = AVERAGED_APART if source == "step_time_s" else 0.0
    return Check(quantity, value, recomputed, row.rounding[quantity] + row.rounding[source] + slack)


def _peak(row: Baseline) -> float | None:
    """Peak of the row's device for its number type, TFLOP/s; None where one is not stated or not in the table."""
    if row.device is None or row.precision is None:
        return None
    try:
        peak = resolve_peak(row.device, row.precision)[0]
    except UsageError:
        return None
    return None if peak is None else peak.peak_tflops_per_second


def _tokens_by_time(row: Baseline) -> float | None:
    batch, length, seconds, devices = row.global_batch_size, row.seq_length, row.step_time_s, row.devices
    if batch is None or length is None or seconds is None or devices is None:
        return None
    return batch * length / seconds / devices


def _flops_per_token(row: Baseline) -> float | None:
    if row.formula is None or row.seq_length is None:
        return None
    flops = PRINTED_FORMULAS[row.formula].flops_per_token(row.shape, row.seq_length)
    counted = count_parameters(row.shape)
    if flops is None or row.parameters is None or counted is None:
        return flops
    # Biases, norms and learned positions are in the published count and not in a shape.
    return flops + FLOPS_PER_PARAMETER * (row.parameters - counted.total)


COLUMNS = tuple(f.name for f in fields(Baseline) if f.name not in ("rounding", "recorded"))
# Text that is empty where the file leaves it out; all other columns are then None.
_ALWAYS = ("size", "publisher", "document")


def _rows(text: str, where: str) -> tuple[Baseline, ...]:
    # strict, because a quote that is never closed would swallow the rest of the file.
    table = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    rows: dict[str, Baseline] = {}
    try:
        _check_columns(table.fieldnames or (), where)
        for cells in table:
            row = _row(cells, f"{where}, line {table.line_num}")
            if row.name in rows:
                problem = tr("the name {name!r} occurs twice", name=row.name)
                remedy = tr("give each row a unique name")
                raise InputError(problem, where=f"{where}, line {table.line_num}", remedy=remedy)
            rows[row.name] = row
    except csv.Error as error:
        remedy = tr("check the quotes of that line, or save the file as CSV again")
        raise InputError(
            tr("not a CSV file: {error}", error=error), where=f"{where}, after line {table.line_num}", remedy=remedy
        ) from error
    return tuple(rows.values())


def _check_columns(columns: Sequence[str], where: str) -> None:
    for column in columns:
        if column not in COLUMNS:
            remedy = tr("the columns are those of analysis/published/published.csv")
            raise located(unknown_name(msg("column"), column, COLUMNS, remedy), where)
        if columns.count(column) > 1:
            problem = tr("the column {name!r} occurs twice", name=column)
            raise InputError(problem, where=where, remedy=tr("leave one out"))


def _row(texts: Mapping[str | None, str | None], where: str) -> Baseline:
    if texts.get(None):
        remedy = tr("put a cell that contains a comma in quotes")
        raise InputError(tr("a row with more cells than there are columns"), where=where, remedy=remedy)
    cells = {name: (texts.get(name) or "").strip() for name in COLUMNS}
    if not (cells["name"] and cells["model"]):
        raise InputError(tr("a row without a name or a model"), where=where, remedy=tr("fill in both columns"))
    values = {name: read_cell(name, cell, where) for name, cell in cells.items()}
    values |= {name: cells[name] for name in _ALWAYS}
    return Baseline(**values, rounding={name: rounding(cells[name]) for name in NUMBERS if cells[name]})  # type: ignore[arg-type]


NUMBERS = {
    "tokens_per_second_per_device",
    "reference_tokens_per_second_per_device",
    "step_time_s",
    "tflops_per_second_per_device",
    "mfu",
}
COUNTS = {"devices", "seq_length", "global_batch_size", "parameters"}
# No rate, time or size of a training run is outside; products of those within stay finite.
LEAST, MOST = 1e-9, 1e15

NUMBER, COUNT = lazy_regex(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"), lazy_regex(r"[0-9]{1,15}")
SWITCHES = {"true": True, "false": False}
# The kind of each size, as it is annotated.
SIZES = {f.name: str(f.type) for f in fields(ModelShape)}

Value = str | int | float | Mapping[str, int | bool] | None


def read_cell(column: str, cell: str, where: str) -> Value:
    """The value of ``cell``. Raises InputError, with ``where`` in it, for a value that the column does not take."""
    if column == "sizes":
        return dict(_size(part, where) for part in cell.split())
    if not cell:
        return None
    if column in COUNTS:
        return _count(column, cell, where)
    if column in NUMBERS:
        return _number(column, cell, where)
    if column == "formula":
        return _formula(cell, where)
    return cell.lower() if column in ("name", "precision") else cell


def rounding(cell: str) -> float:
    """Half a unit of the last digit of a number, relative: 0.005 / 6.81 for "6.81", 50 / 1500 for "1.5e3"."""
    number = Decimal(cell)
    return float(Decimal(5).scaleb(int(number.as_tuple().exponent) - 1) / number)


def located(error: LogparseError, where: str) -> InputError:
    """The same error as one of a place in a file."""
    return InputError(error.problem, where=where, remedy=error.remedy)


def _number(column: str, cell: str, where: str) -> float:
    if NUMBER.fullmatch(cell) and LEAST <= float(cell) <= MOST:
        return float(cell)
    raise _wrong(column, cell, where, tr("write a number above 0, or leave it empty"))


def _count(column: str, cell: str, where: str) -> int:
    if COUNT.fullmatch(cell) and int(cell):
        return int(cell)
    raise _wrong(column, cell, where, tr("write a whole number above 0, or leave it empty"))


def _formula(cell: str, where: str) -> str:
    if cell in PRINTED_FORMULAS:
        return cell
    remedy = tr("use one of {names}", names=", ".join(PRINTED_FORMULAS))
    raise located(unknown_name(msg("formula"), cell, PRINTED_FORMULAS, remedy), where)


def _size(part: str, where: str) -> tuple[str, int | bool]:
    """One ``name=value``; the names and their kinds are those of ModelShape."""
    name, _, value = part.partition("=")
    if name not in SIZES:
        remedy = tr("write sizes as name=value with blanks between them, such as num_layers=32 hidden_size=4096")
        raise located(unknown_name(msg("size"), name, SIZES, remedy), where)
    if "int" in SIZES[name]:
        return name, _count(name, value, where)
    if value not in SWITCHES:
        raise _wrong(name, value, where, tr("write true or false"))
    return name, SWITCHES[value]


def _wrong(name: str, cell: str, where: str, remedy: str) -> InputError:
    shown = cell if len(cell) <= 40 else f"{cell[:40]}..."
    return InputError(tr("{name} is {cell!r}", name=name, cell=shown), where=where, remedy=remedy)
