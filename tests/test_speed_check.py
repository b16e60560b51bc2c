"""What .ci/run makes of the times that it measured; no time is measured here."""

import pytest
from speed import broken
from speed_cases import ANALYZE, GREP, IMPORT_POLARS, LOOP, READ, START, TABLE, targets
from speed_measure import Figures, Run

TARGETS = list(targets(logs=34))


def figures(*runs: tuple[float, float], start: float = 0.0) -> Figures:
    """Of runs as long by the clock and by the processor as they say."""
    return Figures([Run(wall, cpu, 0, "") for wall, cpu in runs], [Run(start, start, 0, "")])


def quiet(seconds: float) -> Figures:
    return figures((seconds, seconds))


ONE_AS = {
    ("dense", READ, LOOP): 1 / 2.5,
    ("dense", ANALYZE, LOOP): 1 / 1.5,
    ("sparse", READ, GREP): 24.0,
    (START, TABLE, IMPORT_POLARS): 7.0,
}


@pytest.mark.parametrize(("case", "limit"), ONE_AS.items())
@pytest.mark.parametrize(("times", "fails"), [(0.3, False), (0.99, False), (1.01, True), (3, True)])
def test_half_a_target_must_be_reached(case, limit, times, fails):
    log, reader, peer = case
    results = {(log, peer): quiet(10), (log, reader): quiet(10 * limit * times)}
    assert [target.log for target in broken(TARGETS, results)] == [log] * fails


def test_the_clock_or_the_processor_may_reach_it():
    """Two threads take more of the processor than of the clock; where they wait for a core it is the other way."""
    peer = {("dense", LOOP): quiet(10)}
    for run in ((2, 9), (9, 2)):
        assert not broken(TARGETS, peer | {("dense", READ): figures(run)})
    assert broken(TARGETS, peer | {("dense", READ): figures((5, 5))})


def test_the_best_run_counts_and_start_up_is_taken_off():
    peer = {("dense", LOOP): quiet(10)}
    assert not broken(TARGETS, peer | {("dense", READ): figures((30, 30), (3, 3), (20, 20))})
    assert not broken(TARGETS, peer | {("dense", READ): figures((6, 6), start=3)})


@pytest.mark.parametrize(
    ("runs", "judged"), [([(10, 9.5)], True), ([(10, 9.5), (10, 9)], True), ([(10, 10), (14, 10)], False)]
)
def test_a_busy_machine_is_no_fault(runs, judged):
    """A peer of one thread that waited for a core tells that ours waited too."""
    results = {("sparse", GREP): figures(*runs), ("sparse", READ): quiet(300)}
    assert [target.log for target in TARGETS if target.is_missed(results)] == ["sparse"]
    assert [target.log for target in broken(TARGETS, results)] == ["sparse"] * judged


def test_what_was_not_measured_is_not_broken():
    assert broken(TARGETS, {}) == []
