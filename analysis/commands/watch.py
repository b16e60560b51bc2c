"""``logparse watch``: what a person on duty must know, while the job runs. Reads options, calls, prints."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import typer

from analysis.commands import _options as options
from analysis.commands._release_options import teller
from analysis.commands._run_flags import COMPUTING, READING, with_run_flags
from analysis.commands._watch_screen import Screen, has_screen, screen
from analysis.commands._webhook_options import WebhookAs
from analysis.commands.analyze import recorded_rows_of_project
from analysis.export.senders import Report, WebhookForm, beat, check_heartbeat, check_webhook, post, run_command
from analysis.files.outputs import write_whole
from analysis.present.console import make_console
from analysis.present.parts import Sentence, Sentences
from analysis.present.terminal import print_parts
from analysis.present.views.analyze import compose
from analysis.present.views.watch import (
    news_line,
    news_message,
    news_object,
    note_lines,
    state_object,
    status_line,
    summary_line,
    summary_message,
    watch_parts,
)
from analysis.present.words import say
from analysis.project.project_file import project_limits
from analysis.published.baselines import find_baseline, published, read_baselines
from analysis.run.checks.target_verdicts import exit_code, judge
from analysis.run.options import RunOptions
from analysis.watch.alarm_limits import check_codes
from analysis.watch.alarm_state import KeptStates, News, RunState, memory_of_document, state_document
from analysis.watch.alarms import KINDS
from analysis.watch.refresh import Follower
from analysis.watch.snapshot import WatchedRun
from analysis.watch.watcher import Watcher, is_over, is_unknown
from logparse.errors import InputError, UsageError, reason_of
from logparse.findings import Note
from logparse.inputs.run_discovery import named_runs
from logparse.inputs.slurm import with_outputs_of_jobs
from logparse.language import tr, use_language, visible
from logparse.light_dataclass import dataclass, replace
from logparse.pseudonyms import Pseudonyms

MINUTE, HOUR = 60.0, 3600.0
# Messages on the screen.
MESSAGES = 3
ALARM, UNKNOWN, INTERRUPTED = 1, 2, 130

Sources = Annotated[
    list[str],
    typer.Argument(metavar="LOG...", help="Logs, folders, globs, - for stdin, or the number of a Slurm job."),
]
Every = Annotated[float, typer.Option("--every", min=0.1, metavar="SECONDS", help="Seconds between two looks.")]
Once = Annotated[bool, typer.Option("--once", help="Look once and exit, for cron; see --state.")]
Until = Annotated[
    Literal["done"] | None, typer.Option("--until", help="done: exit when every run has ended.", show_default=False)
]
FailOn = Annotated[
    str | None,
    typer.Option("--fail-on", metavar="ALARM[,ALARM...]", help="Exit with 1 at these alarms, such as hang,nan."),
]
OnAlarm = Annotated[
    str | None,
    typer.Option("--on-alarm", metavar="COMMAND", help="Run at each alarm, with its JSON on stdin and no shell."),
]
Webhook = Annotated[
    str | None, typer.Option("--webhook", metavar="URL", help="Post each alarm, and a summary each hour, to a chat.")
]
Heartbeat = Annotated[
    str | None,
    typer.Option("--heartbeat", metavar="URL|FILE", help="Get URL or touch FILE each minute while logs are read."),
]
JsonLines = Annotated[bool, typer.Option("--jsonl", help="Print a JSON object at each look and for each alarm.")]
StateFile = Annotated[
    Path | None, typer.Option("--state", metavar="FILE", help="Remember alarms in FILE between two starts.")
]


class Display(Protocol):
    """Where looks are shown."""

    def show(self, runs: Sequence[WatchedRun], news: Sequence[News], at: float) -> None:
        """Show the runs and the news."""

    def summary(self, text: str) -> None:
        """Show the summary of an hour."""

    def end(self, runs: Sequence[WatchedRun]) -> None:
        """Show how the runs are at the end."""

    def wait(self, seconds: float) -> bool:
        """Wait; False where the user wants to end."""


@dataclass(frozen=True)
class Senders:
    """Where news are sent."""

    command: tuple[str, ...]
    webhook: str | None
    form: WebhookForm | None
    heartbeat: str | None
    report: Report

    def send(self, news: Sequence[News], at: float) -> None:
        """Send each alarm that begins or ends."""
        for one in news:
            message = news_message(one, at)
            if self.command:
                run_command(self.command, message, self.report)
            self.post(message)

    def post(self, message: Mapping[str, Any]) -> None:
        """Send a message to the chat."""
        if self.webhook is not None:
            post(self.webhook, message, self.form, self.report)


@with_run_flags(
    **COMPUTING,
    **READING,
    strict=options.Strict,
    utilisation=options.PlannedUtilisation,
    baseline=options.Baseline,
    require=options.Require,
)
def watch(
    logs: Sources,
    how: RunOptions,
    every: Every = 2.0,
    once: Once = False,
    until: Until = None,
    fail_on: FailOn = None,
    on_alarm: OnAlarm = None,
    webhook: Webhook = None,
    webhook_as: WebhookAs = None,
    heartbeat: Heartbeat = None,
    jsonl: JsonLines = False,
    state: StateFile = None,
    each: options.Each = False,
    split: options.Split = False,
    anonymise: options.Anonymise = False,
    baseline_file: options.BaselineFile = None,
    no_draft: options.NoDraft = False,
    no_color: options.NoColor = False,
    lang: options.Language = None,
) -> None:
    """Watch a running job: progress, pace, time to the end, and alarms such as a hang or NaN.

    Files may grow, appear later or be rotated. Alarms and their limits: docs/watch.md.

    Exit code: 0 done, 1 an alarm (of --fail-on; with --once any), a failure or a missed target, 2 wrong usage, no step
    line yet, or refused by --strict, 4 a required figure is unknown.
    """
    if jsonl and lang is None:
        # Scripts must find the same words on every machine.
        use_language("en")
    codes = None if fail_on is None else [code.strip() for code in fail_on.split(",")]
    check_codes(codes or (), KINDS)
    messages: list[Note] | None = [] if has_screen() and not (jsonl or once) else None
    report = teller() if messages is None else messages.append
    senders = Senders(_command(on_alarm), webhook, webhook_as, heartbeat, report)
    check_webhook(webhook)
    check_heartbeat(heartbeat)
    rows = (() if baseline_file is None else read_baselines(baseline_file)) + recorded_rows_of_project() + published()
    if how.baseline is not None:
        find_baseline(rows, how.baseline)
    memory = KeptStates() if state is None else _read_memory(state)
    pseudonyms = options.project_pseudonyms(memory.key) if anonymise else None
    how = replace(how, published=rows, drafts=not no_draft, pseudonyms=pseudonyms)
    paths = with_outputs_of_jobs(logs)
    watcher = Watcher(lambda: named_runs(paths, each), partial(_follower, how, split), project_limits(), memory.states)
    remember = None if state is None else partial(_remember, state, pseudonyms)
    with _output(jsonl, no_color, messages) as output:
        loop = Loop(watcher, output, senders, remember, every, codes, until == "done")
        try:
            code = loop.look_once() if once else loop.run()
        except KeyboardInterrupt:
            code = INTERRUPTED
    if isinstance(output, OnScreen):
        _leave_receipt(loop.runs, no_color)
    raise typer.Exit(code)


class Loop:
    """Looks again and again until there is a reason to end. ``runs`` are those of the last look."""

    def __init__(
        self,
        watcher: Watcher,
        output: Display,
        senders: Senders,
        remember: Callable[[Mapping[str, RunState]], None] | None,
        every: float,
        fail_on: Sequence[str] | None,
        until_done: bool,
    ) -> None:
        self._watcher, self._output, self._senders, self._write = watcher, output, senders, remember
        self._every, self._fail_on, self._until_done = every, fail_on, until_done
        self.runs: list[WatchedRun] = []
        self._begun, self._beat_at, self._written = 0, -MINUTE, False

    def look_once(self) -> int:
        """The exit code after one look."""
        self._look(time.time())
        if self._has_alarm(self._fail_on or list(KINDS)):
            return ALARM
        return UNKNOWN if all(map(is_unknown, self.runs)) else 0

    def run(self) -> int:
        """The exit code once there is a reason to end."""
        summary_at = time.time() + HOUR
        while True:
            at = time.time()
            self._look(at)
            if (code := self._code()) is not None:
                self._output.end(self.runs)
                return code
            if at >= summary_at:
                self._summary(at)
                summary_at += HOUR
            if not self._output.wait(self._watcher.seconds_to_wait(self._every)):
                return 0

    def _look(self, at: float) -> None:
        self.runs, news = self._watcher.look(at)
        self._output.show(self.runs, news, at)
        self._remember()
        self._begun += sum(one.kind == "begins" for one in news)
        self._senders.send(news, at)
        blind = any(run.moment.is_blind for run in self.runs)
        if self._senders.heartbeat is not None and at - self._beat_at >= MINUTE and not blind:
            self._beat_at = at
            beat(self._senders.heartbeat, self._senders.report)

    def _remember(self) -> None:
        """Write the state file. Raises InputError where that is impossible from the start; later it is a message."""
        if self._write is None:
            return
        try:
            self._write(self._watcher.states)
        except InputError as error:
            if not self._written:
                raise
            typer.echo(f"logparse: {error}", err=True)
        self._written = True

    def _code(self) -> int | None:
        """Why to end: an alarm that is asked for, or the end of every run; None to go on."""
        if self._fail_on is not None and self._has_alarm(self._fail_on):
            return ALARM
        at_end = all(run.moment.ended for run in self.runs) or (self._until_done and all(map(is_over, self.runs)))
        if not self.runs or not at_end:
            return None
        statuses = [run.status for run in self.runs]
        if self._until_done and "failed" in statuses:
            return ALARM
        if "refused" in statuses or all(map(is_unknown, self.runs)):
            return UNKNOWN
        newest = [run.moment.runs[-1] for run in self.runs if run.moment.runs]
        return exit_code(judgement.outcome for run in newest for judgement in judge(run))

    def _has_alarm(self, codes: Sequence[str]) -> bool:
        return any(alarm.code in codes for run in self.runs for alarm in run.alarms)

    def _summary(self, at: float) -> None:
        self._output.summary(summary_line(self.runs, self._begun, at))
        self._senders.post(summary_message(self.runs, self._begun, at))
        self._begun = 0


class Lines:
    """No terminal: a line for each alarm at once, and one for each run every minute."""

    def __init__(self) -> None:
        self._shown_at = -MINUTE

    def show(self, runs: Sequence[WatchedRun], news: Sequence[News], at: float) -> None:
        """Print what is new, and where each run is once a minute."""
        for text in (*(news_line(one, at) for one in news), *(line for run in runs for line in note_lines(run))):
            typer.echo(visible(text))
        if at - self._shown_at >= MINUTE:
            self._print_runs(runs, at)

    def end(self, runs: Sequence[WatchedRun]) -> None:
        """Print where each run is, unless that was printed at this look."""
        at = max((run.moment.at for run in runs), default=self._shown_at)
        if at != self._shown_at:
            self._print_runs(runs, at)

    def _print_runs(self, runs: Sequence[WatchedRun], at: float) -> None:
        self._shown_at = at
        for run in runs:
            typer.echo(visible(status_line(run)))

    def summary(self, text: str) -> None:
        """Print the summary of an hour."""
        typer.echo(visible(text))

    def wait(self, seconds: float) -> bool:
        """Wait."""
        time.sleep(seconds)
        return True


class JsonObjects(Lines):
    """One JSON object in a line for each run at each look, and for each alarm."""

    def show(self, runs: Sequence[WatchedRun], news: Sequence[News], at: float) -> None:
        """Print the objects."""
        for document in (*(news_object(one, at) for one in news), *map(state_object, runs)):
            typer.echo(json.dumps(document, allow_nan=False))

    def summary(self, text: str) -> None:
        """The objects have all of it."""

    def end(self, runs: Sequence[WatchedRun]) -> None:
        """The last objects have all of it."""


class OnScreen:
    """The screen of the terminal."""

    def __init__(self, drawn_on: Screen, messages: Sequence[Note]) -> None:
        self._screen, self._messages = drawn_on, messages

    def show(self, runs: Sequence[WatchedRun], news: Sequence[News], at: float) -> None:  # noqa: ARG002
        """Draw the runs with their alarms, and the last messages of those that send them."""
        messages = [Sentence(say(note), "info") for note in self._messages[-MESSAGES:]]
        self._screen.show([*watch_parts(runs, self._screen.room), Sentences(messages)])

    def summary(self, text: str) -> None:
        """The screen has all of it."""

    def end(self, runs: Sequence[WatchedRun]) -> None:
        """The result stays on the terminal."""

    def wait(self, seconds: float) -> bool:
        """Wait for keys."""
        return self._screen.wait(seconds)


@contextmanager
def _output(jsonl: bool, no_color: bool, messages: Sequence[Note] | None) -> Iterator[Display]:
    """Where looks are shown: a screen with ``messages``, else JSON or lines."""
    if messages is None:
        yield JsonObjects() if jsonl else Lines()
        return
    with screen(no_color) as drawn_on:
        drawn_on.announce(tr("reading the logs"))
        yield OnScreen(drawn_on, messages)


def _leave_receipt(runs: Sequence[WatchedRun], no_color: bool) -> None:
    """Print what ``analyze`` prints of one run; of several the last table."""
    console = make_console(no_color=no_color)
    newest = [run.moment.runs[-1] for run in runs if run.moment.runs]
    print_parts(console, compose(newest[0]) if len(runs) == len(newest) == 1 else watch_parts(runs))


def _follower(how: RunOptions, split: bool, name: str, logs: Sequence[str]) -> Follower:
    return Follower(logs, how, name=name, split=split)


def _command(text: str | None) -> tuple[str, ...]:
    """The words of --on-alarm. Raises UsageError where they are none."""
    try:
        words = shlex.split(text or "")
    except ValueError:
        words = []
    if text is not None and not words:
        raise UsageError(tr("--on-alarm is no command"), remedy=tr("check its quotes, or for an unset variable"))
    return tuple(words)


def _read_memory(path: Path) -> KeptStates:
    """What an earlier start remembered; nothing where there was none. Raises InputError for a damaged file."""
    if not path.exists():
        return KeptStates()
    try:
        return memory_of_document(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        problem = tr("cannot read {path}: {reason}", path=path, reason=reason_of(error))
        raise InputError(problem, remedy=tr("check the path and its permissions")) from error
    except ValueError as error:
        problem = tr("{path} is no state file of logparse watch", path=path)
        raise InputError(problem, remedy=tr("remove it, or give another file with --state")) from error


def _remember(path: Path, pseudonyms: Pseudonyms | None, states: Mapping[str, RunState]) -> None:
    """Replace the state file. Raises InputError where that cannot be done."""
    memory = KeptStates(states, None if pseudonyms is None else pseudonyms.key)
    text = json.dumps(state_document(memory), ensure_ascii=False)
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))
