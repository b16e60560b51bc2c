"""The same log in two files, in either order, with lines of other programs between: the figures stay.

12 logs in ``make test``, 2,000 in ``make explore``.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis
import pytest
from audit.drawn import Plan, history_of, plans
from audit.held import PEAK
from audit.test_audit import AGES
from audit.truth import Truth
from hypothesis import given
from hypothesis import strategies as st
from runs import parts_of

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions
from analysis.run.run import Run

OF_EACH = {"same": 2, "audit": 60, "explore": 334}
drawn = hypothesis.settings(max_examples=OF_EACH[hypothesis.settings.get_current_profile_name()])

NOISE = (
    "torch/utils/checkpoint.py:31: UserWarning: none of the inputs require grad",
    "NCCL INFO Channel 00/0 : 0[1000] -> 1[2000] via P2P/CUMEM",
    "  warnings.warn(",
    "",
    "node-3: time synchronised",
)


def _figures(folder: Path, texts: list[str], turned: bool) -> dict[str, object]:
    paths = [folder / f"run-{n}.log" for n in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    named = [str(path) for path in (paths[::-1] if turned else paths)]
    return _of(analyze_logs(named, RunOptions(peak_tflops=PEAK)))


def _of(run: Run) -> dict[str, object]:
    names = ("step_time_ms", "tokens_per_second_per_device", "peak_utilization", "mfu", "hfu", "step_time_low_ms")
    return {
        **{f"{row['rate']} {name}": row[name] for row in run.rates.iter_rows(named=True) for name in names},
        **{f"part {part}": seconds for part, seconds in parts_of(run.time_breakdown).items()},
        "goodput": run.analysis.goodput,
        "starts": len(run.segments),
        "lost": run.segments["lost_steps"].sum(),
        "rows": len(run.steps),
        "reasons": run.steps["excluded_reason"].to_list(),
    }


def _differ(one: dict[str, object], other: dict[str, object]) -> list[str]:
    return [
        f"{name}: {one.get(name)}, then {other.get(name)}" for name in {**one, **other} if not _same(one, other, name)
    ]


def _same(one: dict[str, object], other: dict[str, object], name: str) -> bool:
    here, there = one.get(name), other.get(name)
    if isinstance(here, float) and isinstance(there, float):
        return abs(here - there) <= 1e-9 * max(1.0, abs(here))
    return here == there


def _noisy(lines: list[str], chance: random.Random) -> list[str]:
    """Lines of other programs between, also within a dump of settings."""
    noisy = list(lines)
    for _ in range(chance.randint(1, 12)):
        noisy.insert(chance.randrange(len(noisy)), chance.choice(NOISE))
    return noisy


def _cuts(lines: list[str], truth: Truth) -> Iterator[int]:
    """Where a log may be cut: before and after a step line, but not before a slow one, which may begin a process.

    One of a larger batch is slow, too. A dump of settings that is cut is none.
    """
    steps = [n for n, line in enumerate(lines) if "elapsed time per" in line or "per_step_time" in line]
    for (last, at), (before, behind) in zip(pairwise(steps), pairwise(truth.lines), strict=True):
        larger = behind.steps[-1].samples > before.steps[0].samples
        if before.process != behind.process or not (larger or behind.reason == "stall"):
            yield last + 1
            yield at


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("age", AGES)
@drawn
@given(plan=plans(), seed=st.integers(0, 2**32), turned=st.booleans())
def test_a_log_in_two_files_and_with_noise_is_the_same_log(age: str, plan: Plan, seed: int, turned: bool) -> None:
    printer, adapted = AGES[age]
    # Files are put in order by their first stamps: those of a clock that is set can be out of order.
    # Without noise a step that is done again prints the same line, as a copy does.
    plan = replace(plan, falls_back=False, set_ahead=0.0, noise=max(plan.noise, 0.01))
    printed = printer.print(history_of(adapted(plan)))
    lines = printed.text.splitlines()
    chance = random.Random(seed)
    cut = chance.choice(list(_cuts(lines, printed.truth)))
    with TemporaryDirectory() as folder:
        whole = _figures(Path(folder), [_text(lines)], turned=False)
        for name, texts in {
            "split": [_text(lines[:cut]), _text(lines[cut:])],
            "noise": [_text(_noisy(lines, chance))],
        }.items():
            wrong = _differ(whole, _figures(Path(folder), texts, turned))
            assert not wrong, "\n".join([f"{name}, cut {cut}, turned {turned}", *wrong])
