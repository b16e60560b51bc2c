"""What cost a run most, and what it would have been without: worked out by hand."""

import json
import re
from datetime import datetime, timedelta

import pytest
from fixture_runs import FOLDERS, name_of, run_of_fixture
from helpers import SETTINGS, arguments_dump, megatron_line, run_logparse

from analysis.present.views.overheads import inside_steps
from analysis.present.words import words
from analysis.run.useful.overheads import PUBLISHED, list_overheads
from logparse import analyze

pytestmark = pytest.mark.usefixtures("analysed_once")

BEGINS = datetime(2026, 3, 1, 12, 0, 0)


def log_with_saves(every: int, save_s: float, steps: int = 61, first_s: float = 1.0, **settings: object) -> str:
    """Steps of 1 s, stamped; behind each ``every`` of them a save that takes ``save_s``."""
    now, lines = BEGINS, [arguments_dump(SETTINGS | settings).rstrip()]
    for step in range(1, steps + 1):
        took = first_s if step == 1 else 1.0
        now += timedelta(seconds=took)
        lines.append(megatron_line(step, took * 1000, f"{now:%Y-%m-%d %H:%M:%S}"))
        if step % every == 0 and step < steps:
            lines.append(f"saving checkpoint at iteration {step:7d} to ckpt")
            now += timedelta(seconds=save_s)
            lines.append(f"successfully saved checkpoint at iteration {step:7d} to ckpt")
    return "\n".join(lines) + "\n"


def losses_of(tmp_path, text):
    (tmp_path / "run.log").write_text(text)
    run = analyze(tmp_path / "run.log")
    return {loss.cause: loss for loss in run.overheads}


def test_saves_cost_what_they_took_and_rarer_ones_less(tmp_path):
    # 61 s of steps, of which the first is warm-up, and 6 saves of 10 s: 121 s on 8 devices.
    found = losses_of(tmp_path, log_with_saves(10, 10.0))
    saves = found["saves"]
    assert saves.seconds == pytest.approx(60, abs=1)
    assert saves.share == pytest.approx(60 / 121, abs=0.01)
    assert saves.device_hours == pytest.approx(8 * 60 / 3600, abs=0.01)
    # The first row is as fast as the others, so that all 61 s are useful: 61 of 61 without the saves.
    assert saves.useful_without == pytest.approx(1.0, abs=0.01)
    # No failure came within 121 s: sqrt(2 x 10 x 121) = 49 s, rounded up to 50 steps, and then saves take 12 s.
    assert saves.advice.code == "saves_rarer"
    assert saves.advice.fields["now"] == 10
    assert saves.advice.fields["every"] == 50
    assert saves.advice.fields["useful"] == pytest.approx(61 / 73, abs=0.01)


@pytest.mark.parametrize("wait", [0, 20, 200])
def test_the_wait_for_an_asynchronous_save_at_the_end_stays(tmp_path, wait):
    """6 saves keep the loop 10 s each; that after the last step waits ``wait`` more, whatever the interval is."""
    text = log_with_saves(10, 10.0, steps=70)
    ends = BEGINS + timedelta(seconds=70 + 60 + wait)
    end = (
        f"saving checkpoint at iteration      70 to ckpt\n[after training is done] datetime: {ends:%Y-%m-%d %H:%M:%S}\n"
    )
    advice = losses_of(tmp_path, text + end)["saves"].advice
    assert advice.fields["each"] == pytest.approx(10, abs=1)
    assert advice.fields["useful"] == pytest.approx(70 / (70 + 70 * 10 / advice.fields["every"] + wait), abs=0.05)


def log_of_crashes(every: int, save_s: float, crashes: int, lost: int) -> str:
    """Processes of 50 steps of 1 s that save as above; each but the last dies ``lost`` steps after its last save."""
    now, lines, done = BEGINS, [], 0
    for _ in range(crashes + 1):
        lines.append(arguments_dump(SETTINGS).rstrip())
        if done:
            lines.append(f"  successfully loaded checkpoint from ckpt [ t 0, p 0 ] at iteration {done}")
        saved, ends = done, (done // every + 50 // every) * every + lost
        for step in range(done + 1, ends + 1):
            now += timedelta(seconds=1)
            lines.append(megatron_line(step, 1000.0, f"{now:%Y-%m-%d %H:%M:%S}"))
            if step % every == 0:
                lines.append(f"saving checkpoint at iteration {step:7d} to ckpt")
                now += timedelta(seconds=save_s)
                lines.append(f"successfully saved checkpoint at iteration {step:7d} to ckpt")
                saved = step
        done = saved
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("crashes", [1, 2, 4])
@pytest.mark.parametrize(("every", "save_s"), [(1, 2.0), (5, 1.0), (5, 10.0), (25, 1.0), (25, 20.0)])
def test_after_failures_an_interval_is_advised_that_pays(tmp_path, crashes, every, save_s):
    """Its time, with half of an interval done again after each failure, is at most that of the present interval."""
    found = losses_of(tmp_path, log_of_crashes(every, save_s, crashes, max(1, every // 2)))
    advice = found["saves"].advice
    if advice is None:
        return
    new, now = advice.fields["every"], advice.fields["now"]
    assert (advice.code, now) == ("save_interval", every)
    saves = found["saves"].seconds
    assert saves * now / new + crashes * new / 2 < saves + crashes * now / 2
    assert new == pytest.approx((2 * save_s * advice.fields["between"]) ** 0.5, rel=1.5)


def test_saves_that_are_as_rare_as_failures_allow_have_no_advice(tmp_path):
    """40 s each 50 s, dead 45 s after one: saves each 100 s would have lost 95 s instead of 45 s."""
    assert losses_of(tmp_path, log_of_crashes(50, 4.0, 1, 45))["saves"].advice is None


def test_the_advice_leaves_at_least_two_saves_in_the_steps_asked_for(tmp_path):
    # 500 steps are asked for, and 3 saves of 200 s beside 61 s of work are too many even every 500 steps.
    advice = losses_of(tmp_path, log_with_saves(20, 200.0))["saves"].advice
    assert (advice.fields["now"], advice.fields["every"]) == (20, 200)


@pytest.mark.parametrize("fixed", [False, True])
def test_evaluations_that_rules_fix_are_not_advised_against(tmp_path, fixed):
    lines = log_with_saves(10, 10.0).replace("saving checkpoint at", "(min, max) time across ranks (ms): evaluate at")
    evaluated = [
        f" validation loss at iteration {line.split()[5]} | lm loss value: 2.0E+00 | lm loss PPL: 7.4E+00 |"
        if "successfully saved" in line
        else line
        for line in lines.splitlines()
    ]
    (tmp_path / "run.log").write_text("\n".join(evaluated) + "\n")
    run = analyze(tmp_path / "run.log")
    found = list_overheads(run.analysis, run.context, run.analysis.pauses, run.expectations, fixed)
    (evaluation,) = [loss for loss in found if loss.cause == "evaluation"]
    assert (evaluation.advice is None) == fixed


def test_cheap_saves_are_not_advised_against(tmp_path):
    # 6 saves of 0.4 s are stamped within the second; 3 s of 64 s is under 5 %.
    found = losses_of(tmp_path, log_with_saves(20, 1.0))
    assert found["saves"].advice is None


def test_one_save_tells_no_interval(tmp_path):
    found = losses_of(tmp_path, log_with_saves(40, 30.0))
    assert found["saves"].advice is None


def test_the_bubble_is_a_share_of_every_step(tmp_path):
    # 4 stages and 8 micro-batches wait 3 of 8 + 3 parts of a step; without that a step takes 8 / 11 of its time.
    settings = {"world_size": 8, "pipeline_model_parallel_size": 4, "data_parallel_size": 2, "micro_batch_size": 2}
    found = losses_of(tmp_path, log_with_saves(1000, 0.0, **settings))
    bubble = found["bubble"]
    assert bubble.seconds == pytest.approx(61 * 3 / 11, rel=0.02)
    steady = 32 * 4096 / 1.0 / 8
    assert bubble.rate_without == pytest.approx(steady * 11 / 8, rel=1e-3)
    assert bubble.useful_without is None


def test_recomputation_is_what_is_computed_twice(tmp_path):
    # All layers are computed again: 4 passes where 3 are the model's, so a quarter of the executed work.
    found = losses_of(tmp_path, log_with_saves(1000, 0.0, recompute_granularity="full", recompute_method="uniform"))
    assert 0.20 < found["recomputation"].share < 0.25


def test_a_later_start_on_other_devices_leaves_device_hours_unknown(tmp_path):
    log = log_with_saves(1000, 0.0) + arguments_dump(SETTINGS | {"world_size": 16, "data_parallel_size": 8})
    now = BEGINS + timedelta(hours=1)
    for step in range(62, 80):
        now += timedelta(seconds=1)
        log += megatron_line(step, 1000.0, f"{now:%Y-%m-%d %H:%M:%S}") + "\n"
    found = losses_of(tmp_path, log)
    assert found["restarts"].share > 0.9
    assert found["restarts"].device_hours is None


def test_every_part_of_the_account_is_a_loss_with_a_name():
    causes = {part.removesuffix("_between") for part in words("en")["parts"]} - {"useful"}
    assert causes | {"bubble", "recomputation", "published", "skipped_updates"} == set(words("en")["overheads"])


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_losses_come_the_dearest_first_and_each_is_a_share(folder):
    losses = run_of_fixture(folder).overheads
    own = [loss.seconds for loss in losses if loss.cause != PUBLISHED]
    assert own == sorted(own, reverse=True)
    # What others reached is no cause of this run's.
    assert [loss.cause == PUBLISHED for loss in losses] == [False] * len(own) + [True] * (len(losses) - len(own))
    assert all(0 < loss.share <= 1 for loss in losses)
    assert all(loss.useful_without is None or 0 <= loss.useful_without <= 1 + 1e-9 for loss in losses)


def test_a_price_gives_each_loss_a_cost(tmp_path):
    (tmp_path / "run.log").write_text(log_with_saves(10, 10.0))
    for price in ("2.5/h", "2.5"):
        done = run_logparse("analyze", "run.log", "--price", price, "--json", cwd=tmp_path)
        (saves,) = [loss for loss in json.loads(done.stdout)["runs"][0]["overheads"] if loss["cause"] == "saves"]
        assert saves["cost"] == pytest.approx(2.5 * saves["device_hours"])
    shown = run_logparse("analyze", "run.log", "--price", "2.5/h", cwd=tmp_path).stdout
    (row,) = [line for line in shown.splitlines() if re.match(r"checkpoint saves +\d", line)]
    assert re.search(r" 0\.13 +0\.33 ", row)


@pytest.mark.parametrize("price", ["much", "-1", "nan", "inf", "2.5/day"])
def test_what_is_no_price_is_refused(tmp_path, price):
    done = run_logparse("analyze", "run.log", f"--price={price}", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{price!r} is not a valid price per device-hour" in done.stderr
    assert "try:   give a number" in done.stderr


def test_the_shares_inside_a_step_are_of_a_step(tmp_path):
    # 4 stages and 8 micro-batches wait 3 of 11 parts of each step, whatever the saves take.
    settings = {"world_size": 8, "pipeline_model_parallel_size": 4, "data_parallel_size": 2, "micro_batch_size": 2}
    (tmp_path / "run.log").write_text(log_with_saves(10, 10.0, **settings))
    shares = {overhead.cause: overhead.share for overhead in inside_steps(analyze(tmp_path / "run.log"))}
    assert shares["bubble"] == pytest.approx(3 / 11)
