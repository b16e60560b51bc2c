"""A format for an unknown log, drafted from its repeated lines: what is sure, and what is not with the reason.

Comes in: sources. Goes out: a Draft, whose ``table`` is what a TOML file of docs/formats.md holds. Nothing is guessed:
a value whose unit or column the log leaves open is ignored, and its doubt names what it may be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Literal

import polars as pl
import regex

from logparse.decode.values import clock, group_names
from logparse.draft.check import FormatCheck, check_format
from logparse.draft.families import Occurrence, StepFamily, find_families, has_two_counters
from logparse.draft.head import bodies_after, head_of, table_head
from logparse.draft.labels import DraftLabel, draft_labels
from logparse.draft.layout import RECORD, PairLayout, choose_layout, read_pairs
from logparse.draft.markers import find_markers
from logparse.draft.record_lines import find_pair_lines
from logparse.draft.words_and_units import PACE, RUNTIME, TIME, columns_of
from logparse.errors import LogparseError, NoStepLineError
from logparse.formats._base import PairLines, Reading
from logparse.formats._user import make_format
from logparse.inputs.blocks import BLOCK_BYTES, read_blocks
from logparse.inputs.sources import Source
from logparse.language import some, tr
from logparse.light_dataclass import dataclass, field, replace
from logparse.masked_frames import hide, secret_words
from logparse.masking import MASKED
from logparse.schema import DECODED_COLUMNS

# Lines of a log that are looked at, and of those that repeat.
MOST_LINES, MOST_SAMPLES = 100_000, 400
# Share of the lines that a draft must read.
READ = 0.5
# Columns that hold a time, whose unit is known where they are read; rates give one too, with the sizes of the run.
TIMES = frozenset({TIME, RUNTIME, PACE, "logged_steps_per_second"})
RATES = frozenset({PACE, *(column.name for column in DECODED_COLUMNS if "per_second" in column.name)})
# Columns that give the step, one set or another.
STEPS: tuple[frozenset[str], ...] = (frozenset({"step"}), frozenset({"epoch", "step_in_epoch"}))
_CLOCKED = {"text": pl.String(), "clock": pl.Datetime("us")}
Doubt = Literal["epochs", "starts_again", "no_time", "no_loss", "no_values", "two_counters"]


@dataclass(frozen=True)
class Draft:
    """A format as a file says it. ``line_number`` and ``example`` are of one of its ``n`` step lines.

    ``timed``: they have a time with a unit, or a stamp. ``pair_lines`` are the lines after a step line with values.
    """

    marker: list[str]
    head: str
    layout: PairLayout | None
    labels: list[DraftLabel]
    n: int
    line_number: int
    example: str
    doubts: list[Doubt] = field(default_factory=list)
    falls: int = 0
    timed: bool = False
    pair_lines: PairLines | None = None

    @property
    def table(self) -> dict[str, Any]:
        """What the file holds, without its comments."""
        table: dict[str, Any] = {"marker": self.marker, "head": self.head}
        if self.layout:
            table |= {"pair": self.layout.pair, "separator": self.layout.separator}
            # Another line may follow the bracket of a bar on the same line, as nothing ends the bar.
            table |= {"foreign": r"\]"} if RUNTIME in self.head else {}
        table |= {"redrawn": True} if RUNTIME in self.head else {}
        # A mean of an unknown number of steps is the least that a rate can be.
        table |= {"rate_covers": "recent"} if self.columns & RATES and TIME not in self.columns else {}
        if self.pair_lines and any(label.reading for label in self.labels):
            table["pair_lines"] = {"marker": list(self.pair_lines.marker), "pair": self.pair_lines.pair}
        if self.layout or "pair_lines" in table:
            table["ignored"] = [label.label for label in self.labels if label.reading is None and label.label]
            table["labels"] = {label.label: reading_table(label.reading) for label in self.labels if label.reading}
        return table

    @property
    def columns(self) -> set[str]:
        """The columns that it fills."""
        return {label.reading.column for label in self.labels if label.reading}.union(group_names(self.head))


def reading_table(reading: Reading) -> dict[str, Any]:
    """The table of one label in a file of a format."""
    table: dict[str, Any] = {"column": reading.column}
    table |= {"scale": reading.scale} if reading.scale != 1 else {}
    table |= {"suffix": reading.suffix} if reading.suffix else {}
    table |= {"multiples": True} if reading.multiples else {}
    return table | ({"absent": reading.absent} if reading.absent != "None" else {})


def draft_format(sources: Sequence[Source], most_lines: int = MOST_LINES) -> tuple[Draft, FormatCheck]:
    """Draft a format from the first ``most_lines`` lines, and say what it reads.

    Raises NoStepLineError where no lines repeat with a number that grows.
    """
    clocked = list(islice(_lines(sources), most_lines))
    lines, clocks = [(number, text) for number, text, _ in clocked], {number: time for number, _, time in clocked}
    families = find_families(lines)
    secrets = secret_words(pl.DataFrame({"text": [text for _, text in lines]}, schema={"text": pl.String}))
    drafts = [_draft(family, lines, clocks, has_two_counters(family, families), secrets) for family in families]
    drafts = [_without_secrets(draft, secrets) for draft in drafts if hide(draft.head, secrets) == draft.head]
    tested = (_tested(draft, sources) for draft in drafts if "no_values" not in draft.doubts)
    read = (found for found in tested if found and found[1].read >= READ * found[0].n)
    first = next(read, None)
    if first is None:
        raise _nothing(drafts, sources)
    # Lines of another kind may print the time of the same steps, such as those of a library under a loop.
    others = (found for found in read if "no_time" not in found[0].doubts and found[1].read >= READ * first[1].read)
    return next(others, first) if "no_time" in first[0].doubts else first


def _nothing(drafts: Sequence[Draft], sources: Sequence[Source]) -> NoStepLineError:
    if not drafts:
        return NoStepLineError(
            tr("no step lines found: no repeated line has a number that grows by a constant"),
            where=some([source.name for source in sources], 3),
            remedy=tr("pass the log of the rank that prints the steps, with at least {n} step lines", n=4),
        )
    text, line = drafts[0].example.strip()[:80], drafts[0].line_number
    return NoStepLineError(
        tr("lines with a step number have no other labelled value: {text!r}", text=text),
        where=tr("{source}, line {line}", source=sources[0].name, line=line),
        remedy=tr("make the trainer print loss and time on the step line, each with a label"),
    )


def _tested(draft: Draft, sources: Sequence[Source]) -> tuple[Draft, FormatCheck] | None:
    """``draft`` with all labels, of which those that it did not know are ignored, and what it reads.

    None where the lines give patterns that no format may have.
    """
    try:
        fmt = make_format(draft.table, "draft")
    except LogparseError:
        return None
    check = check_format(fmt, sources)
    unknown = (label for label in check.unknown if not MASKED.search(label.label))
    others = [DraftLabel(label.label, label.n, label.value, None, "unknown") for label in unknown]
    return replace(draft, labels=[*draft.labels, *others]), check


def _lines(sources: Sequence[Source]) -> Iterator[tuple[int, str, datetime | None]]:
    """The lines as formats read them, and the clock that a tool put before each."""
    for source in sources:
        for block in read_blocks(source, BLOCK_BYTES):
            yield from block.bare(block.lines).select("line_number", "text", "clock").iter_rows()


def _without_secrets(draft: Draft, secrets: frozenset[str]) -> Draft:
    """``draft`` as it can be shown: its labels hold no part of ``secrets``, and none is quoted."""
    shown = (label for label in draft.labels if hide(label.label, secrets) == label.label)
    labels = [replace(label, value=hide(label.value, secrets)) for label in shown]
    return replace(draft, labels=labels, example=hide(draft.example, secrets))


def _draft(
    family: StepFamily,
    lines: Sequence[tuple[int, str]],
    clocks: Mapping[int, datetime | None],
    ambiguous: bool,
    secrets: frozenset[str],
) -> Draft:
    places = family.places[:: -(-len(family.places) // MOST_SAMPLES)]
    table, counted = table_head(places, lines)
    head, layout = (table, None) if table else _line_patterns(family, places)
    places = _with_pairs(places, head, layout) if layout else places
    seconds = _seconds_per_step(places, clocks, family)
    labels = _labels(layout, bodies_after(places, head), family, seconds) if layout else []
    example = places[len(places) // 2]
    draft = Draft(
        marker=find_markers(places, [text for _, text in lines], secrets),
        head=head,
        layout=layout if any(label.reading for label in labels) else None,
        labels=labels,
        n=len(family.places),
        line_number=example.line_number,
        example=example.text,
        falls=family.falls,
    )
    draft = _with_pair_lines(draft, lines, seconds)
    timed = bool(draft.columns & TIMES) or seconds is not None
    doubts = [*_doubts(draft, counted or family.before, timed), *(["two_counters"] if ambiguous else ())]
    return replace(draft, timed=timed, doubts=doubts)


def _with_pair_lines(draft: Draft, lines: Sequence[tuple[int, str]], seconds: float | None) -> Draft:
    """``draft`` with the values of the lines after its step lines, where the step line has no loss or no time."""
    if "loss" in draft.columns and draft.columns & TIMES:
        return draft
    found = find_pair_lines(draft.head, draft.marker, [text for _, text in lines])
    if found is None:
        return draft
    pair_lines, values = found
    own = {label.label for label in draft.labels}
    labels = draft_labels({label: texts for label, texts in values.items() if label not in own}, seconds, {})
    labels = [label for label in labels if label.reading is None or label.reading.column not in draft.columns]
    return replace(draft, pair_lines=pair_lines, labels=[*draft.labels, *labels])


def _doubts(draft: Draft, counted: str, timed: bool) -> Iterator[Doubt]:
    read = draft.columns
    others = read - {"step", "step_in_epoch", "steps_per_epoch", "train_steps", "epoch", "epochs"}
    # A bar without a value may be one of any work.
    others -= {RUNTIME} if RUNTIME in draft.head else set()
    counts = any(columns <= read for columns in STEPS)
    if not counts or (not others and not any(label.may_be for label in draft.labels)):
        yield "no_values"
    if not timed and not read & RATES:
        yield "no_time"
    if "loss" not in read:
        yield "no_loss"
    if draft.falls and "step_in_epoch" not in read:
        yield "starts_again"
    if columns_of(counted.strip(" #:=([")) == ("epoch",):
        yield "epochs"


def _line_patterns(family: StepFamily, places: Sequence[Occurrence]) -> tuple[str, PairLayout | None]:
    """The head, and how pairs are written after it."""
    head, begins_pairs = head_of(family, places)
    bodies = bodies_after(places, head)
    layout = choose_layout(bodies)
    separator = regex.compile(rf"\s*{layout.separator}") if layout else None
    if layout and separator and not begins_pairs and all(separator.match(body) for body in bodies):
        head += layout.separator if layout.separator.startswith(r"\s") else r"\s*" + layout.separator
    return head, layout


def _with_pairs(places: Sequence[Occurrence], head: str, layout: PairLayout) -> Sequence[Occurrence]:
    """Those of ``places`` that hold a pair, which a bar that has just begun does not."""
    matches = ((place, regex.search(head, place.text)) for place in places)
    headed = [(place, place.text[match.end() :]) for place, match in matches if match]
    rows = {pair.row for pair in read_pairs(layout, [body for _, body in headed])}
    return [place for row, (place, _) in enumerate(headed) if row in rows] or places


def _labels(layout: PairLayout, bodies: Sequence[str], family: StepFamily, seconds: float | None) -> list[DraftLabel]:
    values: dict[str, list[str]] = {}
    units: dict[str, str] = {}
    for pair in read_pairs(layout, bodies):
        values.setdefault(pair.label, []).append(pair.value)
        if pair.after is not None:
            units.setdefault(pair.label, pair.after)
    paced = any(regex.search(r"\[[\d:]+<", body) for body in bodies)
    labels = draft_labels(values, seconds, units, paced)
    if layout is RECORD and not any(label.reading and label.reading.column == "step" for label in labels):
        step = family.before.strip(" :\"'{,")
        labels = [replace(label, reading=Reading("step")) if label.label == step else label for label in labels]
    return labels


def _seconds_per_step(
    places: Sequence[Occurrence], clocks: Mapping[int, datetime | None], family: StepFamily
) -> float | None:
    """The median time of a step by the stamps of the lines, or those that a tool put there; None where none has one."""
    lines = pl.DataFrame(
        [(place.text[: place.begin], clocks[place.line_number]) for place in places], _CLOCKED, orient="row"
    )
    stamps = lines.select(pl.coalesce(clock(pl.col("text")), "clock"))
    steps = pl.Series([place.value for place in places], dtype=pl.Float64)
    passed = stamps.to_series().diff().dt.total_milliseconds() / 1000 / steps.diff()
    median = passed.filter((steps.diff() > 0) & (passed > 0)).median()
    return float(median) if isinstance(median, float) and family.interval else None
