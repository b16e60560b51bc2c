"""May two sides be compared, and what changed between them.

Comes in: the runs of two sides. Goes out: for each field that must be equal whether it is, and the settings, versions
and labels that differ, as candidates for the cause. Unknown is neither equal nor different; of the fields of REQUIRED
it forbids a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import polars as pl
import regex

from logparse.errors import unknown_name, use_one_of
from logparse.language import msg
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass, replace

# These decide the work of a step and what it runs on. A change of any of them is not a change of a release.
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
FIELDS = (
    *SHAPE,
    *WORK,
    *LAYOUT,
    "precision",
    "recompute",
    "recompute_method",
    "recompute_num_layers",
    "device",
)
# Unless these are known for both sides, the work may differ: there is no verdict.
REQUIRED = ("num_layers", "hidden_size", "global_batch_size", "seq_length", "world_size")
# Accepted like the name of a field: allows all unknown fields.
UNKNOWN = "unknown"
# What these are in a dense model, whatever its log prints: nothing, or what the framework would have given to experts.
DENSE = {"num_experts": 0, "moe_router_topk": 0, "moe_ffn_hidden_size": 0, "expert_model_parallel_size": 1}
# What these are unless all activations are recomputed; logs print what they would have been.
NOT_FULL = {"recompute_method": "none", "recompute_num_layers": 0}

# Settings such as paths, hosts, users and seeds, which do not affect the speed.
INCIDENTAL = lazy_regex(
    r"(^|_)(path|paths|dir|dirs|folder|file|files|prefix|host|hosts|hostname|addr|address|port|url|seed|user|"
    r"save|load|rank|timestamp|date|run_id|job_id|exp_name|run_name|experiment_name|project)$|^wandb_|^tensorboard_"
)
# A value that names a place: an absolute path, one from home or here, a URL.
PLACE = lazy_regex(r"^\[?['\"]?(/|~/|\.{1,2}/|[a-z0-9]+://)")

# The framework, which is compared as a setting.
FRAMEWORK = "framework"
# Software on which the speed depends, and settings that change the work of a step or how it is done.
STACK = lazy_regex(
    r"cann|torch|npu|cuda|cudnn|nccl|hccl|rccl|driver|firmware|kernel|mindspore|mindspeed|mindformers|modellink|"
    r"megatron|deepspeed|transformer|apex|flash|triton|framework",
    regex.IGNORECASE,
)
LIKELY = lazy_regex(
    r"overlap|fus(e|ed|ion)|flash|attention|mask|pack|recompute|checkpoint_act|parallel|comm|bucket|offload|swap|"
    r"precision|dtype|bf16|fp16|fp8|compile|graph|kernel|batch|seq|length|mlp|swiglu|gelu|rope|norm|optimizer|"
    r"distributed|zero|prefetch|workers|loader|cache|profil|determin|debug|check|moe|expert|token|dispatch|layers|"
    r"hidden|heads|experts|dropout|lora|freeze|async|sync|interval|memory|buffer|threads|jit|affinity|numa|timers",
    regex.IGNORECASE,
)
# Settings of the result, which change the loss and not the time.
UNLIKELY = lazy_regex(
    r"(^|_)(lr|min_lr|learning_rate|weight_decay|beta|eps|clip|init|std|seed|tokenizer)(_|$|\d)|"
    r"^(title|name|comment|tag|job)",
    regex.IGNORECASE,
)
# What is left of True, False and None where another process wrote into the line.
TORN = ("Tr", "Tru", "Fa", "Fal", "Fals", "Non")

Kind = Literal["version", "setting", "label"]
KINDS: dict[Kind, str] = {"version": "versions", "setting": "settings", "label": "labels"}
State = Literal["equal", "different", "unknown"]


@dataclass(frozen=True)
class Field:
    """One field that must be equal: the values on each side, with None if some run has no value."""

    name: str
    baseline: tuple[Any, ...]
    candidate: tuple[Any, ...]
    allowed: bool = False

    @property
    def state(self) -> State:
        """Different if any two known values differ; unknown if some run has no value, or a side has no run."""
        values = {*self.baseline, *self.candidate}
        if len(values - {None}) > 1:
            return "different"
        return "unknown" if None in values or not self.baseline or not self.candidate else "equal"

    @property
    def refused(self) -> bool:
        """Whether it forbids a verdict."""
        forbids = self.state == "different" or (self.state == "unknown" and self.name in REQUIRED)
        return forbids and not self.allowed


@dataclass(frozen=True)
class Change:
    """A version, setting or label with its values on each side, the most frequent first; none where none is printed.

    ``counts`` are how many runs of each side have its first value, and how many runs it has.
    """

    kind: Kind
    name: str
    baseline: tuple[str, ...]
    candidate: tuple[str, ...]
    counts: tuple[tuple[int, int], tuple[int, int]]

    @property
    def one_sided(self) -> bool:
        """Whether only one side prints it: the difference may be in the logs, not in the jobs."""
        return not (self.baseline and self.candidate)

    @property
    def is_partial(self) -> bool:
        """Whether some run of a side has another value."""
        return any(n < of for n, of in self.counts)

    @property
    def incidental(self) -> bool:
        """Whether it is a setting such as a path, a host or a seed, which cannot be the cause of another speed."""
        if self.kind != "setting":
            return False
        places = any(PLACE.match(value) for value in (*self.baseline[:1], *self.candidate[:1]))
        return places or bool(INCIDENTAL.search(self.name))

    @property
    def is_candidate(self) -> bool:
        """Whether it can be the cause of another speed, as far as the logs show."""
        return not self.one_sided and not self.incidental


def check_fields(baseline: pl.DataFrame, candidate: pl.DataFrame, allowed: Iterable[str] = ()) -> list[Field]:
    """Every field of FIELDS over the runs of both sides; those in ``allowed`` may differ, or be UNKNOWN."""
    old, new = fill_implied(baseline), fill_implied(candidate)
    accepted = set(allowed)
    fields = [Field(n, _values(old, n), _values(new, n), n in accepted) for n in FIELDS]
    return [replace(f, allowed=True) if f.state == UNKNOWN and UNKNOWN in accepted else f for f in fields]


def check_allowed(names: Sequence[str]) -> tuple[str, ...]:
    """``names``, each of them one of FIELDS, or UNKNOWN, or several with commas. Raises UsageError for any other."""
    names, known = [name for text in names for name in text.split(",")], (*FIELDS, UNKNOWN)
    for name in names:
        if name not in known:
            raise unknown_name(msg("field"), name, FIELDS, use_one_of(known, "logparse compare --help-all"))
    return tuple(names)


def refusals(fields: Sequence[Field]) -> list[Field]:
    """The fields that forbid a verdict."""
    return [field for field in fields if field.refused]


def list_changes(baseline: pl.DataFrame, candidate: pl.DataFrame) -> list[Change]:
    """Versions, settings and labels of which most runs of one side have one value and most of the other another.

    A value that varies between runs of one side, such as a path or a port, cannot be the cause and is left out. First
    come those that are likely to matter, of these first those that all runs of both sides have. Those that only one
    side prints come last.
    """
    changes = [change for kind in KINDS for change in _differing(kind, baseline, candidate)]
    if not any(change.kind == "version" and change.name == FRAMEWORK for change in changes):
        changes += _differing_frameworks(baseline, candidate)
    return sorted(changes, key=rank_of)


def rank_of(change: Change, of_result: bool = False) -> tuple[bool, int, bool, int]:
    """The place of a change among others: what is likely to change the speed, or the result, comes first."""
    return change.one_sided, _likelihood(change, of_result), change.is_partial, list(KINDS).index(change.kind)


def _likelihood(change: Change, of_result: bool) -> int:
    """0 for software below the model and settings of speed, 1 for places and other software, 2 for the rest.

    Settings of the result are the likeliest causes of what happens to it, those of the speed come next.
    """
    if change.kind == "label":
        return 1
    if change.kind == "version":
        return 0 if STACK.search(change.name) else 1
    if UNLIKELY.search(change.name):
        return 0 if of_result else 2
    return int(of_result) if change.name == FRAMEWORK or LIKELY.search(change.name) else 2


def fill_implied(runs: pl.DataFrame) -> pl.DataFrame:
    """``runs`` with the values that other fields imply, and without values that have no meaning.

    These are the experts of a dense model, context parallelism if the rest of the layout is known, and the recomputed
    layers if not all is recomputed. A log that prints no shape at all does not count as a dense model's.
    """
    dense = pl.col("hidden_size").is_not_null() & (pl.col("num_experts").fill_null(0) <= 1)
    not_full = pl.col("recompute") != "full"
    whole = pl.when(pl.col("tensor_model_parallel_size").is_not_null()).then(1)
    return runs.with_columns(
        pl.col("context_parallel_size").fill_null(whole),
        *(pl.when(dense).then(pl.lit(value)).otherwise(pl.col(name)).alias(name) for name, value in DENSE.items()),
        *(
            pl.when(not_full).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
            for name, value in NOT_FULL.items()
        ),
    )


def _values(runs: pl.DataFrame, name: str) -> tuple[Any, ...]:
    return tuple(sorted(set(runs[name].to_list()), key=lambda value: (value is not None, value)))


def _differing_frameworks(baseline: pl.DataFrame, candidate: pl.DataFrame) -> list[Change]:
    """The framework as a setting: its name with the versions that print such a log; else the format of the log."""
    sides = [_frameworks(side) for side in (baseline, candidate)]
    (old, before), (new, now) = ((values, len(side)) for values, side in zip(sides, (baseline, candidate), strict=True))
    if not (old and new and _settled(old, before) and _settled(new, now)) or next(iter(old)) == next(iter(new)):
        return []
    return [Change("setting", FRAMEWORK, tuple(old), tuple(new), (_first(old, before), _first(new, now)))]


def _frameworks(runs: pl.DataFrame) -> dict[str, int]:
    """How many runs are of each framework, the most frequent first."""
    if not {"framework", "framework_version", "format"} <= set(runs.columns):
        return {}
    framework = pl.concat_str("framework", "framework_version", separator=" ", ignore_nulls=True)
    known = pl.when(pl.col("framework").is_null()).then("format").otherwise(framework).alias(FRAMEWORK)
    counts = runs.select(known).drop_nulls().group_by(FRAMEWORK).len()
    return dict(counts.sort("len", FRAMEWORK, descending=[True, False]).iter_rows())


def _differing(kind: Kind, baseline: pl.DataFrame, candidate: pl.DataFrame) -> list[Change]:
    """Changes of one kind, by name. No change is known if no run of one side prints anything of the kind."""
    old, new = _by_name(baseline, KINDS[kind]), _by_name(candidate, KINDS[kind])
    if not old or not new:
        return []
    sizes = (len(baseline), len(candidate))
    pairs = ((name, old.get(name, {}), new.get(name, {})) for name in sorted({*old, *new}))
    return [
        Change(kind, name, tuple(a), tuple(b), (_first(a, sizes[0]), _first(b, sizes[1])))
        for name, a, b in pairs
        if _settled(a, sizes[0]) and _settled(b, sizes[1]) and next(iter(a), None) != next(iter(b), None)
    ]


def _first(values: Mapping[str, int], runs: int) -> tuple[int, int]:
    return max(values.values(), default=0), runs


def _settled(values: Mapping[str, int], runs: int) -> bool:
    """Whether most runs have one value, or none has any."""
    return not values or 2 * max(values.values()) > runs


def _by_name(runs: pl.DataFrame, column: str) -> dict[str, dict[str, int]]:
    """How many runs have each value, the most frequent first, by name."""
    pairs = runs.select("run_id", pl.col(column)).explode(column).drop_nulls().unnest(column)
    if column == "versions":
        # A range of versions that print such a log is no version.
        pairs = pairs.filter(pl.col("origin").struct.field("kind").ne_missing("appearance"))
    if pairs.is_empty():
        return {}
    pairs = pairs.filter(~pl.col("value").is_in(TORN))
    counted = pairs.group_by("name", "value").agg(pl.col("run_id").n_unique().alias("runs"))
    values: dict[str, dict[str, int]] = {}
    for name, value, count in counted.sort("runs", "value", descending=[True, False]).iter_rows():
        values.setdefault(name, {})[value] = count
    return values
