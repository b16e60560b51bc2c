"""Whether a step of the candidate does the work of a step of the baseline: with less work it is faster, not better.

Comes in: the runs of two sides that count, with their steps. Goes out: the kinds of work of which the candidate does
less, and the findings that this explains. More work needs no check here, because a metric becomes worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import polars as pl
import regex

from analysis.compare.comparability import fill_implied
from analysis.compare.verdict import CLOSE, Finding
from analysis.metrics import FINAL_LOSS, Metric
from analysis.run.rows.exclusion_reasons import OF_THE_RUN
from analysis.stats.noise import LEVEL
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass, replace

Kind = Literal[
    "samples", "length", "tokens", "size", "updates", "attention", "weights", "experts", "window", "layers", "learning"
]
# Work that is less by no more is the same: packed samples vary in their tokens.
SAME = 0.005
# Sizes of a model of which FLOPs follow.
SIZES = (
    *("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "padded_vocab_size"),
    *("gated_linear_unit", "num_query_groups", "mtp_num_layers"),
    *("moe_router_topk", "moe_ffn_hidden_size", "moe_shared_expert_intermediate_size"),
)
# What a rate takes account of by itself, by its unit; the time of a step takes account of nothing.
COUNTED: dict[str, frozenset[Kind]] = {
    "ms": frozenset(),
    "tokens/s/p": frozenset({"samples", "length", "tokens"}),
    "TFLOP/s/p": frozenset({"samples", "length", "tokens", "size"}),
    "ratio": frozenset({"samples", "length", "tokens", "size"}),
}
# The setting by which experts drop the tokens beyond their capacity; a log that prints no number drops none.
CAPACITY = lazy_regex(r"^(.*[._])?(moe_)?(expert_|train_)?capacity_factor$")
OF_EVALUATION = "eval"
# The setting that says whether they drop any at all.
DROPPING = lazy_regex(r"^(.*[._])?(moe_)?(token_dropping|drop_tokens)$")
# Settings that keep attention within documents, those that limit it to a window, those by which layers are skipped.
WITHIN = lazy_regex(
    r"^(.*[._])?(reset_attention_mask|(inter|intra)_?doc(ument)?_mask(ing)?|neat_pack(ing)?|sample_packing|"
    r"pack(ing|ed)?|pack_(samples|sequences)|use_packed_seq_params|use_varlen_attn|block_diagonal_mask)$"
)
WINDOW = lazy_regex(r"^(.*[._])?(sliding_window|attention_window|local_window|window)(_size)?$")
SKIPPED = lazy_regex(r"^(.*[._])?(layer_?drop|layer_drop_rate|drop_path(_rate)?|stochastic_depth(_rate)?)$")


def is_setting_of_work(name: str) -> bool:
    """Whether a setting says how much of the attention, the layers or the experts a step computes."""
    return any(pattern.search(name) for pattern in (WITHIN, WINDOW, SKIPPED, CAPACITY, DROPPING))


@dataclass(frozen=True)
class Less:
    """Work of one kind that the candidate does less of: the median of each side. Without a limit it is infinite.

    ``name`` is the kind, or the size of the model.
    """

    kind: Kind
    name: str
    baseline: float
    candidate: float


def work_of(runs: pl.DataFrame, steps: Sequence[tuple[str, pl.DataFrame]], last: int | None = None) -> pl.DataFrame:
    """The work of each run, a column for each kind and for each of SIZES; null if the log does not print it.

    ``runs`` are rows of RUN_COLUMNS, ``settings`` among them where they are known; ``steps`` are those of some of them,
    of which those up to ``last`` are looked at.
    """
    measured = pl.DataFrame([_of_steps(run_id, rows, last) for run_id, rows in steps], schema=_MEASURED, orient="row")
    return (
        fill_implied(runs)
        .select(
            "run_id",
            *(pl.col(name).cast(pl.Float64) for name in SIZES),
            attention=(~(pl.col("packed_documents").fill_null(value=False) | _is_within(runs))).cast(pl.Float64),
            weights=(~pl.col("lora").fill_null(value=False)).cast(pl.Float64),
            **_of_settings(runs),
        )
        .join(measured, on="run_id", how="left", maintain_order="left")
    )


_MEASURED = {"run_id": pl.String} | dict.fromkeys(("samples", "length", "tokens", "updates"), pl.Float64)


def compared_work(
    old: tuple[pl.DataFrame, Iterable[tuple[str, pl.DataFrame]]],
    new: tuple[pl.DataFrame, Iterable[tuple[str, pl.DataFrame]]],
) -> tuple[Less, ...]:
    """The kinds of work of which the second side does less, by runs and steps of each, at the steps that all did.

    A batch that grows and updates that are skipped while the loss scale is sought are a larger part of a shorter run.
    """
    # Steps of many long runs would not fit: of each only these columns are kept.
    done = [[(run_id, rows.select(_LOOKED_AT)) for run_id, rows in steps] for _, steps in (old, new)]
    ends = [int(end) for side in done for _, rows in side if (end := rows["step"].max()) is not None]  # type: ignore[arg-type]
    last = min(ends, default=None)
    return find_less(work_of(old[0], done[0], last), work_of(new[0], done[1], last))


_LOOKED_AT = (
    *("source", "step", "iterations", "counted", "excluded_reason"),
    *("global_batch_size", "seq_length", "consumed_samples", "consumed_tokens", "skipped_iterations"),
)


def _of_steps(run_id: str, steps: pl.DataFrame, last: int | None) -> tuple[str | float | None, ...]:
    """Samples of a step, the length of a sample, the tokens that one consumed: medians; and the updates applied."""
    early = steps if last is None else steps.filter(pl.col("step") <= last)
    rows = early.filter("counted")
    batch, tokens = _median(rows["global_batch_size"]), _consumed(rows, "consumed_tokens")
    samples = batch or _consumed(rows, "consumed_samples")
    printed = early.filter(OF_THE_RUN).drop_nulls("skipped_iterations")
    done = int(printed["iterations"].fill_null(1).sum())
    updates = 1 - int(printed["skipped_iterations"].sum()) / done if done else None
    return run_id, samples, _median(rows["seq_length"]), tokens / samples if tokens and samples else None, updates


def _consumed(rows: pl.DataFrame, column: str) -> float | None:
    """How much of ``column`` a step consumes, by consecutive rows; None if no rows show it."""
    printed = rows[["source", "step", column]].drop_nulls()
    if printed.is_empty():
        return None
    each = printed.select(pl.col("step").diff().over("source"), pl.col(column).diff().over("source"))
    ahead = each.filter((pl.col("step") > 0) & (pl.col(column) > 0))
    return _median(ahead[column] / ahead["step"])


# The kinds of work that follow from settings.
_SET: tuple[Kind, ...] = ("experts", "window", "layers")


def _of_settings(runs: pl.DataFrame) -> dict[str, pl.Expr]:
    """The work of _SET; what a log does not limit is infinite, or all layers. Null where settings are not read."""
    if "settings" not in runs.columns:
        return {name: pl.lit(None, pl.Float64) for name in _SET}
    known = pl.col("settings").list.len() > 0
    window = _least(WINDOW, r"^[\[(\s]*(\d+)").fill_null(math.inf)
    dropped = _numbers(SKIPPED, r"^(0?\.\d+)").list.max().fill_null(0.0)
    return {"experts": _capacity(), "window": pl.when(known).then(window), "layers": pl.when(known).then(1 - dropped)}


def _least(names: regex.Pattern[str], number: str) -> pl.Expr:
    values = _numbers(names, number)
    return values.list.eval(pl.element().filter(pl.element() > 0)).list.min()


def _numbers(names: regex.Pattern[str], number: str) -> pl.Expr:
    """The numbers of the settings with such names."""
    name, value = pl.element().struct.field("name").str.to_lowercase(), pl.element().struct.field("value")
    values = value.filter(name.str.contains(names.pattern)).str.extract(number).cast(pl.Float64, strict=False)
    return pl.col("settings").list.eval(values.drop_nulls())


def _is_within(runs: pl.DataFrame) -> pl.Expr:
    """Whether a setting keeps attention within documents."""
    if "settings" not in runs.columns:
        return pl.lit(value=False)
    name, value = pl.element().struct.field("name").str.to_lowercase(), pl.element().struct.field("value")
    on = name.str.contains(WITHIN.pattern) & (value.str.to_lowercase() == "true")
    return (pl.col("settings").list.eval(name.filter(on)).list.len() > 0).fill_null(value=False)


def _capacity() -> pl.Expr:
    """The least capacity of experts; infinite where a log says that there is none, unknown where it says nothing."""
    name, value = pl.element().struct.field("name").str.to_lowercase(), pl.element().struct.field("value")
    limits = name.str.contains(CAPACITY.pattern) & ~name.str.contains(OF_EVALUATION)
    kept = name.str.contains(DROPPING.pattern) & (value.str.to_lowercase() == "false")
    factors = pl.col("settings").list.eval(value.filter(limits))
    number = pl.element().cast(pl.Float64, strict=False)
    least = factors.list.eval(number.filter(number > 0)).list.min().fill_null(math.inf)
    drops = pl.col("settings").list.eval(value.filter(kept)).list.len() == 0
    return pl.when((pl.col("num_experts") > 1) & (factors.list.len() > 0)).then(
        pl.when(drops).then(least).otherwise(math.inf)
    )


def find_less(baseline: pl.DataFrame, candidate: pl.DataFrame) -> tuple[Less, ...]:
    """The kinds of work of which the median run of the candidate does less than any of the baseline."""
    kinds = (_less(kind, kind, baseline[kind], candidate[kind]) for kind in _KINDS)
    names = () if _is_larger(baseline, candidate) else SIZES
    sizes = (_less("size", name, baseline[name], candidate[name]) for name in names)
    return tuple(one for one in (*kinds, *sizes) if one is not None)


_KINDS: tuple[Kind, ...] = ("samples", "length", "tokens", "updates", "attention", "weights", *_SET)


def _is_larger(baseline: pl.DataFrame, candidate: pl.DataFrame) -> bool:
    """Whether the sizes of the candidate's model that are more weigh more than those that are less."""
    pairs = ((_median(baseline[name]), _median(candidate[name])) for name in SIZES)
    return sum(math.log(now / before) for before, now in pairs if before and now) > 0


def _less(kind: Kind, name: str, old: pl.Series, new: pl.Series) -> Less | None:
    before, now = _median(old), _median(new)
    if before is None or now is None:
        return None
    return Less(kind, name, before, now) if now < float(old.min()) * (1 - SAME) else None  # type: ignore[arg-type]


def _median(values: pl.Series) -> float | None:
    median = values.median()
    return float(median) if isinstance(median, float | int) else None


def learns_less(finding: Finding) -> Less | None:
    """The final loss of the candidate, if higher by more than SAME, and than repeats of the baseline explain.

    Of two equal sides one in twenty has such a p.
    """
    effect = finding.effect
    if finding.metric != FINAL_LOSS or effect is None or effect.p_worse is None or effect.change <= SAME:
        return None
    proven = effect.p_worse <= LEVEL + CLOSE
    return Less("learning", FINAL_LOSS.column, effect.baseline, effect.candidate) if proven else None


def explain(finding: Finding, less: Sequence[Less]) -> Finding:
    """``finding``, of less work where the candidate does less of what the metric takes for granted.

    A regression stays a regression, since it is slower despite less work.
    """
    if finding.verdict == "regression" or finding.effect is None or not flatters(finding.metric, less):
        return finding
    if finding.reason in ("faster", "declared_faster"):
        return replace(finding, verdict="less work", reason="faster_by_less")
    unsaid = finding.metric.unit == "ms" and any(one.kind in COUNTED["tokens/s/p"] for one in less)
    return replace(finding, verdict="less work", reason="less_not_faster") if unsaid else finding


def flatters(metric: Metric, less: Sequence[Less]) -> bool:
    """Whether ``metric`` is one of speed, and any of ``less`` makes it look better."""
    if not metric.is_speed:
        return False
    return any(one.kind not in COUNTED[metric.unit] for one in less)
