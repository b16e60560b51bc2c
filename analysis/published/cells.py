"""Cells of a table of published rates: from text to a value, or an error that names the cell and its line.

Comes in: the text of a cell and its column. Goes out: a number, text, sizes of a model, or None for an empty cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal

from analysis.flops.printed import PRINTED_FORMULAS
from analysis.model.shape import ModelShape
from logparse.errors import InputError, LogparseError, unknown_name
from logparse.language import msg, tr
from logparse.lazy_regex import lazy_regex

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
