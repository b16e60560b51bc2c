"""What docs/object-stores.md shows works on a server that speaks S3."""

import shlex

import regex
from helpers import ROOT, run_logparse
from s3 import keys, put, s3

TEXT = (ROOT / "docs/object-stores.md").read_text(encoding="utf-8")
__all__ = ["s3"]


def test_every_command_runs(s3, tmp_path):
    logs = ROOT / "fixtures/releases"
    put({f"releases/RC{r}/{n}.log": (logs / f"8.0.RC{r}-{n}.log").read_bytes() for r in (1, 2) for n in (1, 2)})
    nodes = [(ROOT / f"fixtures/megatron/multi-node/node{n}.log").read_bytes() for n in (0, 1)]
    put({f"llama/rank_{n}.log": node for n, node in enumerate(nodes)} | {"llama/run.log": b"".join(nodes)})
    commands = regex.search(r"```sh\n(.*?)```", TEXT, regex.DOTALL)[1].splitlines()
    assert len(commands) == 4
    for command in commands:
        done = run_logparse(*shlex.split(command)[1:], cwd=tmp_path)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert done.stdout
    assert "results/llama/report.html" in keys("results")
