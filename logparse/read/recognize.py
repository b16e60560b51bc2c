"""Which words are these? Exactly one format, or an explained failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logparse.errors import NoStepLineError
from logparse.findings import Note, warning
from logparse.formats._base import LogFormat
from logparse.language import some, tr
from logparse.read.failures import ErrorLine, FileEnds, Trainer, error_lines, find_trainer, quote
from logparse.read.sources import Source
from logparse.read.steps import StepLines


def recognize(
    found: Sequence[tuple[LogFormat, StepLines]], sources: Sequence[Source], ends: FileEnds
) -> tuple[LogFormat, StepLines, list[Note]]:
    """The format that ``found`` the most step lines, those lines, and notes on formats that found fewer.

    Raises NoStepLineError where none finds a step line.
    """
    stepped = sorted((f for f in found if len(f[1].steps)), key=lambda f: -len(f[1].steps))
    if not stepped:
        raise _nothing_found(found, sources, ends)
    (fmt, best), others = stepped[0], stepped[1:]
    notes = [warning("other_format_left_out", n=len(other.steps), name=f.name) for f, other in others]
    return fmt, best, notes


def describe_damage(sources: Sequence[Source]) -> Iterator[str]:
    """What an error says of sources that ended early."""
    for note in (note for source in sources for note in source.notes):
        yield tr("{path} ends early or is damaged ({reason})", **note.fields)


def _nothing_found(
    decoded: Sequence[tuple[LogFormat, StepLines]], sources: Sequence[Source], ends: FileEnds
) -> NoStepLineError:
    torn, trainer = sum(result.torn for _, result in decoded), find_trainer(ends)
    reasons = [tr("no step line found"), *(_told_by(trainer, sources) if trainer else [])]
    reasons += [tr("{n} lines start like one but are torn", n=torn)] if torn else []
    reasons += list(describe_damage(sources))
    where = some([source.name for source in sources], 3)
    # Of a trainer that is not read, steps may stand behind what failed once.
    errors = [] if trainer and not trainer.is_read else quote(error_lines(ends.tails))
    if errors:
        remedy = tr(
            "mend what these lines tell if it stopped before its first step, or give the log of the rank that prints "
            "the steps (often the last)"
        )
        return NoStepLineError(_with_errors(reasons, errors, sources), where=where, remedy=remedy)
    remedy = tr(
        "give the log of the rank that prints the steps (often the last); "
        "a framework that is not listed takes one file of data: logparse/formats/README.md"
    )
    return NoStepLineError(_with_formats(reasons, [fmt for fmt, _ in decoded]), where=where, remedy=remedy)


def _told_by(trainer: Trainer, sources: Sequence[Source]) -> list[str]:
    told = [tr("{trainer} printed this ({place})", trainer=trainer.name, place=_place(trainer, sources))]
    return told if trainer.is_read else [*told, tr("its step lines are not read")]


def _with_errors(reasons: Sequence[str], errors: Sequence[ErrorLine], sources: Sequence[Source]) -> str:
    lines = [tr("    {place}: {text}", place=_place(line, sources), text=line.text) for line in errors]
    return tr("{reasons}. Its last error lines:\n{lines}", reasons=tr("; ").join(reasons), lines="\n".join(lines))


def _with_formats(reasons: Sequence[str], formats: Sequence[LogFormat]) -> str:
    looked = "\n".join(tr("    {name}: a line with {marker!r}", name=fmt.name, marker=fmt.marker[0]) for fmt in formats)
    return tr("{reasons}. Looked for:\n{formats}", reasons=tr("; ").join(reasons), formats=looked)


def _place(found: Trainer | ErrorLine, sources: Sequence[Source]) -> str:
    if len(sources) == 1:
        return tr("line {line}", line=found.line_number)
    return tr("{source}, line {line}", source=found.source, line=found.line_number)
