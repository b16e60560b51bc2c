"""Start-up that lines print without a stamp is counted where no clock covers it, and never twice."""

from datetime import datetime, timedelta

import pytest
from helpers import SETTINGS, arguments_dump, megatron_line
from hypothesis import given
from hypothesis import strategies as st
from runs import parts_of

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions

BEGIN = datetime(2026, 3, 1, 8)
STEP_S = 10.0
STEPS = 60


def stamped(words, at):
    return f"[{words}] datetime: {BEGIN + timedelta(seconds=at):%Y-%m-%d %H:%M:%S} "


def write_log(tmp_path, parts, stamps, clock, ranks=1, one_line=False):
    """A run whose start-up has three ``parts``, after each of which a line prints its time.

    ``stamps`` says which of the three lines with a stamp are there, and ``clock`` whether step lines have one.
    """
    init, model, data = parts
    lines = [arguments_dump(SETTINGS)]
    lines += [stamped("before megatron is initialized", 0)] * stamps[0]
    lines += [f"time to initialize megatron (seconds): {init - 0.001 * rank:.3f}" for rank in range(ranks)]
    lines += [stamped("after megatron is initialized", init)] * stamps[1]
    if one_line:
        timers = (
            f"model-and-optimizer-setup: {model * 1000:.2f} | train/valid/test-data-iterators-setup: {data * 1000:.2f}"
        )
        lines.append(f"time (ms) | {timers}")
    else:
        lines.append("(min, max) time across ranks (ms):")
        lines.append(f"    model-and-optimizer-setup ......................: (1.00, {model * 1000:.2f})")
        lines.append(f"    train/valid/test-data-iterators-setup ..........: (1.00, {data * 1000:.2f})")
    lines += [stamped("before the start of training step", sum(parts))] * stamps[2]
    for step in range(1, STEPS + 1):
        at = BEGIN + timedelta(seconds=sum(parts) + STEP_S * step)
        stamp = f" [{at:%Y-%m-%d %H:%M:%S}]" if clock else ""
        lines.append(stamp + megatron_line(step, STEP_S * 1000))
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n")
    return analyze_logs([str(path)], RunOptions())


seconds = st.integers(1, 400).map(float)


@given(
    st.tuples(seconds, seconds, seconds),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.booleans(),
    st.integers(1, 3),
    st.booleans(),
)
def test_start_up_is_the_same_with_and_without_stamps(tmp_path_factory, parts, stamps, clock, ranks, one_line):
    run = write_log(tmp_path_factory.mktemp("log"), parts, stamps, clock, ranks, one_line)
    breakdown = parts_of(run.time_breakdown)
    assert breakdown["start_up"] == pytest.approx(sum(parts), abs=2.5)
    assert run.time_breakdown["share"].sum() == pytest.approx(1)
    assert sum(breakdown.values()) == pytest.approx(sum(parts) + STEP_S * STEPS, abs=4)
