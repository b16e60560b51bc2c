"""The report: one page about one run or several, or about releases, that needs no network.

Comes in: PageRun; or sentences, tables and charts of a comparison or a trend. Goes out: text of HTML. Nothing is
computed that the analysis did not, and nothing is written.
"""

from __future__ import annotations

from analysis.report.document import Drawing, Text, Tracks, render_document
from analysis.report.notebook import analysis_html
from analysis.report.page import render_page
from analysis.report.page_run import PageRun
from analysis.report.payload import ROWS

__all__ = ["ROWS", "Drawing", "PageRun", "Text", "Tracks", "analysis_html", "render_document", "render_page"]
