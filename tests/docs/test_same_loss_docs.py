"""What docs/same-loss.md shows is what happens, and its tolerances are read."""

import tomllib

import pytest
import regex
from helpers import ROOT, run_shown

from analysis.compare.loss_targets import FIGURES
from analysis.nightly.policy import read_policy

pytestmark = pytest.mark.usefixtures("analysed_once")

TEXT = (ROOT / "docs/same-loss.md").read_text(encoding="utf-8")
BLOCKS = regex.findall(r"```(\w+)\n(.*?)```", TEXT, regex.DOTALL)


def test_the_example_prints_what_is_shown(tmp_path):
    (_, command), (_, shown) = BLOCKS[:2]
    done = run_shown(command.strip(), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines()) == shown.rstrip()


def test_the_project_file_is_a_policy():
    (text,) = [text for kind, text in BLOCKS if kind == "toml"]
    policy = read_policy(tomllib.loads(text)["gate"])
    assert [str(tolerance) for tolerance in policy.rest.tolerances] == ["loss_mre<=0.02"]
    assert [str(tolerance) for tolerance in policy.jobs[0].tolerances] == ["loss_mre<=0.01", "grad_norm_mre<=5%"]


def test_every_figure_that_is_named_exists():
    named = set(regex.findall(r"`(\w+_(?:mre|mae|largest))`", TEXT))
    assert len(named) >= 6
    assert named <= FIGURES.keys()
