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


def test_of_a_bar_without_its_newline_the_last_piece_alone_is_torn(tmp_path):
    log = ROOT / "fixtures/torchtune-bar/two-epochs/run.log"
    (tmp_path / "run.log").write_bytes(log.read_bytes().rstrip(b"\n"))
    whole, cut = read_run([str(log)]), read_run([str(tmp_path / "run.log")])
    assert cut.steps.drop("source").equals(whole.steps.drop("source"))
    assert cut.coverage.torn_lines == 1
