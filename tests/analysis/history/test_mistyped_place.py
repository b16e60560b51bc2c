"""A history that is not there: an error for every command that reads one. The server is on the loopback."""

import pytest
from helpers import run_logparse
from releases import record, write_run
from s3 import s3

from analysis.history.open_history import open_history
from analysis.history.store import History
from logparse.errors import UsageError

pytestmark = pytest.mark.usefixtures("analysed_once")
__all__ = ["s3"]


def ignore(_):
    """No note is of interest here."""


def test_a_mistyped_folder_of_a_bucket_is_an_error(s3, tmp_path):
    store = open_history("s3://bucket/runs", ignore, must_exist=False)
    store.add(record(write_run(tmp_path / "a.log", 1)))
    assert isinstance(open_history("s3://bucket/runs", ignore), History)
    with pytest.raises(UsageError, match="there is no history in s3://bucket/rusn"):
        open_history("s3://bucket/rusn", ignore)
    listed = run_logparse("history", "list", "--history", "s3://bucket/rusn", cwd=tmp_path)
    assert (listed.returncode, "check the path" in listed.stderr) == (2, True)


def test_the_header_is_the_clock_of_step_lines_without_one(tmp_path):
    """ModelLink prints ``datetime:`` before training and no clock after: a backfill keeps its night."""
    log = write_run(tmp_path / "a.log", 1)
    lines = [line.partition("] ")[2] if line.startswith(" [") else line for line in log.read_text().splitlines()]
    head = "[before the start of training step] datetime: 2026-01-05 20:00:12 "
    (tmp_path / "b.log").write_text("\n".join([head, *lines]) + "\n")
    (begun,) = record(tmp_path / "b.log").summary["begun_at"]
    assert f"{begun}" == "2026-01-05 20:00:12"
