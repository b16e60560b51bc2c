"""Step lines that a buffer kept back have the stamp of the moment in which it was written out."""

import pytest
from helpers import megatron_line

from logparse.decode.read_run import read_run


def clocks(path, seconds: float, together: int, stamp: str, steps: int = 24) -> tuple[int, list[str]]:
    """How many of the steps of ``seconds`` have a clock, and the notes, where ``together`` are written out at once."""
    lines = []
    for n in range(steps):
        at = int((n // together + 1) * together * seconds)
        lines.append(
            stamp.format(f"{8 + at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}")
            + megatron_line(n + 1, ms=seconds * 1000)
        )
    path.write_text("\n".join(lines) + "\n")
    log = read_run([str(path)])
    return log.steps["timestamp"].count(), [note.code for note in log.notes]


@pytest.mark.parametrize("stamp", ["2026-03-01 {} ", "Mar 01 {} ", "2026-03-01T{}Z "])
@pytest.mark.parametrize(
    ("seconds", "together", "known"), [(5.0, 8, 0), (5.0, 3, 0), (5.0, 1, 24), (0.5, 8, 24)], ids=str
)
def test_a_clock_of_lines_that_came_together_is_none(tmp_path, stamp, seconds, together, known):
    found, notes = clocks(tmp_path / "run.log", seconds, together, stamp)
    assert (found, "stamps_kept_back" in notes) == (known, not known)


@pytest.mark.parametrize(("steps", "known"), [(8, 0), (6, 0), (3, 3)])
def test_a_short_log_that_came_at_once_has_no_clock(tmp_path, steps, known):
    found, notes = clocks(tmp_path / "run.log", 5.0, steps, "2026-03-01 {} ", steps)
    assert (found, "stamps_kept_back" in notes) == (known, not known)
