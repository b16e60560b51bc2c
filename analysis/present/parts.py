"""What is shown, without a word on how it looks: terminal, Markdown and HTML print the same parts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Literal

from logparse.language import tr
from logparse.light_dataclass import dataclass, replace


@dataclass(frozen=True)
class Heading:
    """The title of all that follows, or the heading of a section."""

    text: str
    kind: Literal["title", "section"] = "section"


@dataclass(frozen=True)
class RunTitle:
    """The title of a run: who ran, and how long and how far. Each is a list of clauses; a line breaks between two."""

    who: Sequence[str]
    extent: Sequence[str]


@dataclass(frozen=True)
class ScreenRow:
    """A row of the first screen: a label, a value, and clauses that explain it. A line breaks between two clauses."""

    label: str
    value: str = ""
    clauses: Sequence[str] = ()
    separator: str = ", "

    @property
    def explanation(self) -> str:
        """All clauses as one text."""
        return tr(self.separator).join(self.clauses)


@dataclass(frozen=True)
class ScreenRows:
    """The rows of the first screen."""

    rows: Sequence[ScreenRow]


@dataclass(frozen=True)
class Sentence:
    """A sentence. One that is no plain one changes how far a number can be trusted, or explains it.

    A terminal shows no more lines than ``cut`` of one that may be. ``places`` are the files and lines that it names,
    ``link`` is an address of what it names, http or https.
    """

    text: str
    kind: Literal["plain", "warning", "info"] = "plain"
    cut: int | None = None
    places: Sequence[str] = ()
    link: str | None = None


@dataclass(frozen=True)
class Sentences:
    """A list of sentences."""

    items: Sequence[Sentence]


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, and a smaller remark under or after it. ``mark`` is a class of the style sheet.

    ``bar`` is a length to draw next to the text where there is room, as a share of the longest of its column.
    ``place`` is the file and line that the remark names; a reader can copy it.
    """

    text: str
    remark: str = ""
    mark: str = ""
    bar: float | None = None
    place: str = ""


@dataclass(frozen=True)
class Table:
    """A table. The first cell of a row names it; ``prose`` holds the places of columns of text, others hold numbers.

    A cell is a plain text, or a Cell where there is more to say of it. On a terminal a table that ends in prose shows
    its headings only where it is ``headed``. ``spare`` holds the places of the columns that a terminal without room for
    all leaves out, the first of them first.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    caption: str = ""
    prose: Collection[int] = ()
    headed: bool = False
    spare: Sequence[int] = ()

    @property
    def cells(self) -> Iterator[tuple[Cell, ...]]:
        """The rows, every cell a Cell."""
        return (tuple(Cell(cell) if isinstance(cell, str) else cell for cell in row) for row in self.rows)

    def without(self, places: Collection[int]) -> Table:
        """The table without the columns at ``places``."""
        places_left = [at for at in range(len(self.headings)) if at not in places]
        prose = {new for new, at in enumerate(places_left) if at in self.prose}
        rows = [[row[at] for at in places_left] for row in self.rows]
        return replace(self, headings=[self.headings[at] for at in places_left], rows=rows, prose=prose, spare=())


@dataclass(frozen=True)
class Bar:
    """How much of a device's peak was used: MFU and HFU as lengths, the peak as a mark, all in percent of the bar.

    ``band`` is from where to where the peaks of a family of devices lie. ``words`` say what the bar shows, ``scale``
    what the peak is.
    """

    mfu: float
    hfu: float | None
    peak: float
    band: tuple[float, float] | None
    words: str
    scale: str


@dataclass(frozen=True)
class Sparkline:
    """A series in order, to be drawn as small as there is room."""

    name: str
    values: tuple[float, ...]
    unit: str

    @property
    def low(self) -> float:
        """The least value."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The greatest value."""
        return max(self.values)


Part = RunTitle | ScreenRows | Heading | Sentence | Sentences | Table | Bar | Sparkline
