"""A number that a cut file ends with may have lost digits: it is no value of the lines near a step line."""

import re

import polars as pl
import pytest
from helpers import ROOT

from logparse.decode.read_run import read_run
from logparse.decode.step_lines import decode_steps
from logparse.decode.values import group_names
from logparse.formats import all_formats

WITH_COMPANIONS = {
    f"{fmt.name} {n}": (fmt, sample)
    for fmt in all_formats()
    for n, sample in enumerate(fmt.samples)
    if fmt.companions and "\n" in sample.text
}


def cut_inside_numbers(text):
    """``text`` up to each place within a number of its last line."""
    last = text.rfind("\n")
    return [text[: at.start() + 1] for at in re.finditer(r"\d(?=[\d.])", text) if at.start() > last]


@pytest.mark.parametrize("case", WITH_COMPANIONS)
def test_a_cut_number_is_no_value(case):
    fmt, sample = WITH_COMPANIONS[case]
    names = {name for companion in fmt.companions for name in group_names(companion.pattern)} - {"timestamp", "part"}
    for text in cut_inside_numbers(sample.text)[-12:]:
        lines = text.split("\n")
        read = {"source": "a.log", "line_number": range(1, len(lines) + 1), "text": lines}
        frame = pl.DataFrame(read).with_columns(complete=pl.col("line_number") < len(lines))
        for row in decode_steps(frame.cast({"line_number": pl.Int64}), fmt).steps.iter_rows(named=True):
            values = {name: row[name] for name in names if row.get(name) is not None}
            assert {name: value for name, value in values.items() if value != pytest.approx(sample.row[name])} == {}


CLOSED = [log for log in sorted(ROOT.glob("fixtures/*/*/run.log")) if log.read_bytes().rstrip()[-1:] in b"])}|"]


@pytest.mark.parametrize("log", [log for log in CLOSED if log.stat().st_size < 4000], ids=lambda log: log.parent.name)
def test_a_closed_last_line_needs_no_newline(log, tmp_path):
    """As of a paste: what closes the line shows that no digit is lost."""
    (tmp_path / "run.log").write_bytes(log.read_bytes().rstrip())
    whole, pasted = read_run([str(log)]), read_run([str(tmp_path / "run.log")])
    assert pasted.steps.drop("source").equals(whole.steps.drop("source"))
    assert pasted.coverage.torn_lines == whole.coverage.torn_lines


def test_of_a_cut_bar_the_last_piece_alone_is_torn(tmp_path):
    log = ROOT / "fixtures/torchtune-bar/two-epochs/run.log"
    whole = read_run([str(log)])
    (tmp_path / "run.log").write_bytes(log.read_bytes().rpartition(b"<00:00,")[0])
    cut = read_run([str(tmp_path / "run.log")])
    assert cut.steps["step"].to_list() == whole.steps["step"].to_list()
