"""Which words are these? Exactly one format, or an explained failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logparse.errors import NoStepLineError
from logparse.findings import Note, warning
from logparse.formats._base import LogFormat
from logparse.language import tr
from logparse.read.sources import Source
from logparse.read.steps import StepLines


def recognize(
    found: Sequence[tuple[LogFormat, StepLines]], sources: Sequence[Source]
) -> tuple[LogFormat, StepLines, list[Note]]:
    """The format that ``found`` the most step lines, those lines, and notes on formats that found fewer.

    Raises NoStepLineError where none finds a step line.
    """
    stepped = sorted((f for f in found if len(f[1].steps)), key=lambda f: -len(f[1].steps))
    if not stepped:
        raise _nothing_found(found, sources)
    (fmt, best), others = stepped[0], stepped[1:]
    notes = [warning("other_format_left_out", n=len(other.steps), name=f.name) for f, other in others]
    return fmt, best, notes


def describe_damage(sources: Sequence[Source]) -> Iterator[str]:
    """What an error says of sources that ended early."""
    for note in (note for source in sources for note in source.notes):
        yield tr("{path} ends early or is damaged ({reason})", **note.fields)


def _nothing_found(decoded: Sequence[tuple[LogFormat, StepLines]], sources: Sequence[Source]) -> NoStepLineError:
    looked = "\n".join(
        tr("    {name}: a line with {marker!r}", name=fmt.name, marker=fmt.marker[0]) for fmt, _ in decoded
    )
    torn = sum(result.torn for _, result in decoded)
    reasons = [tr("{n} lines start like one but are torn", n=torn)] if torn else []
    reasons += list(describe_damage(sources))
    names = [source.name for source in sources]
    return NoStepLineError(
        tr(
            "{reasons}. Looked for:\n{formats}",
            reasons=tr("; ").join((tr("no step line found"), *reasons)),
            formats=looked,
        ),
        where=", ".join(names[:3]) + (tr(" and {n} more", n=len(names) - 3) if len(names) > 3 else ""),
        remedy=tr(
            "give the log of the rank that prints the steps (often the last); "
            "a framework that is not listed takes one file of data: logparse/formats/README.md"
        ),
    )
