"""Lines without a step of their own: the bar behind them, the epochs they have done; and clocks as numbers."""

from __future__ import annotations

import polars as pl
import pytest
from helpers import lines_of

from logparse.decode.step_lines import decode_steps
from logparse.decode.values import number
from logparse.formats import find_format
from logparse.formats._base import LogFormat, Reading

HF = find_format("hf-trainer")
BANNER = "  Num examples = 1,000\n  Total train batch size (w. parallel, distributed & accumulation) = 8\n"


def steps(text: str) -> list[int]:
    return decode_steps(lines_of(text), HF).steps["step"].to_list()


def entry(epoch: float) -> str:
    return f"{{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': {epoch}}}"


def bar(step: int, clock: str = "00:10") -> str:
    return f" {step}%|█  | {step}/100 [{clock}<01:00,  1.00it/s]"


def test_the_bar_behind_a_dict_has_its_step_also_on_the_line_of_the_next():
    text = f"{bar(9)}\r{entry(0.1)}\n{bar(10)}\r{bar(18)}\r{entry(0.2)}\n{bar(20)}\n"
    assert steps(text) == [10, 20]


def test_a_row_between_two_known_ones_that_are_as_far_apart_as_usual_is_known():
    assert steps(f"{entry(0.1)}\n{bar(10)}\n{entry(0.2)}\n{bar(20)}\n{entry(0.3)}\n{entry(0.4)}\n{bar(40)}\n") == [
        10,
        20,
        30,
        40,
    ]


def test_rows_are_not_counted_where_some_are_missing():
    # 60 is three intervals behind 30, with one row between
    text = "".join(f"{entry(n / 100)}\n{bar(n)}\n" for n in (10, 20, 30)) + f"{entry(0.5)}\n{entry(0.6)}\n{bar(60)}\n"
    assert steps(text) == [10, 20, 30, 60]


def test_rounded_epochs_tell_a_step_because_lines_stand_at_multiples():
    # an epoch has 125 steps; 0.01 of one is more than a step
    text = BANNER + "".join(f"{entry(round(n / 125, 2))}\n" for n in (10, 20, 30, 40))
    assert steps(text) == [10, 20, 30, 40]


def test_an_evaluation_s_banner_is_not_the_training_s():
    text = f"{BANNER}{entry(0.08)}\n  Num examples = 30\n{entry(0.16)}\n"
    assert steps(text) == [10, 20]


def test_without_a_bar_or_a_banner_nothing_tells():
    found = decode_steps(lines_of(f"{entry(0.1)}\n{entry(0.2)}\n"), HF)
    assert (len(found.steps), found.torn) == (0, 2)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("27.5", 27.5),
        ("01:23", 83.0),
        ("1:02:03", 3723.0),
        ("9 days, 21:39:23", 855563.0),
        ("1 day, 0:00:01", 86401.0),
        ("16s", 16.0),
        ("1h 30m 54s", 5454.0),
        ("2d 0h 1m 0s", 172860.0),
        ("", None),
        ("soon", None),
        ("1:2:3:4", None),
    ],
)
def test_a_clock_is_a_number(text: str, seconds: float | None):
    read = pl.DataFrame({"text": [text]}).select(number(pl.col("text"), Reading("runtime_seconds")))
    assert read.to_series().to_list() == [seconds]


SAMPLES = LogFormat(
    name="samples",
    title="a trainer that counts samples of an epoch",
    marker=("epoch=",),
    head=r"epoch=(?P<epoch>\d+) (?:(?P<samples_in_epoch>\d+)/(?:(?P<epoch_samples>\d+)|\?)|step=(?P<step>\d+))",
    pair="",
    labels={},
    required=("step",),
    first_epoch=0,
)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        # Five batches of 8 fit into an epoch.
        (["0 8/43", "0 24/43", "0 40/43", "1 8/43"], [1, 3, 5, 6]),
        (["0 8/43", "0 step=2", "1 8/43"], [1, 2, 6]),
        (["0 8/?", "0 24/?"], [1, 3]),
        # Its beginning is lost: 24 may be three batches or one.
        (["0 24/43", "0 40/43"], []),
    ],
)
def test_samples_of_an_epoch_tell_the_step_by_the_batch_of_its_first_line(printed, expected):
    lines = "".join(f"epoch={text}\n" for text in printed)
    assert decode_steps(lines_of(lines), SAMPLES).steps["step"].to_list() == expected


def epoch_bar(n: int, total: int = 20, epoch: int = 0) -> str:
    return f"Epoch {epoch}:  50%|█  | {n}/{total} [00:{n:02d}<00:10,  1.00it/s, loss=2.5, v_num=7]"


def validation(n: int) -> str:
    return f"Validating:  50%|█  | {n}/4 [00:01<00:01,  4.00it/s]"


@pytest.mark.parametrize(
    ("first", "steps_of"),
    [(17, [1, 6, 7, 10, 11, 16, 17]), (7, [1, 6, 7, 12, 13])],
    ids=["one validation of 4 at the end of 20", "two, each after 6 steps"],
)
def test_batches_of_validation_are_no_steps(first: int, steps_of: list[int]) -> None:
    before = [epoch_bar(n) for n in (1, 6, 7, 10, 11, 16) if n < first]
    after = [line for n in range(first, first + 4) for line in (validation(n - first + 1), epoch_bar(n))]
    rest = [epoch_bar(n) for n in (11, 16, 17, 20) if n >= first + 4]
    next_epoch = [epoch_bar(1, epoch=1)]
    lines = "\n".join([*before, *after, *rest, *next_epoch]) + "\n"
    assert decode_steps(lines_of(lines), find_format("lightning-1")).steps["step"].to_list() == steps_of


def test_validation_at_an_unknown_place_gives_no_steps() -> None:
    lines = "\n".join([epoch_bar(2), validation(1), epoch_bar(3)]) + "\n"
    assert decode_steps(lines_of(lines), find_format("lightning-1")).steps.is_empty()


def test_the_last_record_of_a_training_repeats_its_last_step():
    record = (
        '{{"current_steps": {step}, "total_steps": 30, {loss}"epoch": {epoch}, "percentage": 1.0, '
        '"elapsed_time": "{time}"}}'
    )
    rows = [
        record.format(step=step, loss=f'"loss": 0.{step}, "lr": 1e-05, ', epoch=step / 10, time=f"0:00:{step}")
        for step in (10, 20, 30)
    ]
    text = "\n".join([*rows, record.format(step=30, loss="", epoch=3.0, time="0:00:30")])
    assert decode_steps(lines_of(text), find_format("llama-factory")).steps["step"].to_list() == [10, 20, 30]


@pytest.mark.parametrize(("planned", "last"), [(34, 34), (36, 36)])
def test_the_plan_says_whether_the_last_batches_of_an_epoch_are_a_step(planned, last):
    """2,182 samples in batches of 128 fill 17 steps, and a part of another one."""
    banner = (
        "  Num examples = 2,182\n  Num Epochs = 2\n  Total train batch size (w. parallel) = 128\n"
        f"  Total optimization steps = {planned}\n"
    )
    text = banner + "".join(f"{entry(2 * n / planned)}\n" for n in range(2, planned + 1, 2))
    assert steps(text)[-1] == last
