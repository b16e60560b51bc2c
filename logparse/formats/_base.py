"""What a log format is: words the framework prints on the left, our words on the right.

A format is data. It says how to find a step line, how a ``label: value`` pair looks, which column each label fills,
and where the settings of the run are. It holds no code; ``steps`` and ``settings`` turn it into frames.

Named groups are written ``(?P<name>...)``. ``head``, ``pair``, the ``start`` and ``end`` of a Block and the patterns of
a Companion or Record are read by polars (Rust syntax, which has no look-around); the ``entry`` of a Block and the
pattern of a SettingSentence by the regex module.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from logparse.light_dataclass import dataclass, field
from logparse.schema import EventKind

# Digits of ASCII: to build a regex for those of all scripts takes three times as long, and nothing reads them.
# Takes in any comma; ``steps`` judges whether it parts thousands.
# In place of a pattern: the setting is not printed; it is, with any value.
ABSENT, PRESENT = "(?!)", ".+"
NUMBER = r"(?:[-+]?(?:[0-9][0-9,]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?(?i:nan|infinity|inf))"
# The year comes first, with any separator: 2026-03-01 08:00:00,123, 2026/03/01 08:00:00, 2026-03-01,08:00:00; Primus
# prints none: 20260301 08:00:00. Nanotron and scripts of Hugging Face print the month first: 03/01/2026 08:00:00.
TIMESTAMP = (
    r"(?:[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[ T,]|\b20[0-9]{6}[ -]|\b(?:0[1-9]|1[0-2])/[0-3][0-9]/20[0-9]{2} )"
    r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?"
)

# What a logger may put in front of a stamp without a year, which counts only at the beginning of a line: elsewhere
# ``03/10 00:01:23`` can be an epoch and its time. A level, a bracket, glog's letter.
BEFORE_STAMP = r"(?:[A-Z]+ +)*(?:\[|[IWE])?"
# Month and day first: 07/05 12:34:56, 07-05 12:34:56, and glog's 0705 12:34:56.123456.
YEARLESS = r"(?:0[1-9]|1[0-2])[-/]?(?:0[1-9]|[12][0-9]|3[01]) (?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.,][0-9]+)?"

# The groups of a pattern for a label and its value, or a number without a label and its unit: ``time 3 s | 41 ms |``.
UNIT_GROUPS = ("label", "value", "number", "unit")

# The factor of a letter after a number, in counts and rates printed for people.
MULTIPLES = {"K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
# 2^40 FLOP/s in TFLOP/s: some logs print TiFLOP/s.
TEBI = 2**40 / 1e12


# The pace that tqdm prints after the ``<`` of its clock, a moving mean: ``00:19, 19.50s/it``.
PACE = r"(?:[\d:]+, *(?:(?P<logged_seconds_per_step>[0-9.]+)s/it|(?P<logged_steps_per_second>[0-9.]+)it/s))"
BAR_RATE = f"{PACE}?"

# What a printed rate is the mean of: the last step alone, the steps since the line before, all since the start, or the
# last few steps, however many: a moving mean, or one of a window; of these without saves and evaluations, ``window``;
# or a whole training, ``run``, which a line at its end prints.
Covers = Literal["step", "interval", "start", "recent", "window", "run"]
# What the time on a line is of: a step of the line, the call that starts one, an optimizer update of several numbered
# batches, a mean over the last steps with a slow first one, or the line divided by the steps of a full interval.
TimeOf = Literal["step", "dispatch", "update", "window", "full interval"]
# What a step of reinforcement learning does one after the other.
StepPart = Literal["generation", "reward", "reference", "log_probs", "values", "advantages", "update", "weights"]
# What a sample is.
Data = Literal["text", "images", "speech"]


@dataclass(frozen=True)
class Reading:
    """How the value of one label becomes a number of one column.

    ``scale`` converts it to the column's unit; ``suffix`` is a regex for text that may follow the number.
    ``multiples``: a letter of MULTIPLES may follow too, as in ``11.5K``.
    A value that ``absent`` matches (a regex for the whole value) is null and no fault.
    """

    column: str
    scale: float = 1.0
    suffix: str = ""
    absent: str = "None"
    multiples: bool = False


@dataclass(frozen=True)
class Companion:
    """A line near a step line that completes it.

    Named groups of ``pattern`` are columns. ``timestamp`` is a clock: milliseconds since 1970, or a stamp, which
    ``rich`` prints as ``03/31/26 08:00:00``. ``belongs_to`` says which step lines it completes:

    ``each``: the step line before it, or the same line. ``behind``: the step line before it, also where the same line
    holds the next one, as with a bar that is drawn again. ``next``: the step line after it. ``all``: every step line
    since the last companion, as with the epochs of MindSpore's TimeMonitor. ``file``: the first companion of a file
    completes every step line after it. ``since``: each completes the step lines after it, up to the next companion.
    ``banner``: as ``since``, but a line without others of the banner next to it is of an evaluation. ``sum``: the values
    since the previous step line, including those on the line itself, are added up, as with the micro-steps of a step. A
    group ``part`` numbers them; with a gap there is no sum.
    ``count``: how many such lines there are since the previous step line, where the step line prints no larger number.
    """

    marker: str
    pattern: str
    belongs_to: Literal["each", "behind", "next", "all", "file", "since", "banner", "sum", "count"] = "each"


@dataclass(frozen=True)
class PairLines:
    """Lines after a step line that hold more of its pairs, one on each: a record of several lines.

    ``marker`` holds literals, one of which is on every such line; ``pair`` has two groups, label and value. Other lines
    may lie between. If a label repeats before the next step line, its first value counts.
    """

    marker: tuple[str, ...]
    pair: str


@dataclass(frozen=True)
class SettingSentence:
    """A line of prose that holds settings. Named groups of ``pattern`` are setting names.

    The first match in a log counts, or with ``last`` the last one. With ``first`` the search ends at the first match:
    for text that is on every step line.
    """

    kind: str
    marker: str
    pattern: str
    last: bool = False
    first: bool = False


@dataclass(frozen=True)
class Record:
    """A line that becomes a row of another frame: events, evaluations, memory, timers, or losses without a step.

    Named groups of ``pattern`` are columns of that frame, ``fixed`` fills columns that are the same for every such
    line, ``scale`` brings the numbers to the unit of their columns. ``every`` takes all matches of a line, not one.
    A group ``timestamp`` is a clock in milliseconds since 1970.
    """

    frame: Literal["events", "evaluations", "memory", "timers", "losses"]
    marker: str
    pattern: str
    fixed: Mapping[str, str] = field(default_factory=dict)
    scale: float = 1.0
    every: bool = False

    @property
    def key(self) -> tuple[str, ...]:
        """Its identity among the records of all formats."""
        return (self.frame, self.marker, self.pattern)


def event(kind: EventKind, marker: str, pattern: str) -> Record:
    """A line that says what the job does besides steps."""
    return Record("events", marker, pattern, fixed={"kind": kind})


def evaluation(marker: str, pattern: str, dataset: str = "") -> Record:
    """A line with the result of an evaluation, of ``dataset`` where the line does not name it."""
    return Record("evaluations", marker, pattern, fixed={"dataset": dataset} if dataset else {})


@dataclass(frozen=True)
class Block:
    """A run of lines that holds settings, from a line that matches ``start`` to the one before ``end`` matches.

    It has at most ``max_lines`` lines after its start, and the next start ends it too. ``entry`` finds one setting:
    its two groups are name and value. In a ``nested`` block (a printed dict or JSON) a name that is indented further
    than the previous one belongs to it; a dot joins the names. ``at_start``: only a process that starts prints it.
    """

    kind: str
    marker: str
    start: str
    end: str
    entry: str
    nested: bool = False
    max_lines: int = 5000
    at_start: bool = True


@dataclass(frozen=True)
class Name:
    """A setting that gives a quantity. ``setting`` is ``kind:name``; ``when`` holds settings of the same log that
    must match (regex, the whole value), for values that mean nothing unless another setting is on. ``scale`` makes a
    whole number of one printed in millions.
    """

    quantity: str
    setting: str
    when: Mapping[str, str] = field(default_factory=dict)
    scale: float = 1.0


@dataclass(frozen=True)
class Choice:
    """A quantity that is ``value`` where all settings of ``when`` match (regex, the whole value) or are ABSENT.

    ``without`` is the setting whose absence says it, for the origin; else the first of ``when`` says it.
    """

    quantity: str
    value: str
    when: Mapping[str, str]
    without: str = ""


@dataclass(frozen=True)
class Sample:
    """A line as the framework prints it, and every column it must become (its companions joined by a newline)."""

    text: str
    row: Mapping[str, object]


@dataclass(frozen=True)
class MeanSinceStart:
    """A format that prints the mean since the start: ``left_out`` of the steps up to ``step`` are not in it.

    ``open_ms`` is what rounding leaves open of a printed mean. ``resumed``: the means of a start from a checkpoint hold
    none of the steps before it; else where it began is unknown, and they stay as they are.
    """

    left_out: int
    open_ms: float
    resumed: bool


@dataclass(frozen=True)
class LogFormat:
    """One family of step lines.

    ``framework`` prints it, if only one does. ``pauses_inside``: whether the time of a step includes evaluation and
    saving. ``rate_covers``: what a rate is the mean of. Both are None where that is unknown; where several frameworks
    print the lines, ``context.dialects`` distinguishes them and sets both.

    ``marker`` holds literals, one of which is on every step line: they find candidates at memory speed.
    ``head`` starts a step line anywhere in the physical line; its named groups are columns. ``pair`` has two groups,
    label and value, and matches one pair with the separator that ends it; or the four UNIT_GROUPS, where the unit of a
    number without a label is its label. ``separator`` is a regex for that separator;
    text after the last separator of a truncated line may have lost digits and is not read. ``foreign`` is a regex for
    the start of another rank's line on the same physical line. ``pair_lines`` hold more pairs after the step line.

    ``names`` and ``choices`` turn settings into quantities of the schema; the first that applies to a quantity wins.
    ``beneath``: a library prints it, this many layers under the trainer; the trainer's own lines take precedence.
    ``fewest``: with fewer step lines than this it gives way to what is beneath it, as dicts do to their bar.
    ``log_of`` is the format whose name the results show, where this one reads other lines of the same trainer.
    ``traces`` are regexes that recognise ``framework`` in a log that stopped before its first step, such as its folder
    in a traceback.

    ``clock_of_epoch``: the runtime is that of a bar which begins again with each epoch, and prints the whole seconds passed.
    ``time_of``: what the time on a line is of; ``mean_since_start`` where it is a mean since the start.
    ``rate_of_passes``: a printed rate is of the passes alone and leaves out the time between two steps.
    ``trains_on``: what a sample is, where every log of the format trains on the same. Other formats say it by a choice
    of ``training_data``, where a log prints it. Images and speech have no tokens.

    ``benchmark``: its rules fix how often a run evaluates, and leave the number type open, so that none is assumed.

    ``not_steps`` is a regex for what follows the head on lines that are of no step, such as evaluations.
    ``redrawn``: a line may be printed again, as a bar is; a line with the step of the previous one is dropped.
    ``longest_plan``: bars of other work are on such lines too, as those of evaluations; only the rows with the plan
    (``train_steps``) that spans the most lines count.
    ``counted``: no line prints its step; lines are counted from 1. ``first_epoch`` is the number of the first epoch,
    where the step is derived from the epoch and the progress within it. ``from_zero``: the first step is number 0, and
    the last one of N planned ones N - 1; False where the plan is the number of the last one, None where a log shows
    it. ``phases`` are timers of a step that do not overlap, for logs that print no time of the whole step. ``parts``
    says which part of a step of reinforcement learning a timer is of, for timers that do not overlap; its words are in
    ``step_parts``.
    """

    name: str
    title: str
    framework: str | None = field(default=None, kw_only=True)
    traces: tuple[str, ...] = field(default=(), kw_only=True)
    beneath: int = field(default=0, kw_only=True)
    fewest: int = field(default=1, kw_only=True)
    log_of: str = field(default="", kw_only=True)
    pauses_inside: bool | None = field(default=None, kw_only=True)
    time_of: TimeOf = field(default="step", kw_only=True)
    mean_since_start: MeanSinceStart | None = field(default=None, kw_only=True)
    rate_of_passes: bool = field(default=False, kw_only=True)
    rate_covers: Covers | None = field(default=None, kw_only=True)
    clock_of_epoch: bool = field(default=False, kw_only=True)
    trains_on: Data | None = field(default=None, kw_only=True)
    benchmark: bool = field(default=False, kw_only=True)
    marker: tuple[str, ...]
    head: str
    pair: str
    labels: Mapping[str, Reading]
    separator: str = r"[|,}]"
    ignored: frozenset[str] = frozenset()
    ignored_patterns: tuple[str, ...] = ()
    foreign: str = ""
    required: tuple[str, ...] = ("step", "elapsed_time_per_iteration_ms")
    pair_lines: PairLines | None = None
    not_steps: str = ""
    redrawn: bool = False
    longest_plan: bool = False
    counted: bool = False
    first_epoch: int = 1
    from_zero: bool | None = None
    phases: tuple[str, ...] = ()
    parts: Mapping[str, StepPart] = field(default_factory=dict)
    companions: tuple[Companion, ...] = ()
    records: tuple[Record, ...] = ()
    blocks: tuple[Block, ...] = ()
    sentences: tuple[SettingSentence, ...] = ()
    names: tuple[Name, ...] = ()
    choices: tuple[Choice, ...] = ()
    samples: tuple[Sample, ...] = ()

    @property
    def of_the_run(self) -> dict[str, Any]:
        """What it reads around step lines, for another format of the same trainer."""
        return {name: getattr(self, name) for name in ("records", "blocks", "sentences", "names", "choices")}

    @property
    def shown_name(self) -> str:
        """Its name in results."""
        return self.log_of or self.name

    @property
    def prints_saves(self) -> bool:
        """Whether it has a line for a checkpoint save."""
        return any(str(record.fixed.get("kind")).startswith("save ") for record in self.records)

    @property
    def prints_pauses(self) -> bool:
        """Whether all saves and evaluations in a rate have a line; a library does not print those of a script."""
        evaluates = any(record.frame == "evaluations" for record in self.records)
        return bool(self.pauses_inside) and self.prints_saves and evaluates

    @property
    def step_markers(self) -> tuple[str, ...]:
        """The literals of step lines and of the lines that complete them."""
        pairs = self.pair_lines.marker if self.pair_lines else ()
        return (*self.marker, *pairs, *(companion.marker for companion in self.companions))

    @cached_property
    def markers(self) -> tuple[str, ...]:
        """Every literal a line of interest to this format can hold."""
        parts: tuple[Record | SettingSentence | Block, ...] = (*self.records, *self.sentences, *self.blocks)
        return tuple(dict.fromkeys((*self.step_markers, *(part.marker for part in parts))))
