"""What a format reads of a log and what not, with the reason of each line."""

import pytest

from analysis.present.parts import Sentence
from analysis.present.views.format_check import check_document, check_parts
from logparse.draft.check import check_format
from logparse.formats._user import make_format
from logparse.inputs.discovery import find_sources

FORMAT = {
    "marker": ["| time "],
    "head": r"step (?P<step>\d+)/(?P<train_steps>\d+) \|",
    "pair": r"(\w+) ([^|]*?)\s*\|",
    "separator": r"\|",
    "required": ["step", "loss"],
    "labels": {"loss": "loss", "time": {"column": "elapsed_time_per_iteration_ms", "scale": 1000, "suffix": " s"}},
}
GOOD = "step {n}/500 | time 3.25 s | loss 2.5 |"
# A line, why it is not read, and what is told of it.
BAD = {
    "step 7 of 500 | time 3.2 s | loss 2.5 |": ("no_head", r"step (?P<step>\d+)"),
    "step 8/500 | tim 3.2 s | loss 2.5 |": ("no_marker", None),
    "step 9/500 | time 3.2": ("no_pair", None),
    "step 10/500 | time 3.2 s |": ("lacks", "loss"),
    "step 11/500 | time 3.2 ms | loss 2.5 |": ("malformed", "time"),
}


def check(tmp_path, *lines):
    (tmp_path / "run.log").write_text(
        "\n".join(["on 8 devices", *(GOOD.format(n=n) for n in range(1, 6)), *lines]) + "\n"
    )
    fmt = make_format(FORMAT, "ours.toml")
    return fmt, check_format(fmt, find_sources([str(tmp_path / "run.log")]))


def test_all_is_read(tmp_path):
    fmt, found = check(tmp_path)
    assert (found.complete, found.lines, found.read, found.unread.total()) == (True, 6, 5, 0)
    assert found.first_read[0].row == {
        "step": 1,
        "train_steps": 500,
        "elapsed_time_per_iteration_ms": 3250,
        "loss": 2.5,
    }
    assert [(label.label, label.n) for label in found.labels] == [("loss", 5), ("time", 5)]
    assert check_document(fmt, found, ["run.log"])["complete"]


@pytest.mark.parametrize("line", BAD)
def test_a_line_is_not_read_for_a_reason(line, tmp_path):
    fmt, found = check(tmp_path, line)
    reason, told = BAD[line]
    assert not found.complete
    assert reason in found.unread
    shown = next(unread for unread in found.examples if unread.reason == reason)
    assert shown.line_number == 7
    assert told is None or shown.details[0] == told
    assert any(isinstance(part, Sentence) and "line 7" in part.text for part in check_parts(fmt, found, "run.log"))


def test_an_unknown_label_has_its_nearest(tmp_path):
    _, found = check(tmp_path, "step 12/500 | time 3.2 s | loss 2.5 | tim 3 | grad_norm 0.5 |")
    assert {label.label: (label.n, label.value, label.near) for label in found.unknown} == {
        "tim": (1, "3", ("time",)),
        "grad_norm": (1, "0.5", ("grad_norm",)),
    }
    assert found.read == 6
    assert not found.complete
