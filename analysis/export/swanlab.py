"""SwanLab: a run as its library writes it offline, to be uploaded by `swanlab sync` or not at all.

The library stamps each point with the time at which it is written; it takes no other time.
"""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from math import isinf
from pathlib import Path
from typing import Any

from analysis.export.exported_run import ExportedRun
from analysis.export.libraries import library
from logparse.errors import UsageError
from logparse.language import tr

EXTRA = "swanlab"
# Digits of the identity in the names that SwanLab gives to folder and run.
DIGITS = 16
# The library describes the machine that trains; here it would be the one that exports.
NOTHING_OF_THIS_MACHINE = dict.fromkeys(
    ("hardware", "runtime", "requirements", "conda", "git", "swanlab", "monitor"), False
)
STATES = {
    "failed": "crashed",
    **dict.fromkeys(("killed", "cancelled", "preempted", "time_limit", "cut_off"), "aborted"),
}


def prepare() -> None:
    """Raises UsageError where SwanLab is not installed."""
    library("swanlab", EXTRA)


def names(_run: str) -> tuple[str, ...]:
    """No file is known before the log is read."""
    return ()


def place_of(run: ExportedRun) -> str:
    """The folder of ``run``: the same for a longer log of it."""
    return f"run-{run.identity[:DIGITS]}"


def write(run: ExportedRun, folder: Path, project: str) -> None:
    """Write the folder of ``run`` into ``folder``. Raises UsageError for a name that no ``project`` can have."""
    swanlab = library("swanlab", EXTRA)
    # The library greets on stdout, and names a folder that is renamed.
    with redirect_stdout(StringIO()):
        try:
            settings = swanlab.Settings.model_validate(_settings(run, folder, project))
        except ValueError as error:
            problem = tr("{name!r} is no name of a SwanLab project", name=project)
            raise UsageError(problem, remedy=tr("use letters, digits, and _ - + . in --experiment")) from error
        writer = swanlab.init(settings=settings, config=dict(run.facts))
        for step, values in run.rows():
            _log(writer, {one.tag: value for one, value in values.items()}, step)
        _log(writer, {f"run/{name}": value for name, value in run.figures.items()}, run.last_step)
        writer.log({"run/page": swanlab.Text(run.page)}, step=run.last_step)
        state = STATES.get(run.ending or "", "success")
        writer.finish(state=state, error=run.ending if state == "crashed" else None)
    # It would hide the folder from git, and a second run could not be written next to it.
    (folder / ".gitignore").unlink(missing_ok=True)


def _settings(run: ExportedRun, folder: Path, project: str) -> dict[str, Any]:
    """Those that beat what the environment and the files of settings on this machine say."""
    return {
        "mode": "offline",
        "interactive": False,
        "log_dir": folder,
        "project": {"name": project},
        "experiment": {"name": run.name},
        "run": {"id": run.identity[:DIGITS], "dir": place_of(run)},
        "probe": NOTHING_OF_THIS_MACHINE,
        "terminal": {"proxy_type": "none"},
        # It would be called offline, too.
        "integration": {"webhook": {"url": ""}},
    }


def _log(writer: Any, values: dict[str, float], step: int) -> None:
    """Log ``values``; an infinite one would be NaN."""
    if finite := {tag: value for tag, value in values.items() if not isinf(value)}:
        writer.log(finite, step=step)
