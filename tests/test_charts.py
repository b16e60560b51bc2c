"""Charts: valid, self-contained, honest about what they leave out."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import altair as alt
import polars as pl
import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st

from analysis.charts import COUNTED, EXCLUDED, MAX_POINTS, loss_chart, run_charts, tflops_chart, thin, time_chart
from analysis.window import COPY
from logparse.schema import STEP_COLUMNS, conform

COLUMNS = {
    "loss": "loss",
    "time_per_iteration": "step_time_ms",
    "tokens_per_second_per_device": "tokens_per_second_per_device",
    "tflops_per_second_per_device": "tflops_per_second_per_device",
    "mfu": "mfu",
}
REASON = "first row after a start: holds compilation and warm-up"
SVG = "{http://www.w3.org/2000/svg}"  # the XML namespace of SVG, a name and not an address


def steps(count: int = 30, **columns: list[object]) -> pl.DataFrame:
    """A run of ``count`` steps near 1 s, of which the first does not count."""
    base = {
        "run": ["seven-b"] * count,
        "step": list(range(1, count + 1)),
        "step_time_ms": [1200.0] + [1000.0 + i % 7 for i in range(1, count)],
        "loss": [10 - 5 * i / count for i in range(count)],
        "tokens_per_second_per_device": [3000.0 + i % 5 for i in range(count)],
        "tflops_per_second_per_device": [150.0 + i % 3 for i in range(count)],
        "mfu": [0.4 + i % 3 / 100 for i in range(count)],
        "segment": [0] * count,
        "counted": [False] + [True] * (count - 1),
        "excluded_reason": [REASON] + [None] * (count - 1),
    }
    return conform(pl.DataFrame(base | columns, strict=False), STEP_COLUMNS)


@pytest.fixture(scope="module")
def drawn() -> dict[str, alt.LayerChart]:
    return run_charts(steps(), 353.89, "ascendspeed")


def data(chart: alt.LayerChart, column: str) -> list[dict[str, Any]]:
    """The rows of the chart's specification that hold ``column``."""
    sets = chart.to_dict()["datasets"].values()
    return [row for rows in sets for row in rows if column in row]


def subtitle(chart: alt.LayerChart) -> str:
    said = chart.to_dict()["title"]["subtitle"]
    return said if isinstance(said, str) else " ".join(said)


def marks(chart: alt.LayerChart) -> list[ET.Element]:
    """The points of the chart as they are drawn, each with its label for screen readers."""
    svg = ET.fromstring(vl_convert.vegalite_to_svg(chart.to_json()))
    return [e for e in svg.iter(SVG + "path") if e.get("aria-roledescription") == "point"]


@pytest.mark.parametrize("name", COLUMNS)
def test_every_chart_is_valid_and_drawn(drawn, name):
    svg = vl_convert.vegalite_to_svg(drawn[name].to_json(), allowed_base_urls=[])
    assert ET.fromstring(svg).tag == SVG + "svg"
    assert len(marks(drawn[name])) >= 29


def test_there_is_one_chart_for_each_column_with_values(drawn):
    assert list(drawn) == list(COLUMNS)


@pytest.mark.parametrize("name", COLUMNS)
def test_the_data_is_in_the_specification(drawn, name):
    column = COLUMNS[name]
    frame = steps()
    assert [(row["step"], row[column]) for row in data(drawn[name], column)] == frame.select("step", column).rows()


@pytest.mark.parametrize("name", COLUMNS)
def test_the_only_address_in_the_specification_is_that_of_its_schema(drawn, name):
    specification = drawn[name].to_dict()
    schema = specification.pop("$schema")
    assert schema.startswith("https://vega.github.io/schema/vega-lite/")
    assert re.findall(r"\w+://", json.dumps(specification)) == []


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_without_values_has_no_chart(name):
    charts = run_charts(steps(**{COLUMNS[name]: [None] * 30}), None, "ascendspeed")
    assert list(charts) == [other for other in COLUMNS if other != name]


def test_a_column_of_nan_has_no_chart():
    assert "loss" not in run_charts(steps(loss=[float("nan")] * 30), None, "ascendspeed")


def test_a_run_of_one_row_that_does_not_count_is_drawn():
    for chart in run_charts(steps(1), 353.89, "ascendspeed").values():
        assert len(marks(chart)) == 1


def test_rows_that_do_not_count_have_another_colour_and_their_reason():
    drawn = marks(
        loss_chart(steps(counted=[False, False] + [True] * 28, excluded_reason=[REASON, "NaN"] + [None] * 28))
    )
    by_colour = {
        colour: [m.get("aria-label", "") for m in drawn if colour in _paint(m)] for colour in (COUNTED, EXCLUDED)
    }
    assert [len(labels) for labels in by_colour.values()] == [28, 2]
    assert REASON in by_colour[EXCLUDED][0]
    assert "NaN" in by_colour[EXCLUDED][1]


def _paint(mark: ET.Element) -> str:
    return f"{mark.get('fill')} {mark.get('stroke')}"


def test_the_subtitle_names_the_run_and_counts_what_is_left_out(drawn):
    assert "seven-b" in subtitle(drawn["loss"])
    assert "1 of 30 rows" in subtitle(drawn["loss"])


def test_a_run_in_which_every_row_counts_and_is_drawn_says_neither():
    chart = loss_chart(steps(counted=[True] * 30, excluded_reason=[None] * 30))
    assert subtitle(chart) == "seven-b"


def test_the_peak_is_a_rule_with_its_value():
    chart = tflops_chart(steps(), 353.89, "ascendspeed")
    assert data(chart, "text") == [{"value": 353.89, "text": "peak 353.89 TFLOP/s"}]
    svg = ET.fromstring(vl_convert.vegalite_to_svg(chart.to_json()))
    assert "peak 353.89 TFLOP/s" in [e.text for e in svg.iter(SVG + "text")]
    assert len([e for e in svg.iter() if e.get("aria-roledescription") == "rule mark"]) == 1


def test_without_a_peak_there_is_no_rule():
    assert data(tflops_chart(steps(), None, "ascendspeed"), "text") == []


def test_the_formula_is_in_the_title():
    assert "ascendspeed" in tflops_chart(steps(), None, "ascendspeed").to_dict()["title"]["text"]


def test_the_median_is_that_of_the_rows_that_count():
    chart = time_chart(steps(3, step_time_ms=[9000.0, 1000.0, 2000.0]))
    assert data(chart, "text") == [{"value": 1500.0, "text": "median 1,500.0 ms"}]


def test_times_above_the_scale_are_triangles_on_its_edge_and_counted():
    chart = time_chart(steps(100, step_time_ms=[500_000.0] + [1000.0] * 98 + [60_000.0]))
    labels = [m.get("aria-label", "") for m in marks(chart)]
    assert len([label for label in labels if "500,000" in label]) == 1
    assert "triangles, above the scale: 2" in subtitle(chart)
    assert "triangles" not in subtitle(time_chart(steps()))


def test_copies_of_other_ranks_are_not_drawn_but_told():
    copied = steps(counted=[True] * 20 + [False] * 10, excluded_reason=[None] * 20 + [COPY] * 10)
    assert len(marks(loss_chart(copied))) == 20
    assert subtitle(loss_chart(copied)) == "seven-b | 10 rows of other ranks not drawn"


def test_every_start_has_its_own_line():
    again = steps(segment=[0] * 20 + [1] * 10, step=[*range(1, 21), *range(11, 21)])
    svg = ET.fromstring(vl_convert.vegalite_to_svg(loss_chart(again).to_json()))
    assert len([e for e in svg.iter(SVG + "path") if e.get("aria-roledescription") == "line mark"]) == 2


def test_the_time_scale_shows_the_steady_rows_in_full():
    chart = time_chart(steps(100, step_time_ms=[500_000.0] + [1000.0] * 99))
    domains = re.findall(r'"domain": \[\s*([\d.]+),\s*([\d.]+)', chart.to_json())
    assert domains
    assert all(float(low) == 0 and 1000 < float(high) < 2000 for low, high in domains)


@pytest.mark.parametrize("draw", [loss_chart, time_chart])
def test_a_long_run_is_thinned_and_says_so(draw: Callable[[pl.DataFrame], alt.LayerChart]):
    count = 3 * MAX_POINTS
    long = steps(count, loss=[float(i * 7919 % count) for i in range(count)])
    column = "loss" if draw is loss_chart else "step_time_ms"
    chart = draw(long)
    shown = [row[column] for row in data(chart, column)]
    assert len(shown) <= MAX_POINTS
    assert (min(shown), max(shown)) == (long[column].min(), long[column].max())
    assert f"{len(shown)} of {count} points drawn" in subtitle(chart)


def test_a_run_of_as_many_rows_as_fit_is_not_thinned():
    chart = loss_chart(steps(MAX_POINTS))
    assert len(data(chart, "loss")) == MAX_POINTS
    assert "points drawn" not in subtitle(chart)


def test_a_row_without_a_value_is_not_called_thinned():
    assert "extremes kept" not in subtitle(loss_chart(steps(loss=[1.0, float("nan")] + [2.0] * 28)))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=300), st.sampled_from([2, 10, 50]))
def test_thinning_keeps_the_extremes_the_order_and_the_limit(values, most):
    frame = pl.DataFrame({"step": range(len(values)), "v": [float(v) for v in values]})
    kept = thin(frame, "v", most)
    assert len(kept) <= max(most, 0)
    assert (kept["v"].min(), kept["v"].max()) == (min(values), max(values))
    assert kept["step"].is_sorted()
    assert kept.join(frame, on=["step", "v"], how="anti").is_empty()


def test_thinning_a_flat_run_keeps_its_end():
    """Times in whole ms repeat; the chart of the run must not stop in the middle of it."""
    flat = pl.DataFrame({"step": range(10_000), "v": [1.0] * 10_000})
    assert thin(flat, "v")["step"].max() > 9_900


def test_thinning_drops_what_cannot_be_drawn():
    frame = pl.DataFrame({"v": [1.0, None, float("nan"), float("inf"), 2.0]})
    assert thin(frame, "v")["v"].to_list() == [1.0, 2.0]
