"""Files that `analyze --each` and `merge` write along with the tables: runs as CSV, index, a page for each run.

DIR/runs.csv                 the table ``runs`` for a spreadsheet
DIR/index.html               all runs, sortable
DIR/runs/NAME/report.html    the page of one run
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from analysis.files.outputs import write_bytes, write_page
from analysis.spreadsheet import without_formulas
from logparse.language import tr

if TYPE_CHECKING:
    import polars as pl

# The text of a link, and where it leads.
Link = tuple[str, str]
CSV, INDEX, PAGES, PAGE = "runs.csv", "index.html", "runs", "report.html"
# The tables that pages link to: the index to all of them, a run to the last two.
LINKED = ("runs", "overheads", "steps", "summary")


def write_index(
    folder: Path,
    tables: Mapping[str, pl.DataFrame],
    failed: Sequence[str],
    pages: bool,
    order: str | None = None,
    formats: Sequence[str] = (),
    overlay: bool = False,
) -> list[Path]:
    """Write the CSV and the index of ``tables``; nothing where there is no run. ``pages`` says that each has one.

    The rows of the index are in the ``order`` that was asked for, those of the CSV in that of the logs. It links to the
    tables in their ``formats``, and to the page of all runs where there is an ``overlay``.
    """
    from analysis.report import render_index

    if "runs" not in tables:
        return []
    links = [*_overlay("", overlay), (CSV, CSV), *_tables("", LINKED, formats)]
    index = render_index(tables["runs"], tables["overheads"], failed, pages, order, links)
    csv = without_formulas(tables["runs"]).write_csv().encode()
    return [write_bytes(csv, folder / CSV), write_page(index, folder / INDEX)]


def links_of(page: str, runs: Sequence[str], formats: Sequence[str], each: bool, overlay: bool) -> list[Link]:
    """The links of the ``page`` of ``runs``: the index, the page of all runs or of each, the tables in ``formats``."""
    up = "../" * page.count("/")
    own = [(run, f"{up}{PAGES}/{quote(os.fsencode(run), safe='')}/{PAGE}") for run in runs] if len(runs) > 1 else []
    index = [(tr("index of all runs"), up + INDEX)] if each else []
    return [*index, *(own or _overlay(up, overlay)), *_tables(up, LINKED[2:], formats)]


def _overlay(up: str, overlay: bool) -> list[Link]:
    return [(tr("all runs in the same charts"), up + PAGE)] if overlay else []


def _tables(up: str, names: Sequence[str], formats: Sequence[str]) -> list[Link]:
    return [(file, up + file) for name in names for form in formats for file in (f"{name}.{form}",)]
