"""Tokens that the log counts beat samples times sequence length."""

import pytest
from helpers import megatron_line
from runs import WORLD

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions
from logparse.context.run_context import Fact, Given
from logparse.findings import flag

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
