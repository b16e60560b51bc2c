"""Run the examples of docs/regressions.md, in their order, in one folder. The chat is a closed port of the loopback."""

import pytest
import regex
from helpers import ROOT, run_shown

pytestmark = pytest.mark.usefixtures("analysed_once")

TEXT = (ROOT / "docs/regressions.md").read_text(encoding="utf-8")
BLOCKS = regex.findall(r"```(sh|text|toml)([^\n]*)\n(.*?)```", TEXT, regex.DOTALL)


def test_every_example_is_the_real_one(tmp_path):
    outputs = []
    for kind, how, text in BLOCKS:
        if kind == "toml":
            (tmp_path / "logparse.toml").write_text(text)
        for command in text.splitlines() if kind == "sh" else ():
            done = run_shown(command, tmp_path)
            assert done.returncode == int(how.partition("exit=")[2] or 0), f"{command}: {done.stderr}"
            outputs.append("\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines()))
            if "--webhook" in command:
                assert "the webhook at 127.0.0.1 did not accept the news" in done.stderr
    assert [text for kind, _, text in BLOCKS if kind == "text" and text.rstrip() not in outputs] == []
    assert "accepted until 2030-03-31" in outputs[4]
