"""Frames and charts to files. A file is written under a temporary name and renamed: it appears whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from logparse.errors import InputError, UsageError
from logparse.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    import altair as alt


def check_folder(folder: Path, force: bool) -> None:
    """Refuse a folder that holds files, unless ``force``, before any work is done.

    Raises UsageError.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file, not a folder", remedy="give another folder with -o")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise UsageError(
            f"the folder {folder} is not empty", remedy="give another folder with -o, or overwrite with --force"
        )


def prepare_folder(folder: Path) -> None:
    """Make ``folder``. Raises InputError where that cannot be done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"cannot make the folder {folder}: {error.strerror}"
        raise InputError(reason, remedy="give another folder with -o") from error


CHART_NAMES = (
    "loss",
    "time_per_iteration",
    "tokens_per_second_per_device",
    "tflops_per_second_per_device",
    "mfu",
)
CHART_ENDINGS = (".json", ".svg", ".png", ".html")


def clear_stale(folder: Path, outputs: Iterable[str], written: Iterable[Path]) -> None:
    """Delete those of ``outputs`` that an earlier run left and this one did not write.

    In the folder of charts only files named as charts are; other files are the user's, and links are not followed.
    """
    kept = set(written)
    for path in (folder / name for name in outputs):
        if path.is_symlink():
            continue
        charts = (p for p in path.glob("*") if p.suffix in CHART_ENDINGS and p.stem in CHART_NAMES)
        for file in charts if path.is_dir() else [path]:
            if file.is_file() and not file.is_symlink() and file not in kept:
                file.unlink()


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Call ``write`` with a temporary name beside ``path``, then rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(temporary)
        temporary.replace(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if number else error
        raise InputError(f"cannot write {path}: {reason}", remedy="check the folder's permissions and space") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_parquet(frame: pl.DataFrame, path: Path) -> Path:
    """Write a frame with the schema's version in the file's metadata.

    Through pyarrow, because polars' own writer leaves the version out of the Arrow schema that other readers see.
    """
    import pyarrow.parquet as pq

    table = frame.to_arrow().replace_schema_metadata({"logparse.schema_version": str(SCHEMA_VERSION)})
    write_whole(path, lambda p: pq.write_table(table, p, compression="zstd"))
    return path


def write_charts(charts: Mapping[str, alt.TopLevelMixin], folder: Path) -> list[Path]:
    """Write each chart as Vega-Lite JSON, PNG, SVG and a page of its own that needs no network."""
    folder.mkdir(parents=True, exist_ok=True)
    return [path for name, chart in charts.items() for path in _write_chart(chart, folder / name)]


def _write_chart(chart: alt.TopLevelMixin, stem: Path) -> list[Path]:
    import vl_convert

    spec = chart.to_json()
    made: dict[str, Callable[[], bytes]] = {
        ".json": lambda: spec.encode(),
        ".svg": lambda: vl_convert.vegalite_to_svg(spec).encode(),
        ".png": lambda: vl_convert.vegalite_to_png(spec, scale=2),
        ".html": lambda: _page(spec).encode(),
    }
    paths = []
    for ending, make in made.items():
        path = stem.with_name(stem.name + ending)
        content = make()
        write_whole(path, lambda p, content=content: p.write_bytes(content))  # type: ignore[misc]
        paths.append(path)
    return paths


# A character of Unicode's private area, which no log holds on purpose.
STAND_IN = "\ue000"


def _page(spec: str) -> str:
    """A chart's page; every ``<`` of the spec is escaped, so that no text of a log can end the script it stands in."""
    import vl_convert

    page = vl_convert.vegalite_to_html(spec.replace("<", STAND_IN), bundle=True)
    return page.replace(STAND_IN, "\\u003c")
