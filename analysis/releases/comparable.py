"""May two sides be compared, and what changed between them.

Comes in: the runs of two sides. Goes out: for each field that must be equal whether it is, and the settings and
versions that differ, as candidates for the cause. Unknown is neither equal nor different.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

# What decides how much work a step is and what it runs on. A change of any of these is no change of a release.
SHAPE = (
    "num_layers",
    "hidden_size",
    "ffn_hidden_size",
    "num_attention_heads",
    "num_query_groups",
    "padded_vocab_size",
    "num_experts",
    "moe_router_topk",
    "moe_ffn_hidden_size",
)
WORK = ("global_batch_size", "micro_batch_size", "seq_length")
LAYOUT = (
    "world_size",
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
    "data_parallel_size",
)
FIELDS = (*SHAPE, *WORK, *LAYOUT, "precision", "recompute", "device")
# What these are in a dense model. Its log does not print them, and neither does one that prints no shape at all.
DENSE = {"num_experts": 0, "moe_router_topk": 0, "moe_ffn_hidden_size": 0, "expert_model_parallel_size": 1}

Kind = Literal["version", "setting"]
KINDS: dict[Kind, str] = {"version": "versions", "setting": "settings"}
State = Literal["equal", "different", "unknown"]


@dataclass(frozen=True)
class Field:
    """One field that must be equal: the values on each side, None among them where some run does not tell."""

    name: str
    baseline: tuple[Any, ...]
    candidate: tuple[Any, ...]
    allowed: bool = False

    @property
    def state(self) -> State:
        """Different where any two known values are; unknown where some run does not tell."""
        values = {*self.baseline, *self.candidate}
        if len(values - {None}) > 1:
            return "different"
        return "unknown" if None in values else "equal"


@dataclass(frozen=True)
class Change:
    """A setting or a version with its values on each side; none where it is not printed."""

    kind: Kind
    name: str
    baseline: tuple[str, ...]
    candidate: tuple[str, ...]


def check_fields(baseline: pl.DataFrame, candidate: pl.DataFrame, allowed: Iterable[str] = ()) -> list[Field]:
    """Every field of FIELDS over the runs of both sides; those in ``allowed`` may differ."""
    old, new = fill_dense(baseline), fill_dense(candidate)
    return [Field(n, _values(old, n), _values(new, n), n in set(allowed)) for n in FIELDS]


def refusals(fields: Sequence[Field]) -> list[Field]:
    """The differences that forbid a verdict."""
    return [field for field in fields if field.state == "different" and not field.allowed]


def list_changes(baseline: pl.DataFrame, candidate: pl.DataFrame) -> list[Change]:
    """Versions, then settings, that are the same in all runs of one side and another in all of the other.

    What varies from run to run of one side, such as a path or a port, cannot be the cause and is left out.
    """
    return [
        Change(kind, name, tuple(sorted(old)), tuple(sorted(new)))
        for kind, column in KINDS.items()
        for name, old, new in _differing(baseline, candidate, column)
    ]


def fill_dense(runs: pl.DataFrame) -> pl.DataFrame:
    """What a log of a dense model leaves out because it goes without saying."""
    dense = pl.col("hidden_size").is_not_null() & pl.col("num_experts").is_null()
    return runs.with_columns(
        pl.when(dense & pl.col(name).is_null()).then(value).otherwise(pl.col(name)).alias(name)
        for name, value in DENSE.items()
    )


def _values(runs: pl.DataFrame, name: str) -> tuple[Any, ...]:
    return tuple(runs[name].unique().sort().to_list())


def _differing(baseline: pl.DataFrame, candidate: pl.DataFrame, column: str) -> list[tuple[str, set[str], set[str]]]:
    """Name, values of the baseline, values of the candidate; a side where no run tells has none."""
    old, new = _by_name(baseline, column), _by_name(candidate, column)
    if not old or not new:
        return []
    names = sorted({*old, *new})
    pairs = ((name, old.get(name, set()), new.get(name, set())) for name in names)
    return [(name, a, b) for name, a, b in pairs if a != b and len(a) <= 1 and len(b) <= 1]


def _by_name(runs: pl.DataFrame, column: str) -> dict[str, set[str]]:
    pairs = runs.select(pl.col(column).explode(empty_as_null=False)).unnest(column).select("name", "value")
    values: dict[str, set[str]] = {}
    for name, value in pairs.drop_nulls("name").unique().iter_rows():
        values.setdefault(name, set()).add(value)
    return values
