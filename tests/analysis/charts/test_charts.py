"""Charts: valid, self-contained, honest about what they leave out."""

import json
import re
import xml.etree.ElementTree as ET
from datetime import datetime, timedelta
from typing import Any

import altair as alt
import polars as pl
import pytest
import vl_convert

from analysis.charts import (
    CHART_NAMES,
    LIGHT,
    Rows,
    chart_rows,
    grad_norm_chart,
    loss_chart,
    metric_chart,
    mfu_chart,
    ranks_chart,
    run_charts,
    tflops_chart,
    time_breakdown_chart,
    time_chart,
    time_histogram,
    tokens_chart,
)
from analysis.charts.along import ALONG
from analysis.charts.histogram import histogram
from analysis.charts.ranks import COLUMNS, ROWS
from analysis.metrics import DRAWN, Metric
from analysis.run.ranks.rank_comparison import compare_ranks
from analysis.run.rows.exclusion_reasons import COPY
from analysis.run.tables import STEP_COLUMNS, TIME_BREAKDOWN_COLUMNS
from analysis.run.useful.time_breakdown import USEFUL
from logparse.schema import conform

REASON = "warm-up"
SVG = "{http://www.w3.org/2000/svg}"  # the XML namespace of SVG, a name and not an address


def steps(count: int = 30, **columns: list[object]) -> pl.DataFrame:
    """A run of ``count`` steps near 1 s, of which the first does not count."""
    begin = datetime(2026, 3, 1)
    base = {
        "run": ["seven-b"] * count,
        "step": list(range(1, count + 1)),
        "timestamp": [begin + timedelta(seconds=i) for i in range(count)],
        "consumed_samples": [32 * (i + 1) for i in range(count)],
        "seq_length": [4096] * count,
        "step_time_ms": [1200.0] + [1000.0 + i % 7 for i in range(1, count)],
        "loss": [10 - 5 * i / count for i in range(count)],
        "learning_rate": [1e-5 * (i + 1) for i in range(count)],
        "grad_norm": [1 + i % 4 / 10 for i in range(count)],
        "loss_scale": [65536.0 if i < count / 2 else 32768.0 for i in range(count)],
        **{metric.column: [(40.0 + i % 3) / metric.scale for i in range(count)] for metric in DRAWN},
        "hfu": [0.4 + i % 3 / 100 for i in range(count)],
        "segment": [0] * count,
        "counted": [False] + [True] * (count - 1),
        "excluded_reason": [REASON] + [None] * (count - 1),
    }
    return conform(pl.DataFrame(base | columns, strict=False), STEP_COLUMNS)


def account(*parts: tuple[str, float], run: str = "seven-b") -> pl.DataFrame:
    """An account of these parts and seconds."""
    total = sum(seconds for _, seconds in parts)
    rows = [{"run": run, "part": part, "seconds": s, "share": s / total} for part, s in parts]
    return conform(pl.DataFrame(rows), TIME_BREAKDOWN_COLUMNS)


ACCOUNT = account((USEFUL, 80.0), ("stalls", 5.0), ("start-up", 16.0), ("variation of settled steps", -1.0))


def several_ranks(count: int = 3, steps_of_each: int = 30, slow: float = 1.05) -> pl.DataFrame:
    """Rows of ``count`` ranks that print the same steps, the last of them ``slow`` times as long."""
    ranks = []
    for rank in range(count):
        times = [(1000.0 + step % 7 + rank) * (slow if rank == count - 1 else 1) for step in range(steps_of_each)]
        own = {"source": [f"worker_{rank}.log"] * steps_of_each, "copied": [rank > 0] * steps_of_each}
        counted = {"counted": [rank == 0] * steps_of_each, "step_time_ms": times}
        ranks.append(steps(steps_of_each, **own, **counted))
    return pl.concat(ranks)


@pytest.fixture(scope="module")
def drawn() -> dict[str, alt.LayerChart]:
    ranks = several_ranks()
    shares = {
        "run": ["seven-b"] * 3,
        "hours": [0.5, 1.0, 1.5],
        "ettr": [0.5, 0.7, 0.8],
        "ettr_of_hour": [0.5, 0.7, 0.9],
    }
    charts = run_charts(steps(), ACCOUNT, None, [353.89], "ascendspeed", goodput=pl.DataFrame(shares))
    return charts | {"ranks": ranks_chart(ranks, compare_ranks(ranks))}


def data(chart: alt.LayerChart, column: str) -> list[dict[str, Any]]:
    """The rows of the chart's specification that hold ``column``."""
    sets = chart.to_dict()["datasets"].values()
    return [row for rows in sets for row in rows if column in row]


def subtitle(chart: alt.LayerChart) -> str:
    said = chart.to_dict()["title"]["subtitle"]
    return said if isinstance(said, str) else " ".join(said)


def svg(chart: alt.LayerChart) -> ET.Element:
    return ET.fromstring(vl_convert.vegalite_to_svg(chart.configure(**LIGHT).to_json(), allowed_base_urls=[]))


def marks(chart: alt.LayerChart, role: str = "point") -> list[ET.Element]:
    """The marks of the chart as they are drawn, each with its label for screen readers."""
    return [e for e in svg(chart).iter() if e.get("aria-roledescription") == role]


def labels(chart: alt.LayerChart) -> list[str]:
    return [mark.get("aria-label", "") for mark in marks(chart)]


@pytest.mark.parametrize("name", CHART_NAMES)
def test_every_chart_is_valid_and_drawn(drawn, name):
    assert svg(drawn[name]).tag == SVG + "svg"
    if name in ALONG:
        assert len(marks(drawn[name])) == 30


def test_there_is_one_chart_for_each_column_with_values(drawn):
    assert set(drawn) == set(CHART_NAMES)


@pytest.mark.parametrize("name", ALONG)
def test_the_data_is_in_the_specification(drawn, name):
    column, frame = ALONG[name].column, steps()
    found = data(drawn[name], column)
    assert [row["step"] for row in found] == frame["step"].to_list()
    assert [row[column] for row in found] == pytest.approx(frame[column].to_list(), rel=1e-5)


@pytest.mark.parametrize("name", CHART_NAMES)
def test_the_only_address_in_the_specification_is_that_of_its_schema(drawn, name):
    specification = drawn[name].to_dict()
    schema = specification.pop("$schema")
    assert schema.startswith("https://vega.github.io/schema/vega-lite/")
    assert re.findall(r"\w+://", json.dumps(specification)) == []


@pytest.mark.parametrize("name", ALONG)
def test_a_column_without_values_has_no_chart(name):
    charts = run_charts(steps(**{ALONG[name].column: [None] * 30}))
    assert name not in charts
    assert set(ALONG) - {name} <= set(charts)


def test_a_column_of_nan_has_no_chart():
    assert "loss" not in run_charts(steps(loss=[float("nan")] * 30))


def test_a_loss_scale_that_never_changes_has_no_chart():
    assert "loss_scale" not in run_charts(steps(loss_scale=[1.0] * 30))


def test_a_run_of_one_row_that_does_not_count_is_drawn():
    charts = run_charts(steps(1))
    assert "time_histogram" not in charts
    for chart in charts.values():
        assert len(marks(chart)) == 1


def test_rows_that_do_not_count_are_hollow_and_tell_their_reason():
    reasons = [REASON, "NaN"] + [None] * 28
    chart = tokens_chart(steps(counted=[False, False] + [True] * 28, excluded_reason=reasons))
    hollow = [mark for mark in marks(chart) if mark.get("fill") in (None, "transparent", "none")]
    assert len(hollow) == 2
    assert REASON in hollow[0].get("aria-label", "")
    assert "NaN" in hollow[1].get("aria-label", "")
    assert hollow[0].get("d") != hollow[1].get("d"), "each reason has a shape of its own"
    assert len({mark.get("stroke") or mark.get("fill") for mark in marks(chart)} - {"transparent"}) == 1


def test_a_row_that_does_not_count_for_time_counts_for_loss():
    """Each is a full point of the line, and nothing says that it is left out."""
    chart = loss_chart(steps(counted=[False, False] + [True] * 28, excluded_reason=[REASON, "NaN"] + [None] * 28))
    drawn = marks(chart)
    assert len(drawn) == 30
    assert all(mark.get("fill") not in (None, "transparent", "none") for mark in drawn)
    assert "excluded" not in subtitle(chart)
    assert not [layer for layer in chart.to_dict()["layer"] if "counted" in json.dumps(layer.get("transform", ""))]


def test_codes_are_called_as_the_caller_calls_them():
    named = run_charts(steps(excluded_reason=["stall"] + [None] * 29), ACCOUNT, reasons="<{}>".format, parts=str.upper)
    assert {row["why"] for row in data(named["loss"], "why")} == {"<stall>", "counted"}
    assert "STALLS" in {row["part"] for row in data(named["time_breakdown"], "part")}


def test_a_metric_that_is_drawn_has_a_chart_in_its_unit():
    metric = Metric("mfu", "ratio", "MFU", "", scale=100.0, digits=2, chart="Loss")
    axis = metric_chart(metric, steps()).to_dict()["layer"][0]["encoding"]["y"]
    assert (axis["title"], axis["axis"]["format"]) == ("MFU", ".2~%")


def test_a_colour_means_a_run():
    both = pl.concat([steps(), steps().with_columns(run=pl.lit("other"))])
    scale = loss_chart(both).to_dict()["layer"][0]["encoding"]["color"]["scale"]
    assert scale == {"domain": ["seven-b", "other"]}
    assert len({mark.get("fill") for mark in marks(loss_chart(both))} - {"transparent", "none", None}) == 2


def test_the_subtitle_names_the_run_and_counts_what_is_left_out(drawn):
    assert "seven-b" in subtitle(drawn["loss"])
    assert "excluded (1 of 30)" in subtitle(drawn["tokens_per_second_per_device"])


def test_a_run_in_which_every_row_counts_and_is_drawn_says_neither():
    assert subtitle(loss_chart(steps(counted=[True] * 30, excluded_reason=[None] * 30))) == "seven-b"


def test_the_peak_is_a_rule_with_its_value():
    chart = tflops_chart(steps(), [353.89], "ascendspeed")
    assert data(chart, "text") == [{"value": 353.89, "text": "peak 353.89 TFLOP/s", "run": None}]
    assert "peak 353.89 TFLOP/s" in [e.text for e in svg(chart).iter(SVG + "text")]
    assert len(marks(chart, "rule mark")) == 1


def test_without_a_peak_there_is_no_rule():
    assert data(tflops_chart(steps(), [], "ascendspeed"), "text") == []


def test_the_formula_is_in_the_title():
    assert "ascendspeed" in tflops_chart(steps(), [], "ascendspeed").to_dict()["title"]["text"]


def test_the_median_is_that_of_the_rows_that_count():
    chart = time_chart(steps(3, step_time_ms=[9000.0, 1000.0, 2000.0]))
    assert data(chart, "text") == [{"value": 1500.0, "text": "dashed: median 1,500.0 ms", "run": "seven-b"}]


def test_times_above_the_scale_stand_over_the_frame_and_are_counted():
    chart = time_chart(steps(100, step_time_ms=[500_000.0] + [1000.0] * 98 + [60_000.0]))
    assert len([label for label in labels(chart) if "500,000" in label]) == 1
    assert "2 points above the axis" in subtitle(chart)
    assert "above the frame" not in subtitle(time_chart(steps()))


def test_the_time_scale_shows_the_steady_rows_in_full():
    chart = time_chart(steps(100, step_time_ms=[500_000.0] + [1000.0] * 99))
    domains = re.findall(r'"domain": \[\s*([\d.]+),\s*([\d.]+)', chart.to_json())
    assert domains
    assert all(float(low) == 0 and 1000 < float(high) < 2000 for low, high in domains)


def test_copies_of_other_ranks_are_not_drawn_but_told():
    copied = steps(counted=[True] * 20 + [False] * 10, excluded_reason=[None] * 20 + [COPY] * 10)
    assert len(marks(loss_chart(copied))) == 20
    assert subtitle(loss_chart(copied)) == "seven-b | 10 rows of other ranks not shown"


def test_every_start_has_its_own_line():
    again = steps(segment=[0] * 20 + [1] * 10, step=[*range(1, 21), *range(11, 21)])
    assert len(marks(loss_chart(again), "line mark")) == 2


def test_hfu_is_drawn_where_it_differs():
    same = mfu_chart(steps())
    other = mfu_chart(steps(hfu=[0.5] * 30))
    assert len(marks(other, "line mark")) == len(marks(same, "line mark")) + 1
    assert "HFU" in other.to_dict()["title"]["text"]
    assert "HFU" not in same.to_dict()["title"]["text"]


def test_hfu_lies_within_the_frame():
    scale = mfu_chart(steps(hfu=[0.9] * 30)).to_dict()["layer"][-1]["encoding"]["y"]["scale"]
    assert scale["domain"][1] > 0.9


def test_on_a_page_the_scale_of_the_time_fits_the_rows_that_count():
    times = [500_000.0] + [1000.0 + i % 7 for i in range(98)] + [60_000.0]
    reasons = [REASON] + [None] * 98 + ["stall"]
    frame = steps(100, step_time_ms=times, counted=[r is None for r in reasons], excluded_reason=reasons)
    chart = time_chart(frame, rows=Rows(chart_rows(frame), "rows"))
    ends = chart.to_dict(validate=False)["usermeta"]["ends"]
    assert 990 < ends["low"] < 1000
    assert 1006 < ends["high"] < 60_000
    assert ends["highest"] == 500_000
    assert "2 points above the axis" in subtitle(chart)


def test_lines_of_more_than_four_runs_differ_in_their_dashes():
    def lines(count: int) -> list[list[int]]:
        runs = pl.concat(steps().with_columns(run=pl.lit(f"run-{n}")) for n in range(count))
        dash = loss_chart(runs).to_dict()["layer"][0]["encoding"].get("strokeDash", {"scale": {"range": []}})
        return dash["scale"]["range"]

    assert lines(4) == []
    looks = list(zip(LIGHT["range"]["category"], map(tuple, lines(12)), strict=True))
    assert len(set(looks)) == len({color for color, _ in looks}) == 12
    assert len({dash for _, dash in looks}) == 3


def test_evaluations_stand_beside_the_training_loss():
    found = pl.DataFrame({"run": ["seven-b"], "step": [12], "loss": [7.5], "dataset": ["validation"]})
    chart = loss_chart(steps(), found, "consumed_tokens")
    assert [label for label in labels(chart) if "validation" in label and "7.5" in label]
    assert data(chart, "dataset")[0]["consumed_tokens"] == 12 * 32 * 4096


@pytest.mark.parametrize(("x", "last"), [("step", 30), ("consumed_tokens", 30 * 32 * 4096), ("hours", 29 / 3600)])
def test_the_axis_is_chosen(x, last):
    chart = loss_chart(steps(), x=x)
    assert max(row[x] for row in data(chart, "loss")) == pytest.approx(last, rel=1e-5)
    assert chart.to_dict()["layer"][0]["encoding"]["x"]["field"] == x


def test_a_wide_gradient_norm_is_drawn_on_a_logarithmic_scale():
    wide = grad_norm_chart(steps(grad_norm=[500.0] + [1.0] * 29))
    assert wide.to_dict()["layer"][0]["encoding"]["y"]["scale"]["type"] == "log"
    assert "type" not in grad_norm_chart(steps()).to_dict()["layer"][0]["encoding"]["y"]["scale"]


def test_a_histogram_holds_every_row_that_counts():
    found = histogram(steps(200).filter("counted"))
    assert found["rows"].sum() == 199
    assert found["share"].sum() == pytest.approx(1)
    assert (found["to"] > found["from"]).all()


def test_a_histogram_of_one_value_is_one_bar():
    found = histogram(steps(50, step_time_ms=[1000.0] * 50).filter("counted"))
    assert found.select("from", "to", "rows", "share").rows() == [(995.0, 1005.0, 49, 1.0)]


def test_bins_are_no_finer_than_what_is_printed_and_have_it_in_their_middle():
    found = histogram(steps(71).filter("counted")).sort("from")
    assert found.select("from", "to", "rows").rows()[0] == (999.5, 1000.5, 10)
    assert len(found) == 7


def test_bins_are_round_numbers():
    times = [1000.0 + i * 0.137 for i in range(301)]
    found = histogram(steps(301, step_time_ms=times).filter("counted")).sort("from")
    assert found["from"][0] == 1000.0
    assert found.select((pl.col("to") - pl.col("from")).round(6).unique()).to_series().to_list() == [2.0]
    assert found["rows"].sum() == 300


def test_a_histogram_of_one_value_is_drawn():
    assert time_histogram(steps(50, step_time_ms=[1000.0] * 50)).to_dict()


def test_the_account_begins_with_useful_work_and_draws_nothing_below_zero():
    values = data(time_breakdown_chart(ACCOUNT), "part")
    assert [row["part"] for row in values] == [USEFUL, "start-up", "stalls"]
    assert values[0]["begin"] == pytest.approx(0)
    assert values[1]["begin"] == pytest.approx(values[0]["end"])


def test_the_accounts_of_two_runs_are_two_bars():
    both = pl.concat([ACCOUNT, account((USEFUL, 9.0), ("stalls", 1.0), run="other")])
    values = data(time_breakdown_chart(both), "part")
    assert [row["share"] for row in values if row["run"] == "other"] == [0.9, 0.1]
    assert len({e.get("y") or e.get("d") for e in marks(time_breakdown_chart(both), "bar")}) > 1


def test_charts_take_each_others_company():
    """No chart brings a config of its own, so a notebook may put two side by side."""
    beside = loss_chart(steps()) | time_chart(steps())
    assert beside.to_dict()["hconcat"]


def test_the_heat_map_has_a_cell_for_each_rank_and_bin_of_steps():
    rows = several_ranks(steps_of_each=1000)
    chart = ranks_chart(rows, compare_ranks(rows))
    cells = data(chart, "behind")
    assert len(cells) == 3 * COLUMNS
    assert {cell["rank"] for cell in cells} == {"0", "1", "2"}
    assert {cell["to"] - cell["from"] for cell in cells} == {5}
    slow = [cell["behind"] for cell in cells if cell["rank"] == "2"]
    assert min(slow) > 0.045


def test_of_many_ranks_the_slowest_are_drawn():
    rows = several_ranks(ROWS + 2, 4)
    chart = ranks_chart(rows, compare_ranks(rows))
    assert len({cell["rank"] for cell in data(chart, "behind")}) == ROWS
    assert f"slowest {ROWS} of {ROWS + 2} ranks" in subtitle(chart)
    # From the top down: the slow one, then those that print a little more each.
    assert chart.to_dict()["layer"][0]["encoding"]["y"]["sort"][:2] == [str(ROWS + 1), str(ROWS)]


def test_ranks_are_drawn_among_the_charts_of_a_run():
    rows = several_ranks()
    assert "ranks" in run_charts(rows, ranks=compare_ranks(rows))
    assert "ranks" not in run_charts(steps(), ranks=compare_ranks(steps()))
