"""Files that `analyze --each` and `merge` write along with the tables: runs as CSV, index, a page for each run.

DIR/runs.csv                 the table ``runs`` for a spreadsheet
DIR/index.html               all runs, sortable
DIR/runs/NAME/report.html    the page of one run
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.outputs import write_bytes, write_page

if TYPE_CHECKING:
    import polars as pl

CSV, INDEX, PAGES, PAGE = "runs.csv", "index.html", "runs", "report.html"


def write_index(
    folder: Path, tables: Mapping[str, pl.DataFrame], failed: Sequence[str], pages: bool, order: str | None = None
) -> list[Path]:
    """Write the CSV and the index of ``tables``; nothing where there is no run. ``pages`` says that each has one.

    The rows of the index are in the ``order`` that was asked for, those of the CSV in that of the logs.
    """
    from analysis.report import render_index

    if "runs" not in tables:
        return []
    index = render_index(tables["runs"], tables["overheads"], failed, pages, order)
    csv = tables["runs"].write_csv().encode()
    return [write_bytes(csv, folder / CSV), write_page(index, folder / INDEX)]


def pages_left(folder: Path) -> list[str]:
    """The pages of runs that are in ``folder`` already, by their paths in it."""
    return [str(path.relative_to(folder)) for path in (folder / PAGES).glob(f"*/{PAGE}")]
