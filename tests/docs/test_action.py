"""action.yml does what it promises, each of its steps run by bash as GitHub's runner does.

Only the step Install is left out, because it needs a package index: a program that does the same as the one of this
environment lies where that step would have put it. So are steps that use other actions. In the place of GitHub's
program ``gh`` a script keeps the comments in files.
"""

import os
import platform
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import regex
import yaml
from helpers import PROGRAM, ROOT, run_logparse, sweep_after
from served import served_program

pytestmark = pytest.mark.usefixtures("analysed_once")

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
SCRIPTS = [step for step in STEPS if "run" in step]
PULL_REQUEST = "${{ github.event.pull_request.number }}"
MATRIX = "${{ toJSON(matrix) }}"
RELEASES = ("CANN 8.0.RC1", "CANN 8.0.RC2", "CANN 8.0.RC3")
INPUT = r"\$\{\{ inputs\.([\w-]+) \}\}"


@dataclass(frozen=True)
class Runner:
    """A job of a workflow: its workspace, and what the runner keeps outside of it."""

    folder: Path
    matrix: str = "null"

    @property
    def workspace(self):
        return self.folder / "workspace"

    @property
    def program(self):
        return self.folder / "temp/logparse/bin/logparse"

    @property
    def summary(self):
        return self.folder / "summary.md"

    @property
    def outputs(self):
        """What the last use of the action put out."""
        text = (self.folder / "output.txt").read_text(encoding="utf-8")
        told = {m[1]: m[3].strip() for m in regex.finditer(r"^(\w+)<<(\S+)\n(.*?)^\2$", text, regex.M | regex.S)}
        return told | dict(regex.findall(r"^([a-z-]+)=(.*)$", text, regex.M))

    def use(self, **given: str) -> subprocess.CompletedProcess[str]:
        """Run the action's steps but Install; the last one that ran, or that failed."""
        inputs = {name: entry.get("default") for name, entry in ACTION["inputs"].items()}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        (self.folder / "output.txt").write_text("", encoding="utf-8")
        done = subprocess.CompletedProcess([], 0, "", "")
        for step in (step for step in SCRIPTS if step["name"] not in ("Pins", "Install") and _wanted(step, inputs)):
            always = step.get("if", "").startswith("always()")
            if done.returncode and not always:
                continue
            ended = self._run(step, inputs)
            done = done if done.returncode or (always and not ended.returncode) else ended
        return done

    def _run(self, step, inputs):
        script = self.folder / "step.sh"
        script.write_text(step["run"], encoding="utf-8")
        texts = {
            name: text.replace(PULL_REQUEST, "7").replace(MATRIX, self.matrix) for name, text in step["env"].items()
        }
        given = {name: regex.sub(INPUT, lambda m: inputs[m[1]], text) for name, text in texts.items()}
        environment = os.environ | given | self._environment()
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        return subprocess.run(command, cwd=self.workspace, env=environment, capture_output=True, text=True, check=False)

    def _environment(self):
        return {
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_OUTPUT": str(self.folder / "output.txt"),
            "GITHUB_JOB": "nightly",
            "GITHUB_REPOSITORY": "us/ours",
            "RUNNER_TEMP": str(self.folder / "temp"),
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "COLUMNS": "100",
        }


def _wanted(step, inputs):
    """Whether its ``if:`` holds; the action uses one form of it only, with or without ``always()``."""
    if "if" not in step:
        return True
    asked = regex.fullmatch(r"(?:always\(\) && )?inputs\.([\w-]+) != ''", step["if"])
    assert asked, step["if"]
    return inputs[asked[1]] != ""


# Comments are files of ../comments, called by their ids; only what the action asks is understood.
GH = """#!/bin/bash
mkdir -p ../comments
case "$*" in
  *--paginate*) grep -lF -- "$MARK" ../comments/* 2>/dev/null | xargs -r -n 1 basename ;;
  *PATCH*|*POST*)
    [ "$GH_TOKEN" ] || exit 1
    place="${5#repos/us/ours/issues/}" file="${7#body=@}"
    [ "$4" = PATCH ] && id="${place#comments/}" || id=$(( $(ls ../comments | wc -l) + 1 ))
    cp "$file" "../comments/$id" ;;
esac
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    with served_program(tmp_path_factory.mktemp("program")) as served:
        yield served


@pytest.fixture
def runner(tmp_path, program):
    made = Runner(tmp_path)
    made.program.parent.mkdir(parents=True)
    made.program.symlink_to(program)
    made.workspace.mkdir()
    (tmp_path / "bin").mkdir()
    gh = tmp_path / "bin/gh"
    gh.write_text(GH, encoding="utf-8")
    gh.chmod(0o755)
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
    jobs = runner.use(**given | {"baseline": "jobs"})
    assert (jobs.returncode, "verdict: insufficient data" in jobs.stdout, "jobs: 1" in jobs.stdout) == (0, True, True)


def test_a_blank_in_a_name_is_met_by_a_pattern(runner):
    """With the program that is installed."""
    runner.program.unlink()
    runner.program.symlink_to(PROGRAM)
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


# What logparse itself is not told.
UNSEEN = ("python", "artifact", "comment", "token")
HOSTILE = '"; touch run; $(touch run) `touch run` | touch run; "'


@pytest.mark.parametrize("name", [name for name in ACTION["inputs"] if name not in UNSEEN])
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


def test_what_the_gate_found_is_put_out(runner):
    for number, release in enumerate(RELEASES, start=1):
        runner.use(logs=f"8.0.RC{number}-*.log", release=release, history="runs", record_arguments="--hw 910b3")
    given = {"baseline": f"release={RELEASES[0]}", "history": "runs"}
    assert runner.use(release=RELEASES[1], **given).returncode == 1
    told = runner.outputs
    assert (told["verdict"], told["exit-code"], told["report"]) == ("regression", "1", "logparse-gate")
    assert "verdict: regression" in told["table"]
    assert "version cann" in told["table"]
    assert runner.use(release=RELEASES[2], out="gate 3", **given).returncode == 0
    assert (runner.outputs["verdict"], runner.outputs["report"]) == ("no regression", "gate 3")
    runner.summary.unlink()
    assert runner.use(release="none", **given).returncode == 2
    assert (runner.outputs["verdict"], runner.outputs["exit-code"]) == ("", "2")
    assert "no recorded run matches release=none" in runner.outputs["table"]
    assert runner.summary.read_text(encoding="utf-8").count("no recorded run matches release=none") == 1


CRASH = """Traceback (most recent call last):
  File "train.py", line 9, in <module>
    main()
RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity)
"""


@pytest.mark.parametrize("baseline", [f"release={RELEASES[0]}", "jobs"])
def test_the_verdict_on_a_crash_is_crashed(runner, baseline):
    """No metric has that verdict: it is that of the whole gate."""
    given = {"history": "runs", "record_arguments": "--hw 910b3"}
    runner.use(logs="8.0.RC1-*.log", release=RELEASES[0], **given)
    lines = (runner.workspace / "8.0.RC3-5.log").read_text(encoding="utf-8").splitlines(keepends=True)
    (runner.workspace / "crash.log").write_text("".join(lines[:-12]) + CRASH, encoding="utf-8")
    assert runner.use(logs="crash.log", release="night", baseline=baseline, **given).returncode == 1
    assert (runner.outputs["verdict"], runner.outputs["exit-code"]) == ("crashed", "1")
    assert "verdict: crashed" in runner.outputs["table"]


def test_each_output_is_that_of_the_gate():
    named = {name: f"${{{{ steps.gate.outputs.{name} }}}}" for name in ("verdict", "exit-code", "report", "table")}
    assert {name: entry["value"] for name, entry in ACTION["outputs"].items()} == named


def test_one_comment_is_written_anew(runner):
    for number, release in enumerate(RELEASES, start=1):
        runner.use(logs=f"8.0.RC{number}-*.log", release=release, history="runs", record_arguments="--hw 910b3")
    given = {"baseline": f"release={RELEASES[0]}", "history": "runs", "comment": "yes", "token": "t"}
    said = []
    for release in RELEASES[1:]:
        runner.use(release=release, **given)
        (comment,) = (runner.folder / "comments").iterdir()
        said.append(comment.read_text(encoding="utf-8"))
    assert ["verdict: regression" in said[0], "verdict: no regression" in said[1]] == [True, True]
    assert all(text.startswith("<!-- logparse gate: nightly logparse-gate ") for text in said)
    runner.use(release=RELEASES[1], out="other", **given)
    assert len(list((runner.folder / "comments").iterdir())) == 2


def test_jobs_of_a_matrix_write_a_comment_each(runner):
    for number, release in enumerate(RELEASES[:2], start=1):
        runner.use(logs=f"8.0.RC{number}-1.log", release=release, history="runs")
    given = {"baseline": f"release={RELEASES[0]}", "history": "runs", "comment": "yes", "token": "t"}
    for model in ("7b", "13b", "7b"):
        # As GitHub writes it, over several lines.
        replace(runner, matrix=f'{{\n  "model": "{model}"\n}}').use(release=RELEASES[1], **given)
    assert len(list((runner.folder / "comments").iterdir())) == 2


def test_each_baseline_and_history_has_a_comment(runner):
    for number, release in enumerate(RELEASES[:2], start=1):
        for history in ("runs", "other runs"):
            runner.use(logs=f"8.0.RC{number}-1.log", release=release, history=history)
    given = {"release": RELEASES[1], "comment": "yes", "token": "t"}
    judged = [(RELEASES[0], "runs"), (RELEASES[1], "runs"), (RELEASES[0], "other runs"), (RELEASES[0], "runs")]
    for baseline, history in judged:
        runner.use(baseline=f"release={baseline}", history=history, **given)
    assert len(list((runner.folder / "comments").iterdir())) == 3


def _cache_key(python: Path, folder: Path) -> str:
    (script,) = [step["run"] for step in STEPS if step["name"] == "Pins"]
    output = folder / "key.txt"
    output.unlink(missing_ok=True)
    given = {"PYTHON": str(python), "GITHUB_OUTPUT": str(output), "GITHUB_ACTION_PATH": str(ROOT)}
    subprocess.run(["bash", "-eo", "pipefail", "-c", script], env=os.environ | given, check=True)
    return output.read_text(encoding="utf-8")


def test_key_of_the_cache_holds_version_and_path_of_the_interpreter(tmp_path):
    """A cached environment links to a path: an interpreter in another place needs another environment."""
    real = Path(sys.executable).resolve()
    elsewhere = tmp_path / "elsewhere" / real.name
    elsewhere.parent.mkdir()
    elsewhere.symlink_to(real)
    keys = [_cache_key(python, tmp_path) for python in (real, real, elsewhere)]
    assert keys[0] == keys[1] != keys[2]
    start = f"key=logparse-{platform.python_version()}-{sys.platform}-{platform.machine()}-"
    assert all(regex.fullmatch(f"{regex.escape(start)}[0-9a-f]{{12}}-[0-9a-f]{{64}}\n", key) for key in keys)
    (cache,) = [step for step in STEPS if step["name"] == "Cache"]
    assert cache["with"]["key"] == "${{ steps.pins.outputs.key }}"


def test_recipe_of_the_cache_keeps_the_history_of_a_failing_night():
    texts = regex.findall(r"```yaml\n(.*?)```", DOCS, regex.S)
    (recipe,) = [yaml.safe_load(text) for text in texts if "actions/cache" in text]
    restore, save = recipe
    assert (restore["uses"], save["uses"]) == ("actions/cache/restore@v6", "actions/cache/save@v6")
    assert save["if"] == "always()"
    assert save["with"] == {name: restore["with"][name] for name in ("path", "key")}
    # What is kept is never overwritten, so that each try has a key of its own; the newest that begins so is restored.
    assert "${{ github.run_id }}-${{ github.run_attempt }}" in save["with"]["key"]
    assert save["with"]["key"].startswith(restore["with"]["restore-keys"])


def test_values_with_blanks_stand_in_quotes(runner):
    arguments = "--hw 910b3 --label \"team=our own\" --label 'night=7 of 9'"
    assert runner.use(logs="8.0.RC1-1.log", release="r 1", history="a b", record_arguments=arguments).returncode == 0
    listed = run_logparse("history", "list", "team=our own,night=7 of 9", "--history", "a b", cwd=runner.workspace)
    assert listed.stdout.startswith("1 run\n")
    assert runner.use(logs="8.0.RC1-1.log", release="r", history="h", record_arguments='--label "a=b').returncode != 0


def test_a_history_that_begins_anew_is_told_once(runner):
    first, again = (runner.use(logs="8.0.RC1-1.log", release="r", history="runs") for _ in range(2))
    assert ["::notice title=logparse::the history begins anew in runs" in done.stdout for done in (first, again)] == [
        True,
        False,
    ]


@pytest.mark.parametrize("step", SCRIPTS, ids=lambda step: step["name"])
def test_scripts_hold_no_expression(step):
    """GitHub would paste an input into the script before the shell reads it."""
    assert "${{" not in step["run"]
    assert step["shell"] == "bash"
    texts = [text for text in step["env"].values() if text not in (PULL_REQUEST, MATRIX)]
    assert all(regex.fullmatch(INPUT, text)[1] in ACTION["inputs"] for text in texts)


def test_other_actions_are_those_of_github_by_a_version():
    assert [step["uses"] for step in STEPS if "uses" in step] == ["actions/cache@v6", "actions/upload-artifact@v7"]


DOCS = (ROOT / "docs/gate.md").read_text(encoding="utf-8")


def _shell_of(language: str) -> str:
    """The commands of another system's example in the docs, as one script."""
    texts = regex.findall(rf"```{language}\n(.*?)```", DOCS, regex.DOTALL)
    if language == "groovy":
        return "\n".join(command for text in texts for command in regex.findall(r"sh '(.*)'", text))
    (gitlab,) = [text for text in texts if text.startswith("# GitLab")]
    return "\n".join(yaml.safe_load(gitlab)["gate"]["script"])


@pytest.mark.parametrize(
    ("language", "release", "code"),
    sweep_after(
        2,
        [
            ("yaml", RELEASES[1], 1),
            ("groovy", RELEASES[2], 0),
            ("yaml", RELEASES[2], 0),
            ("groovy", RELEASES[1], 1),
        ],
    ),
)
def test_the_examples_of_other_systems_run(runner, language, release, code):
    runner.use(logs="8.0.RC1-*.log", release=RELEASES[0], history="runs")
    (runner.workspace / "out").mkdir()
    for log in runner.workspace.glob(f"{release.removeprefix('CANN ')}-*.log"):
        log.rename(runner.workspace / "out" / log.name)
    given = {"RELEASE": release, "BASELINE": f"release={RELEASES[0]}"}
    given["PATH"] = f"{runner.program.parent}:{os.environ['PATH']}"
    script = "set -e\n" + _shell_of(language).replace("/nfs/runs", "runs")
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=runner.workspace,
        env=os.environ | given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert (runner.workspace / "gate/junit.xml").exists()
