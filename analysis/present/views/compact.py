"""The short forms of JSON documents, for ``--compact``. Each value is that of the full document.

Only the key ``omitted`` is not in the full document: how many items of each list or object were left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from analysis.metrics import OF_ROWS, RATES
from analysis.present.selection import Tree, select, tree_of, value_at
from analysis.run.checks.target_verdicts import WHY_NO_RATE, causes_of_unknown
from analysis.run.checks.targets import figures
from logparse.light_dataclass import dataclass

Document = dict[str, Any]
# The most bytes of a run, of an ending or of a comparison.
MOST_BYTES = 5750
NOTE = "code level text"
_ENDING = """state family grade signature source line text rank host exit_code step planned_steps remedy"""
_RUNS = "run_id name release"
# The sizes that figures are computed from.
_SIZES = """world_size data_parallel_size tensor_model_parallel_size pipeline_model_parallel_size context_parallel_size
 expert_model_parallel_size global_batch_size micro_batch_size seq_length num_layers hidden_size ffn_hidden_size
 gated_linear_unit num_attention_heads num_query_groups padded_vocab_size num_experts moe_router_topk precision
 recompute zero_stage"""


@dataclass(frozen=True)
class Short:
    """The ``keys`` that are kept, by the path of their object, and the lists and objects that are cut at their end.

    The first that ``gives_way`` is missed least.
    """

    keys: Mapping[str, str]
    gives_way: tuple[str, ...]

    def tree(self) -> Tree:
        """What is kept."""
        return tree_of(
            ".".join(filter(None, (path, name))) for path, names in self.keys.items() for name in names.split()
        )


RUN = Short(
    {
        "": "name sources format goodput short starts lost_steps impossible",
        "framework": "name version",
        "coverage": "lines step_lines torn_lines malformed_values unread_labels",
        **dict.fromkeys(map("context.{}".format, _SIZES.split()), "value origin"),
        "device": "name dtype peak_tflops_per_second basis confidence range origin",
        "formula": "name recompute_factor recompute recompute_origin flops_per_iteration",
        "metrics.*": "unit median mean n range",
        "printed.*": "unit median",
        "rates.*": "step_time_ms steps tokens_per_second_per_device mfu",
        "time_breakdown": "part share",
        "overheads": "cause share cost",
        "ending": _ENDING,
        "planned.left": "steps seconds ends_at",
        "published.matches": "name share",
        "requirements": "require value outcome",
        "checks": "code passed",
        "notes": NOTE,
    },
    (
        *(
            "published.matches",
            "overheads",
            "time_breakdown",
            "sources",
            "coverage.unread_labels",
            "printed",
            "context",
        ),
        *("notes", "checks", "requirements"),
    ),
)
ENDING = Short(
    {"": f"{_ENDING} collect detail figures evidence suspects frames restart_helps attempts_in_log"},
    ("frames", "suspects", "evidence"),
)
COMPARISON = Short(
    {
        "": """schema_version job verdict threshold comparable losses losses_reason losses_reason_code changes less_work
         perhaps_one_job""",
        "baseline": "asked releases",
        "baseline.runs": _RUNS,
        "candidate": "asked releases",
        "candidate.runs": _RUNS,
        "fields.*": "state baseline candidate allowed",
        "metrics.*": "unit runs threshold verdict reason_code",
        "metrics.*.effect": "baseline candidate change low high",
        "loss": "axis reason_code",
        "loss.differences.*": "mean_relative largest largest_at final final_at text",
        "loss.remarks": "text",
        "requirements": "require value outcome",
        "failed.*": "run_id name",
        "left_out": "name run_id reason",
    },
    (
        *("perhaps_one_job", "loss.remarks", "less_work", "left_out", "candidate.runs", "baseline.runs"),
        *("failed.candidate", "failed.baseline", "loss.differences", "fields", "changes", "requirements", "metrics"),
    ),
)


def compact_runs(document: Document) -> Document:
    """The document of ``analyze`` with short runs."""
    short = document | {"runs": [_cut(RUN, _chosen(run), run) for run in document["runs"]]}
    if short.get("stands_out"):
        short["stands_out"] = select(short["stands_out"], tree_of(NOTE.split()))
    return short


def compact_endings(document: Document) -> Document:
    """The document of ``diagnose`` with short endings."""
    if "ending" in document:
        return document | {"ending": _cut(ENDING, document["ending"])}
    return document | {"runs": [run | {"ending": _cut(ENDING, run["ending"])} for run in document["runs"]]}


def compact_comparisons(document: Document) -> Document:
    """The document of ``compare`` with short comparisons."""
    if "comparisons" not in document:
        return _cut(COMPARISON, _with_chosen_fields(document), document)
    several = [_cut(COMPARISON, _with_chosen_fields(one), one) for one in document["comparisons"]]
    return document | {"comparisons": several}


def _cut(short: Short, document: Document, full: Document | None = None) -> Document:
    """The short form of ``document``, and how much of ``full`` is not in it."""
    kept: Document = select(document, short.tree())
    for name in short.gives_way:
        if (excess := _bytes(kept) - MOST_BYTES) > 0 and (part := value_at(kept, name)):
            kept = _with(kept, name, _shorter(part, excess))
    lost = {name: n for name in short.gives_way if (n := _size(full or document, name) - _size(kept, name))}
    return kept | {"omitted": lost}


def _shorter(part: Any, excess: int) -> Any:
    """``part`` without as many of its last items, or keys, as take ``excess`` bytes."""
    items = [{key: value} for key, value in part.items()] if isinstance(part, dict) else list(part)
    while items and excess > 0:
        excess -= _bytes(items.pop())
    return items if isinstance(part, list) else {key: value for item in items for key, value in item.items()}


def _bytes(document: Any) -> int:
    # Printed as it is, text in UTF-8 is never longer.
    return len(json.dumps(document, separators=(",", ":")))


def _with(document: Document, path: str, value: Any) -> Document:
    name, _, below = path.partition(".")
    return document | {name: _with(document[name], below, value) if below else value}


def _size(document: Document, path: str) -> int:
    return len(value_at(document, path) or ())


def _chosen(run: Document) -> Document:
    """A run with its failed checks, its warnings and the notes that say why a figure is null."""
    why = {code for path in FIGURES if value_at(run, path) is None for code in causes_of_null(path)}
    notes = [note for note in run["notes"] if note["level"] == "warning" or note["code"] in why]
    return run | {"notes": notes, "checks": [check for check in run["checks"] if not check["passed"]]}


def _with_chosen_fields(comparison: Document) -> Document:
    """A comparison with the fields that are not equal on both sides."""
    if "fields" not in comparison:
        return comparison
    return comparison | {"fields": {k: v for k, v in comparison["fields"].items() if v["state"] != "equal"}}


# Why a value is null.

FIGURES = (
    *(f"metrics.{metric.column}" for metric in OF_ROWS),
    *(f"rates.{rate}.step_time_ms" for rate in RATES),
    "goodput",
    "device",
)


def causes_of_null(path: str) -> list[str]:
    """The codes of notes that say why the value at ``path`` of a run is null, where the run has one of them."""
    first, *names = path.split(".")
    if first == "device":
        return [code for code, need in WHY_NO_RATE if need == "peak"]
    if first in ("goodput", "time_breakdown", "overheads"):
        return causes_of_unknown(figures()["goodput"])
    if first == "metrics" and names:
        names = names[:1]
    figure = figures().get("_".join(names[:2])) if first in ("metrics", "rates") else None
    return [] if figure is None else causes_of_unknown(figure)
