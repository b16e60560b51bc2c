"""Two jobs that write to one file: what cannot be known is withheld, and each is found again."""

import random
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from audit.drawn import Plan, history_of, plans
from audit.held import PEAK
from audit.histories import Layout
from audit.printers import CORE_0_8, NEOX, Megatron
from audit.test_audit import as_before_core, drawn
from audit.truth import Truth
from hypothesis import given
from hypothesis import strategies as st

from analysis.run.build import analyze_parts
from analysis.run.checks.self_checks import GOODPUT, PLAN, is_withheld
from analysis.run.options import RunOptions
from analysis.run.run import Run

# Both jobs are of one process; where steps and losses are the same, two ranks look like two jobs.
AGES = {"core 0.8": CORE_0_8, "GPT-NeoX": NEOX}


def _alone(plan: Plan) -> Plan:
    plan = replace(as_before_core(plan), devices=(4,), lines=plan.lines[:1], layout=Layout(1, 1))
    return replace(plan, missing=None, set_ahead=0.0, falls_back=False, breaks="usual", tail=0)


def _in_turns(texts: list[str], chance: random.Random) -> str:
    """The lines of several texts, now of one and now of another, so that all are at work until near the end.

    Those that hardly overlap take no turns, but follow each other.
    """
    left = [text.splitlines() for text in texts]
    mixed = []
    while any(left):
        (own,) = chance.choices(left, weights=[len(lines) for lines in left])
        for _ in range(chance.randint(1, 3)):
            mixed += own[:1]
            del own[:1]
    return "\n".join(mixed) + "\n"


def _analyzed(text: str, apart: bool) -> list[Run]:
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.log")
        path.write_text(text)
        return analyze_parts([str(path)], RunOptions(peak_tflops=PEAK), mixed_too=apart)


def _withheld(run: Run) -> list[str]:
    first = next(note for note in run.notes if note.level == "warning")
    rate = run.analysis.rate("wall_clock")["step_time_ms"]
    known = {
        "goodput": run.analysis.goodput,
        "parts": len(run.time_breakdown) or None,
        "overheads": run.overheads or None,
        "time left": run.expectations.plan.left,
        "wall clock": rate,
    }
    wrong = [f"{name}: {value}, where jobs are mixed" for name, value in known.items() if value is not None]
    if first.code != "runs_mixed" or not (is_withheld(run.checks, GOODPUT) and is_withheld(run.checks, PLAN)):
        wrong.append(f"the first warning is {first.code}")
    return wrong


def _found_again(part: Run, truth: Truth) -> list[str]:
    steps = [line.steps[-1].number for line in truth.lines]
    if part.steps["step"].to_list() != steps:
        return [f"{len(part.steps)} lines of a job with {len(steps)}"]
    ms = part.analysis.rate("steady")["step_time_ms"]
    # Whose evaluation a line between rows of both reports is not known: some rows count that hold one, or do not.
    near = abs(ms - truth.steady.ms) <= 0.002 * truth.steady.ms
    return [] if near else [f"steady {ms} ms, not {truth.steady.ms}"]


@pytest.mark.parametrize("age", AGES)
@drawn
@given(plans=st.tuples(plans(), plans()), apart=st.sampled_from([200, 7_000]), seed=st.integers(0, 2**32))
def test_two_jobs_in_one_file_are_told_apart(age: str, plans: tuple[Plan, Plan], apart: int, seed: int) -> None:
    printer: Megatron = AGES[age]
    one, other = map(_alone, plans)
    # Lines are as far apart in both, as those of one command are.
    other = replace(other, log_interval=one.log_interval, ramp=False)
    printed = [
        printer.print(history_of(one)),
        printer.print(history_of(other, done=apart * one.log_interval)),
    ]
    text = _in_turns([one.text for one in printed], random.Random(seed))
    (run,) = _analyzed(text, apart=False)
    parts = _analyzed(text, apart=True)
    wrong = _withheld(run)
    if len(parts) != 2:
        wrong.append(f"{len(parts)} jobs found of 2")
    else:
        ordered = sorted(parts, key=lambda part: part.steps["step"][0])
        wrong += [text for part, one in zip(ordered, printed, strict=True) for text in _found_again(part, one.truth)]
    assert not wrong, "\n".join(wrong)
