"""What docs/clusters.md shows is what happens; its scripts give each task its own shard."""

import itertools
import shutil
import subprocess

import pytest
import regex
import yaml
from helpers import ROOT, run_shown

pytestmark = pytest.mark.usefixtures("analysed_once")

TEXT = (ROOT / "docs/clusters.md").read_text(encoding="utf-8")
BLOCKS = regex.findall(r"```(\w+)\n(.*?)```", TEXT, regex.DOTALL)
COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the commands of the page run, with logs of their names."""
    place = tmp_path_factory.mktemp("clusters")
    (place / "logs").mkdir()
    for number in (1, 2, 3):
        shutil.copy(ROOT / f"fixtures/releases/8.0.RC1-{number}.log", place / "logs")
    return place


def test_every_command_runs(folder):
    local = [command for command in COMMANDS if "--engine ray" not in command]
    assert len(local) == 3
    for command in local:
        done = run_shown(command, folder)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert done.stdout
    for name in ("steps.parquet", "shards/1-of-2/report.html", "shards/2-of-2/shard.json", "shards/1-of-2/runs.json"):
        assert (folder / "results" / name).is_file()


def test_commands_of_ray_are_known(folder):
    """A cluster is started by the tests of the engine; here the commands get as far as asking for one."""
    asking = [command for command in COMMANDS if "--engine ray" in command]
    assert len(asking) == 2
    for command in asking:
        done = run_shown(command.replace("logs/*.log", "-"), folder)
        assert "the workers of Ray cannot read the standard input" in done.stderr


def said(script, **env):
    """What ``script`` tells logparse and sbatch, in a shell with ``env``."""
    stubs = 'logparse() { echo "$*"; }; sbatch() { echo 7 "$*"; };\n'
    done = subprocess.run(["bash", "-euc", stubs + script], env=env, capture_output=True, text=True, check=True)
    return done.stdout


def test_each_task_of_slurm_takes_its_shard():
    array, submit = [text for kind, text in BLOCKS if kind == "bash"]
    assert "#SBATCH --array=1-16" in array
    told = [said(array, SLURM_ARRAY_TASK_ID=str(i), SLURM_ARRAY_TASK_COUNT="16") for i in (1, 16)]
    assert [regex.search(r"--shard (\S+)", words)[1] for words in told] == ["1/16", "16/16"]
    assert "--dependency=afterany:7" in said(submit)
    assert "logparse merge /shared/results --force" in said(submit)


def test_each_pod_takes_its_shard():
    (text,) = [text for kind, text in BLOCKS if kind == "yaml"]
    job = yaml.safe_load(text)["spec"]
    (container,) = job["template"]["spec"]["containers"]
    (script,) = container["args"]
    told = [said(script, JOB_COMPLETION_INDEX=str(i)) for i in range(job["completions"])]
    assert [regex.search(r"--shard (\S+)", words)[1] for words in told] == [f"{i}/16" for i in range(1, 17)]
    assert job["podFailurePolicy"]["rules"][1]["onExitCodes"]["values"] == [2, 3]


def test_every_option_that_is_named_exists():
    flags = set(itertools.chain.from_iterable(regex.findall(r"--[a-z-]+", line) for line in COMMANDS))
    helps = "".join(run_shown(f"logparse {name} --help-all", ROOT).stdout for name in ("analyze", "record", "merge"))
    assert {flag for flag in flags if flag not in helps} == set()
