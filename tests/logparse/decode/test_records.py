"""Lines beside the step lines: each becomes a row of its frame, and belongs to the right step."""

from datetime import datetime
from typing import get_args

import polars as pl
import pytest
from helpers import lines_of, megatron_line

from logparse.decode.records import find_records, join_records
from logparse.decode.step_lines import decode_steps
from logparse.decode.values import clock, since_1970
from logparse.formats.megatron import FORMAT
from logparse.schema import RECORD_COLUMNS, EventKind

MIB = 2**20


def decode(*lines: str, source: str = "run.log") -> dict[str, pl.DataFrame]:
    return records_of(lines_of("".join(f"{line}\n" for line in lines), source))


def records_of(*blocks: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The records of a log that is read in ``blocks``."""
    found = [find_records(block, [FORMAT]) for block in blocks]
    return join_records(found, decode_steps(pl.concat(blocks), FORMAT).steps, FORMAT)


@pytest.mark.parametrize(
    "text", ["7258118400000", "253402300800000", "123456789012345678", "9223372036854775808", "-1", "x", ""]
)
def test_milliseconds_of_a_year_of_no_training_are_no_time(text):
    times = pl.select(since_1970(pl.Series([text, "7258118399000", "0"]))).to_series()
    assert times.to_list() == [None, datetime(2199, 12, 31, 23, 59, 59), datetime(1970, 1, 1)]


EVENTS = {
    "[after megatron is initialized] datetime: 2026-03-01 08:00:00 ": ("process starts", None),
    "time to initialize megatron (seconds): 44.810": ("initialized", None),
    "    model-and-optimizer-setup ......................: (4000.00, 4266.83)": ("model setup", None),
    "time (ms) | model-and-optimizer-set-up: 1 | train/valid/test-data-iterators-setup: 486.35": ("data setup", None),
    "[before the start of training step] datetime: 2026-03-01 08:00:00 ": ("training starts", None),
    "  successfully loaded checkpoint from ckpt [ t 0, p 0 ] at iteration 50": ("checkpoint loaded", 50),
    "saving checkpoint at iteration      50 to ckpt in torch_dist format": ("save starts", 50),
    "  successfully saved checkpoint at iteration      50 to ckpt": ("save ends", 50),
    "  successfully saved checkpoint from iteration      50 to ckpt [ t 1/1, p 1/1 ]": ("save ends", 50),
    "[after training is done] datetime: 2026-03-01 09:00:00 ": ("training ends", None),
    "[exiting program at iteration 200] datetime: 2026-03-01 09:00:00 ": ("process exits", 200),
}


@pytest.mark.parametrize("line", EVENTS)
def test_an_event_has_its_kind_and_the_step_it_names(line):
    assert decode(line)["events"].select("line_number", "kind", "step").rows() == [(1, *EVENTS[line])]


def test_every_kind_of_event_is_in_the_schema():
    # Where a log begins no pattern tells, but its first stamp.
    assert {kind for kind, _ in EVENTS.values()} | {"log begins"} == set(get_args(EventKind))


def test_an_event_has_the_clock_of_its_line_or_none():
    found = decode(
        "[before the start of training step] datetime: 2026-03-01 08:00:00 ", "saving checkpoint at iteration 5"
    )
    assert found["events"]["timestamp"].to_list() == [datetime(2026, 3, 1, 8), None]


def test_an_evaluation_has_its_set_loss_and_perplexity():
    line = " validation loss at iteration 100 | lm loss value: 2.500000E+00 | lm loss PPL: 1.218249E+01 | "
    (row,) = decode(line)["evaluations"].select("step", "dataset", "loss", "perplexity").rows()
    assert row == (100, "validation", 2.5, 12.18249)


def test_memory_is_in_bytes_and_has_its_rank():
    line = (
        "[Rank 3] (after 1 iterations) memory (MB) | allocated: 10.5 | max allocated: 20.0 | reserved: 30.0 | "
        "max reserved: 40.0"
    )
    found = decode(line)["memory"]
    assert found.select("kind", "step", "rank", "allocated_bytes", "max_reserved_bytes").rows() == [
        ("measured", 1, 3, 10.5 * MIB, 40 * MIB)
    ]


def test_a_timer_belongs_to_the_step_line_before_it():
    block = "    forward-backward ...............................: (1000.25, 1002.50)"
    found = decode(block, megatron_line(10), block, megatron_line(20), block)["timers"]
    assert found.select("step", "name", "min_ms", "max_ms").rows() == [
        (step, "forward-backward", 1000.25, 1002.5) for step in (None, 10, 20)
    ]


def test_all_timers_of_one_line_are_rows():
    found = decode(megatron_line(10), "time (ms) | forward: 100.50 | backward: 200.25 | optimizer: 3.00")["timers"]
    assert found.select("step", "name", "max_ms").rows() == [
        (10, "forward", 100.5),
        (10, "backward", 200.25),
        (10, "optimizer", 3.0),
    ]


def test_rows_stand_in_the_order_of_their_lines():
    found = decode(*reversed(EVENTS))["events"]
    assert found["line_number"].to_list() == list(range(1, len(EVENTS) + 1))
    assert found["kind"].to_list() == [kind for kind, _ in reversed(EVENTS.values())]


def test_a_log_without_such_lines_has_empty_frames_of_the_schema():
    for name, frame in decode(megatron_line(1)).items():
        assert (frame.columns, len(frame)) == ([c.name for c in RECORD_COLUMNS[name]], 0)


def test_a_step_line_of_another_file_is_not_the_one_before():
    timer = "    forward ...............................: (1.00, 2.00)"
    found = records_of(lines_of(megatron_line(10) + "\n", "a.log"), lines_of(f"\n\n{timer}\n", "b.log"))["timers"]
    assert found.select("source", "step").rows() == [("b.log", None)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[2026-03-01 08:00:00] words", datetime(2026, 3, 1, 8)),
        ("2026-03-01 08:00:00,250 - words", datetime(2026, 3, 1, 8, 0, 0, 250_000)),
        ("2026-03-01T08:00:00.5 words", datetime(2026, 3, 1, 8, 0, 0, 500_000)),
        ("2026/03/01 08:00:00 - words", datetime(2026, 3, 1, 8)),
        ("2026-03-01,08:00:00,250 | words", datetime(2026, 3, 1, 8, 0, 0, 250_000)),
        ("launcher 2026-03-01 07:59:00 | 2026-03-01 08:00:00 words", datetime(2026, 3, 1, 8)),
        ("2026-13-01 08:00:00 words", None),
        ("08:00:00 words", None),
    ],
)
def test_the_clock_of_a_line_is_its_last_stamp(text, expected):
    assert pl.DataFrame({"text": [text]}).select(clock(pl.col("text"))).item() == expected


def test_memory_on_the_step_line_is_memory_too():
    """MindSpeed-LLM's FSDP2 backend prints it in GiB: 19.5 GiB is 19.5 x 1024 MiB."""
    line = megatron_line(7, pairs={"max_memory_allocated(GB)": "19.5", "max_memory_reserved(GB)": "20.0"})
    (row,) = decode(line)["memory"].to_dicts()
    assert (row["kind"], row["step"]) == ("measured", 7)
    assert row["max_allocated_bytes"] == 19.5 * 1024 * MIB
    assert row["max_reserved_bytes"] == 20.0 * 1024 * MIB
