"""The short documents of runs and comparisons, for ``--compact``. Each value is that of the full document."""

from __future__ import annotations

from analysis.metrics import OF_ROWS, RATES
from analysis.present.document_parts import Document, Short, cut, select, tree_of, value_at
from analysis.present.views.short_ending import OF_ENDING
from analysis.run.checks.target_verdicts import WHY_NO_RATE, causes_of_unknown
from analysis.run.checks.targets import figures

NOTE = "code level text"
_RUNS = "run_id name release"
# The sizes that figures are computed from.
_SIZES = """world_size data_parallel_size tensor_model_parallel_size pipeline_model_parallel_size context_parallel_size
 expert_model_parallel_size global_batch_size micro_batch_size seq_length num_layers hidden_size ffn_hidden_size
 gated_linear_unit num_attention_heads num_query_groups padded_vocab_size num_experts moe_router_topk precision
 recompute zero_stage"""

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
        "ending": OF_ENDING,
        "planned.left": "steps seconds ends_at",
        "published.matches": "name share",
        "requirements": "require value outcome sentence",
        "checks": "code passed",
        "notes": NOTE,
    },
    (
        *("published.matches", "overheads", "time_breakdown", "sources", "coverage.unread_labels", "printed"),
        *("context", "notes", "checks", "requirements"),
    ),
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
        "requirements": "require value outcome sentence",
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
    short = document | {"runs": [cut(RUN, _chosen(run), run) for run in document["runs"]]}
    if short.get("stands_out"):
        short["stands_out"] = select(short["stands_out"], tree_of(NOTE.split()))
    return short


def compact_comparisons(document: Document) -> Document:
    """The document of ``compare`` with short comparisons."""
    if "comparisons" not in document:
        return cut(COMPARISON, _with_chosen_fields(document), document)
    several = [cut(COMPARISON, _with_chosen_fields(one), one) for one in document["comparisons"]]
    return document | {"comparisons": several}


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
