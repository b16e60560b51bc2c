"""What the run was: every known quantity with its origin, those that change efficiency first."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.pipeline.run import Run
from analysis.report.numbers import NONE
from analysis.screens.parts import Cell, Table
from analysis.screens.words import say_origin
from logparse.language import tr
from logparse.schema import QUANTITIES, QUANTITY, flag_of

EFFICIENCY = (
    "world_size",
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
    "data_parallel_size",
    "global_batch_size",
    "micro_batch_size",
    "num_microbatches",
    "seq_length",
    "precision",
    "recompute",
    "recompute_method",
    "recompute_num_layers",
)
# What is named even where it is unknown, with the flag that gives it.
WANTED = ("world_size", "global_batch_size", "seq_length", "precision", "recompute", "num_layers", "hidden_size")


def context_tables(runs: Sequence[Run]) -> list[Table]:
    """Two tables: what changes efficiency, then the model and the rest."""
    others = [q.name for q in QUANTITIES if q.name not in EFFICIENCY]
    tables = ((tr("Settings that change efficiency"), EFFICIENCY), (tr("The model and the rest"), others))
    made = (_table(runs, caption, names) for caption, names in tables)
    return [table for table in made if table.rows]


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
        Cell(str(fact.value), say_origin(fact.origin), mark) if fact else Cell(NONE, _way(name), "unknown")
        for fact in facts
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
        "torn_lines": tr("torn step lines"),
        "malformed_values": tr("values not readable"),
    }
    read = [run.log.coverage for run in runs]
    rows = [[text, *(f"{getattr(coverage, key):,}" for coverage in read)] for key, text in labels.items()]
    unread = dict.fromkeys(label for coverage in read for label in coverage.unread_labels)
    for label in unread:
        found = (coverage.unread_labels.get(label, 0) for coverage in read)
        rows.append([tr("label not read: {label}", label=label), *(f"{n:,}" for n in found)])
    heads = [run.name for run in runs] if len(runs) > 1 else [tr("count")]
    return Table(["", *heads], rows, tr("What was read"))
