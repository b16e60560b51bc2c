"""``logparse history regressions``: open, accepted and expired ones of all jobs."""

from __future__ import annotations

import json

import typer

from analysis.commands import _options as options
from analysis.commands._release_options import HistoryDir, teller
from analysis.history.events import standing
from analysis.history.open_history import open_history
from analysis.nightly.past_nights import Nights
from analysis.nightly.regressions import find_regressions
from analysis.present.console import make_console
from analysis.present.markdown import markdown
from analysis.present.terminal import print_parts
from analysis.present.views.regressions import compose_regressions, document
from analysis.project.project_file import history_place, project_policy
from logparse.errors import UsageError
from logparse.language import tr


def regressions(
    history: HistoryDir = None,
    as_json: options.Json = False,
    as_markdown: options.Markdown = False,
    lang: options.Language = None,
) -> None:
    """List open, accepted and expired regressions of all jobs.

    Each has its owner, issue, first bad and last good run. With run_url in logparse.toml the runs are links.
    """
    if as_json and as_markdown:
        raise UsageError(tr("--json and --markdown exclude each other"), remedy=tr("give one of them"))
    policy = project_policy()
    nights = Nights(open_history(history_place(history), teller()))
    found = find_regressions(nights.judge(policy), standing(nights.events).acceptances)
    if as_json:
        typer.echo(json.dumps(document(found, policy.run_url), indent=1, ensure_ascii=False, allow_nan=False))
    elif as_markdown:
        typer.echo(markdown(compose_regressions(found, policy.run_url)))
    else:
        print_parts(make_console(), compose_regressions(found, policy.run_url))
