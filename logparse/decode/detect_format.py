"""Which words are these? Exactly one format, or an explained failure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Protocol

import polars as pl

from logparse.decode.log_parts import file_parts, files_of
from logparse.decode.merge_formats import Completion, complete
from logparse.decode.step_lines import StepLines
from logparse.decode.versions import DEVICE_SPELLINGS, first_matches
from logparse.errors import NoStepLineError, SeveralRunsError
from logparse.failures.details import ERROR_FILE
from logparse.failures.ending import Ending
from logparse.failures.evidence import FailureLine
from logparse.failures.judge import count_repeated, ending_of
from logparse.failures.scan import Hit
from logparse.failures.trainers import FileEnds, Trainer, find_inference, find_trainer
from logparse.file_parts import own_place, with_own_places
from logparse.findings import Note, warning
from logparse.formats._base import LogFormat
from logparse.inputs.ranks import place_of
from logparse.inputs.sources import Source
from logparse.language import msg, some, tr
from logparse.lazy_regex import lazy_regex

# What may be a label, and how many common labels make a format the nearest.
# Each run of the characters of a label is looked at once, however long it is.
_LABEL = lazy_regex(r"(?<![\w ()/.%-])(?:(?![A-Za-z_])[\w ()/.%-])*+([A-Za-z_][\w ()/.%-]*+)[\"']?\s*+[:=]")
LEAST_COMMON = 2
# What is asked for where every line of metrics is without its step, which a bar may have that was not kept.
WHOLE_RECORD = msg("pass the log from the line before the record on: it has the step")
WHOLE_OUTPUT = msg("pass the whole output of the trainer, with its progress bar: `COMMAND > LOG 2>&1`")
# More layers than there are.
UNDER_ALL = 9


class Read(Protocol):
    """What was read of all files, see ``reader.Contents``."""

    @property
    def steps(self) -> Sequence[tuple[LogFormat, StepLines]]:
        """The step lines of each format."""

    @property
    def sentences(self) -> pl.DataFrame:
        """The lines with settings, versions or the name of a device."""

    @property
    def ends(self) -> FileEnds:
        """The first and last lines of files."""

    @property
    def hits(self) -> Sequence[Hit]:
        """Lines that show how the run ended."""


def recognize(
    contents: Read, sources: Sequence[Source], starts: pl.DataFrame
) -> tuple[LogFormat, StepLines, tuple[Completion, ...], list[Note]]:
    """The format that ``richest`` takes, its lines, what others gave them, and notes on those that are left out.

    ``starts`` (source, line_number) are the lines on which a process printed its settings.

    Raises NoStepLineError where none finds a step line, InputError where files of two formats are not one run.
    """
    stepped = sorted((f for f in contents.steps if len(f[1].steps)), key=richest)
    if not stepped:
        raise _nothing_found(contents, sources, starts)
    fmt, best = stepped[0]
    steps, completions = complete(fmt, best.steps, stepped[1:])
    used = {completion.format for completion in completions}
    # Lines that a library prints under the trainer are of the same steps.
    stepped = [f for f in stepped if f[0].beneath == fmt.beneath]
    if len(sources) > 1:
        _check_formats(stepped)
    left_out = (f for f in stepped[1:] if f[0].name not in used)
    notes = [warning("other_format_left_out", n=len(other.steps), name=f.name) for f, other in left_out]
    notes += [completion.note for completion in completions]
    return fmt, replace(best, steps=steps), completions, notes


def richest(decoded: tuple[LogFormat, StepLines]) -> tuple[int, int]:
    """Sort key of the format to read, least first: the trainer's own lines, then the most step lines.

    Where a format has fewer than its ``fewest``, whatever is beneath it comes first.
    """
    fmt, lines = decoded
    return fmt.beneath + (UNDER_ALL if len(lines.steps) < fmt.fewest else 0), -len(lines.steps)


def _check_formats(stepped: Sequence[tuple[LogFormat, StepLines]]) -> None:
    """Refuse files whose steps would be left out, since they are of another format than those of the others.

    Of a file with steps of several formats the richest is read.
    Ranks of one job, by their names, may print differently.
    """
    files: dict[str, list[str]] = {}
    for fmt, lines in stepped:
        new = [file for file in lines.steps["source"].unique(maintain_order=True) if file not in chain(*files.values())]
        files |= {fmt.name: new} if new else {}
    named = list(chain(*files.values()))
    jobs = {place.job if (place := place_of(file)) else None for file in named}
    if len(files) < 2 or (None not in jobs and len(jobs) == 1):
        return
    by_format = (tr("{value} in {files}", value=name, files=some(of_it, 3)) for name, of_it in files.items())
    values = tr(", ").join(by_format)
    raise SeveralRunsError(
        tr("these files are not one run: {reason}", reason=tr("the format is {values}", values=values)),
        where=some(named, 3),
        remedy=tr("add --each to analyze every file as a run, pass files of one run, or set the format with --format"),
    )


def describe_damage(sources: Sequence[Source]) -> Iterator[str]:
    """What an error says of sources that ended early."""
    for note in (note for source in sources for note in source.notes if note.code == "file_damaged"):
        yield tr("{path} is truncated or corrupted ({reason})", **note.fields)


def _nothing_found(contents: Read, sources: Sequence[Source], starts: pl.DataFrame) -> NoStepLineError:
    # A line may be torn for several formats.
    formats = [fmt for fmt, _ in contents.steps]
    torn = max((result.torn for _, result in contents.steps), default=0)
    trainer = find_trainer(contents.ends, formats)
    stepless = _stepless(contents, trainer)
    looks = [] if stepless and trainer is None else _trainer_reasons(trainer, sources)
    reasons = [tr("no step line found"), *describe_damage(sources), *looks]
    if device := first_matches(contents.sentences, DEVICE_SPELLINGS).get("device"):
        place = _place(device.source, device.line_number, sources)
        reasons += [tr("the device is {name} ({place})", name=device.value, place=place)]
    inference = find_inference(contents.ends)
    trains_nothing = msg("this is an inference log ({place})")
    reasons += [tr(trains_nothing, place=_place(*inference, sources))] if inference else []
    reasons += [_describe_stepless(*stepless)] if stepless else []
    reasons += [tr("truncated step lines: {n}", n=torn)] if torn and not stepless else []
    where = some(files_of(sources), 3)
    ending = ending_of(contents.hits, pl.DataFrame(), starts, contents.ends)
    if ending.failed:
        remedy = tr("run `logparse diagnose` for the whole failure; if others printed steps, pass their logs")
        error = NoStepLineError(
            _with_cause(reasons, ending, contents.hits, sources, starts), where=where, remedy=remedy
        )
        error.ending = with_own_places(ending, file_parts(sources))
        return error
    if ending.cause is not None:
        place = _place(ending.cause.source, ending.cause.line, sources)
        reasons += [tr("the last values are not finite (from {place} on)", place=place)]
    if ending.detail == ERROR_FILE:
        remedy = tr("the errors of this job are in {file}: run `logparse diagnose` on it", **ending.figures)
        return NoStepLineError(tr("; ").join(reasons), where=where, remedy=remedy)
    if inference is not None:
        return NoStepLineError(tr("; ").join(reasons), where=where, remedy=tr("pass the log of a training"))
    if stepless:
        remedy = tr(WHOLE_RECORD) if stepless[2] else tr(WHOLE_OUTPUT)
        return NoStepLineError(tr("; ").join(reasons), where=where, remedy=remedy)
    nearest = _nearest(formats, contents.ends, trainer)
    if trainer is not None and trainer.is_read and nearest is None:
        remedy = tr("pass the log of the rank that prints the steps (often the last), or the errors of the job")
        return NoStepLineError(tr("; ").join(reasons), where=where, remedy=remedy)
    command = shlex.join(["logparse", "formats", "suggest", *(source.name for source in sources[:1])])
    remedy = tr(
        "pass the log of the rank that prints the steps (often the last); `logparse formats` lists all formats; "
        "`{command}` generates a draft for a new one",
        command=command,
    )
    if nearest is not None:
        name, labels = nearest
        closest = tr("the closest format is {name} (labels {labels})", name=name, labels=some(labels, 3))
        reasons = [*reasons, closest]
    return NoStepLineError(tr("; ").join(reasons), where=where, remedy=remedy)


def _stepless(contents: Read, trainer: Trainer | None) -> tuple[int, str, int] | None:
    """How many lines of ``trainer``, else of the format with most of them, are without a step, where several are.

    They are of so many records whose first line is missing; 0 where each line is one.
    """
    found = [
        (lines.stepless, fmt.title, lines.records) for fmt, lines in contents.steps if lines.stepless >= LEAST_COMMON
    ]
    if not found:
        return None
    n, title, records = max(found)
    return n, trainer.name if trainer else title, records


def _describe_stepless(n: int, name: str, records: int) -> str:
    """What lines without a step are: records without their first line, or lines of which each is one."""
    if records:
        return tr("{name}: records without the line that prints their step: {n}", n=records, name=name)
    return tr("{n} lines of {name} have no step number", n=n, name=name)


def _nearest(formats: Sequence[LogFormat], ends: FileEnds, trainer: Trainer | None) -> tuple[str, list[str]] | None:
    """The format of ``trainer`` with most labels in the first and last lines, and these; None without several."""
    own = [fmt for fmt in formats if trainer is not None and fmt.framework == trainer.name]
    blocks = [block.lines["text"] for block in (*ends.heads, *ends.tails)]
    there = {label.strip() for lines in blocks for text in lines for label in _LABEL.findall(text)}
    fmt = max(own, key=lambda fmt: len(there & fmt.labels.keys()), default=None)
    common = sorted(there & fmt.labels.keys()) if fmt else []
    return None if fmt is None or len(common) < LEAST_COMMON else (fmt.name, common)


def _trainer_reasons(trainer: Trainer | None, sources: Sequence[Source]) -> list[str]:
    if trainer is None:
        return [tr("no known training framework in the log")]
    looks = tr(
        "this looks like {trainer} ({place})",
        trainer=trainer.name,
        place=_place(trainer.source, trainer.line_number, sources),
    )
    if trainer.by_epochs:
        return [looks, tr("it is read once an epoch is done, and none is")]
    return [looks] if trainer.is_read else [looks, tr("its step lines are not supported")]


def _with_cause(
    reasons: Sequence[str], ending: Ending, hits: Sequence[Hit], sources: Sequence[Source], starts: pl.DataFrame
) -> str:
    """The ``reasons``, and the line that shows why the run failed; other lines are for ``diagnose``."""
    problem = tr("; ").join(reasons)
    cause = ending.cause
    if cause is None:
        return problem
    line = tr("    {place}: {text}", place=_place(cause.source, cause.line, sources), text=cause.text)
    line += _how_often(cause, hits, sources, starts)
    return tr("{reasons}. The run failed:\n{line}", reasons=problem, line=line)


def _how_often(cause: FailureLine, hits: Sequence[Hit], sources: Sequence[Source], starts: pl.DataFrame) -> str:
    """How many lines say what ``cause`` does, of all ranks, and in how many starts."""
    n, attempts = count_repeated(cause, hits, starts)
    if attempts > 1 and len(sources) == 1:
        return tr(" ({n} times, in {starts} starts)", n=n, starts=attempts)
    return tr(" ({n} times)", n=n) if n > 1 else ""


def _place(source: str, line: int, sources: Sequence[Source]) -> str:
    source, line = own_place(file_parts(sources), source, line)
    if len(files_of(sources)) == 1:
        return tr("line {line}", line=line)
    return tr("{source}, line {line}", source=source, line=line)
