"""A run that is watched: the screen, the line of a log, the JSON objects, and each alarm as a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from analysis.present.as_json import note_document, plain
from analysis.present.numbers import about, about_range, percent, percent_of_peak, step_time, three
from analysis.present.parts import Heading, Part, ScreenRow, ScreenRows, Sentence, Sentences, Sparkline, Table
from analysis.present.views.analyze_json import run_metrics
from analysis.present.views.title import who
from analysis.present.words import fill, say, word, words
from analysis.present.words.forms import span
from analysis.watch.alarm_state import News
from analysis.watch.alarms import Alarm
from analysis.watch.moment import Moment
from analysis.watch.snapshot import NowAndSteady, Snapshot, WatchedRun, clock_of
from logparse.errors import LogparseError
from logparse.language import msg, speaking, tr
from logparse.schema import SCHEMA_VERSION

# Columns of the bar of progress.
BAR = 24
FULL, EMPTY = "█", "░"
LABELS = {
    "step_time_ms": msg("step time"),
    "tokens_per_second_per_device": msg("tokens/s/p"),
    "mfu": msg("MFU"),
}
# Of a screen of several runs: lines of an alarm, lines that are of neither alarms nor runs, columns of a name.
LINES_OF_ALARM, OTHER_LINES, LONGEST_NAME = 2, 7, 20
# What a person must look at first.
ORDER = ("failed", "refused", "stopped", "starting", "waiting", "running", "completed")


# Sentences.


def alarm_text(alarm: Alarm, next_step: bool = True) -> str:
    """The alarm in one sentence, with its line, and what to try where that is known."""
    fields = dict(alarm.fields)
    missing = [name for name in ("step", "seconds") if fields.get(name, 0) is None]
    code = f"{alarm.code}_without_{missing[0]}" if missing else alarm.code
    code = "ending_completed" if fields.get("state") == "completed" else code
    text = fill("alarms", code, fields)
    if alarm.origin is not None and alarm.origin.line is not None:
        text = tr("{text}, line {line}", text=text, line=f"{alarm.origin.line:,}")
    remedy = fields.get("remedy")
    if next_step and remedy and remedy in words("en")["remedies"]:
        text = tr("{text}; try: {step}", text=text, step=word("remedies", remedy))
    return text


def alarm_line(alarm: Alarm) -> str:
    """The alarm as a line of the screen: when it began, its name, its sentence."""
    time = f"{clock_of(alarm.since):%H:%M:%S}"
    return tr("{time} {name}: {text}", time=time, name=word("alarm_names", alarm.code), text=alarm_text(alarm))


def news_line(news: News, at: float) -> str:
    """The line that is printed where there is no screen."""
    name, time = word("alarm_names", news.alarm.code), f"{clock_of(at):%Y-%m-%d %H:%M:%S}"
    text = alarm_text(news.alarm) if news.kind == "begins" else tr("is over")
    return tr("{time} {run}: ALARM {name}: {text}", time=time, run=news.alarm.run, name=name, text=text)


def note_lines(run: WatchedRun) -> list[str]:
    """What happened to the files of a run since the look before, a line each."""
    time = f"{clock_of(run.moment.at):%Y-%m-%d %H:%M:%S}"
    return [tr("{time} {run}: {text}", time=time, run=run.name, text=say(note)) for note in run.moment.notes]


def status_line(run: WatchedRun) -> str:
    """The run in one line: the time, how far it is, how fast, when it ends, its alarms."""
    time = f"{clock_of(run.moment.at):%Y-%m-%d %H:%M:%S}"
    facts = list(_facts(run))
    return tr("{time} {run}: {text}", time=time, run=run.name, text=tr(", ").join(facts))


def _facts(run: WatchedRun) -> Iterator[str]:
    shown = run.snapshot
    yield word("run_statuses", run.status)
    if shown is None:
        yield why_waiting(run.moment)
    else:
        if shown.step is not None:
            yield _step(shown)
        now = shown.figures[0].now
        if now is not None:
            yield tr("{time}/step", time=step_time(now))
        if shown.loss is not None:
            yield tr("loss {loss}", loss=three(shown.loss))
        if ends := _ends(shown):
            yield ends
    yield from (tr("alarm: {name}", name=word("alarm_names", alarm.code)) for alarm in run.alarms)


def why_waiting(moment: Moment) -> str:
    """Why there is no run yet."""
    if moment.waiting:
        return tr("waiting for {names}", names=tr(", ").join(moment.waiting))
    refusal = moment.refusal
    return refusal.problem if isinstance(refusal, LogparseError) else tr("no step line yet")


def summary_line(runs: Sequence[WatchedRun], begun: int, at: float) -> str:
    """What an hour brought: how many runs do what, and how many alarms began."""
    statuses = [run.status for run in runs]
    counts = [f"{statuses.count(status)} {word('run_statuses', status)}" for status in ORDER if status in statuses]
    time = f"{clock_of(at):%Y-%m-%d %H:%M}"
    return tr(
        "{time} summary of the last hour: {runs}; new alarms: {n}", time=time, runs=tr(", ").join(counts), n=begun
    )


def summary_message(runs: Sequence[WatchedRun], begun: int, at: float) -> dict[str, Any]:
    """The summary of an hour, as it is sent."""
    states = {run.name: run.status for run in runs}
    fixed = {"schema_version": SCHEMA_VERSION, "kind": "summary", "at": _iso(at)}
    return {**fixed, "text": summary_line(runs, begun, at), "runs": states, "alarms_begun": begun}


# The screen.


def watch_parts(runs: Sequence[WatchedRun], room: int | None = None) -> list[Part]:
    """The screen of one run; of several a table, the worst first, and their alarms.

    On a terminal with ``room`` for so many lines the table gets what the worst alarms leave, a line for each run.
    """
    if len(runs) == 1:
        return list(_one(runs[0]))
    worst = sorted(runs, key=_rank)
    alarms = [(alarm, run) for run in worst for alarm in run.alarms]
    cut, shown = room is not None, worst
    if room is not None:
        shown = worst[: max(1, room - OTHER_LINES - min(LINES_OF_ALARM * len(alarms), room // 3))]
    lines = [Sentence(f"{_name(run, cut)}: {alarm_line(alarm)}", "warning") for alarm, run in alarms]
    rest = [Sentence(tr("{n} more runs", n=len(worst) - len(shown)), "info")] if len(shown) < len(worst) else []
    table = _table([_row(run, cut) for run in shown])
    return [table, *rest, Heading(tr("Alarms")), Sentences(lines or [Sentence(tr("none"))])]


def _name(run: WatchedRun, cut: bool) -> str:
    """The name of a run; of a long one that is ``cut`` the end, in which runs of one experiment differ."""
    from rich.cells import cell_len

    name = run.name
    while cut and cell_len(name) > LONGEST_NAME:
        name = f"…{name.removeprefix('…')[1:]}"
    return name


def _rank(run: WatchedRun) -> tuple[bool, bool, int]:
    """Runs with an alarm first, of these the critical ones."""
    critical = any(alarm.level == "critical" for alarm in run.alarms)
    return not critical, not run.alarms, ORDER.index(run.status)


def _table(rows: Sequence[Sequence[str]]) -> Table:
    headings = (tr("run"), tr("status"), tr("step"), tr("step time"), tr("MFU"), tr("ends"), tr("alarms"))
    return Table(headings, rows, headed=True, prose={1}, spare=(4, 5))


def _row(run: WatchedRun, cut: bool) -> tuple[str, ...]:
    shown, alarms = run.snapshot, [word("alarm_names", alarm.code) for alarm in run.alarms]
    values = ("-", "-", "-", "-") if shown is None else tuple(_values(shown))
    if cut and len(alarms) > 1:
        alarms = [f"{alarms[0]} +{len(alarms) - 1}"]
    return (_name(run, cut), word("run_statuses", run.status), *values, tr(", ").join(alarms) or "-")


def _values(shown: Snapshot) -> Iterator[str]:
    step, mfu = shown.figures[0].now, shown.figures[2].now
    yield "-" if shown.step is None else f"{shown.step:,}" + (f"/{shown.planned:,}" if shown.planned else "")
    yield "-" if step is None else step_time(step)
    yield "-" if mfu is None else percent_of_peak(mfu)
    yield _end_time(shown) or "-"


def _one(run: WatchedRun) -> Iterator[Part]:
    shown = run.snapshot
    if shown is None:
        yield Heading(run.name, "title")
        yield Sentence(f"{word('run_statuses', run.status)}{tr(', ')}{why_waiting(run.moment)}")
    else:
        yield Heading(who(run.moment.runs[-1]), "title")
        yield ScreenRows([row for row in _rows(shown) if row is not None])
        if len(shown.losses) > 1:
            yield Sparkline(tr("loss"), shown.losses, "")
    yield Heading(tr("Alarms"))
    lines = [Sentence(alarm_line(alarm), "warning" if alarm.level == "critical" else "info") for alarm in run.alarms]
    yield Sentences([*(lines or [Sentence(tr("none"))]), *(Sentence(say(note), "info") for note in run.notes)])


def _rows(shown: Snapshot) -> Iterator[ScreenRow | None]:
    last = tr("last line {time} ago", time=span(shown.waited))
    yield ScreenRow(tr("status"), word("run_statuses", shown.status), [last])
    if shown.step is not None:
        yield ScreenRow(tr("progress"), _bar(shown), [_step(shown)])
    if time := _end_time(shown):
        yield ScreenRow(tr("ends"), time, _left(shown))
    yield from (_figure_row(figure) for figure in shown.figures)
    if shown.goodput is not None:
        yield ScreenRow(tr("goodput"), percent(shown.goodput), _largest(shown))
    if shown.loss is not None:
        lowest = [] if shown.lowest is None else [tr("lowest {loss}", loss=three(shown.lowest))]
        yield ScreenRow(tr("loss"), three(shown.loss), lowest)
    if shown.saved_step is not None:
        age = [] if shown.saved_seconds is None else [tr("{time} ago", time=span(shown.saved_seconds))]
        yield ScreenRow(tr("last save"), tr("step {n}", n=f"{shown.saved_step:,}"), age)
    if shown.memory_bytes is not None:
        of = [] if shown.device_bytes is None else [tr("of {gib} GiB", gib=f"{shown.device_bytes / 2**30:,.0f}")]
        yield ScreenRow(tr("memory"), tr("{gib} GiB", gib=f"{shown.memory_bytes / 2**30:,.1f}"), of)


def _step(shown: Snapshot) -> str:
    step = f"{shown.step:,}"
    if shown.planned is None:
        text = tr("step {n}", n=step)
    else:
        text = tr("step {step} of {planned}", step=step, planned=f"{shown.planned:,}")
    if shown.redoing_to is None:
        return text
    return tr("{text}, redoing steps up to {n}", text=text, n=f"{shown.redoing_to:,}")


def _bar(shown: Snapshot) -> str:
    """The share of the planned steps that is done."""
    if not shown.planned or shown.step is None:
        return ""
    share = min(max(shown.step / shown.planned, 0.0), 1.0)
    return f"{FULL * round(BAR * share)}{EMPTY * (BAR - round(BAR * share))} {percent(share, 0)}"


def _ends(shown: Snapshot) -> str:
    time = _end_time(shown)
    return tr("ends {time}", time=time) if time else ""


def _end_time(shown: Snapshot) -> str:
    """When the last step is expected; empty where that is unknown, or no step is made."""
    left = shown.left
    if left is None or left.ends_at is None or shown.status != "running":
        return ""
    return f"{clock_of(left.ends_at):%m-%d %H:%M}"


def _left(shown: Snapshot) -> list[str]:
    """The time that is left, with its range where that differs."""
    left = shown.left
    if left is None or left.seconds is None:
        return []
    range_of_time = about_range(left.low or left.seconds, left.high or left.seconds)
    return [tr("{time} left", time=range_of_time or about(left.seconds))]


def _figure_row(figure: NowAndSteady) -> ScreenRow | None:
    if figure.now is None:
        return None
    steady = [] if figure.steady is None else [tr("steady {value}", value=_text(figure.name, figure.steady))]
    return ScreenRow(tr(LABELS[figure.name]), _text(figure.name, figure.now), steady)


def _text(name: str, value: float) -> str:
    if name == "step_time_ms":
        return step_time(value)
    return percent_of_peak(value) if name == "mfu" else three(value)


def _largest(shown: Snapshot) -> list[str]:
    largest = shown.largest
    if largest is None:
        return []
    return [
        tr("largest overhead: {cause}, {share}", cause=word("overheads", largest.name), share=percent(largest.share))
    ]


# JSON.


def state_object(run: WatchedRun) -> dict[str, Any]:
    """The JSON object of a run at a refresh, the same in every language."""
    shown, newest = run.snapshot, run.moment.runs[-1] if run.moment.runs else None
    with speaking("en"):
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "state",
            "at": _iso(run.moment.at),
            "run": run.name,
            "status": run.status,
            "waiting": list(run.moment.waiting),
            "refusal": None if run.moment.refusal is None else run.moment.refusal.problem,
            "snapshot": None if shown is None else _snapshot_object(shown),
            "metrics": None if newest is None else run_metrics(newest),
            "ending": plain(newest.ending if newest is not None else run.moment.ending),
            "alarms": [alarm_object(alarm) for alarm in run.alarms],
            "notes": [note_document(note) for note in run.moment.notes],
        }


def _snapshot_object(shown: Snapshot) -> dict[str, Any]:
    values: Mapping[str, Any] = plain(shown)
    left = None if shown.left is None else {**values["left"], "ends_at": _iso(shown.left.ends_at)}
    largest = None
    if shown.largest is not None:
        largest = {"cause": shown.largest.cause, "share": shown.largest.share, "seconds": shown.largest.seconds}
    kept = {name: value for name, value in values.items() if name not in ("status", "losses")}
    return {**kept, "left": left, "largest": largest}


def alarm_object(alarm: Alarm) -> dict[str, Any]:
    """An alarm as JSON: codes and figures, and its English sentence."""
    with speaking("en"):
        return {
            "code": alarm.code,
            "level": alarm.level,
            "run": alarm.run,
            "since": _iso(alarm.since),
            "fields": plain(alarm.fields),
            "origin": plain(alarm.origin),
            "text": alarm_text(alarm),
        }


def news_object(news: News, at: float) -> dict[str, Any]:
    """The JSON object of an alarm that begins or ends, the same in every language."""
    fixed = {"schema_version": SCHEMA_VERSION, "kind": "alarm", "at": _iso(at), "state": news.kind}
    return {**fixed, **alarm_object(news.alarm)}


def news_message(news: News, at: float) -> dict[str, Any]:
    """What is sent to a chat or a command: the JSON object, its text in the language in use."""
    return {**news_object(news, at), "text": news_line(news, at)}


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
