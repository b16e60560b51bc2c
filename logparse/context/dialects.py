"""What the numbers mean: which framework and age printed them, and what a row's time covers.

Comes in: a ParsedLog. Goes out: the framework with its evidence, the steps with ``step_time_ms``, and a note for each
correction that applied. Spelling lives in ``formats``; meaning lives here.
"""

from __future__ import annotations

import polars as pl
import regex

from logparse.context.corrections import CORRECTIONS
from logparse.context.relations import TIME
from logparse.context.run_context import RunContext
from logparse.context.step_times import KnownRun, find_times, why_no_times
from logparse.decode.read_run import ParsedLog
from logparse.decode.values import possible
from logparse.errors import unknown_name, use_one_of
from logparse.findings import Note, info
from logparse.formats import all_formats
from logparse.formats._base import Covers, LogFormat
from logparse.language import msg
from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class Dialect:
    """A framework and a range of its versions, known by what its log must hold: labels on the step line, settings.

    ``pauses_inside``: the time on its lines includes evaluation and saving; None where the versions differ in that.
    ``rate_covers``: what a rate on its lines is the mean of; None where unknown, and it gives no time then.
    """

    framework: str
    version: str | None
    labels: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    formats: tuple[str, ...] = ("megatron",)
    pauses_inside: bool | None = None
    rate_covers: Covers | None = None

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


# The first match is taken, so a narrower dialect comes before a wider one.
DIALECTS = (
    Dialect("ModelLink", "1.2", settings=("modellink_arguments",)),
    Dialect("AMD Primus", None, settings=("use_rocm_mem_info",)),
    Dialect("MindSpeed-MM (auto-encoders)", None, labels=("elapsed time per iteration (s)", "generator loss")),
    Dialect("MindSpeed-MM", None, labels=("tokens per sample",)),
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
    Dialect("ms-swift, Megatron backend", None, labels=("memory(GiB)", "remaining time")),
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
    Dialect(
        "Unsloth", None, settings=("unsloth_gpus",), formats=("hf-trainer", "hf-trainer-bar"), rate_covers="recent"
    ),
    # CurrSamplesPerSec leaves out what passes between two steps, so that it gives no time even where each has a line.
    Dialect("DeepSpeed", None, formats=("deepspeed", "deepspeed-pipeline")),
)


@dataclass(frozen=True)
class Framework:
    """Who printed the log. ``name`` and ``version`` are None where unknown."""

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


def interpret(log: ParsedLog, dialect: str | None = None, known: KnownRun | None = None) -> Interpretation:
    """Find who printed the log and the time of each row. ``dialect`` is the key of a dialect that the user chose.

    Where no line prints a time, it follows from other printed values and from what is ``known`` of the run.
    Raises UsageError for a key of no dialect.
    """
    chosen = (info("evidence_flag", name="--dialect"),)
    match, evidence = (find_dialect(dialect), chosen) if dialect else identify(log)
    framework = Framework(match.framework, match.version, evidence) if match else Framework(None, None, evidence)
    steps, notes = log.steps, list[Note]()
    covers = match.rate_covers if match else None
    known = known or KnownRun(RunContext())
    times = find_times(log, steps, known, covers)
    if times:
        # A rate next to zero gives a time that no step takes.
        steps = steps.with_columns(times.times).with_columns(possible(TIME, pl.col(TIME)).alias(TIME))
        notes.append(times.origin)
    elif not steps[TIME].count():
        why = why_no_times(log, steps, known, covers)
        notes += [why] if why else []
    steps, corrections = _corrected(log, steps.with_columns(step_time_ms=pl.col(TIME)))
    holds = bool(times and times.by_clock) or holds_pauses(log, match)
    shared = any(c.belongs_to == "all" for c in log.format.companions) or bool(times and times.shared)
    return Interpretation(framework, steps, (*notes, *corrections), holds, profiling_steps(log), shared)


def _corrected(log: ParsedLog, steps: pl.DataFrame) -> tuple[pl.DataFrame, list[Note]]:
    """``steps`` after every correction, with a note for each that applied."""
    notes = []
    for correct in CORRECTIONS:
        steps, note = correct(log, steps)
        notes += [note] if note else []
    return steps, notes


def _all_dialects(*others: LogFormat) -> tuple[Dialect, ...]:
    """Those of the table, then one for each format that a single framework prints; ``others`` are the user's own."""
    return DIALECTS + tuple(
        Dialect(fmt.framework, None, (), (), (fmt.name,), fmt.pauses_inside, fmt.rate_covers)
        for fmt in (*all_formats(), *others)
        if fmt.framework
    )


def dialect_keys() -> list[str]:
    """The keys of all dialects."""
    return list(dict.fromkeys(dialect.key for dialect in _all_dialects()))


def find_dialect(key: str) -> Dialect:
    """The dialect of that key; UsageError when there is none."""
    keys = {dialect.key: dialect for dialect in _all_dialects()}
    if key not in keys:
        raise unknown_name(msg("dialect"), key, keys, use_one_of(keys, "logparse analyze --help-all"))
    return keys[key]


def identify(log: ParsedLog) -> tuple[Dialect | None, tuple[Note, ...]]:
    """The first dialect that fits, and why."""
    settings = frozenset(log.settings["name"].unique())
    for dialect in _all_dialects(log.format):
        if evidence := dialect.evidence(log, settings):
            return dialect, evidence
    return None, (info("evidence_none"),)


def holds_pauses(log: ParsedLog, dialect: Dialect | None) -> bool:
    """Whether the interval timer runs through evaluation and saving, by the dialect or by its age.

    It does in Megatron-LM up to core 0.4 and in its forks (Megatron-DeepSpeed, AscendSpeed, GPT-NeoX). Later versions
    stop it; they have --log-throughput, or a clock on the step line. Source: Megatron-LM b60ca1a8, 2023-11-22, and
    test runs of each age.
    """
    giver = log.giver_of(TIME)
    if giver != log.format.name:
        dialect = _unconditional_dialect(giver)
    if dialect and dialect.pauses_inside is not None:
        return dialect.pauses_inside
    if giver != "megatron":
        return False
    newer = "throughput per GPU (TFLOP/s/GPU)" in log.labels or "log_throughput" in log.settings["name"].to_list()
    return not newer and (log.giver_of("timestamp") != "megatron" or not log.steps["timestamp"].count())


def _unconditional_dialect(fmt: str) -> Dialect | None:
    """The dialect that every log of the format called ``fmt`` is of."""
    of_format = (dialect for dialect in _all_dialects() if fmt in dialect.formats)
    return next((dialect for dialect in of_format if not dialect.labels and not dialect.settings), None)


def profiling_steps(log: ParsedLog) -> int:
    """Steps that AscendSpeed's and ModelLink's adaptive recomputation profiles before it settles."""
    settings = dict(log.settings["name", "value"].unique("name", keep="last").iter_rows())
    if not settings.get("auto_recompute_device_size", "-1").isdigit():
        return 0
    steps = settings.get("auto_recompute_profiling_step", "")
    return int(steps) if steps.isdigit() else 0
