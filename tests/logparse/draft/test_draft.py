"""A format drafted from an unknown log reads that log, and says what it is not sure of."""

import tomllib

import polars as pl
import pytest

from analysis.present.views.format_draft import draft_toml
from logparse.decode.step_lines import decode_steps
from logparse.draft.draft import draft_format
from logparse.draft.labels import draft_labels
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
        {"step": 50, "train_steps": 500, RUNTIME: 50, "loss": 2.25, "logged_steps_per_second": 1.0},
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
        {"step": 50, "train_steps": 900, "loss": 2.25, "consumed_tokens": 50500},
        {"step_time"},
    ),
    "a batch that took its time": (
        lambda n: f"epoch 1 batch {n} took 1.2{n // 10 % 9} s",
        {"step": 50, "epoch": 1, MS: 1250},
        set(),
    ),
    "a runtime in words": (
        lambda n: (
            f"{{'loss': '{2.3 - n / 1000:.3f}', 'global_step/max_steps': '{n}/900', 'elapsed_time': '1m {n // 10}s'}}"
        ),
        {"step": 50, "loss": 2.25, "runtime_seconds": 65.0},
        set(),
    ),
    "a time and its mean": (
        lambda n: f"iteration {n} | elapsed time per iteration (ms): {400 + n}.5/401.5 | lm_loss: {2.3 - n / 1000:.2f}",
        {"step": 50, "loss": 2.25, MS: 450.5},
        set(),
    ),
    "commas without blanks": (
        lambda n: f"train -- tflops=188.8,step={n},loss={2.3 - n / 1000:.3f},step_time={500 + n % 7}ms,grad_norm=2.5",
        {"step": 50, "loss": 2.25, MS: 501, "grad_norm": 2.5},
        set(),
    ),
    "a colon after the step": (
        lambda n: f"iter {n}: loss {2.3 - n / 1000:.2f}, time {500 + n % 7}.5ms, mfu 41.20%",
        {"step": 50, "loss": 2.25, MS: 501.5, "logged_mfu": 0.412},
        set(),
    ),
    "a step in brackets": (
        lambda n: f"[{n:>5}/  900] loss: {2.3 - n / 1000:.2f}, step_time: 0.5{n // 10 % 9} s, lr: 1.0e-04",
        {"step": 50, "train_steps": 900, "loss": 2.25, MS: 550, "learning_rate": 1e-4},
        set(),
    ),
    "times and rates without labels": (
        lambda n: (
            f"step {n:>4}/900 | loss {2.3 - n / 1000:.6f} (+nanz)| {44 + n % 7}.57 ms | -100.0% bf16 MFU | "
            f"9188{n % 9} tok/s"
        ),
        {"step": 50, "train_steps": 900, "loss": 2.25, MS: 45.57},
        {"tok/s"},
    ),
    "a time without a label behind a comma": (
        lambda n: f"step={n}, loss={2.3 - n / 1000:.2f}, 1.2{n // 10 % 9}s/it",
        {"step": 50, "loss": 2.25, MS: 1250},
        set(),
    ),
    "a time with a unit and a word": (
        lambda n: f"step {n} | loss {2.3 - n / 1000:.2f} | 4.{n // 10 % 9}6 s run",
        {"step": 50, "loss": 2.25, MS: 4560},
        set(),
    ),
    "two rates": (
        lambda n: (
            f"2025-01-01 10:{n // 60:02}:{n % 60:02} | INFO | step {n} | loss {2.3 - n / 1000:.2f} | "
            f"tps 800{n // 10 % 9}.50(100{n // 10 % 9}.25/gpu) | mem 24.90 GiB"
        ),
        {"step": 50, "loss": 2.25, "logged_tokens_per_second": 8005.5, "logged_tokens_per_second_per_device": 1005.25},
        {"mem"},
    ),
    "rates of steps": (
        lambda n: f"Iter {n}: Train loss {2.3 - n / 1000:.3f}, It/sec 0.01{n // 10 % 9}, Tokens/sec 1.4{n // 10 % 9}",
        {"step": 50, "loss": 2.25, "logged_steps_per_second": 0.015},
        {"Tokens/sec"},
    ),
    "a finished bar for each epoch": (
        lambda n: (
            f"part {n // 10} s {n} prog {n / 2:.2f}% : loss {2.3 - n / 1000:.6f} lr 1.0e-04: "
            f"100%|██| 10/10 [00:05<00:00,  2.0{n // 10 % 9}it/s]"
        ),
        {"step": 50, "loss": 2.25, "learning_rate": 1e-4, "logged_steps_per_second": 2.05},
        set(),
    ),
    "milliseconds for each batch": (
        lambda n: (
            f"| epoch   1 | {n:>5}/  983 batches | lr 20.00 | ms/batch 12.{n // 10 % 9} | loss  {2.3 - n / 1000:.2f} |"
        ),
        {"step": 50, "train_steps": 983, "epoch": 1, "learning_rate": 20.0, MS: 12.5, "loss": 2.25},
        set(),
    ),
    "labels of several words between blanks": (
        lambda n: f"steps: {n} loss: {2.3 - n / 1000:.4f} iter time (s): 0.09{n // 10 % 9} samples/sec: 173.2",
        {"step": 50, "loss": 2.25, MS: 95, "logged_samples_per_second": 173.2},
        set(),
    ),
    "glued labels": (
        lambda n: f"iter{n} loss{2.3 - n / 1000:.2f} lr1.0e-04 dt{250 + n % 7}ms",
        {"step": 50, "loss": 2.25, "learning_rate": 1e-4, MS: 251},
        set(),
    ),
    "a step that is glued to its word": (
        lambda n: f"epoch 0 iteration{n}, Loss: {2.3 - n / 1000:.4f}, Train Steps/Sec: 2.5{n // 10 % 9}",
        {"step": 50, "epoch": 0, "loss": 2.25, "logged_steps_per_second": 2.55},
        set(),
    ),
    "a rate of tokens with two slashes": (
        lambda n: f"step {n} | loss {2.3 - n / 1000:.2f} | dur 2.{n // 10 % 9}s | tok/sec/gpu 1365{n % 9}",
        {"step": 50, "loss": 2.25, MS: 2500, "logged_tokens_per_second_per_device": 13655},
        set(),
    ),
    "a prefix with commas and colons": (
        lambda n: (
            f"[INFO, host1:1234, train.py:88, rank:0] step: {n}, loss: {2.3 - n / 1000:.2f}, time: 0.2{n // 10 % 9}s"
        ),
        {"step": 50, "loss": 2.25, MS: 250},
        set(),
    ),
    "minutes since the start": (
        lambda n: f"Iter {n:4d} loss: {2.3 - n / 1000:6.2f} elapsed time: {n / 50:4.1f} min",
        {"step": 50, "loss": 2.25, RUNTIME: 60},
        set(),
    ),
    "a clock": (
        lambda n: f"step {n}: loss={2.3 - n / 1000:.2f} time=10:{n // 60:02}:{n % 60:02} s/step=0.9{n // 10 % 9}",
        {"step": 50, "loss": 2.25, MS: 950},
        {"time"},
    ),
    "steps of an epoch among epochs": (
        lambda n: f"epoch: 48/300, iter: {n}/7393, iter_time: 0.57{n // 10 % 9}s, total_loss: {2.3 - n / 1000:.2f}",
        {
            "step": 47 * 7393 + 50,
            "train_steps": 300 * 7393,
            "epoch": 48,
            "epochs": 300,
            "step_in_epoch": 50,
            "steps_per_epoch": 7393,
            "loss": 2.25,
            MS: 575,
        },
        set(),
    ),
    "steps of a training among epochs": (
        lambda n: f"epoch: 1/5, iter: {n}/1000, iter_time: 0.57{n // 10 % 9}s, total_loss: {2.3 - n / 1000:.2f}",
        {"step": 50, "train_steps": 1000, "epoch": 1, "epochs": 5, "loss": 2.25, MS: 575},
        set(),
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


def test_an_epoch_counter_is_no_step(tmp_path):
    lines = [
        f"epoch {epoch} | it {step} | loss {3 - epoch / 10:.2f} | 12 ms" for epoch in (1, 2, 3) for step in range(1, 9)
    ]
    draft, check = drafted(tmp_path, lines)
    assert check.read == len(lines)
    assert "(?P<epoch>" in draft.head
    assert "(?P<step_in_epoch>" in draft.head
    assert {"epochs", "starts_again"}.isdisjoint(draft.doubts)


def test_two_counters_of_steps_are_a_doubt(tmp_path):
    draft, _ = drafted(tmp_path, [f"iter {2 * n} step {n} | loss {3 - n / 10:.2f} | 12.5 ms" for n in range(1, 9)])
    assert "two_counters" in draft.doubts


def test_one_line_of_a_bar_with_a_loss_is_enough(tmp_path):
    line = "Epoch: 3/3, batch 56 done (loss: 0.68): 100%|████| 57/57 [04:25<00:00,  4.65s/it]"
    draft, check = drafted(tmp_path, ["loading", line])
    assert (check.read, draft.timed) == (1, True)
    assert {"step", "train_steps", RUNTIME, "logged_seconds_per_step"} <= draft.columns


def test_a_record_of_several_lines(tmp_path):
    record = "10:00:00 INFO === step {n} ===\n10:00:00 INFO   loss: {loss:.2f}\n10:00:00 INFO   step time: 0.8{n} s"
    lines = "\n".join(record.format(n=n, loss=3 - n / 10) for n in range(1, 9)).splitlines()
    draft, check = drafted(tmp_path, lines)
    assert check.read == 8
    assert {"step", "loss", MS} <= draft.columns
    table = tomllib.loads(draft_toml(draft, "run.log", check.read, 0))
    text = pl.DataFrame({"source": "run.log", "line_number": range(1, 4), "text": lines[:3], "complete": True})
    (row,) = decode_steps(text, make_format(table, "run.toml")).steps.to_dicts()
    assert (row["step"], row["loss"], row[MS]) == (1, 2.9, 810)


def test_colours_and_quotes_are_written_as_the_reader_reads_them(tmp_path):
    lines = [f"\x1b[31mstep {n}\x1b[0m it's | 'lo\x7fss' {n} | loss {3 - n / 10} | 1{n} ms" for n in range(1, 9)]
    draft, check = drafted(tmp_path, lines)
    table = tomllib.loads(draft_toml(draft, "run.log", check.read, 0))
    assert make_format(table, "run.toml") == make_format(draft.table, "run.toml")


def test_a_table_is_read_by_its_headings(tmp_path):
    rows = [f"{epoch:<8}{0.6 - epoch / 10:.2f}      0.45        00:1{epoch}" for epoch in range(5)]
    draft, check = drafted(tmp_path, ["epoch   train_loss valid_loss   time", *rows])
    assert check.read == len(rows)
    assert "<loss>" in draft.head
    assert {"epochs", "no_time"} <= set(draft.doubts)


@pytest.mark.parametrize("before", ["2026-03-01T08:00:{s:02}.123456789Z ", "host7: ", "worker-0  | "])
def test_a_draft_is_of_the_lines_without_what_tools_put_before_them(tmp_path, before):
    steps = [f"step: {n}, loss: {3 - n / 100:.2f}" for n in range(1, 40)]
    plain, _ = drafted(tmp_path, steps)
    draft, check = drafted(tmp_path, [before.format(s=n) + step for n, step in enumerate(steps)])
    assert (draft.head, draft.marker, check.read) == (plain.head, plain.marker, len(steps))
    # The clock of a collector gives the time.
    assert draft.timed == ("Z" in before)


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


def test_a_value_that_a_cut_line_lost_says_nothing_of_its_label():
    whole, cut = (draft_labels({"loss": ["2.5", "2.4", *more]}, None, {}) for more in ((), ("",)))
    assert [label.reading for label in cut] == [label.reading for label in whole]
    assert whole[0].reading is not None
