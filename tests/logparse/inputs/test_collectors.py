"""Logs that collectors wrap line by line: docker's records of JSON, the stamps of kubectl and containerd."""

import itertools
import json
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest
from fixture_runs import FIXTURES, name_of, run_of_fixture

from logparse.decode.read_run import read_run
from logparse.inputs.collectors import lines_of_records

FORMATS = sorted({run.parents[1]: run.parent for run in FIXTURES.glob("*/*/run.log")}.values())
COLLECTORS = {
    "docker": lambda line: json.dumps({"log": f"{line}\n", "stream": "stderr"}),
    "kubectl with stamps": "2025-03-04T05:06:07.123456789Z {}".format,
    "containerd": "2025-03-04T05:06:07.123456789+08:00 stdout F {}".format,
}


def test_every_format_is_read_from_a_collector(tmp_path):
    """Each collector has a third of the formats."""
    pairs = zip(FORMATS, itertools.cycle(COLLECTORS), strict=False)
    assert [wrong for folder, collector in pairs for wrong in _read_otherwise(folder, [collector], tmp_path)] == []


@pytest.mark.sweep
@pytest.mark.parametrize("folder", FORMATS, ids=map(name_of, FORMATS))
def test_every_format_is_read_from_each_collector(tmp_path, folder):
    assert _read_otherwise(folder, COLLECTORS, tmp_path) == []


def _read_otherwise(folder: Path, collectors: Iterable[str], place: Path) -> list[tuple[str, str]]:
    """The collectors whose steps and settings are not those of the log itself; the clock may be the collector's."""
    log = folder / "run.log"
    text = log.read_bytes().decode("utf-8", "replace")
    plain, path, wrong = run_of_fixture(folder).log, place / "run.log", []
    for collector in collectors:
        lines = [COLLECTORS[collector](line) for line in text.removesuffix("\n").split("\n")]
        path.write_text("\n".join(lines) + "\n" * text.endswith("\n"), encoding="utf-8")
        collected = read_run([str(path)])
        pairs = ((collected.steps, plain.steps), (collected.settings, plain.settings))
        if not all(_without_names(one).equals(_without_names(other)) for one, other in pairs):
            wrong.append((name_of(folder), collector))
    return wrong


def _without_names(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop("source", "run", "timestamp", strict=False)


@pytest.mark.parametrize(
    ("records", "lines"),
    {
        "a line after its time": (
            ['{"log":"a\\n","stream":"stdout","time":"2025-03-04T05:06:07Z"}'],
            ["2025-03-04T05:06:07Z a"],
        ),
        "several lines of one record": (['{"level":"error","message":"a\\nb"}'], ["a\\nb"]),
        "a line that is no record": (['{"log":"a\\n"}', "b"], ["a", "b"]),
        "metrics of a trainer": (['{"message":"step","loss":2.5}'], ['{"message":"step","loss":2.5}']),
        "a number for a line": (['{"message":3}'], ['{"message":3}']),
        "an empty line": (['{"log":"\\n"}', '{"log":"a"}'], ["", "a"]),
        "a line before the first record": (["a", '{"log":"b"}'], ["a", "b"]),
        "a half of a character": (['{"log":"a \\ud83d"}'], ["a ?"]),
        "a list": (["{", '"log": 1', "}"], ["{", '"log": 1', "}"]),
    }.values(),
)
def test_lines_of_records(records, lines):
    """Only what collectors and loggers write is unwrapped."""
    assert lines_of_records("\n".join(records).encode()) == "\n".join(lines).encode()
