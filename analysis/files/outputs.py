"""Frames and charts to files. A file is written under a temporary name and renamed: it appears whole or not at all."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import polars as pl

from analysis.files.own_files import is_bookkeeping, removed_by_signal
from analysis.spreadsheet import without_formulas
from logparse.errors import InputError, UsageError, reason_of, unknown_name
from logparse.extras import missing_extra
from logparse.language import msg, tr
from logparse.schema import SCHEMA_VERSION, without_yearless

if TYPE_CHECKING:
    from concurrent.futures import Future
    from typing import BinaryIO

    import altair as alt
    import pyarrow.parquet as pq

    from analysis.files.pictures import Pictures


def check_folder(folder: Path, force: bool) -> None:
    """Refuse a folder that holds files, unless ``force``, before any work is done.

    Raises UsageError.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(tr("{path} is a file, not a folder", path=folder), remedy=tr("give another folder with -o"))
    if folder.is_dir() and any(not is_bookkeeping(path.name) for path in folder.iterdir()) and not force:
        raise UsageError(
            tr("the folder {path} is not empty", path=folder),
            remedy=tr("give another folder with -o, or overwrite with --force"),
        )


def prepare_folder(folder: Path) -> None:
    """Make ``folder``. Raises InputError where that cannot be done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = tr("cannot create the folder {path}: {reason}", path=folder, reason=reason_of(error))
        raise InputError(reason, remedy=tr("give another folder with -o")) from error


# Forms in which a chart can be written, and those that are where nothing is asked for.
CHART_FORMATS = ("json", "png", "svg", "html")
DEFAULT_FORMATS = ("json", "png", "svg")
# Charts that are held while they wait to be drawn.
MOST_WAITING = 32


def refused(error: OSError | pl.exceptions.PolarsError, path: object) -> InputError:
    """The error for a ``path`` that cannot be written."""
    number = getattr(error, "errno", None)
    reason = tr(os.strerror(number)) if number else error
    problem = tr("cannot write {path}: {reason}", path=path, reason=reason)
    return InputError(problem, remedy=tr("check the folder's permissions and space"))


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Call ``write`` with a temporary name in the folder of ``path``, then rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with removed_by_signal(temporary):
        try:
            write(temporary)
            temporary.replace(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise refused(error, path) from error
        finally:
            temporary.unlink(missing_ok=True)


def write_through(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """``write_whole`` for a library that takes every name for UTF-8: Python opens the file."""

    def write_open(temporary: Path) -> None:
        with temporary.open("wb") as file:
            write(file)

    write_whole(path, write_open)


class _Rows(Protocol):
    """Rows of a table in a file."""

    def add(self, frame: pl.DataFrame) -> None: ...
    def close(self) -> None: ...


class _ParquetRows:
    """Rows of Parquet, with the schema's version in the metadata of the file.

    Through pyarrow, because polars' own writer leaves the version out of the Arrow schema that other readers see.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._writer: pq.ParquetWriter | None = None

    def add(self, frame: pl.DataFrame) -> None:
        import pyarrow.parquet as pq

        table = frame.to_arrow().replace_schema_metadata({"logparse.schema_version": str(SCHEMA_VERSION)})
        self._writer = self._writer or pq.ParquetWriter(self._file, table.schema, compression="zstd")
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _CsvRows:
    """Rows of CSV, without the types of its columns; no text of it is a formula."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._begun = file, False

    def add(self, frame: pl.DataFrame) -> None:
        without_formulas(frame).write_csv(self._file, include_header=not self._begun)
        self._begun = True

    def close(self) -> None:
        pass


class _JsonLineRows:
    """Rows as one JSON object each; NaN becomes null."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, frame: pl.DataFrame) -> None:
        frame.write_ndjson(self._file)

    def close(self) -> None:
        pass


# The formats of a table by their file ending, and the one that is written if none is asked for.
TABLE_FORMATS: dict[str, Callable[[BinaryIO], _Rows]] = {
    "parquet": _ParquetRows,
    "csv": _CsvRows,
    "jsonl": _JsonLineRows,
}
DEFAULT_TABLES = ("parquet",)
# Rows, and frames, that wait to be written together: a part of Parquet costs its columns anew.
MOST_ROWS, MOST_FRAMES = 2**17, 256


def write_table(frame: pl.DataFrame, stem: Path, form: str) -> Path:
    """Write a frame as ``stem`` and the ending of ``form``, one of TABLE_FORMATS."""
    return _write_rows(frame, _table_file(stem, form), form)


def write_parquet(frame: pl.DataFrame, path: Path) -> Path:
    """Write a frame with the schema's version in the file's metadata."""
    return _write_rows(frame, path, "parquet")


def _write_rows(frame: pl.DataFrame, path: Path, form: str) -> Path:
    def write(file: BinaryIO) -> None:
        rows = TABLE_FORMATS[form](file)
        rows.add(without_yearless(frame))
        rows.close()

    write_through(path, write)
    return path


def _table_file(stem: Path, form: str) -> Path:
    return stem.with_name(f"{stem.name}.{form}")


class GrowingTable:
    """A table as ``stem`` and the ending of each of ``formats``, whose frames come one after the other.

    Its folder is a temporary one, since a file that is not closed is of no use. Raises InputError where it cannot be
    written.
    """

    def __init__(self, stem: Path, formats: Sequence[str]) -> None:
        self._paths = [_table_file(stem, form) for form in formats]
        self._waiting: list[pl.DataFrame] = []
        with self._refusing():
            self._files = [path.open("wb") for path in self._paths]
        self._rows = [TABLE_FORMATS[form](file) for form, file in zip(formats, self._files, strict=True)]

    def add(self, frame: pl.DataFrame) -> None:
        """Add the rows of ``frame``."""
        self._waiting.append(frame)
        if len(self._waiting) >= MOST_FRAMES or sum(map(len, self._waiting)) >= MOST_ROWS:
            self._write()

    def finish(self) -> None:
        """Write what waits, and what a file needs to be whole."""
        self._write()
        with self._refusing():
            for rows in self._rows:
                rows.close()
            self.close()

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()

    def _write(self) -> None:
        if not self._waiting:
            return
        frame, self._waiting = without_yearless(pl.concat(self._waiting)), []
        with self._refusing():
            for rows in self._rows:
                rows.add(frame)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pl.exceptions.PolarsError) as error:
            raise refused(error, self._paths[0]) from error


def write_page(page: str, path: Path) -> Path:
    """Write a page of HTML."""
    return write_bytes(page.encode(), path)


def write_bytes(data: bytes, path: Path) -> Path:
    """Write ``data`` as they are."""
    write_whole(path, lambda p: p.write_bytes(data))
    return path


def check_table_formats(formats: Sequence[str]) -> None:
    """Refuse forms that do not exist, before any work is done. Raises UsageError."""
    for name in formats:
        if name not in TABLE_FORMATS:
            raise unknown_name(msg("table format"), name, TABLE_FORMATS, _use(list(TABLE_FORMATS)))


def chosen_formats(asked: Sequence[str] | None, theme: str | None) -> Sequence[str]:
    """The forms of charts that are ``asked`` for, or those that are where nothing is.

    Refuses forms and themes that do not exist or need a library that is missing, before any work is done. Raises
    UsageError.
    """
    from analysis.files.pictures import is_installed

    formats = DEFAULT_FORMATS if asked is None else asked
    _check_formats(formats)
    needing = "--theme" if theme else "--chart-format" if asked is not None and drawn_formats(asked) else ""
    if needing and not is_installed():
        raise missing_extra(needing, "vl-convert", "pictures")
    _check_theme(theme)
    return formats


def drawn_formats(formats: Sequence[str]) -> list[str]:
    """Those of ``formats`` that a process draws; json is the chart as it is."""
    return [form for form in formats if form != "json"]


def _check_formats(formats: Sequence[str]) -> None:
    for name in formats:
        if name not in CHART_FORMATS:
            raise unknown_name(msg("chart format"), name, CHART_FORMATS, _use(CHART_FORMATS))


def _check_theme(theme: str | None) -> None:
    if theme is not None and (themes := _themes()) and theme not in themes:
        raise unknown_name(msg("theme"), theme, themes, _use(themes))


def write_charts(
    charts: Mapping[str, alt.TopLevelMixin],
    folder: Path,
    formats: Sequence[str] = DEFAULT_FORMATS,
    theme: str | None = None,
) -> list[Path]:
    """Write each chart in ``formats``, as a ChartWriter does. Raises UsageError for a form or a theme that is none."""
    writer = ChartWriter(formats, theme)
    for name, chart in charts.items():
        writer.add(chart, folder / name)
    return writer.finish()


class ChartWriter:
    """Draws charts side by side, while its caller does something else, and writes them in the order they came.

    Forms are json (Vega-Lite), png, svg, html (a page of its own that needs no network). Where no process can draw,
    json alone is written. ``theme`` is one of vl_convert's; without one charts look as on the report's page.
    ``advance`` is called after each written chart. Raises UsageError for a form or a theme that does not exist.
    """

    def __init__(
        self, formats: Sequence[str], theme: str | None = None, advance: Callable[[], object] = lambda: None
    ) -> None:
        _check_formats(formats)
        _check_theme(theme)
        self._formats, self._theme, self._advance = formats, theme, advance
        self._waiting: deque[tuple[Path, Future[Pictures]]] = deque()
        self._written: list[Path] = []

    def add(self, chart: alt.TopLevelMixin, stem: Path) -> None:
        """Begin to draw ``chart``, which becomes ``stem`` and the ending of each form."""
        from analysis.charts import LIGHT
        from analysis.files.pictures import drawing_pool

        content = chart.to_dict(validate=False)
        content["config"] = {} if self._theme else LIGHT
        if "json" in self._formats:
            self._write(stem, {"json": json.dumps(content, ensure_ascii=False).encode()})
        if drawn := drawn_formats(self._formats):
            self._waiting.append((stem, drawing_pool().begin(content, drawn, self._theme)))
        else:
            self._advance()
        while self._waiting and (len(self._waiting) > MOST_WAITING or self._waiting[0][1].done()):
            self._write_first()

    def finish(self) -> list[Path]:
        """The files of all charts that could be drawn. Raises InputError for one that cannot be written."""
        while self._waiting:
            self._write_first()
        return self._written

    def _write_first(self) -> None:
        stem, drawn = self._waiting.popleft()
        from analysis.files.pictures import NoPictureError

        with suppress(NoPictureError):
            self._write(stem, drawn.result())
        self._advance()

    def _write(self, stem: Path, made: Pictures) -> None:
        stem.parent.mkdir(parents=True, exist_ok=True)
        self._written += [write_bytes(made[form], stem.with_name(f"{stem.name}.{form}")) for form in made]


def _use(names: Sequence[str]) -> str:
    return tr("use one of {names}", names=", ".join(names))


def _themes() -> list[str]:
    """The names of all themes; none where the process that draws cannot run."""
    from analysis.files.pictures import NoPictureError, drawing_pool

    try:
        return list(drawing_pool().call("themes"))
    except NoPictureError:
        return []
