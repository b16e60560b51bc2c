"""The Python API and the command give the same document of every fixture. Here each of them reads the log itself."""

import contextlib
import json

import pytest
from fixture_runs import FOLDERS, name_of
from helpers import run_logparse

import logparse
from logparse.errors import InputError
from logparse.formats import all_formats


def printed(*arguments, cwd):
    return json.loads(run_logparse("analyze", *arguments, "--json", cwd=cwd).stdout)["runs"]


def plain(value):
    return json.loads(json.dumps(value))


# A second each: some with every landing, all of them with `make explore`.
@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(folder, marks=pytest.mark.sweep if n % 15 else pytest.mark.slow, id=name_of(folder))
        for n, folder in enumerate(FOLDERS)
    ],
)
def test_a_call_gives_what_the_command_gives_of_every_fixture(folder):
    logs = sorted(path.name for path in folder.glob("*.log"))
    with contextlib.chdir(folder):
        whole = plain(logparse.analyze(*logs).to_dict())
    assert printed(*logs, cwd=folder) == [whole]
    if len(logs) == 1:
        with contextlib.chdir(folder):
            many = [plain(run.to_dict()) for run in logparse.analyze_many(logs)]
        assert printed("--each", *logs, cwd=folder) == many


def test_a_log_of_several_trainings_gives_the_runs_of_the_command(tmp_path):
    samples = next(fmt.samples for fmt in all_formats() if fmt.name == "internevo")
    (tmp_path / "run.log").write_text("".join(f"{sample.text}\n" for sample in samples))
    command = printed("run.log", cwd=tmp_path)
    with contextlib.chdir(tmp_path):
        assert [run["name"] for run in command] == [run.name for run in logparse.analyze_many("run.log")]
        with pytest.raises(InputError, match="the log contains 2 separate runs") as caught:
            logparse.analyze("run.log")
    assert caught.value.remedy == "use logparse.analyze_many() to analyze every run"
