"""What the line of a cause says beyond its kind, the details of the table of failures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property

import regex

from logparse.failures.frames import Frame
from logparse.failures.table import rows
from logparse.light_dataclass import dataclass
from logparse.masking import mask_text

_MIB, _GIB, _MILLISECONDS = 2**20, 2**30, 1000
# The detail with the file of a job's errors.
ERROR_FILE = "error_file"
# The figures of a detail that is a call.
FIGURES_OF_CALL = ("path", "line", "name")
# The share of a device's memory that is another process's if nothing accounts for it.
ROOM = 0.2


@dataclass(frozen=True)
class DetailPattern:
    """What a line says beyond its kind; ``rules/README.md`` explains each field."""

    code: str
    remedy: str
    sample: tuple[str, ...]
    pattern: str | None = None
    frame: str | None = None
    below: bool = False
    above: bool = False
    frames: bool = False
    others: bool = False
    fits: bool = False
    adds: bool = False
    failures: tuple[str, ...] = ()

    @property
    def of_failures(self) -> tuple[str, ...]:
        """The codes of the failures that it makes exact."""
        return self.failures or (self.remedy,)

    @cached_property
    def compiled(self) -> regex.Pattern[str]:
        """The pattern; one that finds nothing where the detail is a call."""
        return regex.compile("(?!)" if self.pattern is None else self.pattern)

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of its figures."""
        return FIGURES_OF_CALL if self.frame else tuple(map(figure_name, self.compiled.groupindex))

    def call(self, calls: Sequence[Frame]) -> Frame | None:
        """The one of ``calls``, see ``frames_above``, that the entry is about."""
        own = next((call for call in reversed(calls) if call.own), None)
        return own if self.frame == "own" or (self.frame == "innermost" and calls and own is calls[-1]) else None

    def counts(self, match: regex.Match[str]) -> bool:
        """Whether what the pattern found is what the entry is about."""
        if self.fits and mebibytes(match["asked"]) > mebibytes(match["free"]) + mebibytes(match["kept"]):
            return False
        return not self.others or _leaves_room(match)


@cache
def detail_patterns() -> tuple[DetailPattern, ...]:
    """All entries, in the order in which they count."""
    return tuple(DetailPattern(**row) for row in rows("detail"))


def detail_of(
    remedy: str,
    text: str,
    below: str = "",
    above: str = "",
    frames: str = "",
    wrapped: Sequence[str] = (),
    calls: Sequence[Frame] = (),
) -> tuple[str, dict[str, str]] | None:
    """The code and the figures of the first entry for ``remedy`` that fits ``text``, or the lines around it.

    ``frames`` are the lines of the traceback above, more of them than ``above``, ``calls`` those that are known of it.
    ``wrapped`` are what the text may be if a terminal wrapped it.
    """
    for entry in details_for(remedy):
        if (call := entry.call(calls)) is not None:
            return entry.code, {name: str(getattr(call, name)) for name in FIGURES_OF_CALL}
        texts = [
            f"{text}\n{below}" if entry.below else text,
            *([above] if entry.above else []),
            *([frames] if entry.frames else []),
            *wrapped,
        ]
        match = next((match for one in texts if (match := entry.compiled.search(one))), None)
        if match and entry.counts(match):
            found = {name: value for name, value in match.groupdict().items() if value}
            return entry.code, {figure_name(name): _figure(name, value) for name, value in found.items()}
    return None


def details_for(remedy: str) -> Sequence[DetailPattern]:
    """The entries for ``remedy``, in the order in which they count."""
    return _by_remedy().get(remedy, ())


@cache
def _by_remedy() -> dict[str, list[DetailPattern]]:
    entries: dict[str, list[DetailPattern]] = {}
    for entry in detail_patterns():
        for remedy in entry.of_failures:
            entries.setdefault(remedy, []).append(entry)
    return entries


def _leaves_room(match: regex.Match[str]) -> bool:
    """Whether another process holds a good part of a device: neither this one nor free are so much of its memory."""
    of = {
        name: mebibytes(match[name]) for name in ("total", "free", "own", "one", "two") if name in match.re.groupindex
    }
    held = of["one"] + of["two"] if "two" in of else of["total"] - of["free"] - of["own"]
    return held > ROOM * of["total"]


def mebibytes(size: str) -> float:
    """A size as PyTorch prints it, such as "2.00 GiB"."""
    number, unit = size.split()
    return float(number) * {"K": 2.0**-10, "M": 1.0, "G": 2.0**10, "T": 2.0**20}.get(unit[0], 2.0**-20)


def figure_name(group: str) -> str:
    """The name of a figure in JSON and words: that of its group, without the unit that the log prints."""
    return regex.sub("_(?:bytes|ms|cuda)$", "", group)


def _figure(group: str, value: str) -> str:
    """A figure as a reader wants it, by the unit at the end of its group's name."""
    if group.endswith("_bytes"):
        size = int(value)
        return f"{size / _GIB:.3g} GiB" if size >= _GIB else f"{size / _MIB:.3g} MiB"
    if group.endswith("_ms"):
        return f"{int(value) / _MILLISECONDS:g} s"
    if group.endswith("_cuda"):
        return f"{int(value) // 1000}.{int(value) % 1000 // 10}"
    return mask_text(value)


@cache
def complete_details() -> frozenset[str]:
    """Codes whose words say the whole next step."""
    return frozenset(entry.code for entry in detail_patterns() if not entry.adds)
