"""A log that was cut into files in order is one log: the same rows and figures, each place in its own file."""

import json
import random

import polars as pl
import pytest
from helpers import ROOT, arguments_dump, megatron_line

import logparse
from analysis.present.views.analyze_json import document
from logparse.errors import LogparseError, NoStepLineError

FIXTURES = ROOT / "fixtures"
PLACE = ("run", "source", "line_number")
# What says where a value is from.
OF_PLACES = {"name", "text", "sources", "source", "origin", "from", "line", "line_number", "recompute_origin", "lines"}
KINDS = ("hf-trainer/standard-output-alone", "rounds/v5.0-result_0", "megatron/messy", "keras/eight-epochs")
DUMP = arguments_dump({"world_size": 8, "log_interval": 1})


def figures(value):
    if isinstance(value, dict):
        return {key: figures(part) for key, part in value.items() if key not in OF_PLACES}
    return [figures(part) for part in value] if isinstance(value, list) else value


def answer(*logs):
    """Rows and figures without their places, and the line of each row in the whole log."""
    try:
        run = logparse.analyze(*map(str, logs))
    except LogparseError as error:
        return type(error).__name__, None, []
    places = list(run.steps["source", "line_number"].iter_rows())
    return figures(json.loads(json.dumps(document([run])))), run.steps.drop(PLACE), places


def cut(folder, log, at, names=("run.log.1", "run.log.2")):
    """``log`` in two files, the second of which begins after line ``at``."""
    lines = [line + b"\n" for line in log.read_bytes().removesuffix(b"\n").split(b"\n")]
    parts = [folder / name for name in names]
    for part, text in zip(parts, (lines[:at], lines[at:]), strict=True):
        part.write_bytes(b"".join(text))
    return parts


def assert_same(folder, log, at):
    whole, steps, places = answer(log)
    parts = cut(folder, log, at)
    cut_whole, cut_steps, cut_places = answer(*parts)
    assert cut_whole == whole, (log, at)
    if steps is not None:
        assert cut_steps.equals(steps)
        before = {str(parts[0]): 0, str(parts[1]): parts[0].read_bytes().count(b"\n")}
        assert [before[source] + line for source, line in cut_places] == [line for _, line in places]


def between_steps(log):
    """The lines after which ``log`` is cut: from its first step line on, and before its last.

    Of files of which one has no step only stamps show the order.
    """
    try:
        steps = logparse.analyze_many(log)[0].steps
    except NoStepLineError:
        return range(0)
    return range(steps["line_number"].min(), steps["line_number"].max())


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_cut_at_any_line_is_one_log(tmp_path, kind):
    (log, *_) = sorted(FIXTURES.glob(f"{kind}*/*.log")) or sorted(FIXTURES.glob(f"{kind}*.log"))
    assert_same(tmp_path, log, random.Random(kind).choice(between_steps(log)))


@pytest.mark.sweep
@pytest.mark.parametrize("log", sorted(FIXTURES.rglob("*.log")), ids=lambda log: log.relative_to(FIXTURES).as_posix())
def test_every_log_cut_at_any_line_is_one_log(tmp_path, log):
    lines = between_steps(log)
    for at in random.Random(log.name).sample(lines, min(3, len(lines))):
        assert_same(tmp_path, log, at)


def written(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.log").write_text(text)
    return [folder / f"{name}.log" for name in texts]


def steps(first, last, ms=1000.0):
    return "".join(f"{megatron_line(step, ms + step % 7)}\n" for step in range(first, last + 1))


def test_a_log_cut_within_a_line_loses_no_row(tmp_path):
    text = DUMP + steps(1, 60)
    run = logparse.analyze(*map(str, written(tmp_path, run1=text[:-2000], run2=text[-2000:])))
    assert (run.steps["step"].to_list(), run.log.coverage.torn_lines) == (list(range(1, 61)), 0)
    (first,) = run.steps.filter(pl.col("source").str.ends_with("run2.log"))["line_number"][:1]
    assert first == 2


def test_a_log_cut_within_its_settings_keeps_them(tmp_path):
    text = DUMP + steps(1, 40)
    run = logparse.analyze(*map(str, written(tmp_path, run1=text[: len(DUMP) // 2], run2=text[len(DUMP) // 2 :])))
    assert run.context.get("world_size") == 8


def test_files_of_processes_that_print_no_step_stay_apart(tmp_path):
    """Rank 0 of four prints the settings and the last one the steps, under names that tell no rank."""
    run = logparse.analyze(*map(str, written(tmp_path, r0=DUMP, r3=steps(1, 40))))
    assert (run.log.parts, run.context.get("world_size")) == ((), 8)


def test_rotated_files_are_read_in_the_order_of_their_steps(tmp_path):
    """The names alone would put run.log first; a slow first line in a file is no start of its own here."""
    (tmp_path / "run.log.1").write_text(DUMP + steps(1, 40))
    (tmp_path / "run.log").write_text(steps(41, 41, 9000.0) + steps(42, 60))
    run = logparse.analyze(str(tmp_path))
    assert (run.steps["step"].to_list(), len(run.segments)) == (list(range(1, 61)), 1)


def test_parts_are_read_by_their_numbers_in_whatever_order_they_are_named(tmp_path):
    names = written(tmp_path, **{f"run{n}": (DUMP if n == 1 else "") + steps(10 * n - 9, 10 * n) for n in range(1, 12)})
    run = logparse.analyze(*sorted(map(str, names)))
    assert (run.steps["step"].to_list(), len(run.segments), len(run.log.parts)) == (list(range(1, 111)), 1, 11)


@pytest.mark.parametrize(
    "second",
    [DUMP + steps(41, 60), steps(1, 60), DUMP + steps(1, 60)],
    ids=["a new start", "a copy of another process", "another run"],
)
def test_what_does_not_go_on_stays_apart(tmp_path, second):
    run = logparse.analyze(*map(str, written(tmp_path, run1=DUMP + steps(1, 40), run2=second)))
    assert run.log.parts == ()
    assert run.steps["step"].n_unique() == 60


def test_the_line_of_a_failure_is_in_its_own_file(tmp_path):
    failed = "Traceback (most recent call last):\nRuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n"
    names = written(tmp_path, run1=DUMP + steps(1, 40), run2=steps(41, 60) + failed)
    for ending in (logparse.analyze(*map(str, names)).ending, logparse.diagnose(*map(str, names))):
        assert (ending.source, ending.line) == (str(names[1]), 22)
