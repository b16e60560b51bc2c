"""What cannot be one run is refused with the files that say so; ranks and restarts of one job are one run."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta

import pytest
from helpers import ROOT, SETTINGS, arguments_dump, megatron_line, run_logparse

from analysis.api import analyze

BEGIN = datetime(2026, 3, 1, 8)


def write(folder, name, begin=BEGIN, first=1, last=30, ms=10_000.0, loss=0.0, **settings):
    """A log of the steps ``first`` to ``last``; stamps lie at their ends."""
    lines = [arguments_dump(SETTINGS | settings)]
    for step in range(first, last + 1):
        clock = begin + timedelta(milliseconds=ms * (step - first + 1))
        pairs = {"lm loss": f"{3 - step / 100 + loss:.6E}"}
        lines.append(megatron_line(step, ms, f"{clock:%Y-%m-%d %H:%M:%S}", pairs) + "\n")
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(lines))


def refused(folder, *logs):
    done = run_logparse("analyze", *logs, "-q", cwd=folder)
    if done.returncode == 0:
        return None
    assert (done.returncode, done.stdout) == (2, "")
    problem, *_, remedy = done.stderr.splitlines()
    assert remedy.startswith("  try:   add --each")
    return problem.removeprefix("logparse: these files are not one run: ")


@pytest.mark.parametrize(
    ("name", "value"),
    [("num_layers", 40), ("hidden_size", 5120), ("ffn_hidden_size", 13824), ("num_attention_heads", 40)],
)
def test_another_shape_is_another_run(tmp_path, name, value):
    write(tmp_path, "a.log")
    write(tmp_path, "b.log", BEGIN + timedelta(days=1), 31, 60, **{name: value})
    assert refused(tmp_path, "a.log", "b.log") == f"{name} is {SETTINGS[name]} in a.log, {value} in b.log"


def test_ranks_side_by_side_are_no_run_where_their_shapes_differ(tmp_path):
    write(tmp_path, "a.log")
    write(tmp_path, "b.log", num_layers=40)
    assert refused(tmp_path, "a.log", "b.log") == "num_layers is 32 in a.log, 40 in b.log"


def test_the_same_steps_on_other_devices_are_another_run(tmp_path):
    write(tmp_path, "a.log")
    write(tmp_path, "b.log", BEGIN + timedelta(days=1), world_size=16, data_parallel_size=8)
    assert refused(tmp_path, "a.log", "b.log") == "world_size is 8 in a.log, 16 in b.log"
    done = run_logparse("analyze", "--each", "a.log", "b.log", "-q", cwd=tmp_path)
    assert len(done.stdout.splitlines()) == 2


def test_the_same_steps_at_the_same_time_are_two_runs(tmp_path):
    """Each does a step minutes before the other, and with another loss."""
    write(tmp_path, "a.log")
    write(tmp_path, "b.log", BEGIN + timedelta(minutes=3), loss=0.1)
    told = "a.log and b.log ran the same steps at the same time, independently"
    assert refused(tmp_path, "a.log", "b.log") == told


@pytest.mark.parametrize(
    "second",
    [
        {"begin": BEGIN + timedelta(hours=1), "first": 31, "last": 60},
        {"begin": BEGIN + timedelta(hours=1), "first": 21, "last": 60, "loss": 0.1},
        {"begin": BEGIN + timedelta(hours=1), "first": 31, "last": 60, "world_size": 16},
        {"begin": BEGIN + timedelta(hours=1), "first": 31, "last": 60, "padded_vocab_size": 32256},
        {"begin": BEGIN + timedelta(days=1), "loss": 0.1},
        {"begin": BEGIN + timedelta(seconds=2), "loss": 0.1},
        {"begin": BEGIN + timedelta(minutes=3)},
        {"begin": BEGIN + timedelta(hours=1, minutes=-3), "first": 25, "last": 60},
        {"begin": BEGIN + timedelta(minutes=15), "loss": 0.1},
    ],
    ids=[
        "it goes on",
        "replayed steps",
        "it goes on on other devices",
        "another padding",
        "begun again the next day",
        "ranks that print a loss of their own",
        "a rank whose clock is ahead",
        "a restart while the clock runs on",
        "a rank in another zone",
    ],
)
def test_what_can_be_one_run_is_one(tmp_path, second):
    write(tmp_path, "a.log")
    write(tmp_path, "b.log", **second)
    assert refused(tmp_path, "a.log", "b.log") is None


MINDFORMERS = ROOT / "fixtures/mindformers/family-b-1.5/run.log"


def test_files_of_two_formats_are_two_runs(tmp_path):
    write(tmp_path, "a.log")
    (tmp_path / "d").mkdir()
    shutil.copy(MINDFORMERS, tmp_path / "d/worker_0.log")
    (tmp_path / "boot.log").write_text("waiting for the nodes\n")
    logs = ("d/worker_0.log", "a.log")
    assert refused(tmp_path, *logs) == "the format is mindformers in d/worker_0.log, megatron in a.log"
    done = run_logparse("analyze", "--each", *logs, "-q", cwd=tmp_path)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2)
    # What the user says settles it, and a file without a step line is of no format.
    assert run_logparse("analyze", *logs, "--format", "megatron", "-q", cwd=tmp_path).returncode == 0
    assert refused(tmp_path, "boot.log", "a.log") is None


def test_a_file_of_two_formats_is_read_by_the_richest(tmp_path):
    both = MINDFORMERS.read_text(encoding="utf-8") + megatron_line(1) + "\n"
    (tmp_path / "a.log").write_text(both, encoding="utf-8")
    (tmp_path / "boot.log").write_text("waiting for the nodes\n")
    assert refused(tmp_path, "a.log", "boot.log") is None


def test_ranks_of_one_job_may_print_differently(tmp_path):
    write(tmp_path, "job/worker_0.log")
    shutil.copy(MINDFORMERS, tmp_path / "job/worker_1.log")
    assert refused(tmp_path, "job/worker_0.log", "job/worker_1.log") is None


def test_ranks_of_one_job_are_one_run_whatever_their_clocks(tmp_path):
    write(tmp_path, "job/rank_0.log")
    write(tmp_path, "job/rank_1.log", BEGIN + timedelta(minutes=3), loss=0.1)
    assert refused(tmp_path, "job/rank_0.log", "job/rank_1.log") is None


def test_what_the_user_says_settles_it(tmp_path):
    write(tmp_path, "a.log")
    write(tmp_path, "b.log", BEGIN + timedelta(days=1), world_size=16, data_parallel_size=8)
    done = run_logparse("analyze", "a.log", "b.log", "--world-size", "16", "-q", cwd=tmp_path)
    assert done.returncode == 0


def test_one_folder_that_is_no_run_does_not_cost_the_others(tmp_path):
    write(tmp_path, "all/one/a.log")
    write(tmp_path, "all/one/b.log", num_layers=40)
    write(tmp_path, "all/two/a.log")
    done = run_logparse("analyze", "--each", "all", "-q", cwd=tmp_path)
    assert (done.returncode, len(done.stdout.splitlines())) == (2, 1)
    assert "num_layers is 32 in all/one/a.log, 40 in all/one/b.log" in done.stderr


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"loss": 1.0, "global_batch_size": 128}, "global_batch_size is 32 in rank_0.log, 128 in rank_1.log"),
        (
            {"loss": 1.0, "ms": 12_000.0, "last": 25},
            "a step takes 10,000 ms in rank_0.log and 12,000 ms in rank_1.log, and the losses differ",
        ),
        # A rank may print its own loss, and one may be slower to print.
        ({"loss": 1.0}, None),
        ({"ms": 12_000.0, "last": 25}, None),
    ],
)
def test_two_jobs_named_as_ranks_are_no_run(tmp_path, other, reason):
    write(tmp_path, "rank_0.log")
    write(tmp_path, "rank_1.log", **other)
    assert refused(tmp_path, "rank_0.log", "rank_1.log") == reason


LOG = arguments_dump(SETTINGS) + "".join(megatron_line(step, 1000.0) + "\n" for step in range(1, 31))


def analysed(folder, **given):
    (folder / "run.log").write_text(LOG)
    return analyze(str(folder / "run.log"), hw="910b3", **given)


def about_model(run):
    return [note for note in run.notes if note.code == "model_contradicts_log"]


def test_a_model_of_another_shape_changes_no_figure_and_is_the_first_warning(tmp_path):
    plain, other = analysed(tmp_path), analysed(tmp_path, model="gpt3-175b")
    assert other.analysis.rates.equals(plain.analysis.rates)
    assert plain.analysis.value("mfu") is not None
    (note,) = about_model(other)
    assert note.level == "warning"
    assert {name: note.fields[name] for name in ("model", "name", "value", "printed")} == {
        "model": "gpt3-175b",
        "name": "num_layers",
        "value": 96,
        "printed": 32,
    }
    assert "num_layers" not in [n.fields.get("name") for n in other.notes if n.code == "setting_overridden"]


@pytest.mark.parametrize(
    "given", [{"model": "llama2-7b"}, {"model": "llama2-13b", "num_layers": 40, "hidden_size": 5120}]
)
def test_a_model_that_fits_or_whose_sizes_are_flags_too_is_used(tmp_path, given):
    shown = about_model(analysed(tmp_path, **given))
    assert bool(shown) == (given["model"] == "llama2-13b")
    assert [note.fields["name"] for note in shown] == ["num_attention_heads"] * len(shown)
