"""The table of runs: registry names, one row a run, and the losses of all by cause."""

import polars as pl
import pytest
from browser import run_of
from helpers import ROOT, SETTINGS, arguments_dump, megatron_line

from analysis.conditions import Condition
from analysis.metrics import METRICS, RATED
from analysis.pipeline.model_name import model_name
from analysis.pipeline.overview import (
    NUMBERS,
    RUNS_COLUMNS,
    causes,
    check_order,
    choose_runs,
    lost_by_cause,
    runs_table,
)
from logparse.context.run_context import Fact, RunContext
from logparse.errors import UsageError
from logparse.findings import Origin

CORE = ROOT / "fixtures/megatron/core-v0.12-llama2-7b/run.log"
RAMP = ROOT / "fixtures/megatron/rampup-resumed/run.log"
BARE = ROOT / "fixtures/mindspore/lossmonitor/run.log"


@pytest.fixture(scope="module")
def runs():
    return [run_of(CORE, name="core"), run_of(RAMP, name="ramp"), run_of(BARE, name="bare")]


@pytest.fixture(scope="module")
def table(runs):
    return runs_table(runs)


@pytest.fixture(scope="module")
def account(runs):
    return pl.concat(run.account for run in runs)


def test_a_row_holds_every_metric_of_the_registry_under_its_name(runs, table):
    assert [name for name in (metric.column for metric in METRICS) if name not in NUMBERS] == []
    for run, row in zip(runs, table.to_dicts(), strict=True):
        assert row["goodput"] == run.analysis.goodput
        rates = {rate["rate"]: rate for rate in run.rates.to_dicts()}
        for metric in RATED:
            assert row[metric.column] == row[f"steady_{metric.column}"] == rates["steady"][metric.column]
            assert row[f"delivered_{metric.column}"] == rates["delivered"][metric.column]
            assert row[f"all_in_{metric.column}"] == rates["all-in"][metric.column]
        assert row["delivered_step_time_ms"] == rates["delivered"]["step_time_ms"]
        assert row["samples_per_second_per_device"] == run.value("samples_per_second_per_device")


def test_a_row_says_what_the_run_was(table):
    core, ramp, bare = table.to_dicts()
    assert (core["run"], core["model"], core["device"], core["world_size"]) == ("core", "llama2-7b", "Ascend910B3", 8)
    assert (core["steps"], core["step_lines"], core["starts"]) == (60, 60, 1)
    assert ramp["starts"] == 2
    assert (bare["model"], bare["world_size"], bare["mfu"], bare["device_hours"]) == (None, None, None, None)
    assert bare["warnings"] == len(bare["warning_codes"].split())


def test_what_was_lost_is_the_account_in_device_hours(runs, table, account):
    core = table.row(0, named=True)
    seconds = dict(runs[0].account.select("part", "seconds").iter_rows())
    total = sum(seconds.values())
    assert core["device_hours"] == pytest.approx(total * 8 / 3600)
    assert core["lost_device_hours"] == pytest.approx((total - seconds["useful"]) * 8 / 3600)
    assert core["largest_loss"] == "saves"
    assert core["largest_loss_ratio"] == pytest.approx(seconds["saves_between"] / total)
    lost = lost_by_cause(table, account)
    assert lost["device_hours"].is_sorted(descending=True)
    assert lost["device_hours"].sum() == pytest.approx(table["lost_device_hours"].sum())
    assert dict(lost.select("part", "worst").iter_rows())["replayed"] == "ramp"
    assert set(causes(account)["part"]).isdisjoint({"useful", "saves_between", "evaluation_between"})


def test_a_save_within_a_line_and_one_between_two_are_one_cause():
    rows = [("useful", 90.0), ("saves", 4.0), ("saves_between", 6.0)]
    spent = pl.DataFrame(
        [{"run": "r", "part": part, "seconds": seconds, "share": seconds / 100} for part, seconds in rows]
    )
    assert causes(spent).rows() == [("r", "saves", 10.0, 0.1)]


def test_a_table_of_no_run_has_the_columns():
    assert runs_table([]).columns == [column.name for column in RUNS_COLUMNS]


def test_conditions_choose_and_what_is_unknown_does_not_hold(table):
    def chosen(*conditions):
        return choose_runs(table, conditions)["run"].to_list()

    assert chosen() == ["core", "ramp", "bare"]
    assert chosen(Condition("mfu", "<", 0.4)) == ["ramp"]
    assert chosen(Condition("mfu", ">", 0.0), Condition("goodput", ">", 0.6)) == ["core"]
    assert chosen(Condition("goodput", "<", 0.7)) == ["ramp", "bare"]


def test_runs_are_ordered_and_what_is_unknown_stands_last(table):
    assert choose_runs(table, order="mfu")["run"].to_list() == ["ramp", "core", "bare"]
    assert choose_runs(table, order="-MFU")["run"].to_list() == ["core", "ramp", "bare"]
    assert choose_runs(table, order="run")["run"].to_list() == ["bare", "core", "ramp"]


def test_an_order_by_no_column_is_refused():
    check_order("-delivered_mfu")
    with pytest.raises(UsageError, match="unknown column 'mfuu'") as caught:
        check_order("-mfuu")
    assert "did you mean mfu" in caught.value.remedy


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({}, "llama2-7b"),
        ({"model_name": "llama_7b"}, "llama-7b"),
        ({"model_name": "mine"}, "llama2-7b"),
        ({"num_layers": 31}, None),
        ({"num_layers": 31, "model_name": "mine"}, "mine"),
        ({"padded_vocab_size": None, "model_name": "mine"}, "mine"),
    ],
)
def test_a_model_is_called_by_its_shape_or_as_the_log_calls_it(tmp_path, facts, name):
    (tmp_path / "run.log").write_text(arguments_dump(SETTINGS) + megatron_line(1) + "\n" + megatron_line(2) + "\n")
    context = run_of(tmp_path / "run.log").context
    told = RunContext({**context.facts, **{key: Fact(value, Origin("log")) for key, value in facts.items()}})
    shape = type(run_of(tmp_path / "run.log").analysis.computation.shape).from_quantities(told.values())
    assert model_name(told, shape) == name


def test_the_users_name_of_a_model_stands():
    run = run_of(BARE, name="named", hw=None)
    assert run.context.origin("num_layers") is None
    context = RunContext({"num_layers": Fact(32, Origin("model", rule="baichuan-7b"))})
    assert model_name(context, run.analysis.computation.shape) == "baichuan-7b"
