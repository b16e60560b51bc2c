"""The report: one page about one run or several, or about releases, or an index of many, that needs no network.

Comes in: runs; tables of many; or sentences, tables and charts of a comparison or a trend. Goes out: text of HTML.
Nothing is computed that the analysis did not, and nothing is written.
"""

from __future__ import annotations

from analysis.report.document import Drawing, Text, Tracks, render_document
from analysis.report.index_page import render_index
from analysis.report.page import render_page
from analysis.report.payload import ROWS

__all__ = ["ROWS", "Drawing", "Text", "Tracks", "render_document", "render_index", "render_page"]
