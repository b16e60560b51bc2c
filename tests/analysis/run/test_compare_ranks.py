"""Ranks that print the same steps with times of their own: who is slow, whose clock is ahead."""

from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from helpers import arguments_dump, megatron_line, of_code, run_logparse

import logparse
from analysis.run.ranks.rank_comparison import compare_ranks, rank_names
from analysis.run.tables import STEP_COLUMNS
from logparse.findings import info
from logparse.schema import conform

BEGIN = datetime(2026, 3, 1)


def write_rank(path: Path, times: list[float], ahead: float = 0.0) -> str:
    """A file of one rank, its clock ``ahead`` seconds."""
    lines = [arguments_dump({"world_size": 4, "seq_length": 4096})]
    for step, ms in enumerate(times, start=1):
        clock = f"{BEGIN + timedelta(seconds=step + ahead):%Y-%m-%d %H:%M:%S}"
        lines.append(f"{megatron_line(step, ms=ms, clock=clock)}\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines))
    return str(path)


def times(slower: float = 0.0, steps: int = 40) -> list[float]:
    return [1000.0 + step % 3 + slower for step in range(steps)]


def test_one_row_per_rank_the_slowest_first(tmp_path):
    files = [write_rank(tmp_path / f"worker_{rank}.log", times(rank / 10 if rank < 3 else 4.0)) for rank in range(4)]
    ranks = logparse.analyze(*files, warmup=1).ranks
    assert ranks["rank"].to_list() == [3, 2, 1, 0]
    assert ranks["steps"].to_list() == [39] * 4
    assert ranks["step_time_ms"].to_list() == pytest.approx([1005.0, 1001.2, 1001.1, 1001.0])
    assert ranks["slowest_share"].to_list() == [1.0, 0.0, 0.0, 0.0]
    assert ranks["behind_share"].to_list() == [0.0] * 4


def test_numbers_of_a_run_are_those_of_one_rank(tmp_path):
    files = [write_rank(tmp_path / f"worker_{rank}.log", times(rank / 10)) for rank in range(4)]
    alone, together = logparse.analyze(files[0]), logparse.analyze(*files)
    assert together.summary.drop("run").equals(alone.summary.drop("run"))
    assert alone.ranks.is_empty()


def test_the_same_times_in_two_files_are_no_ranks(tmp_path):
    files = [write_rank(tmp_path / name / "run.log", times()) for name in ("a", "b")]
    run = logparse.analyze(*files)
    assert run.steps["copied"].sum() == 40
    assert run.ranks.is_empty()


def rows(slow: dict[int, float], ranks: int = 4, nodes: int = 2, steps: int = 20) -> pl.DataFrame:
    """Rows as they are when they have been computed; ranks that are ``slow`` take so many times as long."""
    told = [
        {
            "run": "r",
            "source": f"node{rank * nodes // ranks}_rank{rank}.log",
            "step": step,
            "step_time_ms": (1000.0 + step % 3) * slow.get(rank, 1.0),
            "copied": rank > 0,
            "counted": rank == 0,
        }
        for rank in range(ranks)
        for step in range(1, steps + 1)
    ]
    return conform(pl.DataFrame(told), STEP_COLUMNS)


def straggling(steps: pl.DataFrame) -> list[object]:
    from analysis.run.ranks.rank_comparison import describe_ranks

    return list(describe_ranks(compare_ranks(steps), steps))


@pytest.mark.parametrize(
    ("slow", "notes"),
    [
        ({2: 1.05}, [info("ranks_straggle", names=["2"], n=1)]),
        ({2: 1.05, 5: 1.04}, [info("ranks_straggle", names=["2", "5"], n=2)]),
        ({4: 1.05, 5: 1.04}, [info("node_straggles", node=1, names=["4", "5"])]),
        ({2: 1.015}, []),
    ],
)
def test_stragglers_that_repeat_and_the_node_behind_several(slow, notes):
    assert straggling(rows(slow, ranks=8)) == notes


def test_who_is_behind_in_few_steps_is_no_straggler():
    steps = rows({2: 1.05}, ranks=8)
    often = steps.with_columns(
        step_time_ms=pl.when(pl.col("step") % 3 == 0).then("step_time_ms").otherwise(pl.lit(1000.0))
    )
    assert compare_ranks(often)["behind_share"].max() == pytest.approx(0.3)
    assert straggling(often) == []
    assert straggling(rows({2: 1.05}, ranks=8, steps=9)) == []


def test_on_a_single_node_its_ranks_are_named():
    assert straggling(rows({2: 1.05, 3: 1.05}, ranks=8, nodes=1)) == [info("ranks_straggle", names=["2", "3"], n=2)]


def test_a_clock_that_is_ahead_is_named(tmp_path):
    files = [
        write_rank(tmp_path / f"worker_{rank}.log", times(rank / 10), ahead=5.0 if rank == 2 else 0.0)
        for rank in range(4)
    ]
    run = logparse.analyze(*files)
    assert run.ranks.sort("rank")["clock_ahead_seconds"].to_list() == [0.0, 0.0, 5.0, 0.0]
    assert of_code(run.notes, "clocks_skewed") == [info("clocks_skewed", names=["2"], n=1, seconds=5.0)]


def test_a_clock_that_is_told_of_as_another_is_not_told_of_again(tmp_path):
    files = [
        write_rank(tmp_path / f"worker_{rank}.log", times(rank / 10), ahead=300.0 if rank == 2 else 0.0)
        for rank in range(4)
    ]
    notes = logparse.analyze(*files).notes
    assert len(of_code(notes, "copy_ahead")) == 1
    assert of_code(notes, "clocks_skewed") == []


def test_files_that_do_not_tell_their_rank_are_named(tmp_path):
    files = [write_rank(tmp_path / name, times(slower)) for name, slower in (("one.log", 0.0), ("two.log", 1.0))]
    ranks = logparse.analyze(*files).ranks
    assert rank_names(ranks) == files[::-1]
    assert ranks["rank"].null_count() == 2


def test_tables_screens_and_charts_have_the_ranks(tmp_path):
    for rank in range(4):
        write_rank(tmp_path / f"worker_{rank}.log", times(rank / 10 if rank < 3 else 50.0))
    done = run_logparse("analyze", ".", "-v", "-o", "out", "--chart-format", "json", cwd=tmp_path)
    assert "4 ranks take 1,001.0 to 1,051.0 ms/step" in done.stdout
    assert "ranks more than 2 % slower than the median rank in most steps: 3" in done.stdout
    assert pl.read_parquet(tmp_path / "out" / "ranks.parquet")["rank"].to_list() == [3, 2, 1, 0]
    assert (tmp_path / "out" / "charts" / "ranks.json").exists()
    (tmp_path / "alone").mkdir()
    (tmp_path / "worker_0.log").rename(tmp_path / "alone" / "worker_0.log")
    run_logparse("analyze", "alone", "-o", "out", "--chart-format", "json", "--force", cwd=tmp_path)
    assert not (tmp_path / "out" / "ranks.parquet").exists()
    assert not (tmp_path / "out" / "charts" / "ranks.json").exists()
