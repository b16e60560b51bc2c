"""What the run was: every known quantity with its origin, those that change efficiency first."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.present.parts import Cell, Table
from analysis.present.places import place_of
from analysis.present.words import describe_origin
from analysis.report.shown_numbers import NONE
from analysis.run.run import Run
from logparse.language import msg, tr
from logparse.schema import QUANTITIES, QUANTITY, flag_of

# By the first quantity of each group in the order of the glossary.
GROUPS = {
    "world_size": msg("Layout"),
    "global_batch_size": msg("Batch"),
    "num_layers": msg("Model shape"),
    "num_experts": msg("Experts, latent attention, multi-token prediction"),
    "attention_output_gate": msg("Linear attention, Mamba, windows"),
    "precision": msg("Precision, recomputation, other"),
}
# Quantities that mean something only where another one is set.
ONLY_WITH = {
    "num_experts": (
        "moe_router_topk",
        "moe_ffn_hidden_size",
        "moe_shared_expert_intermediate_size",
        "num_moe_layers",
        "moe_layer_freq",
        "first_k_dense_replace",
        "moe_latent_size",
        "expert_model_parallel_size",
        "expert_tensor_parallel_size",
    ),
    "multi_latent_attention": ("q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim"),
    "num_linear_attention_layers": (
        "linear_attention_freq",
        "linear_key_head_dim",
        "linear_value_head_dim",
        "linear_num_key_heads",
        "linear_num_value_heads",
        "linear_conv_kernel_dim",
    ),
    "num_mamba_layers": ("mamba_state_dim", "mamba_head_dim", "mamba_num_groups", "mamba_num_heads"),
}
# What is left out where it is not there.
OPTIONAL = (*ONLY_WITH, "mtp_num_layers", "num_window_layers", "window_size", "attention_output_gate")
# What is named even where it is unknown, with the flag that gives it.
WANTED = ("world_size", "global_batch_size", "seq_length", "precision", "recompute", "num_layers", "hidden_size")


def context_tables(runs: Sequence[Run]) -> list[Table]:
    """A table for each group of settings that some run has."""
    names = [quantity.name for quantity in QUANTITIES]
    begins = [names.index(first) for first in GROUPS]
    tables = []
    for title, begin, end in zip(GROUPS.values(), begins, [*begins[1:], len(names)], strict=True):
        tables.append(_table(runs, tr(title), [name for name in names[begin:end] if _applies(runs, name)]))
    return [table for table in tables if table.rows]


def _applies(runs: Sequence[Run], name: str) -> bool:
    """Whether a setting says something of a run: not the width of an expert where there is none."""
    needed = next((what for what, names in ONLY_WITH.items() if name in names), name if name in OPTIONAL else None)
    return needed is None or any(run.context.get(needed) not in (None, 0, False, "0") for run in runs)


def _table(runs: Sequence[Run], caption: str, names: Sequence[str]) -> Table:
    shown = [name for name in names if name in WANTED or any(name in run.context.facts for run in runs)]
    rows = [[Cell(name, tr(QUANTITY[name].meaning)), *_values(runs, name)] for name in shown]
    heads = [run.name for run in runs] if len(runs) > 1 else [tr("value and origin")]
    return Table([tr("quantity"), *heads], rows, caption, prose=range(1, 1 + len(runs)))


def _values(runs: Sequence[Run], name: str) -> list[Cell]:
    facts = [run.context.facts.get(name) for run in runs]
    differ = len({str(fact.value) for fact in facts if fact}) > 1
    mark = "differs" if differ else ""
    return [
        Cell(str(fact.value), describe_origin(fact.origin), mark, place=place_of(fact.origin, run.log.sources))
        if fact
        else Cell(NONE, _way(name), "unknown")
        for run, fact in zip(runs, facts, strict=True)
    ]


def _way(name: str) -> str:
    flag = flag_of(name)
    return tr("not found; pass {flag}", flag=flag) if flag and name in WANTED else ""


def versions_table(runs: Sequence[Run]) -> Table | None:
    """The software the logs name; None where they name none."""
    printed = [{name: version.value for name, version in run.log.versions.items()} for run in runs]
    names = dict.fromkeys(name for versions in printed for name in versions)
    if not names:
        return None
    rows = [[name, *(versions.get(name, NONE) for versions in printed)] for name in names]
    heads = [run.name for run in runs] if len(runs) > 1 else [tr("version")]
    return Table([tr("software"), *heads], rows, tr("Software"), prose=range(1, 1 + len(runs)))


def coverage_table(runs: Sequence[Run]) -> Table:
    """What was read of the logs and what could not be."""
    labels = {
        "lines": tr("lines"),
        "step_lines": tr("step lines"),
        "torn_lines": tr("truncated step lines"),
        "malformed_values": tr("unreadable values"),
    }
    read = [run.log.coverage for run in runs]
    rows = [[text, *(f"{getattr(coverage, key):,}" for coverage in read)] for key, text in labels.items()]
    unread = dict.fromkeys(label for coverage in read for label in coverage.unread_labels)
    for label in unread:
        counts = (coverage.unread_labels.get(label, 0) for coverage in read)
        rows.append([tr("unrecognized label: {label}", label=label), *(f"{n:,}" for n in counts)])
    heads = [run.name for run in runs] if len(runs) > 1 else [tr("count")]
    return Table(["", *heads], rows, tr("Lines read"))
