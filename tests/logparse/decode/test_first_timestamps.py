"""Where a log begins: the earliest stamp before its first step line, by the clock of that line."""

from datetime import datetime

import pytest
from helpers import lines_of

from logparse.decode.first_timestamps import first_stamps


def begins(*lines: str) -> tuple[int, datetime] | None:
    found = first_stamps(lines_of("".join(f"{line}\n" for line in lines), "a.log"), 9)
    return found.select("line_number", "first").row(0) if len(found) else None


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["begin", "[2026-08-18 04:04:34] b", "[2026-08-18 04:05:00] c"], (2, datetime(2026, 8, 18, 4, 4, 34))),
        # Ranks and threads write in no order.
        (["[2026-08-18 04:04:34] b", "[2026-08-18 04:03:32.5] a"], (2, datetime(2026, 8, 18, 4, 3, 32, 500000))),
        # A date of another day is told, not printed by the clock.
        (["[2026-08-18 04:04:34] b", "resumes 2026-08-11 01:00:00"], (1, datetime(2026, 8, 18, 4, 4, 34))),
        # As ``date`` prints it, with and without a zone.
        (["START TIME: Tue Aug 18 04:03:03 CEST 2026"], (1, datetime(2026, 8, 18, 4, 3, 3))),
        (["Sun Aug  2 04:03:03 2026"], (1, datetime(2026, 8, 2, 4, 3, 3))),
        # A container in UTC, before the host's zone.
        (["[2026-08-18 02:04:30] b", "[2026-08-18 04:04:34] c"], (2, datetime(2026, 8, 18, 4, 4, 34))),
        # A logger without a year has a clock of its own.
        (
            ["W0818 04:04:30.5 7 run.py:9] b", "I0818 04:03:30.25 7 a.py:1] a"],
            (2, datetime(1904, 8, 18, 4, 3, 30, 250000)),
        ),
        (["at 04:03:03", "Tue Foo 18 04:03:03 2026"], None),
    ],
)
def test_a_log_begins_at_its_earliest_stamp(lines, found):
    assert begins(*lines) == found
