"""SKILL.md and docs/agents.md: every command runs, and the tools are those of the server."""

import inspect
import json

import pytest
import regex
from helpers import ROOT, run_shown

from analysis.commands._readable_root import ReadableRoot
from analysis.commands.mcp import Tools

pytestmark = pytest.mark.usefixtures("analysed_once")

SKILL = (ROOT / "SKILL.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs/agents.md").read_text(encoding="utf-8")
EXAMPLES = [block.splitlines() for block in regex.findall(r"```sh\n(.*?)```", SKILL, regex.DOTALL)]
(COMMAND,) = regex.findall(r"```sh\n(.*?)\n```", PAGE)
ANSWER, CLIENT, CALL = (json.loads(text) for text in regex.findall(r"```json\n(.*?)```", PAGE, regex.DOTALL))


@pytest.mark.parametrize("commands", EXAMPLES, ids=lambda commands: commands[0].split()[1])
def test_a_recipe_runs(commands, tmp_path):
    for command in commands:
        done = run_shown(command, tmp_path)
        assert done.returncode == 0, done.stderr
        if "--compact" in command:
            assert json.loads(done.stdout)["schema_version"] == 2
            assert len(done.stdout) < 6000


def test_the_skill_names_commands_and_exit_codes():
    assert len(EXAMPLES) == 3
    head = regex.match(r"---\nname: logparse\ndescription: (.+)\n---\n", SKILL)
    assert head
    assert len(head[1]) < 1024
    assert regex.findall(r"^\| (\d) \|", SKILL, regex.MULTILINE) == list("01234")


def test_the_example_prints_what_is_shown(tmp_path):
    assert json.loads(run_shown(COMMAND, tmp_path).stdout) == ANSWER


def test_the_tool_answers_as_the_command(monkeypatch):
    monkeypatch.chdir(ROOT / "fixtures")
    assert json.loads(Tools(ReadableRoot.of(ROOT / "fixtures")).analyze(**CALL)) == ANSWER


def test_the_page_lists_the_tools_and_their_arguments():
    rows = dict(regex.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGE, regex.MULTILINE))
    shown = {name: regex.findall(r"`(\w+)`", arguments) for name, arguments in rows.items()}
    public = {name: tool for name, tool in inspect.getmembers(Tools, inspect.isfunction) if not name.startswith("_")}
    assert shown == {name: list(inspect.signature(tool).parameters)[1:] for name, tool in public.items()}
    assert CLIENT["mcpServers"]["logparse"]["args"][0] == "mcp"
