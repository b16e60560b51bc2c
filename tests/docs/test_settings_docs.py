"""What docs/settings.md shows is what happens."""

import json

import pytest
import regex
from helpers import ROOT, run_logparse, run_shown

from analysis.project.project_file import PROJECT_OPTIONS, VARIABLES
from logparse.schema import QUANTITIES, QUANTITY

pytestmark = pytest.mark.usefixtures("analysed_once")

TEXT = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
(PROJECT,) = regex.findall(r"```toml\n(.*?)```", TEXT, regex.DOTALL)
COMMANDS = [line for block in regex.findall(r"```sh\n(.*?)```", TEXT, regex.DOTALL) for line in block.splitlines()]


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("logparse")])
def test_command_runs(command, tmp_path):
    done = run_shown(command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_project_file_and_the_variable_hold_as_told(tmp_path):
    (tmp_path / "logparse.toml").write_text(PROJECT)
    below = tmp_path / "below"
    below.mkdir()
    shown = run_logparse("config", cwd=below).stdout
    assert all(word in shown for word in ("910b3", "mfu>=0.4", str(tmp_path / "runs").split("/")[-1], "megatron"))
    (asked,) = [command for command in COMMANDS if command.startswith("LOGPARSE_HW=")]
    variable, *words = asked.split()
    name, value = variable.split("=")
    settings = json.loads(run_logparse(*words[1:], cwd=below, **{name: value}).stdout)["settings"]
    assert {s["name"]: s["origin"] for s in settings}["hw"] == "LOGPARSE_HW"


def test_every_key_and_flag_that_is_named_exists():
    keys = {
        key for row in regex.findall(r"^\| (`.+?) \| ", TEXT, regex.MULTILINE) for key in regex.findall(r"`(\w+)`", row)
    }
    assert keys >= PROJECT_OPTIONS.keys()
    assert keys - PROJECT_OPTIONS.keys() <= QUANTITY.keys()
    assert all(name in TEXT for name in VARIABLES)
    assert {q.short for q in QUANTITIES if q.short} <= set(regex.findall(r"`(--\w+)`", TEXT))
