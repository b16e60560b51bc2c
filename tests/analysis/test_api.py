"""The command's work from Python, as a notebook would use it."""

import json
import subprocess
import sys

import pytest
from helpers import ROOT, megatron_log, run_logparse

import logparse
from analysis.present.words import say
from logparse.errors import UsageError
from logparse.findings import flag

LOG = ROOT / "fixtures/megatron/core-v0.12-llama2-7b/run.log"


def test_a_call_gives_what_the_command_gives(tmp_path):
    command = json.loads(run_logparse("analyze", str(LOG), "--hw", "910b3", "--json", cwd=tmp_path).stdout)
    run = logparse.analyze(LOG, hw="910b3")
    for metric, numbers in command["runs"][0]["metrics"].items():
        assert run.analysis.value(metric) == numbers["median"]
    assert [say(note) for note in run.notes] == [note["text"] for note in command["runs"][0]["notes"]]


def test_quantities_are_given_by_name(tmp_path):
    (tmp_path / "run.log").write_text(megatron_log(world_size=8))
    run = logparse.analyze(tmp_path / "run.log", world_size=16, data_parallel_size=8)
    assert run.context.origin("world_size") == flag("--world-size")
    assert run.context.get("world_size") == 16


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"world_sze": 8}, "unknown quantity 'world_sze'"),
        ({"world_size": 0}, "world_size is 0"),
        ({"world_size": "8"}, "world_size is '8'"),
    ],
)
def test_a_wrong_quantity_is_refused_with_a_remedy(given, said):
    with pytest.raises(UsageError, match=said) as caught:
        logparse.analyze(LOG, **given)
    assert caught.value.remedy


def test_a_notebook_shows_the_answer_and_runs_nothing_of_the_log(tmp_path):
    hostile = tmp_path / "<img src=x onerror=alert(1)>.log"
    hostile.write_text(LOG.read_text())
    shown = logparse.analyze(hostile, hw="910b3")._repr_html_()
    assert "<td>5,008.6</td>" in shown
    assert "<img" not in shown


def test_importing_the_package_is_light():
    code = "import logparse, sys; sys.exit('polars' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_other_name_is_made_up():
    with pytest.raises(AttributeError, match="no attribute 'analyse'"):
        logparse.analyse  # noqa: B018
