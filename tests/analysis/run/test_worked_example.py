"""From a log to what it means, end to end: the worked example of docs/numbers.md, and what must hold for any log."""

import random
from pathlib import Path

import polars as pl
import pytest
from helpers import few, lines_of, megatron_line, of_code
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from runs import acceptance_log, acceptance_time, analyze_text, parts_of, rate_of, stamped_log

from analysis.present.words import say
from analysis.run.result import Analysis
from analysis.run.rows.exclusion_reasons import REPLAYED, STALL, WARM_UP
from analysis.run.useful.time_breakdown import USEFUL
from logparse.decode.read_run import read_run
from logparse.errors import LogparseError
from logparse.findings import info

LOGGED = "logged_tflops_per_second_per_device"
RATES = ("steady", "with_stalls", "all_steps", "wall_clock")
FEW = few(5, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def accepted(tmp_path_factory) -> Analysis:
    return analyze_text(tmp_path_factory.mktemp("acceptance"), acceptance_log())


def excluded(result: Analysis, reason: str) -> list[tuple[int, int]]:
    """Start and step of the rows left out for ``reason``."""
    return result.steps.filter(pl.col("excluded_reason") == reason).select("segment", "step").rows()


@pytest.mark.parametrize(
    ("rate", "ms", "tflops", "steps"),
    [
        ("steady", 7000.0, 150.0, 190),
        # (198 x 7 + 8 x 9) s over 198 steps; 150 x 7 / 7.3636
        ("with_stalls", 7363.636, 142.6, 198),
        # 496 s and 1162 s over 200 steps; 150 x 7 / 8.29
        ("all_steps", 8290.0, 126.7, 200),
        # the stamps lie at the ends of the steps, and nothing between them
        ("wall_clock", 8290.0, 126.7, 200),
    ],
)
def test_acceptance_rates(accepted, rate, ms, tflops, steps):
    assert rate_of(accepted, rate) == pytest.approx(ms, abs=1e-3)
    # The line prints one decimal, so a sum over lines is known to half of it.
    assert rate_of(accepted, rate, LOGGED) == pytest.approx(tflops, abs=0.05)
    assert rate_of(accepted, rate, "steps") == steps


def test_acceptance_steady_interval_is_the_rounding_and_each_holds_its_figure(accepted):
    ends = [rate_of(accepted, "steady", f"step_time_{end}_ms") for end in ("low", "high")]
    assert ends == [6999.5, 7000.5]
    for rate in ("with_stalls", "all_steps"):
        low, high = (rate_of(accepted, rate, f"step_time_{end}_ms") for end in ("low", "high"))
        assert low < rate_of(accepted, rate) < high


def test_acceptance_rows_left_out(accepted):
    assert excluded(accepted, WARM_UP) == [(0, 1), (0, 2)]
    assert excluded(accepted, REPLAYED) == [(1, step) for step in range(51, 61)]
    assert excluded(accepted, STALL) == [(0, 25), (0, 50)] + [(1, step) for step in range(75, 201, 25)]
    assert accepted.steps["counted"].sum() == len(accepted.steps) - 2 - 10 - 8 == 190


def test_acceptance_goodput_and_account(accepted):
    # Useful work at 7 s a step, over 1658 s.
    assert accepted.goodput == pytest.approx(200 * 7 / 1658)
    assert accepted.goodput == pytest.approx(0.845, abs=0.001)
    assert parts_of(accepted.time_breakdown) == pytest.approx(
        {
            USEFUL: 1400.0,
            "warm_up": 54.0 + 4.0,
            "replayed": 10 * 7 + 54 + 4.0,
            "stalls": 8 * 9.0,
            "not_explained": 0.0,
        },
        abs=1e-6,
    )


def test_acceptance_starts_and_lost_steps(accepted):
    columns = ("lineage", "first_step", "last_step", "replayed_steps", "lost_steps", "step_time_sum_ms")
    assert accepted.segments.select(columns).rows() == [(0, 1, 60, 0, 10, 496_000.0), (0, 51, 200, 10, 0, 1_162_000.0)]


def test_acceptance_note_names_the_period(accepted):
    (note,) = (note for note in accepted.notes if note.code.startswith("stalls"))
    assert note == info("stalls_periodic", n=8, longer_ms=9000.0, period=25)
    assert say(note) == "8 stalls, in the median 9,000 ms longer than a typical step, every 25 steps"


def test_acceptance_line_with_colours_and_broken_bytes_is_a_row_like_any_other(accepted):
    row = accepted.steps.row(by_predicate=pl.col("step") == 70, named=True)
    assert (row["step_time_ms"], row[LOGGED], row["counted"]) == (7000.0, 150.0, True)


def test_a_run_without_a_clock_has_no_wall_clock(tmp_path):
    result = analyze_text(tmp_path, "".join(megatron_line(step, 1000.0) + "\n" for step in range(1, 31)))
    assert rate_of(result, "wall_clock") is None
    assert rate_of(result, "steady") == 1000.0
    assert set(parts_of(result.time_breakdown)) == {USEFUL, "not_explained"}


def test_a_log_where_no_row_counts_has_nulls_and_says_so(tmp_path):
    result = analyze_text(tmp_path, megatron_line(1) + "\n")
    assert rate_of(result, "steady") is None
    assert rate_of(result, "steady", "steps") == 0
    assert result.goodput is None
    assert len(of_code(result.notes, "no_row_counts")) == 1


def test_samples_per_second_a_thousand_times_too_small_stay_what_the_log_says(tmp_path):
    """32 samples in 1 s are 32 samples/s; the line prints 0.032, and no figure of ours rests on it."""
    pairs = {"samples per second": "0.032"}
    text = "".join(megatron_line(step, 1000.0, pairs=pairs) + "\n" for step in range(1, 11))
    result = analyze_text(tmp_path, WORLD_LINE + text)
    assert set(result.steps["logged_samples_per_second"]) == {0.032}
    assert result.value("samples_per_second_per_device") == 4.0


WORLD_LINE = "using world size: 8, data-parallel size: 8, tensor-model-parallel size: 1 \n"


# What must hold for any log. The run is noisy, so that a row more or less would be seen.


def noisy_time(step: int, place: int) -> float:
    return round(acceptance_time(step, place) * random.Random(step).gauss(1.0, 0.01), 1)


NOISY = stamped_log([(1, 40), (31, 90)], noisy_time)
STEP_LINES = [i for i, line in enumerate(NOISY) if " iteration " in line and "elapsed" in line]


def text_of(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


@pytest.fixture(scope="module")
def noisy(tmp_path_factory) -> Analysis:
    return analyze_text(tmp_path_factory.mktemp("noisy"), text_of(NOISY))


def numbers(result: Analysis) -> dict[str, object]:
    """All that is said of the run, without the places of its lines."""
    return {
        "rates": result.rates.drop("run").rows(),
        "time_breakdown": result.time_breakdown.drop("run").rows(),
        "summary": result.summary.drop("run").rows(),
        "steps": result.steps.drop("run", "source", "line_number").rows(),
        "segments": result.segments.drop("run", "source", "line_number").rows(),
        "notes": result.notes,
    }


NOISE = st.sampled_from(
    [
        "",
        "\t",
        "WARNING: the cache is cold, step 5 of 7",
        "time 1000 ms",
        "[rank3] iteration begins",
        "| a | b: 1 |",
        "saving a plot",
        "\x1b[31mred\x1b[0m",
        "epoch 1",
        "2026-03-01 09:00:00 heartbeat",
    ]
)


@FEW
@given(st.lists(st.tuples(st.integers(0, len(NOISY)), NOISE), min_size=1, max_size=12))
def test_noise_between_the_lines_changes_no_number(tmp_path, noisy, put):
    lines = list(NOISY)
    for at, noise in put:
        lines.insert(at, noise)
    assert numbers(analyze_text(tmp_path, text_of(lines))) == numbers(noisy)


@FEW
@given(st.integers(1, len(NOISY) - 1))
def test_a_log_in_two_files_has_the_same_steps_and_rates(tmp_path, noisy, at):
    parted = analyze_text(tmp_path, text_of(NOISY[:at]), text_of(NOISY[at:]))
    whole, now = numbers(noisy), numbers(parted)
    assert now["steps"] == whole["steps"]
    assert now["rates"] == whole["rates"]
    assert now["time_breakdown"] == whole["time_breakdown"]


@FEW
@given(st.integers(0, len(text_of(NOISY))))
def test_a_log_cut_off_anywhere_never_says_a_faster_pace(tmp_path, noisy, at):
    try:
        cut = analyze_text(tmp_path, text_of(NOISY)[:at])
    except LogparseError:
        assert at < len(text_of(NOISY[: STEP_LINES[0] + 1]))
        return
    pace, low = rate_of(cut, "steady"), rate_of(cut, "steady", "step_time_low_ms")
    if pace is None or low is None:
        assert cut.steps["counted"].sum() < 8
        return
    slack = rate_of(cut, "steady", "step_time_high_ms") - low
    assert pace >= rate_of(noisy, "steady", "step_time_low_ms") - slack


def test_noise_lines_of_this_file_hold_no_step_line():
    """Guards the property above: a sample that were a step line would change the numbers with reason."""
    assert not lines_of(text_of(NOISY[:2]))["text"].str.contains("elapsed time").any()


def test_the_files_of_a_run_may_come_in_any_folder(tmp_path, noisy):
    folder = Path(tmp_path / "elsewhere")
    folder.mkdir()
    assert numbers(analyze_text(folder, text_of(NOISY)))["rates"] == numbers(noisy)["rates"]


def test_the_order_in_which_files_are_named_changes_nothing(tmp_path):
    """Shells sort info.log.1 behind info.log although it is the older one."""
    lines = [line.encode() + b"\n" for line in stamped_log([(1, 40)], lambda step, place: 7000)]
    half = len(lines) // 2
    (tmp_path / "old.log").write_bytes(b"".join(lines[:half]))
    (tmp_path / "new.log").write_bytes(b"".join(lines[half:]))
    orders = (["old.log", "new.log"], ["new.log", "old.log"])
    found = [read_run([str(tmp_path / name) for name in order]).steps["step"].to_list() for order in orders]
    assert found[0] == found[1] == sorted(found[0])
