"""A step time, a rate and a mean are of one batch, one sequence length and one number of devices."""

import polars as pl
import pytest
from helpers import arguments_dump, megatron_line

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions
from analysis.run.rates.sizes import BATCH, DEVICES, LENGTH, describe_sizes, of_longest_run, rates_by_size
from logparse.findings import info, warning


def rows(column, sizes, times, counted=True):
    fixed = {BATCH: 64, LENGTH: 4096, DEVICES: 8} | {column: sizes}
    steps = pl.DataFrame(fixed | {"step_time_ms": times, "iterations": 1}).with_columns(
        counted=counted, excluded_reason=pl.lit(None, pl.String)
    )
    samples = pl.col(BATCH) * 1000 / pl.col("step_time_ms") / pl.col(DEVICES)
    return steps.with_columns(
        samples_per_second_per_device=samples, tokens_per_second_per_device=samples * pl.col(LENGTH)
    )


TWO = {
    "ramp": ([64] * 10 + [128] * 10, [1000.0] * 10 + [2000.0] * 12, [128, 64]),
    "longer is shorter in steps": ([64] * 14 + [128] * 10, [1000.0] * 14 + [2000.0] * 10, [128, 64]),
    "in turn": ([64, 128, 256] * 5, [1000.0, 1500.0, 2500.0] * 5, [256, 128, 64]),
    "few": ([64] * 19 + [128], [1000.0] * 19 + [2000.0], []),
    "varies": (list(range(64, 84)), [1000.0 + 100 * n for n in range(20)], []),
    "one": ([64] * 20, [1000.0] * 20, []),
}


@pytest.mark.parametrize("column", [BATCH, LENGTH, DEVICES])
@pytest.mark.parametrize(("sizes", "times", "longest_first"), TWO.values(), ids=TWO)
def test_each_size_has_its_own_time(column, sizes, times, longest_first):
    steps = rows(column, sizes, times[: len(sizes)])
    each = rates_by_size(steps)
    assert each[column].to_list() == longest_first
    for size, ms in each.select(column, "step_time_ms").iter_rows():
        assert ms == steps.filter(pl.col(column) == size)["step_time_ms"].median()
    assert set(of_longest_run(steps, each)[column]) == (set(longest_first[:1]) or set(sizes))


@pytest.mark.parametrize(
    ("column", "code", "field"),
    [
        (BATCH, "step_time_of_one_batch", "batch"),
        (LENGTH, "step_time_of_one_length", "length"),
        (DEVICES, "step_time_of_some_devices", "devices"),
    ],
)
def test_the_size_of_the_steady_rate_is_named(column, code, field):
    steps = rows(column, [64] * 10 + [128] * 10, [1000.0] * 10 + [2000.0] * 10)
    expected = [warning(code, n=2, sizes=[64, 128], **{field: 128})]
    assert list(describe_sizes(steps, rates_by_size(steps))) == expected


def test_a_size_that_some_steps_do_not_show_is_not_named():
    steps = rows(BATCH, [64] * 10 + [128] * 10, [1000.0] * 10 + [2000.0] * 10)
    lengths = [None] * 5 + [2048] * 5 + [4096] * 10
    steps = steps.with_columns(pl.Series(LENGTH, lengths, pl.Int64))
    codes = [note.code for note in describe_sizes(steps, rates_by_size(steps))]
    assert codes == ["step_time_of_one_batch"]


def test_batches_that_are_as_fast_are_one_pace():
    steps = rows(BATCH, [64] * 10 + [66] * 10, [1000.0] * 10 + [1031.0] * 10)
    assert list(describe_sizes(steps, rates_by_size(steps))) == [info("several_batch_sizes", n=2)]


def test_without_a_counted_row_there_is_no_size():
    steps = rows(BATCH, [64, 128], 1000.0, counted=False)
    assert not list(describe_sizes(steps, rates_by_size(steps)))


@pytest.mark.parametrize("first", [8, 20, 30])
def test_no_figure_is_of_two_batches(tmp_path, first):
    """Steps of 180 ms at batch 8, then of 250 ms at batch 32: every figure is one of the two."""
    lines, consumed = arguments_dump({"world_size": 8, "seq_length": 4096}).splitlines(), 0
    for step in range(1, 41):
        batch, ms = (8, 180.0) if step <= first else (32, 250.0)
        consumed += batch
        pairs = {"global batch size": str(batch), "consumed samples": str(consumed)}
        lines.append(megatron_line(step, ms, pairs=pairs))
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n")
    run = analyze_logs([str(path)], RunOptions())
    each = {180.0: 8 / 0.18 * 4096 / 8, 250.0: 32 / 0.25 * 4096 / 8}
    steady = run.analysis.rate("steady")
    for figure in ("median", "mean", "p10", "p90"):
        ms = run.value("elapsed_time_per_iteration_ms", figure)
        assert each[ms] == pytest.approx(run.value("tokens_per_second_per_device", figure))
    assert each[steady["step_time_ms"]] == pytest.approx(steady["tokens_per_second_per_device"])
