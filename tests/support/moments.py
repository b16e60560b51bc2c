"""Moments of a log that grows: what a watcher would know of its first bytes, by the answer of ``analyze``."""

from collections.abc import Mapping
from pathlib import Path

from analysis.run.build import analyze_parts
from analysis.run.options import RunOptions
from analysis.watch.alarm_limits import DEFAULTS, Limits
from analysis.watch.alarm_state import News, RunState, advance
from analysis.watch.moment import FileGrowth, Moment
from logparse.decode.read_run import diagnose_run
from logparse.errors import LogparseError
from logparse.light_dataclass import replace

HOW = RunOptions(jobs=1)


def moment_of(folder: Path, files: Mapping[str, tuple[str, float]], at: float, how: RunOptions = HOW) -> Moment:
    """The moment ``at`` which each of ``files`` has its text, and grew at its time."""
    paths = [folder / name for name in files]
    for path, (text, _) in zip(paths, files.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    names = [str(path) for path in paths]
    grown = tuple(
        FileGrowth(name, len(text), text.count("\n"), time)
        for name, (text, time) in zip(names, files.values(), strict=True)
    )
    try:
        return Moment(at, tuple(analyze_parts(names, how)), grown)
    except LogparseError as error:
        return Moment(at, (), grown, refusal=error, ending=_ending(names))


def _ending(names: list[str]):
    try:
        return diagnose_run(names)
    except LogparseError:
        return None


class Watching:
    """A watcher of one run that is shown its files at chosen times."""

    def __init__(self, folder: Path, limits: Limits = DEFAULTS, how: RunOptions = HOW) -> None:
        self.folder, self.limits, self.how = folder, limits, how
        self.state = RunState()
        self.grown: dict[str, tuple[str, float]] = {}
        self.moment: Moment | None = None

    def look(self, at: float, **texts: str) -> tuple[News, ...]:
        """What is new ``at`` that time; a keyword is a file, with _ for its dot."""
        new = {key.replace("_", "."): text for key, text in texts.items()}
        grown = {name: (text, at) for name, text in new.items() if self.grown.get(name, ("", 0.0))[0] != text}
        self.grown |= grown
        if self.moment is None or grown:
            self.moment = moment_of(self.folder, self.grown, at, self.how)
        moment = replace(self.moment, at=at)
        self.state, news = advance("run", self.state, moment, self.limits)
        return news

    @property
    def codes(self) -> list[str]:
        """The alarms that are on."""
        return [alarm.code for alarm in self.state.alarms]
