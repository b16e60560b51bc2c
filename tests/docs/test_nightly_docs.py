"""What docs/nightly.md shows is what happens."""

import sys

import nightly_logs
import pytest
import regex
from helpers import ROOT, run_shown

# The page records 180 runs.
pytestmark = pytest.mark.slow

PAGE = ROOT / "docs/nightly.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = regex.findall(r"```(sh|text)([^\n]*)\n(.*?)```", TEXT, regex.DOTALL)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Every command with the exit code the page names, and what it did, in the order of the page."""
    folder = tmp_path_factory.mktemp("nightly")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["nightly_logs.py", str(folder / "out/nights")])
        nightly_logs.main()
    return [
        (command, int((regex.search(r"exit=(\d)", said) or [0, 0])[1]), run_shown(command, folder))
        for kind, said, text in BLOCKS
        if kind == "sh"
        for command in text.splitlines()
    ]


def test_every_command_ends_as_the_page_says(told):
    assert len(told) == 6
    assert [(command, done.returncode) for command, _, done in told] == [(command, code) for command, code, _ in told]


def test_the_output_is_the_real_one(told, update_goldens):
    """The page shows the first paragraphs of the gate's output; `pytest --update-goldens` writes them anew."""
    (shown,) = (text for kind, _, text in BLOCKS if kind == "text")
    (gate,) = (done for command, _, done in told if command.startswith("logparse gate") and done.returncode == 1)
    lines = "\n".join(line.rstrip() for line in gate.stdout.rstrip().splitlines())
    printed = "\n\n".join(lines.split("\n\n")[: shown.count("\n\n") + 1]) + "\n"
    if update_goldens:
        PAGE.write_text(TEXT.replace(shown, printed), encoding="utf-8")
    else:
        assert shown == printed
