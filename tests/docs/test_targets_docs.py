"""What docs/targets.md shows is what happens."""

import pytest
import regex
from helpers import ROOT, run_logparse, run_shown

from analysis.run.checks.targets import figures

pytestmark = pytest.mark.usefixtures("analysed_once")

TEXT = (ROOT / "docs/targets.md").read_text(encoding="utf-8")
BLOCKS = regex.findall(r"```(\w+)\n(.*?)```", TEXT, regex.DOTALL)
LOG = ROOT / "fixtures/megatron/core-v0.12-llama2-7b/run.log"


def test_the_first_command_ends_with_what_is_shown_and_fails(tmp_path):
    (_, command), (_, shown) = BLOCKS[:2]
    done = run_shown(command.strip(), tmp_path)
    assert (done.stdout.endswith(f"\n{shown}\n"), done.returncode) == (True, 1)


def test_the_last_command_judges_each_run_and_leaves_the_files_it_names(tmp_path):
    done = run_shown(BLOCKS[-1][1].strip(), tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("pass: with_stalls_tokens") == 5
    assert {"junit.xml", "requirements.md"} < {path.name for path in (tmp_path / "out/judged").iterdir()}


def test_the_config_file_holds(tmp_path):
    (text,) = [text for kind, text in BLOCKS if kind == "toml"]
    (tmp_path / "run.toml").write_text(text)
    done = run_logparse("analyze", str(LOG), "--config", "run.toml", "-q", cwd=tmp_path)
    assert [line.split()[1] for line in done.stdout.splitlines()[1:]] == ["pass:", "pass:", "pass:"]
    assert done.returncode == 0


def test_every_figure_that_is_named_exists():
    named = regex.findall(r"^\| (`.+?) \| ", TEXT, regex.MULTILINE)
    told = {name for cell in named for name in regex.findall(r"`(\w+)`", cell)}
    assert len(told) >= 8
    assert told <= figures().keys()
