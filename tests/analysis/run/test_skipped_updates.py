"""Where every update was skipped, the rates are of the skipped steps, and the first screen says so."""

import polars as pl
import pytest
from helpers import SETTINGS, arguments_dump, megatron_line

from analysis.present.numbers import three
from analysis.present.views.first_screen import rows
from analysis.present.views.missing import missing_clauses
from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions
from analysis.run.rows.exclusion_reasons import SKIPPED


def skipping(tmp_path, skipped, hw=None):
    """A run of as many steps as ``skipped`` has entries: how many updates each line skipped."""
    lines = [arguments_dump(SETTINGS)]
    for step, n in enumerate(skipped, start=1):
        pairs = {"number of skipped iterations": f"{n:3d}"} | ({"lm loss": None, "grad norm": None} if n else {})
        lines.append(megatron_line(step, 9000.0 if step == 1 else 2000.0 + step, pairs=pairs))
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return analyze_logs([str(path)], RunOptions(hw=hw))


def test_the_steps_of_skipped_updates_give_the_rates_where_no_other_row_counts(tmp_path):
    run = skipping(tmp_path, [1, 1, 1, 1], hw="l40s")
    assert run.step_time_ms == 2003.0
    assert None not in (run.tokens_per_second, run.mfu)
    time = next(row for row in rows(run) if row.label == "step time")
    assert (time.value, time.clauses) == ("2.00 s", ["4 of 4 updates skipped"])
    (note,) = [note for note in run.notes if note.code == "counted_updates_skipped"]
    assert note.fields == {"n": 3, "of": 3}
    assert "no_row_counts" not in [note.code for note in run.notes]
    assert missing_clauses(run) == []
    # The time of steps without an update is not useful.
    assert run.goodput == 0


def test_no_useless_flag_is_asked_for(tmp_path):
    assert missing_clauses(skipping(tmp_path, [1, 1, 1, 1])) == ["MFU: pass", "--hw"]


def test_one_update_that_was_made_gives_the_rates(tmp_path):
    run = skipping(tmp_path, [1, 1, 0, 1, 0, 0])
    assert set(run.steps.filter(excluded_reason=SKIPPED)["step"]) == {2, 4}
    assert run.step_time_ms == 2005.0
    assert "counted_updates_skipped" not in [note.code for note in run.notes]


@pytest.mark.parametrize(("loss", "label"), [(None, "skipped updates "), ("nan", "skipped or NaN updates ")])
def test_the_overhead_names_nan_only_where_a_step_is_nan(tmp_path, loss, label):
    lines = [arguments_dump(SETTINGS)]
    for step in range(1, 401):
        skipped = {"number of skipped iterations": "1" if 30 <= step < 60 else "0"}
        lost = {"lm loss": loss} if loss and 100 <= step < 120 else {}
        lines.append(megatron_line(step, 1000.0, pairs=skipped | lost) + "\n")
    (tmp_path / "run.log").write_text("".join(lines))
    run = analyze_logs([str(tmp_path / "run.log")], RunOptions())
    goodput = next(row for row in rows(run) if row.label == "goodput")
    assert any(clause.removeprefix("lost: ").startswith(label) for clause in goodput.clauses)


@pytest.mark.parametrize(
    ("skipped", "nan", "clause"),
    [(14, 0, "14 of 100 updates skipped"), (0, 3, "3 of 100 updates NaN"), (9, 2, "11 of 100 updates skipped or NaN")],
)
def test_a_short_log_says_how_many_updates_were_lost(tmp_path, skipped, nan, clause):
    lines = [arguments_dump(SETTINGS)]
    for step in range(1, 101):
        pairs = {"number of skipped iterations": str(int(10 < step <= 10 + skipped))}
        lines.append(megatron_line(step, 1000.0, pairs=pairs | ({"lm loss": "nan"} if 50 < step <= 50 + nan else {})))
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    run = analyze_logs([str(tmp_path / "run.log")], RunOptions())
    time = next(row for row in rows(run) if row.label == "step time")
    mean = 99 / (99 - skipped - nan)
    assert run.short
    assert time.clauses == [f"median; {three(mean)} s per useful step", clause]


def test_a_line_of_several_steps_counts_about_so_many_nan(tmp_path):
    lines = [arguments_dump(SETTINGS | {"log_interval": 2})]
    lines += [megatron_line(s, 1000.0, pairs={"lm loss": "nan"} if s == 50 else {}) for s in range(2, 101, 2)]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    run = analyze_logs([str(tmp_path / "run.log")], RunOptions())
    time = next(row for row in rows(run) if row.label == "step time")
    assert time.clauses[-1] == "about 2 of 100 updates NaN"


def test_skips_of_deepspeed_are_counted_since_the_start(tmp_path):
    lines = []
    for n in range(1, 31):
        clock = f"[2025-03-02 09:{30 + n // 3:02d}:{n % 3 * 20:02d},000]"
        head = f"{clock} [INFO] [logging.py:96:log_dist] [Rank 0] step={10 * n}"
        lines.append(f"{head}, skipped={5 * n}, lr=[2e-05], mom=[(0.9, 0.95)]")
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    run = analyze_logs([str(path)], RunOptions())
    assert run.steps["skipped_iterations"].to_list() == [5] * 30
    assert abs((run.goodput or 0) - 0.5) < 0.02


def test_updates_that_deepspeed_skips_beneath_megatron_are_counted_once(tmp_path):
    """Megatron prints 0 where it does not know; where it counts too, the lines of DeepSpeed add nothing."""
    lines = [arguments_dump(SETTINGS)]
    for step in range(10, 410, 10):
        lines += ["[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 8, reducing to 4"] * (
            5 if step in (100, 200) else 0
        )
        printed = {"number of skipped iterations": {200: "5", 300: "2"}.get(step, "0")}
        lines.append(megatron_line(step, 1000.0, pairs=printed))
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    run = analyze_logs([str(path)], RunOptions())
    skipped = run.steps.filter(pl.col("skipped_iterations") > 0)
    assert skipped.select("step", "skipped_iterations").rows() == [(100, 5), (200, 5), (300, 2)]
    assert run.goodput == pytest.approx(388 / 400)


def test_updates_skipped_during_warm_up_count_in_the_time_of_a_useful_step(tmp_path):
    """Step 1 is warm-up and was skipped: 69 s over 29 useful steps, not the mean of the others."""
    times = [9000.0, *[2000.0] * 28, 4000.0]
    skips = [{"number of skipped iterations": str(int(step == 1))} for step in range(1, 31)]
    lines = [megatron_line(step, ms, pairs=skip) for step, (ms, skip) in enumerate(zip(times, skips, strict=True), 1)]
    (tmp_path / "run.log").write_text("\n".join([arguments_dump(SETTINGS), *lines]) + "\n")
    run = analyze_logs([str(tmp_path / "run.log")], RunOptions())
    time = next(row for row in rows(run) if row.label == "step time")
    assert time.clauses == ["median; all steps 2.38 s per useful step", "1 of 30 updates skipped"]


@pytest.mark.parametrize("skipped", [0, 3, 10])
def test_updates_above_the_limit_of_the_gradient_norm_are_skipped(tmp_path, skipped):
    """MindFormers prints after each step whether its gradient norm was above the limit."""
    lines = []
    for step in range(1, 21):
        lines += [
            f"- INFO - {{ Epoch:[  1/  1], step:[{step:5d}/   40], loss: 2.000, per_step_time: 1000ms, lr: 0.1, "
            "overflow cond: False, loss_scale: 1.0, global_norm: [4.5]",
            f"- INFO - opt_global_step: {step}, skip_data_grad_norm_threshold: 3.0, is_skip: [{step <= skipped!s:>5}]",
        ]
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n")
    run = analyze_logs([str(path)], RunOptions())
    assert run.steps["useful_steps"].sum() == 20 - skipped
    assert run.log.coverage.malformed_values == 0


def test_a_damaged_number_of_a_step_is_not_counted_step_by_step(tmp_path, monkeypatch):
    """Four billion steps, one row each, would need 34 GB."""
    monkeypatch.setattr("analysis.run.rows.updates._by_step", lambda rows: pytest.fail(f"{len(rows)} rows"))
    damaged = 2**32
    first = "Steps:   2%|▏         | 160/7600 [37:37<20:46:10, 10.05s/it, grad_absmax=0.000186, lr=9.89e-5]"
    whole = f"Steps: 100%|██████████| {damaged}/400 [06:41<00:00,  1.01it/s, loss=0.213, lr=5e-6]"
    later = f"Steps:   2%|▏         | {damaged}/1000 [01:23<1:08:06,  4.17s/it, lr=1e-5, step_loss=0.0734]"
    skipped = "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536 reducing to 32768"
    lines = [skipped, first, whole, first, later, first, skipped, later, skipped]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run = analyze_logs([str(tmp_path / "run.log")], RunOptions())
    assert run.log.steps["step"].max() == damaged
