"""The table of runs: registry names, one row a run, and the losses of all by cause."""

from dataclasses import replace

import pytest
from browser import run_of
from helpers import ROOT, SETTINGS, arguments_dump, megatron_line

from analysis.batch.run_table import (
    NUMBERS,
    OVERHEAD_COLUMNS,
    RUNS_COLUMNS,
    check_order,
    choose_runs,
    lost_by_cause,
    overheads_table,
    runs_table,
)
from analysis.metrics import METRICS, RATED
from analysis.model.catalogue import find_model
from analysis.run.checks.limits import Condition
from analysis.run.useful.overheads import Overhead
from logparse.context.run_context import Fact, RunContext
from logparse.errors import UsageError
from logparse.findings import Origin

pytestmark = pytest.mark.usefixtures("analysed_once")

CORE = ROOT / "fixtures/megatron/core-v0.12-llama2-7b/run.log"
RAMP = ROOT / "fixtures/megatron/rampup-resumed/run.log"
BARE = ROOT / "fixtures/mindspore/lossmonitor/run.log"


@pytest.fixture(scope="module")
def runs():
    return [run_of(CORE, name="core"), run_of(RAMP, name="ramp"), run_of(BARE, name="bare")]


@pytest.fixture(scope="module")
def table(runs):
    return runs_table(runs)


def test_a_row_holds_every_metric_of_the_registry_under_its_name(runs, table):
    assert [name for name in (metric.column for metric in METRICS) if name not in NUMBERS] == []
    for run, row in zip(runs, table.to_dicts(), strict=True):
        assert row["goodput"] == run.analysis.goodput
        rates = {rate["rate"]: rate for rate in run.rates.to_dicts()}
        for metric in RATED:
            assert row[metric.column] == row[f"steady_{metric.column}"] == rates["steady"][metric.column]
            assert row[f"with_stalls_{metric.column}"] == rates["with_stalls"][metric.column]
            assert row[f"wall_clock_{metric.column}"] == rates["wall_clock"][metric.column]
        assert row["with_stalls_step_time_ms"] == rates["with_stalls"]["step_time_ms"]
        assert row["samples_per_second_per_device"] == run.value("samples_per_second_per_device")


def test_a_row_says_what_the_run_was(runs, table):
    core, ramp, bare = table.to_dicts()
    assert (core["run"], core["model"], core["device"], core["world_size"]) == ("core", "llama2-7b", "Ascend910B3", 8)
    assert core["parameters"] == 6_738_415_616
    assert (core["steps"], core["step_lines"], core["starts"]) == (60, 60, 1)
    assert ramp["starts"] == 2
    assert (bare["model"], bare["world_size"], bare["mfu"], bare["device_hours"]) == (None, None, None, None)
    losses = [run.steps["loss"].drop_nulls().to_list() for run in runs]
    assert [row["final_loss"] for row in (core, ramp, bare)] == [loss[-1] for loss in losses]
    assert bare["warnings"] == len(bare["warning_codes"].split())


def test_what_was_lost_is_the_sum_of_the_runs_own_losses(runs, table):
    core = table.row(0, named=True)
    seconds = runs[0].time_breakdown["seconds"].sum()
    assert core["device_hours"] == core["world_size"] * core["run_seconds"] / 3600
    assert core["run_seconds"] == seconds
    own = [loss for loss in runs[0].overheads if loss.cause != "published"]
    assert core["lost_device_hours"] == pytest.approx(sum(loss.seconds for loss in own) * 8 / 3600)
    assert (
        (core["largest_overhead"], core["largest_overhead_ratio"])
        == (own[0].cause, own[0].share)
        == ("saves", own[0].share)
    )


def test_losses_of_all_runs_by_cause(runs, table):
    losses = overheads_table(runs)
    assert losses["run"].unique(maintain_order=True).to_list() == ["core", "ramp", "bare"]
    assert len(losses) == sum(len(run.overheads) for run in runs)
    lost = lost_by_cause(table, losses)
    assert lost["device_hours"].is_sorted(descending=True)
    assert lost["device_hours"].sum() == pytest.approx(table["lost_device_hours"].sum())
    worst = dict(lost.select("cause", "worst").iter_rows())
    assert (worst["replayed"], worst["stalls"]) == ("ramp", "core")
    assert "published" not in worst
    assert lost_by_cause(table.head(1), losses)["worst"].unique().to_list() == ["core"]


def test_work_inside_a_step_is_no_lost_time(runs, table):
    """The resumed run recomputes activations in its steps."""
    ramp = runs[1]
    assert "recomputation" in {loss.cause for loss in ramp.overheads}
    outside = sum(loss.device_hours for loss in ramp.overheads if not loss.in_steps)
    assert table["lost_device_hours"][1] == pytest.approx(outside)
    assert "recomputation" not in lost_by_cause(table, overheads_table(runs))["cause"].to_list()


def test_what_others_reached_is_no_loss_of_the_run(runs):
    reached = Overhead("published", 0.9, 900.0, 2.0)
    run = replace(runs[0], overheads=(reached, *runs[0].overheads))
    assert runs_table([run])["largest_overhead"].item() == "saves"
    assert lost_by_cause(runs_table([run]), overheads_table([run])).equals(
        lost_by_cause(runs_table(runs[:1]), overheads_table(runs[:1]))
    )


def test_devices_that_change_leave_the_device_hours_unknown(tmp_path):
    lines = []
    for first, world in ((1, 8), (11, 16)):
        lines.append(arguments_dump(SETTINGS | {"world_size": world, "data_parallel_size": world // 2}))
        lines += [megatron_line(step) + "\n" for step in range(first, first + 10)]
    (tmp_path / "run.log").write_text("".join(lines))
    row = runs_table([run_of(tmp_path / "run.log")]).row(0, named=True)
    assert (row["device_hours"], row["lost_device_hours"]) == (None, None)
    assert row["run_seconds"] > 0


def test_a_table_of_no_run_has_the_columns():
    assert runs_table([]).columns == [column.name for column in RUNS_COLUMNS]
    assert overheads_table([]).columns == [column.name for column in OVERHEAD_COLUMNS]


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
    check_order("-with_stalls_mfu")
    with pytest.raises(UsageError, match="unknown column 'mfuu'") as caught:
        check_order("-mfuu")
    assert "did you mean mfu" in caught.value.remedy


@pytest.mark.parametrize(
    ("facts", "names"),
    [
        ({}, ["llama-7b", "llama2-7b"]),
        ({"model_name": "my llama2-7b"}, ["llama2-7b"]),
        ({"num_layers": 31}, []),
    ],
)
def test_a_model_is_called_by_its_shape_and_by_what_the_log_says(tmp_path, facts, names):
    (tmp_path / "x.log").write_text(
        arguments_dump(SETTINGS | facts) + megatron_line(1) + "\n" + megatron_line(2) + "\n"
    )
    run = run_of(tmp_path / "x.log", **{name: value for name, value in facts.items() if name == "num_layers"})
    told = {name: Fact(value, Origin("log")) for name, value in facts.items()}
    assert replace(run, context=RunContext({**run.context.facts, **told})).title.models == names


def test_the_users_name_of_a_model_stands():
    run = run_of(BARE, name="named", hw=None)
    shape = find_model("baichuan-7b").shape
    known = replace(run.analysis, computation=replace(run.analysis.computation, shape=shape))
    context = RunContext({"num_layers": Fact(32, Origin("model", rule="baichuan-7b"))})
    assert replace(run, analysis=known, context=context).title.models == ["baichuan-7b"]
