"""What ``logparse history`` says of recorded runs: exclude, include, annotate, label, accept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from analysis.commands import _completion
from analysis.commands import _options as options
from analysis.commands._forms import Form
from analysis.commands._release_options import HistoryDir, parse_day, teller
from analysis.commands.record import TAKEN
from analysis.compare.verdict import find_metric
from analysis.history.annotations import ANNOTATION_COLUMNS
from analysis.history.events import Event, Kind, now, speaker, standing
from analysis.history.open_history import open_history
from analysis.history.record_run import parse_pairs
from analysis.history.selection import UNTYPED, select_runs
from analysis.history.selector import is_selector
from analysis.history.store import History
from analysis.metrics import JUDGED
from analysis.nightly.past_nights import Nights
from analysis.nightly.regressions import find_regressions
from analysis.present.views.history import event_text
from analysis.present.views.regressions import compose_regressions, document
from analysis.project.project_file import history_place, project_policy
from logparse.errors import UsageError
from logparse.language import tr

Named = Annotated[list[str], typer.Argument(metavar="RUN...", help="Run ids, or selectors as in `history list`.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Reason, shown with the run.")]
Text = Annotated[str, typer.Argument(metavar="TEXT", help='Text of the note; "" removes the note.')]
RunsAndLabels = Annotated[list[str], typer.Argument(metavar="RUN... KEY=VALUE...", help="Run ids, then labels.")]
Issue = Annotated[str | None, typer.Option("--issue", metavar="LINK", help="Link to the issue.")]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="DATE", help="Last day of the acceptance; a past day revokes it."),
]
UntilRelease = Annotated[str | None, typer.Option("--until-release", metavar="NAME", help="Release that will fix it.")]
MetricName = Annotated[
    str | None,
    typer.Option(
        "--metric",
        autocompletion=_completion.metrics,
        metavar="NAME",
        help="Metric to accept; default: all.",
    ),
]


def exclude(runs: Named, reason: Reason, history: HistoryDir = None, lang: options.Language = None) -> None:
    """Exclude runs from compare, gate and trend.

    They stay recorded. A run given by its id is still compared.
    """
    _say("exclude", history, runs, text=_checked_text("--reason", reason))


def include(runs: Named, history: HistoryDir = None, lang: options.Language = None) -> None:
    """Include excluded runs again."""
    _say("include", history, runs)


def annotate(runs: Named, text: Text, history: HistoryDir = None, lang: options.Language = None) -> None:
    """Add a note to runs."""
    _say("annotate", history, runs, text=_checked_text("TEXT", text) if text else "")


def label(marks: RunsAndLabels, history: HistoryDir = None, lang: options.Language = None) -> None:
    """Add labels to runs. A new value replaces the old one."""
    pairs = [mark for mark in marks if "=" in mark]
    runs = [mark for mark in marks if "=" not in mark]
    if not (pairs and runs):
        raise UsageError(tr("missing run or label"), remedy=tr("write runs first, then labels: RUN... KEY=VALUE..."))
    labels = parse_pairs(pairs, "label", (*TAKEN, *ANNOTATION_COLUMNS))
    _say("label", history, runs, labels=tuple(sorted(labels.items())))


def accept(
    runs: Named,
    reason: Reason,
    issue: Issue = None,
    until: Until = None,
    until_release: UntilRelease = None,
    metric: MetricName = None,
    history: HistoryDir = None,
    lang: options.Language = None,
) -> None:
    """Accept a known regression.

    It applies to one metric or all, until a day or a release, or permanently.
    """
    given = {"--issue": issue, "--until-release": until_release}
    texts = {name: text if text is None else _checked_text(name, text) for name, text in given.items()}
    _say(
        "accept",
        history,
        runs,
        text=_checked_text("--reason", reason),
        metric=None if metric is None else find_metric(metric, JUDGED).column,
        issue=texts["--issue"],
        until=None if until is None else parse_day("--until", until),
        until_release=texts["--until-release"],
    )


COMMANDS: tuple[Callable[..., None], ...] = (exclude, include, annotate, label, accept)


def _say(kind: Kind, place: str | None, asked: Sequence[str], **what: Any) -> None:
    """Keep an event about each run. Raises UsageError where one of ``asked`` names none."""
    store = open_history(history_place(place), teller())
    at, user = now(), speaker()
    run_ids = named_runs(store, asked)
    store.say([Event(run_id, kind, at, user, **what) for run_id in run_ids])
    typer.echo(event_text(kind, len(run_ids)))


def named_runs(store: History, asked: Sequence[str]) -> list[str]:
    """The ids that ``asked`` names, each once. Raises UsageError for one that names none."""
    runs = store.runs() if any(map(is_selector, asked)) else None
    run_ids: dict[str, None] = {}
    for one in asked:
        if runs is None or not is_selector(one):
            run_ids[store.find(one)] = None
            continue
        chosen = select_runs(runs, one)["run_id"].to_list()
        if not chosen:
            remedy = tr("`logparse history list` shows the runs")
            raise UsageError(tr("no run of the history is {asked}", asked=one), remedy=remedy)
        run_ids |= dict.fromkeys(chosen)
    return list(run_ids)


def _checked_text(name: str, text: str) -> str:
    """``text`` without outer blanks. Raises UsageError for an empty text, or one with characters no line can hold."""
    if not text.strip() or UNTYPED.search(text):
        problem = tr("{name} is {value!r}", name=name, value=text)
        raise UsageError(problem, remedy=tr("give one line of printable text"))
    return text.strip()


def regressions(
    history: HistoryDir = None,
    as_json: options.Json = False,
    as_markdown: options.Markdown = False,
    lang: options.Language = None,
) -> None:
    """List open, accepted and expired regressions of all jobs.

    Each has its owner, issue, first bad and last good run. With run_url in logparse.toml the runs are links.
    """
    form = Form(as_json, as_markdown)
    policy = project_policy()
    nights = Nights(open_history(history_place(history), teller()))
    regressions = find_regressions(nights.judge(policy), standing(nights.events).acceptances)
    form.print(lambda: document(regressions, policy.run_url), lambda: compose_regressions(regressions, policy.run_url))
