"""action.yml does what it promises, each of its steps run by bash as GitHub's runner does.

Only the step Install is left out, because it needs a package index: a link to the program of this environment lies
where that step would have put it.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import regex
import yaml
from helpers import PROGRAM, ROOT

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
RELEASES = ("CANN 8.0.RC1", "CANN 8.0.RC2", "CANN 8.0.RC3")
INPUT = r"\$\{\{ inputs\.([\w-]+) \}\}"


@dataclass(frozen=True)
class Runner:
    """A job of a workflow: its workspace, and what the runner keeps outside of it."""

    folder: Path

    @property
    def workspace(self):
        return self.folder / "workspace"

    @property
    def program(self):
        return self.folder / "temp/logparse/bin/logparse"

    @property
    def summary(self):
        return self.folder / "summary.md"

    def use(self, **given: str) -> subprocess.CompletedProcess[str]:
        """Run the action's steps but Install, until one fails; the last one that ran."""
        inputs = {name: entry.get("default") for name, entry in ACTION["inputs"].items()}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        done = subprocess.CompletedProcess([], 0, "", "")
        for step in (step for step in STEPS if step["name"] != "Install" and _wanted(step, inputs)):
            done = self._run(step, inputs)
            if done.returncode:
                break
        return done

    def _run(self, step, inputs):
        script = self.folder / "step.sh"
        script.write_text(step["run"], encoding="utf-8")
        given = {name: regex.sub(INPUT, lambda m: inputs[m[1]], text) for name, text in step["env"].items()}
        environment = os.environ | given | self._environment()
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        return subprocess.run(command, cwd=self.workspace, env=environment, capture_output=True, text=True, check=False)

    def _environment(self):
        return {
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "RUNNER_TEMP": str(self.folder / "temp"),
            "COLUMNS": "100",
        }


def _wanted(step, inputs):
    """Whether its ``if:`` holds; the action uses one form of it only."""
    if "if" not in step:
        return True
    asked = regex.fullmatch(r"inputs\.([\w-]+) != ''", step["if"])
    assert asked, step["if"]
    return inputs[asked[1]] != ""


@pytest.fixture
def runner(tmp_path):
    made = Runner(tmp_path)
    made.program.parent.mkdir(parents=True)
    made.program.symlink_to(PROGRAM)
    made.workspace.mkdir()
    for log in (ROOT / "fixtures/releases").glob("*.log"):
        (made.workspace / log.name).symlink_to(log)
    return made


def test_the_story_of_three_releases(runner):
    given = {"history": "runs", "record_arguments": "--hw 910b3 --label from=ci"}
    baseline = f"release={RELEASES[0]}"
    first = runner.use(logs="8.0.RC1-*.log", release=RELEASES[0], **given)
    assert (first.returncode, first.stdout.count("recorded as run"), runner.summary.exists()) == (0, 5, False)
    second = runner.use(logs="8.0.RC2-[12].log 8.0.RC2-[345].log", release=RELEASES[1], baseline=baseline, **given)
    assert (second.returncode, "setting overlap_grad_reduce" in second.stdout) == (1, True)
    assert runner.summary.read_text(encoding="utf-8").count("verdict: regression") == 1
    assert (runner.workspace / "logparse-gate/junit.xml").exists()
    third = runner.use(logs="8.0.RC3-*.log", release=RELEASES[2], baseline=baseline, out="gate 3", **given)
    assert (third.returncode, "verdict: no regression" in third.stdout) == (0, True)
    assert "verdict: no regression" in (runner.workspace / "gate 3/summary.md").read_text(encoding="utf-8")
    assert (runner.workspace / "gate 3/otava.csv").exists()


def test_what_is_recorded_can_be_judged_alone(runner):
    for number, release in enumerate(RELEASES[:2], start=1):
        runner.use(logs=f"8.0.RC{number}-1.log", release=release, history="a history")
    given = {"release": RELEASES[1], "baseline": f"release={RELEASES[0]}", "history": "a history"}
    assert runner.use(**given).returncode == 1
    assert runner.use(**given, threshold="5%").returncode == 0
    assert (
        runner.use(**given, threshold="5%", arguments="--strict --metric tokens_per_second_per_device").returncode == 4
    )


def test_a_blank_in_a_name_is_met_by_a_pattern(runner):
    (runner.workspace / "8.0.RC1-1.log").rename(runner.workspace / "first run.log")
    done = runner.use(logs="first?run.log", release="r", history="runs")
    assert (done.returncode, "first run: recorded as run" in done.stdout) == (0, True)


def test_a_pattern_without_a_match_is_named(runner):
    done = runner.use(logs="8.0.RC1-1.log out/*.log", release="r", baseline="release=q", history="runs")
    assert done.returncode == 2
    assert "no such file: out/*.log" in done.stderr
    assert "try:" in done.stderr


def test_users_install_what_runs_and_nothing_that_tests():
    (install,) = [step["run"] for step in STEPS if step["name"] == "Install"]
    assert regex.findall(r"-r (\S+)", install) == ['"$GITHUB_ACTION_PATH/constraints.txt"']


HOSTILE = '"; touch run; $(touch run) `touch run` | touch run; "'


@pytest.mark.parametrize("name", [name for name in ACTION["inputs"] if name != "python"])
def test_no_input_is_run_by_the_shell(runner, name):
    """A stand-in takes the place of logparse, so that no refusal keeps a step from being run."""
    runner.program.unlink()
    runner.program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >> told\n')
    runner.program.chmod(0o755)
    given = {"logs": "8.0.RC1-1.log", "release": "r", "baseline": "release=r", "history": "runs"}
    assert runner.use(**given | {name.replace("-", "_"): HOSTILE}).returncode == 0
    assert "touch" in (runner.workspace / "told").read_text(encoding="utf-8")
    assert not (runner.workspace / "run").exists()


def test_no_log_is_taken_for_an_option(runner):
    done = runner.use(logs="--help", release="r", history="runs")
    assert (done.returncode, "no such file: --help" in done.stderr) == (2, True)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step["name"])
def test_scripts_hold_no_expression(step):
    """GitHub would paste an input into the script before the shell reads it."""
    assert "${{" not in step["run"]
    assert step["shell"] == "bash"
    assert all(name in ACTION["inputs"] for text in step["env"].values() for name in regex.findall(INPUT, text))
