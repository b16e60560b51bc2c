"""How much longer each rank took than the others, along the run: ranks over steps in, a heat map out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analysis.charts.along import TITLES
from analysis.charts.drawn_rows import DIGITS
from analysis.charts.plot import WIDTH
from analysis.charts.unchecked import layered, unchecked
from analysis.run.ranks.rank_comparison import rank_names, rank_times
from logparse.language import tr

if TYPE_CHECKING:
    import altair as alt

# Most columns and rows of cells, so that a job of any size draws as fast.
COLUMNS, ROWS = 200, 128
# Pixels of a row, and of the whole at most.
ROW, TALLEST = 18, 1024


@unchecked
def ranks_chart(steps: pl.DataFrame, ranks: pl.DataFrame) -> alt.LayerChart:
    """A cell for each rank and bin of steps: the median by which the rank is slower than the median of all ranks.

    ``ranks`` is ``Analysis.ranks`` of the run; of more than ROWS the first, which are the slowest, are drawn.
    """
    import altair as alt

    names = dict(zip(ranks["source"], rank_names(ranks), strict=True))
    drawn = dict(list(names.items())[:ROWS])
    cells = rank_cells(rank_times(steps).filter(pl.col("source").is_in(list(drawn)))).with_columns(
        rank=pl.col("source").replace_strict(drawn, return_dtype=pl.String)
    )
    most = max(0.02, float(cells["behind"].abs().max() or 0))  # type: ignore[arg-type]
    scale = alt.Scale(scheme="blueorange", domain=[-most, most], domainMid=0)
    legend = alt.Legend(format=".1%", orient="bottom")
    heat = (
        alt.Chart()
        # Without an edge the paper shines through between the cells.
        .mark_rect(stroke=alt.ExprRef("scale('color', datum.behind)"))
        .encode(
            x=alt.X("from:Q", title=tr("step"), scale=alt.Scale(zero=False, nice=False), axis=alt.Axis(grid=False)),
            x2=alt.X2("to"),
            y=alt.Y("rank:N", title=tr("rank"), sort=list(drawn.values())),
            color=alt.Color("behind:Q", title=tr("slower than the median"), scale=scale, legend=legend),
            tooltip=[
                alt.Tooltip("rank:N", title=tr("rank")),
                alt.Tooltip("from:Q", title=tr("step"), format=",d"),
                alt.Tooltip("behind:Q", title=tr("slower than the median"), format=".2%"),
                alt.Tooltip("step_time_ms:Q", title="ms", format=",.1f"),
            ],
        )
    )
    subtitle = tr(
        "step time relative to the median of all ranks; slowest {n} of {of} ranks", n=len(drawn), of=len(names)
    )
    heading = alt.TitleParams(text=tr(TITLES["ranks"]), subtitle=subtitle)
    data = alt.InlineData(values=cells.drop("source").to_dicts())
    return layered(data=data, layer=[heat], width=WIDTH, height=min(ROW * len(drawn), TALLEST), title=heading)


def rank_cells(times: pl.DataFrame) -> pl.DataFrame:
    """One row per source and bin of steps: ``from``, ``to``, medians of ``behind`` and ``step_time_ms``."""
    first, last = times.select(first=pl.col("step").min(), last=pl.col("step").max() + 1).row(0)
    width = -(-(last - first) // COLUMNS)
    cells = times.group_by("source", bin=(pl.col("step") - first) // width, maintain_order=True).agg(
        pl.col("behind", "step_time_ms").median()
    )
    begin = first + pl.col("bin") * width
    values = pl.col("behind", "step_time_ms").round_sig_figs(DIGITS)
    return cells.select("source", begin.alias("from"), (begin + width).alias("to"), values)
