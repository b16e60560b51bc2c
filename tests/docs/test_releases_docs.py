"""Run the examples of docs/releases.md, gate.md and history.md, in this order and in one folder."""

import pytest
import regex
from helpers import ROOT, run_shown

pytestmark = pytest.mark.usefixtures("analysed_once")

PAGES = ("releases.md", "gate.md", "history.md")
TEXT = "\n".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in PAGES)
BLOCKS = regex.findall(r"```(sh|text|python)([^\n]*)\n(.*?)```", TEXT, regex.DOTALL)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The folder, and every command with its result, in the order of the pages."""
    folder = tmp_path_factory.mktemp("story")
    done = [
        (command, regex.search(r"exit=(\d)", said), run_shown(command, folder))
        for kind, said, text in BLOCKS
        if kind == "sh"
        for command in text.splitlines()
    ]
    return folder, done


def test_every_command_ends_as_the_page_says(told):
    assert len(told[1]) >= 26
    for command, code, done in told[1]:
        assert done.returncode == (int(code[1]) if code else 0), f"{command}: {done.stderr}"


def test_output_is_the_real_one(told):
    shown = [text.rstrip() for kind, _, text in BLOCKS if kind == "text"]
    outputs = ["\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines()) for _, _, done in told[1]]
    assert len(shown) == 5
    assert [text for text in shown if text not in outputs] == []


def test_the_gate_names_the_setting(told):
    (done,) = [done for _, code, done in told[1] if code]
    assert done.returncode == 1
    assert regex.search(r"setting overlap_grad_reduce +True +False", done.stdout)


def test_python_example(told, monkeypatch, capsys):
    monkeypatch.chdir(told[0])
    exec(next(text for kind, _, text in BLOCKS if kind == "python"), {})
    assert "CANN 8.0.RC2" in capsys.readouterr().out
