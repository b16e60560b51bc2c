"""Complaints of users about printed rates, each as a run that prints the same figure, and what is said of it."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helpers import SETTINGS, arguments_dump, megatron_line

from analysis.flops import find_formula
from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions
from analysis.run.run import Run
from logparse.findings import Note

COMPLAINTS: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("complaints.toml").read_text(encoding="utf-8")
)["complaint"]
RATE_NOTES = ("printed_rate_differs", "printed_rate_unexplained", "printed_share_differs")


def log_of(complaint: dict[str, Any]) -> str:
    """The run of a complaint, in Megatron's words."""
    settings = {**SETTINGS, **complaint.get("settings", {})}
    times = complaint.get("times") or [complaint["ms"]] * complaint.get("steps", 8)
    first, batch = complaint.get("first_step", 1), settings["global_batch_size"]
    lines, rates = [], [batch * 1000 / ms for ms in times]
    for at, ms in enumerate(times):
        step = first + at * complaint.get("every", 1)
        pairs = {"global batch size": str(batch), "consumed samples": str(step * batch), **complaint.get("line", {})}
        seconds = sum(times[: at + 1]) / 1000
        so_far = {
            "mean": sum(rates[: at + 1]) / (at + 1),
            "resumed": step * batch / seconds,
            "since_start": (at + 1) * batch / seconds,
        }
        if cumulative := complaint.get("cumulative"):
            pairs["samples per second"] = f"{so_far[cumulative]:.3f}"
        lines.append(megatron_line(step, ms, pairs=pairs))
    return arguments_dump(settings) + "\n".join(lines) + "\n"


_runs: dict[str, Run] = {}


def run_of(complaint: dict[str, Any], folder: Path) -> Run:
    """The run of a complaint, read and computed once."""
    if (words := repr(complaint)) not in _runs:
        _runs[words] = _analyzed(complaint, folder)
    return _runs[words]


def _analyzed(complaint: dict[str, Any], folder: Path) -> Run:
    path = folder / "run.log"
    path.write_text(log_of(complaint))
    formula = find_formula(complaint.get("formula", "ascendspeed"))
    how = RunOptions(hw=complaint.get("hw"), peak_tflops=complaint.get("peak"), formula=formula)
    return analyze_logs([str(path)], how)


def notes_of(run: Run) -> dict[str, Note]:
    """The warnings on printed figures, by figure. A second one on the same fails."""
    notes = [note for note in run.notes if note.code in RATE_NOTES]
    by_figure = {note.fields["figure"]: note for note in notes}
    assert len(notes) == len(by_figure)
    return by_figure


def codes_of(note: Note) -> Iterator[str]:
    """The code of a cause and of every finding inside it."""
    yield note.code
    for name in ("causes", "findings"):
        for inner in note.fields.get(name, ()):
            yield from codes_of(inner)
