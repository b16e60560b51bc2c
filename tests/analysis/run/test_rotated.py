"""Rotated files, logs appended to themselves, and steps that are passed over: one start, no damage, no mixture."""

from datetime import timedelta

import pytest
from helpers import arguments_dump, megatron_line
from runs import BEGIN, analyze_files, analyze_text, rate_of

from analysis.run.result import Analysis

DUMP = arguments_dump({"world_size": 8, "log_interval": 1, "iterations_to_skip": "[]"})


def lines(first: int, last: int, stamped: bool = False, ms: float = 1000.0) -> list[str]:
    """A line for each step, whose time is its own."""
    stamps = (f"{BEGIN + timedelta(seconds=step):%Y-%m-%d %H:%M:%S}" if stamped else None for step in range(1, 1000))
    every = [megatron_line(step, ms + step % 7, stamp) for step, stamp in zip(range(1, 1000), stamps, strict=False)]
    return every[first - 1 : last]


def text_of(*parts: list[str] | str) -> str:
    return "".join(part if isinstance(part, str) else "".join(f"{line}\n" for line in part) for part in parts)


def files(folder, **texts: str) -> list:
    for name, text in texts.items():
        (folder / name.replace("_", ".")).write_text(text)
    return [folder / name.replace("_", ".") for name in texts]


def is_one_start(result: Analysis, steps: int) -> bool:
    segments = result.segments
    return len(segments) == 1 and not segments["lost_steps"].sum() and result.steps["iterations"].sum() == steps


@pytest.mark.parametrize("turned", [False, True])
def test_rotated_files_without_stamps_are_one_start_in_either_order(tmp_path, turned):
    named = files(tmp_path, run_log_1=text_of(DUMP, lines(1, 100)), run_log=text_of(lines(101, 150)))
    result = analyze_files(*(named[::-1] if turned else named))
    assert is_one_start(result, 150)
    assert result.steps["step"].to_list() == list(range(1, 151))


def test_a_file_that_begins_with_a_slow_step_is_a_start_of_its_own(tmp_path):
    named = files(tmp_path, a_log=text_of(lines(1, 100)), b_log=text_of(lines(101, 101, ms=9000.0), lines(102, 150)))
    assert len(analyze_files(*named).segments) == 2


def test_a_file_that_shows_a_beginning_is_a_start_of_its_own(tmp_path):
    named = files(tmp_path, a_log=text_of(DUMP, lines(1, 100)), b_log=text_of(DUMP, lines(101, 150)))
    assert len(analyze_files(*named).segments) == 2


@pytest.mark.parametrize("stamped", [False, True])
@pytest.mark.parametrize("head", ["", DUMP])
def test_a_log_appended_to_itself_is_one_start(tmp_path, head, stamped):
    whole = text_of(head, lines(1, 100, stamped))
    assert is_one_start(analyze_text(tmp_path, whole + whole), 100)
    begun = text_of(head, lines(1, 60, stamped))
    assert is_one_start(analyze_text(tmp_path, begun + whole), 100)


@pytest.mark.parametrize("shown", [True, False], ids=["printed", "by the clock"])
def test_steps_that_are_passed_over_take_no_time(tmp_path, shown):
    """Steps 50 to 59 are left out: 140 steps of 1 s. Without the setting the clock proves it."""
    skipped = f"[{', '.join(map(str, range(50, 60)))}]"
    head = DUMP.replace("[]", skipped) if shown else ""
    kept = [line for step, line in enumerate(lines(1, 150), 1) if step not in range(50, 60)]
    stamps = [f"{BEGIN + timedelta(seconds=n):%Y-%m-%d %H:%M:%S}" for n in range(1, 141)]
    result = analyze_text(tmp_path, text_of(head, [f" [{at}]{line}" for at, line in zip(stamps, kept, strict=True)]))
    assert is_one_start(result, 140)
    assert result.goodput == pytest.approx(1.0, abs=0.01)
    assert rate_of(result, "all_steps") == pytest.approx(1003, rel=0.001)
    found = {note.code for note in result.notes}
    assert not found & {"runs_mixed", "number_damaged", "clock_shorter_than_steps"}


def test_lines_that_are_missing_stand_for_their_steps(tmp_path):
    kept = [line for step, line in enumerate(lines(1, 150, stamped=True), 1) if step not in range(50, 60)]
    assert is_one_start(analyze_text(tmp_path, text_of(kept)), 150)


def test_a_save_at_the_head_of_the_next_file_is_of_the_step_before_it(tmp_path):
    """The log is cut between step 100 and its save, which takes 40 s."""
    late = [f"{BEGIN + timedelta(seconds=step + 40):%Y-%m-%d %H:%M:%S}" for step in range(101, 151)]
    after = [megatron_line(step, 1000.0 + step % 7, stamp) for step, stamp in zip(range(101, 151), late, strict=True)]
    save = "saving checkpoint at iteration     100 to ckpt\n"
    named = files(tmp_path, a_log=text_of(DUMP, lines(1, 100, True)), b_log=text_of(save, after))
    result = analyze_files(*named)
    assert is_one_start(result, 150)
    assert dict(result.time_breakdown.select("part", "seconds").iter_rows())["saves_between"] == pytest.approx(
        40, abs=1
    )


@pytest.mark.parametrize("turned", [False, True])
def test_settings_at_the_end_of_a_file_are_of_the_start_in_the_next(tmp_path, turned):
    """The second start has 4 devices, and its first step is in the second file."""
    smaller = DUMP.replace(f"world_size {'.' * 38} 8", f"world_size {'.' * 38} 4")
    assert smaller != DUMP
    load = "  successfully loaded checkpoint from ckpt [ t 0, p 0 ] at iteration 100\n"
    named = files(tmp_path, a_log=text_of(DUMP, lines(1, 100), smaller, load), b_log=text_of(lines(101, 150)))
    result = analyze_files(*(named[::-1] if turned else named))
    assert len(result.segments) == 2
    assert result.latest.world_size == 4


def test_a_file_that_prints_the_first_settings_again_has_them(tmp_path):
    """8 devices, then 4, then in the next file 8 again."""
    smaller = DUMP.replace(f"world_size {'.' * 38} 8", f"world_size {'.' * 38} 4")
    first = text_of(DUMP, lines(1, 50), smaller, lines(51, 100))
    named = files(tmp_path, a_log=first, b_log=text_of(DUMP, lines(101, 150)))
    assert analyze_files(*named).latest.world_size == 8
