"""Software versions and the device that a log names: CANN, torch, torch_npu, MindSpore, driver, framework commit.

Comes in: lines of the log. Goes out: name, value and place of each. The regexes are data, see ``versions.toml``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from logparse.decode.values import collected, holds, there
from logparse.findings import Origin
from logparse.light_dataclass import dataclass
from logparse.package_tables import read_table

# Words printed in place of an unknown version.
NOTHING = ("unknown", "None", "none", "null", "0.0.0", "-")


@dataclass(frozen=True)
class Spelling:
    """How one program prints one version; the comment in versions.toml explains each field."""

    name: str
    marker: str
    pattern: str
    source: str
    sample: str
    vendor: str | None = None
    meaning: str | None = None


@dataclass(frozen=True)
class Version:
    """One version as printed, and where; ``vendor`` as of its Spelling."""

    value: str
    source: str
    line_number: int
    vendor: str | None = None

    def origin(self, several: bool) -> Origin:
        """The place; with ``several`` files it names the file."""
        return Origin("log", self.source if several else None, self.line_number)


_ROWS = read_table(Path(__file__).parent / "versions.toml")
SPELLINGS = tuple(Spelling(**row) for row in _ROWS["version"])
# Which device goes by the name is not decided here.
DEVICE_SPELLINGS = tuple(Spelling("device", **row) for row in _ROWS["device"])
MARKERS = tuple(dict.fromkeys(spelling.marker for spelling in SPELLINGS))


def first_matches(lines: pl.DataFrame, spellings: Sequence[Spelling]) -> dict[str, Version]:
    """Name to the first version that ``lines`` (source, line_number, text) print of it.

    The first row of ``spellings`` that finds one wins.
    """
    markers = there(lines["text"], {spelling.marker for spelling in spellings})
    present = {str(at): spelling for at, spelling in enumerate(spellings) if spelling.marker in markers}
    if not present:
        return {}
    marked = lines.lazy().filter(holds(pl.col("text"), *markers))
    values = {at: pl.col("text").str.extract(spelling.pattern) for at, spelling in present.items()}
    read = marked.select("source", "line_number", **values)
    firsts = read.select(
        pl.struct(at, "source", "line_number").filter(~pl.col(at).is_in(NOTHING)).first().alias(at) for at in present
    )
    versions: dict[str, Version] = {}
    for at, first in collected(firsts).row(0, named=True).items():
        if first is not None:
            spelling, (value, source, line) = present[at], first.values()
            versions.setdefault(spelling.name, Version(spelling.meaning or value, source, line, spelling.vendor))
    return versions
