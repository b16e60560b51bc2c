"""What docs/failures.md shows is what happens."""

import regex
from helpers import ROOT, run_logparse

from logparse.decode.reader import END_BYTES, MOST_END_BYTES

TEXT = (ROOT / "docs/failures.md").read_text(encoding="utf-8")


def test_the_log_that_is_shown_is_answered_as_shown(tmp_path):
    (log,) = regex.findall(r"```log\n(.*?)```", TEXT, regex.DOTALL)
    (answer,) = regex.findall(r"```text\n(.*?)```", TEXT, regex.DOTALL)
    (tmp_path / "crashed.log").write_text(log)
    done = run_logparse("analyze", "crashed.log", cwd=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("", answer, 3)


def test_the_sizes_are_right():
    assert f"last {END_BYTES >> 10} KiB" in TEXT
    assert f"more than {MOST_END_BYTES // END_BYTES} files" in TEXT
