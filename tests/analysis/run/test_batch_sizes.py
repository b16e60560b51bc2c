"""The batch a line prints against the samples consumed since the line before."""

from __future__ import annotations

import polars as pl
import pytest
from helpers import megatron_line, of_code
from runs import WORLD, analyze_text, as_computed, events, no_starts, parts_of, rows

from analysis.present.words import say
from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions
from analysis.run.rates.batch_sizes import describe_batches, mean_batch
from analysis.run.rows.exclusion_reasons import BATCH_CHANGES, WARM_UP
from analysis.run.rows.restarts import number_starts, trace_starts
from analysis.run.rows.row_selection import select_rows
from analysis.run.useful.time_breakdown import USEFUL
from logparse.context.run_context import Fact, Given
from logparse.findings import flag, warning


def marked(steps: list[int], batches: list[int], consumed: list[object], **columns: list[object]) -> pl.DataFrame:
    """A sample takes 100 ms, as the window sees it."""
    columns = {"step_time_ms": [100.0 * batch for batch in batches]} | columns
    printed = rows(steps, global_batch_size=batches, consumed_samples=consumed, **columns)
    return as_computed(select_rows(trace_starts(number_starts(printed, no_starts()), events(), None)))


def means(found: pl.DataFrame) -> list[float | None]:
    return found.select(mean=mean_batch())["mean"].to_list()


def test_a_row_in_which_the_batch_grew_does_not_count():
    """Steps 11 to 14 of 8 samples and 15 to 20 of 16; steps 31 to 40 all of 24."""
    found = marked([10, 20, 30, 40, 50], [8, 16, 16, 24, 24], [80, 208, 368, 608, 848])
    assert found["excluded_reason"].to_list() == [WARM_UP, BATCH_CHANGES, None, None, None]
    assert means(found) == [8, 12.8, 16, 24, 24]
    assert found["global_batch_size"].to_list() == [8, 16, 16, 24, 24]


def test_a_batch_that_grows_between_rows_counts():
    found = marked([1, 2, 3, 4, 5], [8, 8, 16, 16, 24], [8, 16, 32, 48, 72])
    assert found["counted"].to_list() == [False, True, True, True, True]


def test_a_start_is_not_compared_with_the_one_before():
    found = marked([10, 20, 30, 20, 30], [8, 8, 16, 8, 16], [80, 160, 320, 160, 320])
    assert BATCH_CHANGES not in found["excluded_reason"].to_list()


def test_copies_and_damaged_rows_are_looked_through():
    steps, batches = [10, 20, 20, 900, 40], [8, 16, 16, 16, 16]
    times: list[object] = [1000.0, 1010.0, 1010.0, 1020.0, 1030.0]
    found = marked(steps, batches, [80, 208, 208, 368, 528], elapsed_time_per_iteration_ms=times)
    assert means(found) == [8, 12.8, 16, 16, 16]


@pytest.mark.parametrize("consumed", [[None] * 3, [80, 80, 80], [800, 160, 80]])
def test_without_samples_that_grow_the_printed_batch_stands(consumed):
    assert means(marked([10, 20, 30], [8, 16, 24], consumed)) == [
        8,
        16,
        24,
    ]


def ramp_log() -> str:
    """Ten steps a line, 100 ms a sample: from step 15 on a batch of 16 instead of 8, from step 65 on of 32."""
    batch_of = {step: 8 if step < 15 else 16 if step < 65 else 32 for step in range(1, 121)}
    lines = [WORLD]
    for last in range(10, 121, 10):
        mean = sum(batch_of[step] for step in range(last - 9, last + 1)) / 10
        consumed = sum(batch_of[step] for step in range(1, last + 1))
        pairs = {"consumed samples": str(consumed), "global batch size": str(batch_of[last])}
        lines.append(megatron_line(last, 100 * mean, pairs=pairs))
    return "\n".join(lines) + "\n"


def test_the_rates_of_a_ramp_are_those_of_its_mean_batch(tmp_path):
    result = analyze_text(tmp_path, ramp_log())
    assert result.steps.filter(pl.col("excluded_reason") == BATCH_CHANGES)["step"].to_list() == [20, 70]
    assert result.steps["samples_per_second_per_device"].to_list() == pytest.approx([1.25] * 12)
    parts = parts_of(result.time_breakdown)
    assert parts[USEFUL] == pytest.approx(sum(parts.values()))
    assert of_code(result.notes, "consumed_samples_differ") == []


def test_samples_that_contradict_the_batch_throughout_are_told_with_both_sides():
    found = marked([1, 2, 3, 4, 5], [32] * 5, [64, 128, 192, 256, 320])
    (note,) = describe_batches(found)
    assert note == warning("consumed_samples_differ", mean=64.0, batch=32, source="a.log", line=20, more=3)
    assert say(note).startswith("a.log, line 20, and 3 more: consumed samples grow by 64 per step, but the batch is 32")
    assert found["counted"].to_list() == [False, *[True] * 4]


def test_one_row_that_contradicts_the_batch_is_not_told():
    assert list(describe_batches(marked([1, 2, 3, 4, 5], [32] * 5, [32, 64, 99_999, 128, 160]))) == []


def test_a_contradiction_is_a_warning(tmp_path):
    lines = [megatron_line(step, pairs={"consumed samples": str(64 * step)}) for step in range(1, 12)]
    result = analyze_text(tmp_path, "\n".join(lines) + "\n")
    assert [note.level for note in of_code(result.notes, "consumed_samples_differ")] == ["warning"]


@pytest.mark.parametrize("consumed", [[80, 90, 260], [80, 9_999_999, 10_000_159]])
def test_a_mean_that_is_between_no_two_batches_is_not_used(consumed):
    found = marked([10, 20, 30], [8, 16, 16], consumed)
    assert means(found) == [8, 16, 16]
    assert found["excluded_reason"].to_list() == [WARM_UP, None, None]


LENGTH = Given(layers=({"seq_length": Fact(4096, flag("--seq-length"))},))


def analyzed(tmp_path, count):
    path = tmp_path / "run.log"
    lines = [megatron_line(n, 1000.0, pairs={"consumed tokens": count(n)}) for n in range(1, 31)]
    path.write_text("\n".join([WORLD, *lines]) + "\n")
    return analyze_logs([str(path)], RunOptions(given=LENGTH))


def test_padding_is_no_work(tmp_path):
    run = analyzed(tmp_path, lambda n: str(50_001 * n))
    assert run.tokens_per_second == pytest.approx(50_001 / 8)
    (note,) = [note for note in run.notes if note.code == "tokens_counted"]
    assert note.fields["counted"] == pytest.approx(50_001 / 32)
    assert run.steps["seq_length"].to_list() == [4096] * 30


def test_the_title_counts_as_the_log_does(tmp_path):
    assert analyzed(tmp_path, lambda n: str(50_001 * n)).title.tokens == 30 * 50_001


def test_a_multiple_of_a_hundred_is_not_rounded(tmp_path):
    run = analyzed(tmp_path, lambda n: str(38_400 * n))
    assert run.tokens_per_second == pytest.approx(38_400 / 8)
    assert [note.fields["counted"] for note in run.notes if note.code == "tokens_counted"] == [1200]


@pytest.mark.parametrize("count", [lambda n: str(32 * 4096 * n), lambda n: f"{0.001 * (n // 3):.3f}B"])
def test_a_count_that_agrees_or_is_rounded_changes_nothing(tmp_path, count):
    run = analyzed(tmp_path, count)
    assert run.tokens_per_second == pytest.approx(32 * 4096 / 8)
    assert "tokens_counted" not in [note.code for note in run.notes]


@pytest.mark.parametrize(("tokens", "codes"), [(32 * 512, []), (32 * 2048, ["count_beyond_length"])])
def test_each_line_prints_the_length_of_a_curriculum(tmp_path, tokens, codes):
    path = tmp_path / "run.log"
    pairs = {"curriculum seqlen": "  512", "actual seqlen": "  512"}
    lines = [megatron_line(n, 1000.0, pairs=pairs | {"consumed tokens": str(tokens * n)}) for n in range(1, 31)]
    path.write_text("\n".join([WORLD, *lines]) + "\n")
    run = analyze_logs([str(path)], RunOptions())
    assert run.tokens_per_second == pytest.approx(32 * 512 / 8)
    assert [note.code for note in run.notes if note.code in ("tokens_counted", "count_beyond_length")] == codes


def test_a_few_tokens_are_exact_where_one_count_has_a_last_digit(tmp_path):
    run = analyzed(tmp_path, lambda n: str(790 * n + n % 3))
    assert run.tokens_per_second == pytest.approx(790 / 8, rel=0.01)


def test_tokens_across_missing_lines_are_not_of_one_step(tmp_path):
    """Lines of steps 1 to 5 and 1,001 to 1,005: the count grows by 996 steps between two of them."""
    path = tmp_path / "run.log"
    printed = [*range(1, 6), *range(1001, 1006)]
    lines = [megatron_line(n, 1000.0, pairs={"consumed tokens": str(32 * 4096 * n)}) for n in printed]
    path.write_text("\n".join([WORLD, *lines]) + "\n")
    run = analyze_logs([str(path)], RunOptions(given=LENGTH))
    assert run.tokens_per_second == pytest.approx(32 * 4096 / 8)
    assert "tokens_counted" not in [note.code for note in run.notes]
