"""An ending is kept whole, and one of an old history, or with fields of a newer logparse, is read all the same."""

import json
from dataclasses import replace

import pytest
from releases import record, write_run

from analysis.history.kept_endings import keep_ending, read_ending
from analysis.history.records import RUN_COLUMNS, conform_runs
from logparse.failures.ending import Attempt, Ending
from logparse.failures.evidence import FailureLine

LINE = FailureLine("run.log", 7, "CUDA out of memory", "root", "device_memory", None)
ATTEMPT = Attempt(1, None, 30, "failed", "device_memory", "device.torch", 7, "CUDA out of memory", None, "n1")
ENDINGS = [
    Ending("unknown"),
    Ending("completed", "completed", "established", step=9, planned_steps=9),
    Ending(
        *("failed", "device_memory", "established", "device.torch", "run.log", 7, "CUDA out of memory"),
        evidence=(LINE,),
        suspects=(3, 0),
        attempts=(ATTEMPT, ATTEMPT),
        repeated=2,
        restart_helps=False,
    ),
]


def row(ending, **more):
    return {"ending": keep_ending(ending), "ending_state": ending.state, "crashed_at": None, **more}


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_kept_is_read(ending):
    assert read_ending(row(ending)) == ending


def test_no_folder_is_kept():
    moved = Ending("failed", source="/data/run.log", evidence=(replace(LINE, source="/data/run.log"),))
    assert "/data" not in (keep_ending(moved) or "")
    assert read_ending(row(moved)).evidence == (LINE,)


def test_fields_of_a_newer_version_are_ignored():
    kept = json.loads(keep_ending(ENDINGS[2]) or "") | {"novelty": 1}
    kept["attempts"][0]["more"] = "x"
    assert read_ending(row(ENDINGS[2]) | {"ending": json.dumps(kept)}) == ENDINGS[2]


def test_of_an_old_record_only_a_crash_is_known(tmp_path):
    since = [column.name for column in RUN_COLUMNS if column.name.startswith("ending")]
    old = record(write_run(tmp_path / "a.log", 1)).summary.drop(since)
    assert "ending" not in old.columns
    for step, state in ((None, "unknown"), (20, "failed")):
        read = conform_runs(old.with_columns(crashed_at=step)).row(0, named=True)
        assert (read["ending_state"], read["ending_family"], read["ending"]) == (state, "unknown", None)
        assert read_ending(read) == Ending(state, step=step)


def test_another_ending_is_no_difference(tmp_path):
    """A later version may know more of an ending."""
    new = record(write_run(tmp_path / "a.log", 1))
    assert new.differences(new.summary.with_columns(ending=None, ending_state=None, device_hours=None)) == []
