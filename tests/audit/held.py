"""Hold what the product says of a printed history to the truth, within the rounding of what was printed."""

from collections.abc import Iterator
from math import isclose
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from audit.printers import Printed
from audit.truth import Rate, as_built_flops, ascendspeed_flops, executed_flops
from runs import parts_of

from analysis.run.build import analyze_logs
from analysis.run.checks.self_checks import PLAN
from analysis.run.options import RunOptions
from analysis.run.run import Run

PEAK = 300.0


def analyzed(printed: Printed) -> Run:
    """The whole way from the text to the numbers."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.log")
        path.write_text(printed.text)
        return analyze_logs([str(path)], RunOptions(peak_tflops=PEAK))


def hold(printed: Printed) -> None:
    """Compare everything the history tells the answer of; what differs is said together."""
    run = analyzed(printed)
    wrong = [text for check in CHECKS for text in check(run, printed)]
    assert not wrong, "\n".join(wrong)


def _lines(run: Run, printed: Printed) -> list[str]:
    """The steps that lines stand for, their times, and why some do not count."""
    lines, steps = printed.truth.lines, run.steps
    if len(steps) != len(lines):
        return [f"{len(steps)} lines read of {len(lines)}"]
    wrong = []
    for line, row in zip(lines, steps.iter_rows(named=True), strict=True):
        step = line.steps[-1].number
        if row["step"] != step or row["iterations"] != len(line.steps):
            wrong.append(f"step {step}: {row['iterations']} steps up to {row['step']}, not {len(line.steps)}")
        if abs(row["step_time_ms"] - line.ms) > _time_rounding(printed, len(line.steps)):
            wrong.append(f"step {step}: {row['step_time_ms']} ms, not {line.ms}")
        if row["excluded_reason"] != line.reason:
            wrong.append(f"step {step}: {row['excluded_reason']}, not {line.reason}")
    return wrong


def _time_rounding(printed: Printed, steps: int) -> float:
    """Of a line's mean time in ms; where a line was taken out of the next, its rounding is in there many times."""
    return printed.ms_rounding * (2.1 * (steps + 1) / steps if printed.truth.habits.first_step_alone else 1.001) + 1e-6


def _rates(run: Run, printed: Printed) -> list[str]:
    """The four rates, each with the work that a device did."""
    truth, history = printed.truth, printed.truth.history
    model, executed = as_built_flops(history.model, history.seq_length), executed_flops(history)
    wrong = []
    named: tuple[tuple[str, Rate | None], ...] = (
        ("steady", truth.steady),
        ("with_stalls", truth.delivered),
        ("all_steps", truth.all_steps),
        ("wall_clock", truth.wall_clock),
    )
    for name, rate in named:
        row = run.rates.row(by_predicate=pl.col("rate") == name, named=True)
        if rate is None:
            wrong += [f"{name}: {row['step_time_ms']}, where nothing is known"] if row["step_time_ms"] else []
            continue
        samples = rate.samples_per_second_per_device
        figures = {
            "step_time_ms": rate.ms,
            "tokens_per_second_per_device": samples * history.seq_length,
            "peak_utilization": samples * ascendspeed_flops(history) / 1e12 / PEAK,
        }
        if printed.shape_is_known:
            figures |= {"mfu": samples * model / 1e12 / PEAK, "hfu": samples * executed / 1e12 / PEAK}
        within = _rate_rounding(printed, name == "wall_clock")
        for column, figure in figures.items():
            if row[column] is None or not isclose(row[column], figure, rel_tol=within):
                wrong.append(f"{name}: {column} {row[column]}, not {figure}")
    return wrong


def _intervals(run: Run, printed: Printed) -> list[str]:
    """Every interval holds its value."""
    names = ("rate", "step_time_low_ms", "step_time_ms", "step_time_high_ms")
    known = run.rates.select(names).drop_nulls().rows()
    return [f"{name}: {low} to {high} without {value}" for name, low, value, high in known if not low <= value <= high]


def _figures(printed: Printed) -> Iterator[float]:
    """Every share of the peak."""
    truth, history = printed.truth, printed.truth.history
    flops = [ascendspeed_flops(history)]
    if printed.shape_is_known:
        flops += [as_built_flops(history.model, history.seq_length), executed_flops(history)]
    for rate in (truth.steady, truth.delivered, truth.all_steps, truth.wall_clock):
        if rate is not None:
            yield from (rate.samples_per_second_per_device * one / 1e12 / PEAK for one in flops)


def _as_built(run: Run, printed: Printed) -> list[str]:
    """MFU by every product of matrices that the model has."""
    history = printed.truth.history
    flops = as_built_flops(history.model, history.seq_length)
    figure = printed.truth.steady.samples_per_second_per_device * flops / 1e12 / PEAK
    found = run.value("mfu")
    if not printed.shape_is_known:
        return [f"mfu {found} of a shape that is not known"] if found is not None else []
    if found is None or not isclose(found, figure, rel_tol=_rate_rounding(printed, by_clock=False)):
        return [f"mfu {found}, not {figure}"]
    return []


def _rate_rounding(printed: Printed, by_clock: bool) -> float:
    shortest = min(line.ms for line in printed.truth.lines)
    of_times = 4 * printed.ms_rounding / shortest
    return 1e-6 + (2 / (printed.truth.wall or 1.0) if by_clock else of_times)


def _goodput(run: Run, printed: Printed) -> list[str]:
    """Goodput, the parts of the time breakdown, and that they add up."""
    truth = printed.truth
    within = _seconds_rounding(printed)
    goodput = run.analysis.goodput
    wrong = []
    if goodput is None or abs(goodput - truth.goodput) * truth.total > within:
        wrong.append(f"goodput {goodput}, not {truth.goodput}")
    found = parts_of(run.time_breakdown)
    if abs(sum(found.values()) - truth.total) > within:
        wrong.append(f"the account adds up to {sum(found.values())} s, not {truth.total}")
    told: dict[str, float] = {}
    for part, seconds in found.items():
        as_one = "pauses" if part.startswith(("saves", "evaluation")) else part
        told[as_one] = told.get(as_one, 0.0) + seconds
    for part in sorted({*truth.account, *told} - {"variation", "not_explained"}):
        here, there = told.get(part, 0.0), truth.account.get(part, 0.0)
        if abs(here - there) > within:
            wrong.append(f"time_breakdown: {part} {here} s, not {there}")
    return wrong


def _seconds_rounding(printed: Printed) -> float:
    """What rounding and noise of all lines can add up to, in seconds."""
    truth = printed.truth
    steps = sum(len(line.steps) for line in truth.lines)
    gaps = len(truth.lines) if truth.wall is not None else 0
    starts = 2.0 * len(truth.printed)
    noise = truth.history.noise * sum(s.fair for line in truth.lines for s in line.steps)
    return 1e-3 + 4 * steps * printed.ms_rounding / 1000 + gaps * printed.clock_rounding + starts + noise


def _restarts(run: Run, printed: Printed) -> list[str]:
    starts, lost = len(run.segments), int(run.segments["lost_steps"].sum())
    truth = printed.truth
    wrong = []
    if starts != len(truth.printed):
        wrong.append(f"{starts} starts of {len(truth.printed)}")
    if lost != truth.lost_steps:
        wrong.append(f"{lost} lost steps of {truth.lost_steps}")
    return wrong


def _time_left(run: Run, printed: Printed) -> list[str]:
    """The end of the run, where the log tells how many steps were asked for: one estimate, inside its own range."""
    truth, left = printed.truth, run.expectations.plan.left
    expected = truth.left_seconds
    if any(not check.passed and PLAN in check.forbids for check in run.checks):
        return [f"time left: {left}, which a check withholds"] if left is not None else []
    if expected is None or run.steps["train_steps"].is_null().all():
        return []
    if left is None or left.seconds is None or left.seconds_low is None or left.seconds_high is None:
        return [f"time left: {left}, not {expected}"]
    wrong = []
    if not left.seconds_low <= left.seconds <= left.seconds_high:
        wrong.append(f"time left: {left.seconds} is not from {left.seconds_low} to {left.seconds_high}")
    steps = len(truth.history.processes[-1].steps)
    within = left.steps * (2 * truth.luck_of_last_process + 2 * printed.clock_rounding / steps)
    within += expected * (0.001 + truth.history.noise) + left.steps * printed.ms_rounding / 1000
    if abs(left.seconds - expected) > within:
        wrong.append(f"time left: {left.seconds} s, not {expected} s within {within}")
    return wrong


def _self_checks(run: Run, printed: Printed) -> list[str]:
    """Of one run all self-checks pass, but for a rate above the peak, of a device too small for it."""
    failed = {check.code for check in run.checks if not check.passed}
    expected = {"rates_are_possible"} if max(_figures(printed)) > 1 else set()
    return [f"self-checks failed: {failed}, not {expected}"] if failed != expected else []


CHECKS = (_self_checks, _lines, _intervals, _rates, _as_built, _goodput, _restarts, _time_left)
