"""What the numbers mean: which framework and age printed them, and what that says of a row's time.

Comes in: a ParsedLog. Goes out: the framework with its evidence, the steps with ``step_time_ms``, and a note for each
correction that applied. Spelling lives in ``formats``; meaning lives here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl
import regex

from logparse.errors import unknown_name
from logparse.findings import Note, info
from logparse.language import msg, tr
from logparse.read.parse import ParsedLog


@dataclass(frozen=True)
class Dialect:
    """A framework and a range of its versions, known by what its log must hold: labels on the step line, settings.

    ``pauses_inside``: the time on its lines includes evaluation and saving; None where the versions differ in that.
    """

    framework: str
    version: str | None
    labels: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    formats: tuple[str, ...] = ("megatron",)
    pauses_inside: bool | None = None

    @property
    def key(self) -> str:
        """What --dialect takes: framework and version in lower case, words joined by hyphens."""
        words = f"{self.framework} {self.version or ''}".lower()
        return regex.sub(r"[^a-z0-9.]+", "-", words).strip("-")

    def evidence(self, log: ParsedLog, settings: frozenset[str]) -> tuple[Note, ...]:
        """Why the log is of this dialect; empty when it is not."""
        if (
            log.format.name not in self.formats
            or not {*self.labels} <= {*log.labels}
            or not {*self.settings} <= settings
        ):
            return ()
        labels = (info("evidence_label", name=label) for label in self.labels)
        named = (info("evidence_setting", name=name) for name in self.settings)
        return (*labels, *named) or (info("evidence_format", name=log.format.name),)


# The first that fits is taken, so the narrower stands above the wider.
DIALECTS = (
    Dialect("AMD Primus", None, settings=("use_rocm_mem_info",)),
    Dialect("GPT-NeoX", None, labels=("approx flops per GPU",), pauses_inside=True),
    Dialect(
        "Megatron-DeepSpeed (BigScience)",
        "since 2022-01",
        labels=("elapsed time per iteration (s)",),
        pauses_inside=True,
    ),
    Dialect("AscendSpeed", "2023", settings=("auto_recompute_profiling_step",), pauses_inside=True),
    Dialect("Megatron-DeepSpeed", "since 2023-11", labels=("tokens per gpu per second (tgs)",), pauses_inside=True),
    Dialect("Megatron-DeepSpeed (Argonne)", None, labels=("elapsed_time_per_iteration_ms",), pauses_inside=True),
    Dialect("Megatron-DeepSpeed or AscendSpeed", None, labels=("TFLOPs", "actual seqlen"), pauses_inside=True),
    Dialect("Megatron-DeepSpeed", None, labels=("consumed tokens", "actual seqlen"), pauses_inside=True),
    Dialect("MindSpeed-LLM, FSDP2 backend", "26.0 or later", labels=("max_memory_allocated(GB)",)),
    Dialect("MindSpeed-LLM", "2.3 or later", labels=("core attn ratio (%)",)),
    Dialect("MindSpeed-LLM", None, settings=("noop_layers", "prompt_type")),
    Dialect("ModelLink", None, settings=("use_fused_rmsnorm", "lora_register_forward_hook")),
    Dialect("MindSpeed", None, labels=("theoretical throughput per NPU (TFLOP/s/NPU)",)),
    Dialect("Megatron-LM", "core 0.13 or later", labels=("energy per GPU (J/iter/GPU)",)),
    Dialect("Megatron-LM", "later than core 0.12", settings=("inprocess_active_world_size",)),
    Dialect("Megatron-LM", "core 0.5 or later", labels=("throughput per GPU (TFLOP/s/GPU)",)),
    Dialect("Megatron-LM", "core 0.4 or later", settings=("context_parallel_size",)),
    Dialect("Megatron-LM", "2.0 to 23.06", settings=("pipeline_model_parallel_size",), pauses_inside=True),
    Dialect("Megatron-LM", "1.x", settings=("model_parallel_size",), pauses_inside=True),
    Dialect("Megatron-LM family", None),
    Dialect("MindFormers", "0.2 to 0.6", labels=("time",), formats=("mindformers",)),
    Dialect("MindFormers", "1.4 or later", labels=("train_throughput_per_npu",), formats=("mindformers",)),
    Dialect("MindFormers", "1.3 or later", labels=("global_norm",), formats=("mindformers",)),
    Dialect("MindFormers", "0.7 or later", formats=("mindformers",)),
    Dialect("MindFormers", "2.1 or later", labels=("consumed_samples",), formats=("mindformers-pynative",)),
    Dialect("MindFormers", "1.9 or later", formats=("mindformers-pynative",)),
    Dialect("MindSpore", None, formats=("mindspore",)),
)


@dataclass(frozen=True)
class Framework:
    """Who printed the log. ``name`` and ``version`` are None where nothing tells."""

    name: str | None
    version: str | None
    evidence: tuple[Note, ...]


@dataclass(frozen=True)
class Interpretation:
    """The steps with ``step_time_ms``, the framework, and what was corrected.

    ``time_holds_pauses``: the time on a line includes evaluation and checkpoint saves made since the line before.
    ``times_are_shared``: rows with one time print the mean of them all.
    ``profiling_steps``: so many steps at the beginning of each start are slow by design.
    """

    framework: Framework
    steps: pl.DataFrame
    notes: tuple[Note, ...]
    time_holds_pauses: bool
    profiling_steps: int
    times_are_shared: bool


def interpret(log: ParsedLog, dialect: str | None = None) -> Interpretation:
    """Say who printed the log and give each row the time it stands for. ``dialect`` is the key of one to take as given.

    Raises UsageError for a key of no dialect.
    """
    known = find_dialect(dialect) if dialect else None
    steps = log.steps.with_columns(step_time_ms=pl.col("elapsed_time_per_iteration_ms"))
    notes: list[Note] = []
    for correct in CORRECTIONS:
        steps, note = correct(log, steps)
        notes += [note] if note else []
    shared = any(c.belongs_to == "all" for c in log.format.companions)
    found, evidence = (known, (info("evidence_flag", name="--dialect"),)) if known else identify(log)
    framework = Framework(found.framework, found.version, evidence) if found else Framework(None, None, evidence)
    return Interpretation(framework, steps, tuple(notes), holds_pauses(log, found), profiling_steps(log), shared)


def find_dialect(key: str) -> Dialect:
    """The dialect of that key; UsageError when there is none."""
    keys = {dialect.key: dialect for dialect in DIALECTS}
    if key not in keys:
        raise unknown_name(msg("dialect"), key, keys, tr("known dialects: {names}", names=", ".join(keys)))
    return keys[key]


def identify(log: ParsedLog) -> tuple[Dialect | None, tuple[Note, ...]]:
    """The first dialect that fits, and why."""
    settings = frozenset(log.settings["name"])
    for dialect in DIALECTS:
        if evidence := dialect.evidence(log, settings):
            return dialect, evidence
    return None, (info("evidence_none"),)


def holds_pauses(log: ParsedLog, dialect: Dialect | None) -> bool:
    """Whether the interval timer ran on through evaluation and saving.

    It did in Megatron-LM to core 0.4 and in all that forked from it (Megatron-DeepSpeed, AscendSpeed, GPT-NeoX). Since
    then it is stopped: that age has --log-throughput, or a clock on the step line. Source: Megatron-LM b60ca1a8,
    2023-11-22, and the runs of each age that were made to see it.
    """
    if log.format.name != "megatron":
        return False
    if dialect and dialect.pauses_inside is not None:
        return dialect.pauses_inside
    newer = "log_throughput" in log.settings["name"] or "throughput per GPU (TFLOP/s/GPU)" in log.labels
    return not newer and log.steps["timestamp"].is_null().all()


def profiling_steps(log: ParsedLog) -> int:
    """Steps that AscendSpeed's and ModelLink's adaptive recomputation profiles before it settles."""
    said = dict(log.settings.select("name", "value").iter_rows())
    if not said.get("auto_recompute_device_size", "-1").isdigit():
        return 0
    steps = said.get("auto_recompute_profiling_step", "")
    return int(steps) if steps.isdigit() else 0


Correction = Callable[[ParsedLog, pl.DataFrame], tuple[pl.DataFrame, Note | None]]


def divide_sink_time(log: ParsedLog, steps: pl.DataFrame) -> tuple[pl.DataFrame, Note | None]:
    """MindFormers 0.2 to 0.6 print the time of a whole sink of steps as ``time``."""
    sink = log.settings.filter(pl.col("name") == "sink_size")["value"]
    if "time" not in log.labels or sink.is_empty() or int(sink[0]) < 2:
        return steps, None
    found = info("sink_time_divided", n=int(sink[0]))
    return steps.with_columns(step_time_ms=pl.col("step_time_ms") / int(sink[0])), found


def unmix_second_row(log: ParsedLog, steps: pl.DataFrame) -> tuple[pl.DataFrame, Note | None]:
    """Megatron core 0.16 to 0.19 print the first iteration at once and keep it in the mean of the second row.

    With n iterations from the first row to the second, the second row is (n - 1) new ones and the first again, so the
    new ones took (n row2 - row1) / (n - 1). Applied only after a start whose first row was slow and where that lies
    nearer the third row than the printed figure does, because a later version mended it without changing the line.
    Source: Megatron-LM issue 6237.
    """
    if log.format.name != "megatron" or not steps["timestamp"].dt.microsecond().gt(0).any():
        return steps, None
    printed, step = pl.col("elapsed_time_per_iteration_ms"), pl.col("step")

    def of(column: pl.Expr, rows: int) -> pl.Expr:
        return column.shift(rows).over("source")

    second = (
        (of(step, 1) >= step.shift(-1).over("source")).fill_null(False)
        | of(step, 2).is_null()
        | (of(step, 2) >= of(step, 1))
    )
    n = step - of(step, 1) + 1
    unmixed = (n * printed - of(printed, 1)) / (n - 1)
    nearer = (unmixed - of(printed, -1)).abs() < (printed - of(printed, -1)).abs()
    slow_start = of(printed, 1) > 1.1 * unmixed
    applies = second & of(step, 1).is_not_null() & (n > 1) & (unmixed > 0) & nearer & slow_start
    marked = steps.with_columns(
        pl.when(applies).then(unmixed).otherwise("step_time_ms").alias("step_time_ms"), applies=applies
    )
    lines = marked.filter("applies")["line_number"].to_list()
    if not lines:
        return steps, None
    return marked.drop("applies"), info("second_row_unmixed", lines=lines)


def tell_utc(log: ParsedLog, steps: pl.DataFrame) -> tuple[pl.DataFrame, Note | None]:
    """MindSpeed-LLM 2.1 stamps step lines in UTC and everything else in local time; bring them to local time.

    Seen as a first step line that is whole hours, at least one, away from the line that training starts.
    Source: MindSpeed-LLM 4b4731f9, 2025-07-02.
    """
    begun = log.records["events"].filter(pl.col("kind") == "training starts").drop_nulls("timestamp")
    first = steps.select("timestamp", "step_time_ms", "source").drop_nulls().head(1)
    if begun.is_empty() or first.is_empty():
        return steps, None
    stamp, time_ms, source = first.row(0)
    # Another node may go by another clock, so its line is asked only where the file itself has none.
    mine = begun.sort(pl.col("source") != source, maintain_order=True)["timestamp"]
    behind_s = (stamp - mine[0]).total_seconds() - time_ms / 1000
    hours = round(behind_s / 3600)
    if not 1 <= abs(hours) <= 14 or abs(behind_s - hours * 3600) > 600:
        return steps, None
    return steps.with_columns(pl.col("timestamp") - pl.duration(hours=hours)), info("stamps_in_utc", hours=hours)


def tell_vanished_loss(log: ParsedLog, steps: pl.DataFrame) -> tuple[pl.DataFrame, Note | None]:
    """Megatron-LM before core 0.17 leaves out a loss that is NaN, zero or negative; so does all that forked from it."""
    skipped = pl.col("skipped_iterations").fill_null(0) > 0
    bare = steps.filter(pl.col("loss").is_null() & ~skipped)
    if log.format.name != "megatron" or bare.is_empty() or len(bare) == len(steps):
        return steps, None
    return steps, info("loss_vanished", n=len(bare), line=bare["line_number"][0])


CORRECTIONS: tuple[Correction, ...] = (divide_sink_time, unmix_second_row, tell_utc, tell_vanished_loss)
