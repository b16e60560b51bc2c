"""What is judged beside the steady time: slow steps that no median sees, losses, updates that are skipped."""

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
from helpers import SETTINGS, arguments_dump, megatron_line, run_logparse, sweep_after
from releases import as_steps, record

from analysis.compare.comparison import Side, compare
from analysis.compare.final_loss import final_losses
from analysis.compare.multiple_testing import hold_family
from analysis.compare.verdict import guards_of, judge, lose
from analysis.history.folder import Folder
from analysis.history.store import History
from analysis.metrics import FINAL_LOSS, JUDGED

pytestmark = pytest.mark.usefixtures("analysed_once")

STEPS = 60
# By name: the factor of the time of a step, the loss of a step, whether its update was skipped.
USUAL = (lambda step: 1.0, lambda step: f"{3 + 1 / step:.6E}", lambda step: 0)


def write_steps(path, seed, times=USUAL[0], loss=USUAL[1], skipped=USUAL[2], steps=STEPS):
    """A run whose steps take 1,000 ms by their factor, give or take 0.3 % by step and 0.4 % by run."""
    rng = np.random.default_rng(seed)
    pace = 1000 * np.exp(rng.normal(0, 0.004) + rng.normal(0, 0.003, steps))
    clock = datetime(2026, 2, 2, 10) + timedelta(days=seed)
    lines = []
    for step in range(1, steps + 1):
        ms = pace[step - 1] * times(step)
        clock += timedelta(milliseconds=ms)
        pairs = {"lm loss": loss(step), "number of skipped iterations": f"  {skipped(step)}"}
        lines.append(megatron_line(step, ms, f"{clock:%Y-%m-%d %H:%M:%S.%f}"[:-3], pairs))
    path.write_text(arguments_dump(SETTINGS) + "\n".join(lines) + "\n")
    return path


def side(tmp_path, name, seeds, **how):
    records = [record(write_steps(tmp_path / f"{name}{seed}.log", seed, **how), name) for seed in seeds]
    runs = pl.concat(r.summary for r in records).with_columns(release=pl.lit(name))
    steps = {r.run_id: r.steps for r in records}
    return Side(name, runs, runs, steps.__getitem__)


def judged(old, new):
    """As the gate judges where no metric is named."""
    first, guards = guards_of(None)
    return compare(old, new, first, 0.03, everything=False, guards=guards)


# By what is wrong: how the candidate differs, and the metrics that tell.
WRONG = {
    "every tenth step x 4": ({"times": lambda step: 4.0 if step % 10 == 5 else 1.0}, {"with_stalls_step_time_ms"}),
    "a fifth of the steps x 2": ({"times": lambda step: 2.0 if step % 5 == 3 else 1.0}, {"with_stalls_step_time_ms"}),
    "every fourth step x 1.3": ({"times": lambda step: 1.3 if step % 4 == 3 else 1.0}, {"with_stalls_step_time_ms"}),
    "loss x 1.5": ({"loss": lambda step: f"{1.5 * (3 + 1 / step):.6E}"}, {"final_loss"}),
    "loss 0": ({"loss": lambda step: "0.000000E+00"}, {"final_loss"}),
    "loss NaN": ({"loss": lambda step: "nan"}, {"final_loss"}),
    "every tenth update skipped": ({"skipped": lambda step: int(step % 10 == 5)}, {"skipped_share"}),
}


@pytest.mark.parametrize("runs", sweep_after(1, [4, 5]))
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_a_regression(tmp_path, wrong, runs):
    how, metrics = WRONG[wrong]
    found = judged(side(tmp_path, "a", range(runs)), side(tmp_path, "b", range(10, 10 + runs), **how))
    told = {f.metric.column for f in found.verdicts if f.verdict == "regression"}
    assert (found.verdict, metrics - told) == ("regression", set())


@pytest.mark.parametrize("runs", sweep_after(2, [1, 4, 3, 5]))
def test_two_sides_that_are_alike(tmp_path, runs):
    found = judged(side(tmp_path, "a", range(runs)), side(tmp_path, "b", range(10, 10 + runs)))
    assert found.verdict == "no regression"
    assert {f.metric.column for f in found.verdicts} >= {"with_stalls_step_time_ms", "goodput", "final_loss"}


def test_a_longer_run_has_no_better_loss(tmp_path):
    falling = {"loss": lambda step: f"{10 / step:.6E}"}
    old = side(tmp_path, "a", range(2), **falling)
    found = judged(old, side(tmp_path, "b", range(10, 12), steps=2 * STEPS, **falling))
    (loss,) = [f for f in found.verdicts if f.metric == FINAL_LOSS]
    assert (loss.verdict, loss.effect.change) == ("no regression", pytest.approx(0, abs=1e-6))


def test_a_loss_that_falls_faster_is_suspicious(tmp_path):
    new = side(tmp_path, "b", range(10, 15), loss=lambda step: f"{0.5 * (3 + 1 / step):.6E}")
    assert judged(side(tmp_path, "a", range(5)), new).verdict == "suspicious"


def steps_of(*losses):
    return as_steps(step=range(1, len(losses) + 1), loss=pl.Series(losses, dtype=pl.Float64))


def test_the_final_loss_is_that_of_equal_steps():
    nan = float("nan")
    runs = [("a", steps_of(*range(20, 0, -1))), ("b", steps_of(*[4.0] * 12)), ("c", steps_of(*[nan] * 12))]
    runs += [("d", steps_of(*[0.0] * 12)), ("none", steps_of(*[None] * 12))]
    found = final_losses(runs)
    assert found == {"a": pytest.approx(13.5), "b": 4.0, "c": None, "d": None}
    assert final_losses([]) == {}


@pytest.mark.parametrize(
    ("lost", "verdict"),
    [
        (((0, 5), (5, 5)), "regression"),
        (((0, 3), (3, 3)), "regression"),
        (((0, 1), (1, 1)), "regression"),
        (((0, 5), (1, 5)), "suspicious"),
        (((5, 5), (5, 5)), "no regression"),
        (((1, 5), (0, 5)), "no regression"),
    ],
)
def test_runs_that_lose_their_loss(lost, verdict):
    alike = judge(FINAL_LOSS, [3.0] * 5, [3.0] * 5, 0.03)
    assert lose(alike, lost).verdict == verdict


def of_p(p, metric="goodput"):
    """A finding whose p is that of 4 + 4 runs, at best, made ``p``."""
    found = judge(JUDGED[metric], [1.0, 1.01, 1.02, 1.03], [0.5, 0.51, 0.52, 0.53], 0.03)
    return found.__class__(**{**vars(found), "effect": found.effect.__class__(**{**vars(found.effect), "p_worse": p})})


def test_several_metrics_are_held_together():
    """Holm: 0.01 x 3, then 0.02 x 2, then 0.04; the second is beyond 5 % with 0.03 x 2."""
    ps = [0.02, 0.01, 0.04]
    held = hold_family([of_p(p) for p in ps])
    assert [f.p_family for f in held] == pytest.approx([0.04, 0.03, 0.04])
    assert {f.verdict for f in held} == {"regression"}
    held = hold_family([of_p(p) for p in (0.03, 0.01, 0.03)])
    assert [f.reason for f in held] == ["one_of_many", "proven", "one_of_many"]


def test_a_metric_that_can_prove_nothing_does_not_count():
    alike = judge(JUDGED["skipped_share"], [1.0] * 4, [1.0] * 4, 0.03)
    assert [f.p_family for f in hold_family([alike, of_p(0.03)])] == [None, 0.03]


def test_alike_pairs_are_seldom_a_regression_by_any_metric():
    """Three metrics of noise alone, 400 pairs of 5 + 5 runs, no threshold: at most 5 % of the pairs, and chance."""
    rng = np.random.default_rng(0)
    metrics = [JUDGED[name] for name in ("with_stalls_step_time_ms", "goodput", "final_loss")]
    wrong = 0
    for _ in range(400):
        found = [judge(metric, *np.exp(rng.normal(0, 0.005, (2, 5))).tolist(), 0.0) for metric in metrics]
        wrong += any(f.verdict == "regression" for f in hold_family(found))
    assert wrong <= 30


@pytest.mark.parametrize("command", ["gate", "compare"])
def test_the_commands_judge_them_by_default(tmp_path, command):
    history = History(Folder(tmp_path / "h"))
    for name, how in (("old", {}), ("new", WRONG["every tenth step x 4"][0])):
        for seed in range(5):
            history.add(record(write_steps(tmp_path / f"{name}{seed}.log", seed + 10 * (name == "new"), **how), name))
    old, new = "release=old", "release=new"
    sides = ("--baseline", old, "--candidate", new) if command == "gate" else (old, new)
    sides = (*sides, "--history", "h")
    done = run_logparse(command, *sides, cwd=tmp_path)
    said = " ".join(done.stdout.split())
    assert (done.returncode, "verdict: regression" in said) == (1 if command == "gate" else 0, True)
    assert "step time, including stalls: regression" in said
    assert "(Holm)" not in said
    if command == "compare":
        detailed = run_logparse(command, *sides, "-v", cwd=tmp_path).stdout
        assert "5 % error for the first and 5 % for all others together (Holm)" in " ".join(detailed.split())
    named = run_logparse(command, *sides, "--metric", "steady_step_time_ms", cwd=tmp_path)
    assert "verdict: no regression" in named.stdout
