"""Memory of each pipeline stage against the device's, as a chart: a Fit in, an Altair chart out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.charts.unchecked import layered, unchecked
from analysis.estimate.layout_search import Fit
from logparse.language import msg, tr

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 720, 300
PARTS = (msg("weights, gradients, optimizer"), msg("activations"))


def memory_rows(fit: Fit) -> list[dict[str, object]]:
    """One row per stage and part, in GB of 1e9 bytes."""
    sizes = ((stage.stage, (stage.state_bytes, stage.activation_bytes)) for stage in fit.stages)
    return [
        {"stage": number, "part": tr(part), "rank": rank, "gb": size / 1e9}
        for number, both in sizes
        for rank, (part, size) in enumerate(zip(PARTS, both, strict=True))
    ]


@unchecked
def memory_chart(fit: Fit) -> alt.LayerChart:
    """A stacked bar for each stage, and the device's memory as a dashed line where it is known."""
    import altair as alt

    parts = [tr(part) for part in PARTS]
    bars = (
        alt.Chart(alt.InlineData(values=memory_rows(fit)))
        .mark_bar()
        .encode(
            x=alt.X("stage:O", title=tr("pipeline stage"), axis=alt.Axis(labelAngle=0)),
            y=alt.Y("gb:Q", title=tr("memory per device, GB"), stack="zero"),
            color=alt.Color("part:O", sort=parts, scale=alt.Scale(domain=parts, range="ordinal"), title=None),
            order="rank:Q",
            tooltip=[
                alt.Tooltip("stage:O", title=tr("pipeline stage")),
                alt.Tooltip("part:N", title=tr("part")),
                alt.Tooltip("gb:Q", title="GB", format=",.2f"),
            ],
        )
    )
    layers: list[alt.Chart] = [bars]
    if fit.memory_bytes is not None:
        limit = alt.Chart(alt.InlineData(values=[{"gb": fit.memory_bytes / 1e9}]))
        layers.append(limit.mark_rule(strokeDash=[6, 4], strokeWidth=2, tooltip=False).encode(y="gb:Q"))
    dashed = [tr("dashed: device memory")] if len(layers) > 1 else []
    title = alt.TitleParams(text=tr("Memory by pipeline stage"), subtitle=[str(fit.layout), *dashed])
    return layered(layer=layers, width=WIDTH, height=HEIGHT, title=title)
