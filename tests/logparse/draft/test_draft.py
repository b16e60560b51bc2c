"""A format drafted from an unknown log reads that log, and says what it is not sure of."""

import tomllib

import polars as pl
import pytest

from analysis.present.views.format_draft import draft_toml
from logparse.decode.step_lines import decode_steps
from logparse.draft.draft import draft_format
from logparse.errors import NoStepLineError
from logparse.formats._user import make_format
from logparse.inputs.discovery import find_sources

STEPS = range(10, 200, 10)
PLACE = ("source", "line_number", "timestamp")
MS, RUNTIME = "elapsed_time_per_iteration_ms", "runtime_seconds"


def bar(step):
    return "=" * (step // 20) + ">" + "." * (10 - step // 20)


# What a log prints for a step; the columns that are read, with their values of step 50; the labels that are not sure.
LOGS = {
    "by hand": (
        lambda n: f"Epoch 1 | Step {n}/5000 | loss {2.3 - n / 1000:.2f} | 0.4{n // 10 % 9} s/it",
        {"step": 50, "train_steps": 5000, "epoch": 1, "loss": 2.25, MS: 450},
        set(),
    ),
    "Keras": (
        lambda n: f"{n}/500 [{bar(n)}] - ETA: 3:2{n % 7} - loss: {2.3 - n / 1000:.4f} - accuracy: 0.51",
        {"step": 50, "train_steps": 500, "loss": 2.25},
        set(),
    ),
    "JSON, step last": (
        lambda n: f'{{"loss": {2.3 - n / 1000:.3f}, "lr": 0.0001, "time_ms": {450 + n % 7}, "step": {n}}}',
        {"step": 50, "loss": 2.25, "learning_rate": 0.0001, MS: 451},
        set(),
    ),
    "tqdm": (
        lambda n: (
            f"Train: {n // 5}%|{'█' * (n // 50)}  | {n}/500 [0{n // 60}:{n % 60:02}<05:20, 1.0it/s, "
            f"loss={2.3 - n / 1000:.3f}]DLL x"
        ),
        {"step": 50, "train_steps": 500, RUNTIME: 50, "loss": 2.25},
        set(),
    ),
    "units by the clock": (
        lambda n: (
            f"2025-01-01 10:{n // 60:02}:{n % 60:02},123 INFO [rank0] iter: {n} loss: {2.3 - n / 1000:.2f} "
            f"time: 1.0{n // 10 % 3} tok/s: 12,34{n % 9} data: 0.1 mem: 34.5GB"
        ),
        {"step": 50, "loss": 2.25, MS: 1020},
        {"tok/s", "mem"},
    ),
    "a thousand behind a number": (
        lambda n: f"iteration: {n} / 900 | consumed_tokens: {n}.5K | lm_loss: {2.3 - n / 1000:.2f} | step_time: 1.5 |",
        {"step": 50, "train_steps": 900, "loss": 2.25},
        {"consumed_tokens", "step_time"},
    ),
}


def drafted(tmp_path, lines):
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return draft_format(find_sources([str(tmp_path / "run.log")]))


@pytest.mark.parametrize("name", LOGS)
def test_a_draft_reads_its_log(name, tmp_path):
    line, wanted, unsure = LOGS[name]
    lines = ["starting 8 workers on 2 hosts", *map(line, STEPS), "done"]
    draft, check = drafted(tmp_path, lines)
    assert (check.read, check.unread.total()) == (len(STEPS), 0)
    assert {label.label for label in draft.labels if label.may_be and not label.reading} == unsure
    table = tomllib.loads(draft_toml(draft, "run.log", check.read, 0))
    assert make_format(table, "run.toml") == make_format(draft.table, "run.toml")
    text = pl.DataFrame({"source": "run.log", "line_number": [1], "text": [line(50)], "complete": True})
    (row,) = decode_steps(text, make_format(table, "run.toml")).steps.drop(PLACE).to_dicts()
    assert {column: value for column, value in row.items() if value is not None} == pytest.approx(wanted)


def test_a_table_is_read_by_its_headings(tmp_path):
    rows = [f"{epoch:<8}{0.6 - epoch / 10:.2f}      0.45        00:1{epoch}" for epoch in range(5)]
    draft, check = drafted(tmp_path, ["epoch   train_loss valid_loss   time", *rows])
    assert check.read == len(rows)
    assert "<loss>" in draft.head
    assert {"epochs", "no_time"} <= set(draft.doubts)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["loading", "loaded", "done in 3 s"], "no repeated line has a number that grows"),
        ([f"Epoch {n}/9" for n in range(1, 9)], "lines with a step number have no other labelled value: 'Epoch"),
    ],
)
def test_nothing_to_draft_is_an_error_of_three_parts(lines, said, tmp_path):
    with pytest.raises(NoStepLineError) as refused:
        drafted(tmp_path, lines)
    assert said in refused.value.problem
    assert "run.log" in refused.value.where
    assert refused.value.remedy
