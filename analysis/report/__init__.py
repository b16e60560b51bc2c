"""The report: one page about one run or several, that needs no network.

Comes in: PageRun. Goes out: text of HTML. Nothing is computed that the analysis did not, and nothing is written.
"""

from __future__ import annotations

from analysis.report.notebook import analysis_html
from analysis.report.page import render_page
from analysis.report.run import PageRun

__all__ = ["PageRun", "analysis_html", "render_page"]
