"""An ending is kept whole, and one of an old history, or with fields of a newer logparse, is read all the same."""

import json
from dataclasses import replace

import pytest
from releases import record, write_run

from analysis.history.kept_endings import keep_ending, read_ending
from analysis.history.run_records import RUN_COLUMNS, conform_runs
from analysis.present.views.ending import headline
from logparse.failures.ending import Attempt, Ending
from logparse.failures.evidence import FailureLine
from logparse.failures.frames import Frame
from logparse.failures.ranks.suspicions import Suspect, Suspicion

LINE = FailureLine("run.log", 7, "CUDA out of memory", "root", "device_memory", None)
ATTEMPT = Attempt(1, 85, 30, "failed", "device_memory", "device.torch", 7, "CUDA out of memory", None, "n1")
ENDINGS = [
    Ending("unknown"),
    Ending("completed", "completed", "established", step=9, planned_steps=9),
    Ending(
        *("failed", "device_memory", "established", "device.torch", "run.log", 7, "CUDA out of memory"),
        evidence=(LINE,),
        suspects=(Suspect(3, None, (Suspicion(3, "silent", n=7, of=8),)), Suspect(0, "n1", (), (0, 1))),
        frames=(Frame("train.py", 12, "main", None, own=True),),
        same_ranks=(1, 2),
        attempts=(ATTEMPT, ATTEMPT),
        repeated=2,
        restart_helps=False,
    ),
    Ending("cut_off", printed_last=LINE),
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


def test_a_recorded_time_out_with_a_suspect_is_named_in_a_comparison(tmp_path):
    wait = (
        "[rank{0}]:[E117 07:42:01.1 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600010 milliseconds\n"
    )
    log = write_run(tmp_path / "a.log", 1)
    log.write_text(log.read_text() + "".join(map(wait.format, range(1, 8))))
    ending = read_ending(record(log).summary.row(0, named=True))
    assert headline(ending).endswith("ranks 1 to 7 waited for a missing rank")
