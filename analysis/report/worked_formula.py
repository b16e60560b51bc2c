"""The formula written out with a run's own numbers: from FLOPs per token to the TFLOP/s of one step."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import polars as pl

from analysis.present.numbers import percent
from analysis.present.parts import Cell, Table
from analysis.report.shown_numbers import NONE, engineering
from analysis.run.rates.throughput import Computation
from analysis.run.result import Analysis
from logparse.language import tr
from logparse.light_dataclass import dataclass

LETTERS = {
    "num_layers": "l",
    "hidden_size": "h",
    "seq_length": "s",
    "padded_vocab_size": "V",
    "num_attention_heads": "a",
    "num_query_groups": "g",
    "kv_channels": "d",
    "ffn_hidden_size": "f",
    "moe_router_topk": "k",
    "moe_ffn_hidden_size": "f_e",
    "moe_shared_expert_intermediate_size": "f_s",
    "num_moe_layers": "l_moe",
    "mtp_num_layers": "m",
    "adapter_parameters": "N_a",
}


@dataclass(frozen=True)
class FormulaTerm:
    """One term: FLOPs per token, forward and backward, and how often it counts: 4/3 where it is recomputed.

    ``passes`` are those that the FLOPs are of: 3, and 2 of frozen weights.
    """

    name: str
    symbols: str
    flops_per_token: float
    times: float
    passes: int


@dataclass(frozen=True)
class Written:
    """A step worked through: the sum of the terms, times batch and length, over time and devices."""

    text: str
    sizes: tuple[tuple[str, str, int], ...]
    terms: tuple[FormulaTerm, ...]
    step: int
    global_batch_size: int
    seq_length: int
    step_time_ms: float
    world_size: int

    @property
    def flops_per_token(self) -> float:
        """The sum of the terms."""
        return sum(term.flops_per_token * term.times for term in self.terms)

    @property
    def flops_per_step(self) -> float:
        """FLOPs of the step over all devices."""
        return self.flops_per_token * self.global_batch_size * self.seq_length

    @property
    def tflops_per_second_per_device(self) -> float:
        """The product, as the charts and tables show it."""
        return self.flops_per_step / (self.step_time_ms / 1000) / self.world_size / 1e12


def write_out(analysis: Analysis) -> Written | None:
    """Work through the step whose time is the median; None where there is no TFLOP/s."""
    how = analysis.computation
    rows = analysis.steps.filter(pl.col("counted") & pl.col("tflops_per_second_per_device").is_not_null())
    for candidates in (rows, rows.filter(pl.col("segment") == pl.col("segment").min())):
        written = _of_row(how, _median(candidates)) if len(candidates) else None
        # A later start may have other settings; then a step of the first start represents the run.
        if written and abs(written[0].tflops_per_second_per_device / written[1] - 1) < 1e-6:
            return written[0]
    return None


def _median(rows: pl.DataFrame) -> dict[str, Any]:
    return rows.sort("step_time_ms", "step").row((len(rows) - 1) // 2, named=True)


def _of_row(how: Computation, row: dict[str, Any]) -> tuple[Written, float] | None:
    formula, length = how.formula, row["seq_length"]
    terms = formula.terms_per_token(how.shape, length)
    if terms is None or how.world_size is None:
        return None
    again = formula.again_per_token(how.shape, length, how.quoted) or {}
    passes = partial(formula.passes, shape=how.shape)
    written = Written(
        text=formula.text,
        sizes=_sizes(how, length),
        terms=tuple(
            FormulaTerm(name, formula.written(name, how.shape), flops, 1 + again.get(name, 0.0) / flops, passes(name))
            for name, flops in terms.items()
            if flops
        ),
        step=row["step"],
        global_batch_size=row["global_batch_size"],
        seq_length=length,
        step_time_ms=row["step_time_ms"],
        world_size=how.world_size,
    )
    return written, row["tflops_per_second_per_device"]


def _sizes(how: Computation, seq_length: int) -> tuple[tuple[str, str, int], ...]:
    """Letter, name and value of every size the formula was given."""
    known = {name: getattr(how.shape, name, None) for name in LETTERS} | {"seq_length": seq_length}
    extra = ("seq_length", "mtp_num_layers", "moe_shared_expert_intermediate_size", "adapter_parameters")
    needed = {*how.formula.needs(how.shape), *extra}
    return tuple((letter, name, value) for name, letter in LETTERS.items() if name in needed and (value := known[name]))


def terms_table(written: Written) -> Table:
    """The terms, what each adds to the FLOPs per token, and how often it is done."""
    heads = (tr("term"), tr("in symbols"), tr("FLOPs per token"), tr("passes"))
    rows = [
        (tr(term.name), term.symbols or NONE, engineering(term.flops_per_token), _passes(term))
        for term in written.terms
    ]
    total = [Cell(text, mark="sum") for text in (tr("total"), "", engineering(written.flops_per_token), "")]
    return Table(heads, [*rows, total], prose={1})


def _passes(term: FormulaTerm) -> str:
    """The forward pass, those of the backward pass, and the share of the first that is done again."""
    passes, again = term.passes, (term.times - 1) * term.passes
    if not again:
        return str(passes)
    if math.isclose(again, 1):
        return tr("{passes}, forward recomputed: × {times}", passes=passes, times=f"{passes + 1}/{passes}")
    share = percent(again)
    return tr(
        "{passes}, {share} of the forward recomputed: × {times}", passes=passes, share=share, times=f"{term.times:.4f}"
    )
