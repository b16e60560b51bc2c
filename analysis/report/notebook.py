"""How results show themselves in Jupyter: a small table."""

from __future__ import annotations

from html import escape

from analysis.report.answer import QUANTITIES
from analysis.report.cells import number
from analysis.run.analyze import Analysis
from logparse.language import tr


def analysis_html(analysis: Analysis) -> str:
    """The four rates of a run as an HTML table."""
    head = "".join(
        f"<th>{escape(text)}</th>" for text in ("", *(f"{tr(label)}, {unit}" for _, label, unit, *_ in QUANTITIES))
    )
    rows = "".join(
        f"<tr><th>{escape(tr(rate['rate']))}</th>"
        + "".join(f"<td>{number(rate[column], digits, scale)}</td>" for column, _, _, digits, scale in QUANTITIES)
        + "</tr>"
        for rate in analysis.rates.iter_rows(named=True)
    )
    name = escape(str(analysis.steps["run"].first() or ""))
    return f"<table><caption>{name}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
