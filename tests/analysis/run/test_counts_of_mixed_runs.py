"""Of runs that write to one file at the same time no start is counted, and no lost step."""

import json

import pytest
from helpers import arguments_dump, megatron_line, run_logparse


@pytest.mark.parametrize("turn", [1, 3, 10])
def test_the_counts_of_mixed_runs_are_null(tmp_path, turn):
    lines = arguments_dump({"world_size": 8}).splitlines()
    for first in range(1, 61, turn):
        for begun, ms in ((0, 1000.0), (200, 1300.0)):
            lines += [megatron_line(begun + step, ms + step % 3) for step in range(first, first + turn)]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    (run,) = json.loads(run_logparse("analyze", "run.log", "--json", cwd=tmp_path).stdout)["runs"]
    assert "runs_mixed" in [note["code"] for note in run["notes"]]
    counts = (run["starts"], run["lost_steps"], *map(run["reliability"].get, ("interruptions", "lost_steps")))
    assert set(counts) == {None}
