"""``logparse history regressions``: open, accepted and expired ones of all jobs."""

from __future__ import annotations

from analysis.commands import _options as options
from analysis.commands._forms import Form
from analysis.commands._release_options import HistoryDir, teller
from analysis.history.events import standing
from analysis.history.open_history import open_history
from analysis.nightly.past_nights import Nights
from analysis.nightly.regressions import find_regressions
from analysis.present.views.regressions import compose_regressions, document
from analysis.project.project_file import history_place, project_policy


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
    found = find_regressions(nights.judge(policy), standing(nights.events).acceptances)
    form.print(lambda: document(found, policy.run_url), lambda: compose_regressions(found, policy.run_url))
