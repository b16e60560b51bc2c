"""Files of one run to a ParsedLog: the last stage that sees text.

Comes in: what the user named. Goes out: frames (steps, settings) and the coverage, which accounts for every line that
looked like a step line. What the numbers mean is decided in ``dialects`` and ``run_context``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

import polars as pl

from logparse.decode.buffered_clock import kept_back
from logparse.decode.detect_format import describe_damage, recognize
from logparse.decode.first_timestamps import find_begins
from logparse.decode.log_parts import file_parts, files_of, join_parts
from logparse.decode.merge_formats import Completion, may_complete
from logparse.decode.reader import CORES, Contents, read_sources
from logparse.decode.records import join_records
from logparse.decode.sample_files import SPOT_BYTES
from logparse.decode.settings import settings_frames
from logparse.decode.step_lines import STAMP, Malformed
from logparse.decode.values import collected
from logparse.decode.versions import DEVICE_SPELLINGS, SPELLINGS, Version, first_matches
from logparse.decode.yearless_clock import RunClock, clock_of_steps
from logparse.errors import InputError, NoStepLineError, SeveralRunsError, StrictError
from logparse.failures.ending import Ending, notes_of
from logparse.failures.judge import ending_of
from logparse.failures.scan import Hit
from logparse.failures.trainers import FileEnds
from logparse.file_parts import FilePart, with_own_places
from logparse.findings import Note, info, warning
from logparse.formats import find_format, known_formats, packaged
from logparse.formats._base import Block, LogFormat
from logparse.inputs.discovery import find_sources
from logparse.inputs.run_names import run_names
from logparse.inputs.sources import Source
from logparse.language import tr
from logparse.light_dataclass import asdict, dataclass, field, replace
from logparse.masked_frames import masked_settings
from logparse.masking import mask_text
from logparse.schema import TIME
from logparse.texts import map_texts

# The share of step lines that end early up to which ranks that print at once may have torn them.
MOST_BROKEN = 0.05


@dataclass(frozen=True)
class Amount:
    """How much of a run has been read: bytes of a ``total`` (None: unknown), and files of a number ``of``."""

    read: int
    total: int | None
    files: int
    of: int


Watch = Callable[[Amount], None]


@dataclass(frozen=True)
class Coverage:
    """The account of what was read; ``torn_lines`` look like step lines without a required field."""

    lines: int
    step_lines: int
    torn_lines: int
    malformed_values: int
    unread_labels: dict[str, int]


@dataclass(frozen=True)
class ParsedLog:
    """One run as frames.

    ``labels`` counts the labels on its step lines. ``starts`` (source, line_number) are the lines on which settings
    were printed, as each process does when it begins. ``records`` are the frames of events, evaluations, memory and
    timers. ``versions`` are those of software that the log names. ``notes`` report problems of reading.
    ``completions`` say which columns lines of other formats gave. ``other_settings`` are settings that the formats
    beneath this one find. ``device`` is the one that the log names. ``ending`` is how the run ended, None for one
    of several runs whose lines mix. ``hits`` are the lines of all files that may show an ending. ``parts``: which lines
    are of which file, where files are parts of one log; ``with_own_places`` puts them there.
    """

    name: str
    sources: tuple[str, ...]
    format: LogFormat
    steps: pl.DataFrame
    settings: pl.DataFrame
    coverage: Coverage
    labels: dict[str, int]
    starts: pl.DataFrame
    records: dict[str, pl.DataFrame]
    notes: tuple[Note, ...] = ()
    versions: dict[str, Version] = field(default_factory=dict)
    completions: tuple[Completion, ...] = ()
    other_settings: tuple[tuple[LogFormat, pl.DataFrame], ...] = ()
    device: Version | None = None
    ending: Ending | None = field(default_factory=lambda: Ending("unknown"))
    hits: tuple[Hit, ...] = ()
    parts: tuple[FilePart, ...] = ()

    def giver_of(self, column: str) -> str:
        """The name of the format whose lines print ``column`` of the steps; the run's own where none does."""
        given = (c.format for c in self.completions if column in c.columns)
        return next(given, self.format.name)

    def leaves_out_pauses(self, column: str) -> bool:
        """Whether the rate ``column`` is printed of the passes alone, without the time between two steps."""
        name = self.giver_of(column)
        given = self.format if name == self.format.name else find_format(name)
        return given.rate_of_passes


def read_run(
    arguments: Sequence[str],
    format_name: str | LogFormat | None = None,
    strict: bool = False,
    name: str | None = None,
    watch: Watch | None = None,
    jobs: int | None = None,
    all_files: bool = False,
) -> ParsedLog:
    """Read the files that ``arguments`` name as one run, called ``name`` or after its first argument.

    ``format_name`` is the name of a format, a file with one, or the format itself; None: it is recognised.

    ``watch`` is called repeatedly with the Amount read so far. ``jobs`` blocks are read at once, by default one for
    each core. Of many large files, those whose probes show nothing of interest are left out, unless ``all_files``;
    a note says so.
    Raises InputError for files that cannot be read (and, with ``strict``, for torn lines and malformed values),
    NoStepLineError where no format finds a step line.
    """
    formats = formats_named(format_name)
    sources = join_parts(find_sources(arguments), formats)
    if watch is not None:
        _watch(sources, watch)
    contents = read_sources(sources, formats, jobs=jobs or CORES, all_files=all_files)
    return log_of(contents, sources, format_name, strict, name or run_names([arguments])[0])


def log_of(
    contents: Contents, sources: Sequence[Source], format_name: str | LogFormat | None, strict: bool, name: str
) -> ParsedLog:
    """The run, called ``name``, whose ``contents`` were read of ``sources``. Raises as ``read_run``."""
    formats = formats_named(format_name)
    if not contents.lines:
        raise _empty(sources)
    starts = {fmt.name: _starts(contents.inside, fmt) for fmt in formats}
    fmt, stepped, completions, notes = recognize(contents, sources, max(starts.values(), key=len))
    coverage = Coverage(contents.lines, len(stepped.steps), stepped.torn, len(stepped.malformed), stepped.unread)
    if strict:
        _refuse_damage(coverage, with_own_places(stepped.malformed, file_parts(sources)))
    clock = clock_of_steps(stepped.steps, [contents.stamps["first"]])
    steps = _in_order(_of_run(stepped.steps, name, clock), sources)
    if (kept := kept_back(steps)) is not None:
        notes.append(kept)
        steps = steps.with_columns(timestamp=pl.lit(None, TIME))
    begins, doubts = find_begins(contents.stamps, steps, clock)
    records = join_records(contents.records, steps, fmt, begins)
    notes += doubts
    notes += _describe_reading(sources, fmt, named=bool(format_name))
    ending = ending_of(contents.hits, steps, starts[fmt.name], contents.ends, contents.rank_times, fmt.from_zero)
    notes += notes_of(ending, len(files_of(sources)) > 1)
    notes += _describe_malformed(stepped.malformed)
    notes += _describe_broken(stepped.broken, len(steps), contents.ends)
    if not fmt.pair_lines and stepped.stepless > len(steps):
        notes.append(warning("lines_without_step", n=stepped.stepless, of=stepped.stepless + len(steps)))
    settings, *other_settings = _settings_of_all(contents, formats, fmt)
    if masked := masked_settings(frame for _, frame in (settings, *other_settings)):
        notes.append(info("secrets_masked", n=masked))
    versions = first_matches(contents.sentences, (*SPELLINGS, *DEVICE_SPELLINGS))
    device = versions.pop("device", None)
    return _without_secrets(
        ParsedLog(
            name,
            files_of(sources),
            fmt,
            steps,
            settings[1],
            coverage,
            stepped.labels,
            starts[fmt.name],
            {kind: _of_run(frame, name, clock) for kind, frame in records.items()},
            tuple(notes),
            versions,
            completions,
            tuple(other_settings),
            device,
            ending,
            tuple(contents.hits),
            file_parts(sources),
        )
    )


def _without_secrets(log: ParsedLog) -> ParsedLog:
    """``log`` with the secrets in its texts masked.

    Settings are masked by their names before. Lines of failures are masked as they are read; only the names of their
    files may still show a secret.
    """
    masked = map_texts(replace(log, hits=()), cache(mask_text), (LogFormat,))
    return replace(masked, hits=map_texts(log.hits, mask_text) if masked.sources != log.sources else log.hits)


def _empty(sources: Sequence[Source]) -> NoStepLineError:
    problem = tr("; ").join((tr("the log is empty"), *describe_damage(sources)))
    return NoStepLineError(problem, where=sources[0].name, remedy=tr("pass the log that the training job printed"))


def diagnose_run(arguments: Sequence[str], watch: Watch | None = None, jobs: int | None = None) -> Ending:
    """How the run ended whose files ``arguments`` name: any text log, also of trainers whose steps are not read.

    Raises InputError for files that cannot be read, SeveralRunsError for those of several runs, NoStepLineError for an
    empty log.
    """
    sources = join_parts(find_sources(arguments), known_formats())
    if watch is not None:
        _watch(sources, watch)
    return ending_in(read_sources(sources, known_formats(), jobs=jobs or CORES), sources)


def ending_in(contents: Contents, sources: Sequence[Source]) -> Ending:
    """How the run ended whose ``contents`` were read of ``sources``. Raises as ``diagnose_run``."""
    if not contents.lines:
        raise _empty(sources)
    formats = [fmt for fmt, _ in contents.steps]
    starts = max((_starts(contents.inside, fmt) for fmt in formats if fmt.blocks), key=len, default=_NO_START)
    from_zero = None
    try:
        fmt, stepped, *_ = recognize(contents, sources, starts)
        steps, from_zero = stepped.steps, fmt.from_zero
    except SeveralRunsError:
        raise
    except (NoStepLineError, InputError):
        steps = pl.DataFrame()
    steps = _in_order(steps, sources) if len(steps) else steps
    ending = ending_of(contents.hits, steps, starts, contents.ends, contents.rank_times, from_zero)
    return map_texts(with_own_places(ending, file_parts(sources)), mask_text)


def formats_named(named: str | LogFormat | None) -> tuple[LogFormat, ...]:
    """The one format that is ``named``, or all that are known."""
    if isinstance(named, LogFormat):
        return (named,)
    return (find_format(named),) if named else known_formats()


def _of_run(frame: pl.DataFrame, name: str, clock: RunClock) -> pl.DataFrame:
    """``frame`` with the ``name`` of the run, without stamps of other clocks."""
    stamps = [clock.kept("timestamp")] if "timestamp" in frame.columns else []
    return frame if frame.is_empty() else frame.with_columns(*stamps, run=pl.lit(name))


def _settings_of_all(
    contents: Contents, formats: Sequence[LogFormat], fmt: LogFormat
) -> Iterator[tuple[LogFormat, pl.DataFrame]]:
    """The settings that ``fmt`` finds, and those that formats beneath it find of kinds that no other one reads."""
    # What reads other lines of a library's log has no settings of its own.
    own = [other for other in formats if not other.log_of]
    below = [other for other in own if other.beneath > fmt.beneath and may_complete(other, fmt)]
    every = (fmt, *sorted(below, key=lambda other: -other.beneath))
    kinds: set[str] = set()
    for other, settings in zip(every, settings_frames(contents.sentences, contents.inside, every), strict=True):
        # Most formats find none, and filtering an empty frame takes as long as finding it empty.
        mine = settings.filter(~pl.col("kind").is_in(kinds)) if kinds and len(settings) else settings
        kinds |= _kinds(other)
        if other is fmt or len(mine):
            yield other, mine


def _kinds(fmt: LogFormat) -> set[str]:
    return {block.kind for block in fmt.blocks} | {sentence.kind for sentence in fmt.sentences}


def _describe_reading(sources: Sequence[Source], fmt: LogFormat, named: bool) -> Iterator[Note]:
    """How the files were read; also which packages of formats failed, unless the user ``named`` the format."""
    for source in sources:
        yield from source.notes
        if source.is_wrong:
            yield warning("damage_not_located", path=source.name)
    if not named:
        yield from packaged().notes
    yield from _describe_probing(sources)
    if fmt.counted:
        yield info("steps_counted")


def _describe_broken(places: Sequence[tuple[str, int]], read: int, ends: FileEnds) -> Iterator[Note]:
    """A warning where a part of the step lines ends early, as where a terminal or a document wrapped them.

    Not the last line of a file: what stopped the run may have cut it.
    """
    last = {(block.source, block.first + block.count - 1) for block in ends.tails}
    broken = [place for place in places if place not in last]
    if len(broken) > MOST_BROKEN * (len(broken) + read):
        source, line = broken[0]
        yield warning("step_lines_broken", n=len(broken), of=len(broken) + read, source=source, line=line)


def _describe_malformed(malformed: Sequence[Malformed]) -> Iterator[Note]:
    stamps = [bad for bad in malformed if bad.label == STAMP]
    for bad in stamps[:1]:
        yield warning("stamps_invalid", n=len(stamps), text=bad.text, source=bad.source, line=bad.line_number)
    for bad in [bad for bad in malformed if bad.label != STAMP][:3]:
        yield warning("value_malformed", **asdict(bad))


def _describe_probing(sources: Sequence[Source]) -> Iterator[Note]:
    """A note about files that were not read to their end."""
    names = [source.name for source in sources if source.part is not None]
    if names:
        spot = SPOT_BYTES >> 10
        yield info("files_probed", n=len(names), of=len(sources), names=names[:3], spot=spot)


def _watch(sources: Sequence[Source], watch: Watch) -> None:
    sizes = [source.size for source in sources]

    def report() -> None:
        # The size of what is left out is known after the files were probed.
        parts = [size if s.part is None else s.part for s, size in zip(sources, sizes, strict=True)]
        total = None if None in parts else sum(part or 0 for part in parts)
        files = sum(part is not None and s.bytes_read >= part for s, part in zip(sources, parts, strict=True))
        watch(Amount(sum(s.bytes_read for s in sources), total, files, len(sources)))

    for source in sources:
        source.watch = report


def _in_order(steps: pl.DataFrame, sources: Sequence[Source]) -> pl.DataFrame:
    """Put the files in the order in which their first step lines are stamped, whatever order they were named in.

    Without stamps in the order of their steps, where every file begins and ends after the one before.
    """
    if len(sources) == 1:
        # The same text, once: grouping by it takes a fourth of the time.
        return steps.with_columns(source=pl.lit(sources[0].name))
    first = pl.col("timestamp").drop_nulls().first().over("source")
    if steps.is_empty():
        return steps
    if steps["timestamp"].null_count() == len(steps):
        return _by_steps(steps)
    if steps.select(first.is_null().any()).item():
        return steps
    return steps.sort(first, maintain_order=True)


def _by_steps(steps: pl.DataFrame) -> pl.DataFrame:
    spans = steps.group_by("source").agg(first=pl.col("step").drop_nulls().first(), last=pl.col("step").max())
    order = spans.sort("first")
    rises = order.select((pl.col("first").diff() > 0) & (pl.col("last").diff() > 0))[1:].to_series()
    if order["first"].has_nulls() or not rises.all():
        return steps
    return steps.sort(pl.col("step").drop_nulls().first().over("source"), maintain_order=True)


def _starts(inside: Mapping[Block, pl.DataFrame], fmt: LogFormat) -> pl.DataFrame:
    """Where the blocks begin that are of the kind of the format's first block of a start."""
    blocks = [block for block in fmt.blocks if block.at_start]
    frames = [inside[block] for block in blocks if block.kind == blocks[0].kind and len(inside[block])]
    if not frames:
        return _NO_START
    opened = pl.concat(frames).lazy().select("source", line_number="opened")
    return collected(opened.unique(maintain_order=True))


_NO_START = pl.DataFrame(schema={"source": pl.String, "line_number": pl.Int64})


def _refuse_damage(coverage: Coverage, malformed: tuple[Malformed, ...]) -> None:
    if malformed:
        bad = malformed[0]
        problem = tr("{label!r} is {text!r}, not a valid number", label=bad.label, text=bad.text)
        where = tr("{source}, line {line}", source=bad.source, line=bad.line_number)
        raise StrictError(problem, where=where, remedy=tr("remove --strict to count it and continue"))
    if coverage.torn_lines:
        raise StrictError(
            tr("truncated step lines: {n}", n=coverage.torn_lines),
            remedy=tr("remove --strict to count them and continue"),
        )
