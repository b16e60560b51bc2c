"""Runs read here or by Ray: the same, in the same order; what a dying worker had is read by another.

The cluster has two nodes, each with processes of its own on this machine. Whoever asks it is a process of its own too.
"""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from multiprocessing import active_children
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import cores
import polars as pl
import pytest
import read_apart
from helpers import ROOT, megatron_log, run_logparse, run_process
from polars.testing import assert_frame_equal

from analysis.batch import engine
from analysis.batch.engine import Readers, map_runs
from analysis.batch.own_process import ProcessLostError, iterate_apart
from logparse.errors import InputError, NoStepLineError, UsageError
from logparse.language import current_language, speaking

RAY = Readers("ray")
RUNS = [("a", ["a.log"]), ("b", ["b.log", "c.log"]), ("d", ["d.log"])]


def read(logs, name, watch=None):
    """What stands in for reading: a run without step lines, one that is no file, and those that can be read."""
    if name == "b":
        raise NoStepLineError("none", where=logs[0], remedy=current_language())
    return name, list(logs), str(Path.cwd())


def refuse(logs, name, watch=None):
    raise UsageError("no such device")


# Ray without Ray: what is sent to a worker, and what is made of its answers.


class Worker:
    """A Ray of one worker, this process. ``answers`` stand for those of workers that cannot be used."""

    exceptions = SimpleNamespace(
        RayError=RuntimeError, RayTaskError=ZeroDivisionError, LocalRayletDiedError=ConnectionError
    )
    cloudpickle = pickle

    def __init__(self, answer: Any = None) -> None:
        self.answer, self.waiting, self.most, self.asked, self.left = answer, 0, 0, {}, False

    def remote(self, **asked: Any) -> Any:
        self.asked = asked
        return lambda task: SimpleNamespace(remote=partial(self.submit, task))

    def submit(self, task: Any, *given: Any, **named: Any) -> Any:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        return lambda: task(*given, **named)

    def get(self, reference: Any) -> Any:
        self.waiting -= 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer or reference()

    def put(self, data: bytes) -> bytes:
        return data

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0, "memory": 1e9}

    def shutdown(self) -> None:
        self.left = True


@pytest.fixture
def worker(monkeypatch):
    ray = Worker()
    monkeypatch.setattr(engine, "_connected", lambda: ray)
    monkeypatch.setattr(engine, "_imported", lambda: ray)
    monkeypatch.setattr(engine, "iterate_apart", lambda generator, *arguments: generator(*arguments))
    monkeypatch.setenv("POLARS_MAX_THREADS", "1")
    return ray


def told(outcomes):
    return [(type(o), str(o)) if isinstance(o, Exception) else o for o in outcomes]


def test_both_engines_give_the_same_in_the_order_of_the_runs(worker):
    here, there = (told(map_runs(read, RUNS, Readers(name))) for name in engine.ENGINES)
    assert here == there
    assert [o[0] for o in here] == ["a", NoStepLineError, "d"]


def test_a_worker_is_told_language_folder_and_cores(worker, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with speaking("zh"):
        first, second, _ = map_runs(read, RUNS, Readers("ray", cores=3))
    assert first[2] == str(tmp_path)
    assert second.remedy == "zh"
    assert (worker.asked["num_cpus"], worker.asked["max_retries"]) == (3, engine.RETRIES)


def test_few_runs_are_handed_out_ahead_and_the_cluster_is_left(worker):
    outcomes = map_runs(read, [(str(n), [f"{n}.log"]) for n in range(50)], RAY)
    assert [name for name, _, _ in outcomes] == [str(n) for n in range(50)]
    assert worker.most == 6
    assert worker.left


def test_whoever_stops_early_leaves_the_cluster(worker):
    outcomes = map_runs(read, RUNS, RAY)
    next(outcomes)
    outcomes.close()
    assert worker.left


@pytest.mark.parametrize("name", engine.ENGINES)
def test_what_is_wrong_with_every_run_is_raised(worker, name):
    with pytest.raises(UsageError, match="no such device"):
        list(map_runs(refuse, RUNS, Readers(name)))


def test_without_runs_no_cluster_is_needed(monkeypatch):
    monkeypatch.setattr(engine, "_connected", lambda: pytest.fail("connected"))
    assert list(map_runs(read, [], RAY)) == []


def test_a_worker_has_no_standard_input():
    with pytest.raises(UsageError, match="cannot read the standard input"):
        list(map_runs(read, [*RUNS, ("stdin", ["-"])], RAY))


def test_a_run_that_kills_every_worker_stops_no_other(worker):
    worker.answer = RuntimeError("The worker died unexpectedly\nand so on")
    outcomes = list(map_runs(read, RUNS, RAY))
    assert [str(error) for error in outcomes][1] == (
        "all workers that read this log died: The worker died unexpectedly\n"
        "  where: b.log\n"
        "  try:   read this log alone, without --engine; see the Ray logs"
    )
    assert {type(error) for error in outcomes} == {InputError}


def test_a_lost_cluster_ends_the_command(worker, monkeypatch):
    worker.answer = ConnectionError("the raylet died")
    with pytest.raises(UsageError, match="lost the connection to the Ray cluster") as caught:
        list(map_runs(read, RUNS, RAY))
    assert caught.value.exit_code == 2
    # Where its own node dies, Ray ends the process that asks it.
    monkeypatch.setattr(engine, "on_cluster", read_apart.count_and_die)
    monkeypatch.setattr(engine, "iterate_apart", lambda generator, *_: iterate_apart(generator, 2))
    outcomes = map_runs(read, RUNS, RAY)
    assert [next(outcomes), next(outcomes)] == [0, 1]
    with pytest.raises(UsageError, match="lost the connection to the Ray cluster"):
        next(outcomes)


def test_a_defect_on_a_worker_is_one_here(worker):
    worker.answer = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        list(map_runs(read, RUNS, RAY))


@pytest.mark.parametrize(
    ("modules", "version", "folder", "said"),
    [
        ({"logparse": None}, "0.1.0", ".", "a worker has no logparse\n  where: here\n  try:   install logparse"),
        ({"analysis.batch.local_workers": None}, None, ".", "a worker has no logparse"),
        ({}, "9.9", ".", "a worker has logparse 0.1.0\n  where: here\n  try:   install logparse 9.9 on every node"),
        ({}, None, "nowhere", "a worker cannot access the folder nowhere\n  where: here\n  try:   start logparse in"),
    ],
)
def test_a_worker_that_cannot_be_used_says_why(worker, monkeypatch, modules, version, folder, said):
    monkeypatch.setattr("platform.node", lambda: "here")
    monkeypatch.setattr(engine.Path, "cwd", lambda: Path(folder))
    task = engine._task()
    monkeypatch.setattr(engine, "_task", lambda: lambda *a, **k: under(modules, task, a, k))
    real = engine.logparse.__version__
    monkeypatch.setattr(engine, "logparse", SimpleNamespace(__version__=version or real))
    with pytest.raises(UsageError) as caught:
        list(map_runs(read, RUNS, RAY))
    assert str(caught.value).startswith(said)


def under(modules, task, positional, named):
    with patch.dict(sys.modules, modules):
        return task(*positional, **named)


def test_without_ray_its_extra_is_named(tmp_path):
    with patch.dict(sys.modules, {"ray": None}):
        done = run_logparse("analyze", "--each", "no.log", "--engine", "ray", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "logparse: --engine ray needs Ray, which is not installed\n  try:   pip install 'logparse[ray]'\n"
    )


def test_an_engine_that_does_not_exist_is_refused(tmp_path):
    done = run_logparse("analyze", "--each", "no.log", "--engine", "rai", cwd=tmp_path)
    assert "unknown engine 'rai'\n  try:   did you mean ray? use one of local, ray" in done.stderr


@pytest.mark.slow
def test_without_a_cluster_people_are_told_how_to_get_one(tmp_path):
    pytest.importorskip("ray")
    done = run_process("analyze", "--each", "no.log", "--engine", "ray", cwd=tmp_path, RAY_ADDRESS="nonsense")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot connect to a Ray cluster: Invalid address format: nonsense\n  where: nonsense\n" in done.stderr
    assert "`ray start --head` starts a cluster" in done.stderr


# Processes of this machine.


def test_what_a_killed_process_had_is_read_by_another(tmp_path, monkeypatch):
    """Runs come in their order; one that kills each process that reads it is one error, and no process is left."""
    monkeypatch.delenv("POLARS_MAX_THREADS", raising=False)
    before, finished = set(active_children()), []
    runs = [(name, [f"{name}.log"]) for name in ("a", "once", "none", "always", "z")]
    readers = Readers(workers=2, cores=3, done=finished.append)
    with speaking("zh"):
        a, once, none, always, z = map_runs(partial(read_apart.read, folder=tmp_path), runs, readers)
    assert (a, once, z) == (("a", "3"), ("once", "3"), ("z", "3"))
    assert isinstance(none, NoStepLineError)
    assert "日志" in str(none)
    assert isinstance(always, InputError)
    assert "3 个进程都异常退出" in str(always)
    assert [len((tmp_path / name).read_text().split()) for name in ("once", "always")] == [2, 3]
    assert sorted(finished) == [0, 1, 2, 3, 4]
    assert set(active_children()) == before
    assert "POLARS_MAX_THREADS" not in os.environ


def test_a_generator_may_end_its_own_process():
    numbers = iterate_apart(read_apart.count_and_die, 3)
    assert [next(numbers), next(numbers), next(numbers)] == [0, 1, 2]
    with pytest.raises(ProcessLostError):
        next(numbers)


def test_an_error_that_cannot_be_sent_arrives_as_text():
    with pytest.raises(RuntimeError, match="Local: why"):
        list(iterate_apart(read_apart.refuse))


# A cluster of two nodes.


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Any]:
    """Two nodes of one core each."""
    pytest.importorskip("ray")
    folder = tmp_path_factory.mktemp("cluster")
    command = [sys.executable, "-c", CLUSTER]
    with cores.on_all():
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, text=True)
    with process:
        yield json.loads(process.stdout.readline())
        process.stdin.close()


CLUSTER = """
import json, os, sys
# Bind to the loopback.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
from ray.cluster_utils import Cluster
cluster = Cluster()
quick = {"health_check_period_ms": 500, "health_check_failure_threshold": 2}
nodes = [cluster.add_node(num_cpus=1, include_dashboard=False, object_store_memory=80 << 20, _system_config=quick)]
nodes += [cluster.add_node(num_cpus=1, object_store_memory=80 << 20)]
pids = [node.all_processes["raylet"][0].process.pid for node in nodes]
print(json.dumps({"RAY_ADDRESS": cluster.address, "pids": pids}), flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Runs of several formats, one file that is no log, and one in a folder below."""
    folder = tmp_path_factory.mktemp("logs")
    for fixture in ("megatron/core-v0.12-llama2-7b", "mindformers/family-b-1.5", "megatron/rampup-resumed"):
        (folder / f"{Path(fixture).name}.log").write_bytes((ROOT / "fixtures" / fixture / "run.log").read_bytes())
    (folder / "below").mkdir()
    (folder / "below/small.log").write_text(megatron_log(30))
    (folder / "rubbish.log").write_text("rubbish\n")
    return folder


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.log"))


def assert_tables_equal(one: Path, other: Path) -> None:
    assert sorted(path.name for path in one.iterdir()) == sorted(path.name for path in other.iterdir())
    for path in one.glob("*.parquet"):
        assert_frame_equal(pl.read_parquet(path), pl.read_parquet(other / path.name))


def test_a_cluster_gives_what_this_machine_does(cluster, logs, tmp_path):
    command = ["analyze", "--each", *names(logs), "--hw", "910b3", "--no-charts", "--json", "--lang", "zh"]
    here = run_logparse(*command, "-o", str(tmp_path / "here"), cwd=logs)
    there = run_process(
        *command, "-o", str(tmp_path / "there"), "--engine", "ray", cwd=logs, RAY_ADDRESS=cluster["RAY_ADDRESS"]
    )
    assert (there.returncode, there.stdout) == (here.returncode, here.stdout)
    # On a busy machine Ray may have something of its own to say.
    assert here.stderr in there.stderr
    assert here.returncode == 3
    assert_tables_equal(tmp_path / "here", tmp_path / "there")


def test_a_cluster_reads_what_is_recorded(cluster, logs, tmp_path):
    command = ["record", "--each", "rubbish.log", "below/small.log", "--release", "RC1", "--json", "--history"]
    here = run_logparse(*command, str(tmp_path / "here"), cwd=logs)
    there = run_process(
        *command, str(tmp_path / "there"), "--engine", "ray", cwd=logs, RAY_ADDRESS=cluster["RAY_ADDRESS"]
    )
    assert (there.returncode, there.stdout) == (here.returncode, here.stdout)
    # On a busy machine Ray may have something of its own to say.
    assert here.stderr in there.stderr
    (run,) = json.loads(here.stdout)["runs"]
    assert run["state"] == "recorded"
    kept = [sorted(path.relative_to(folder) for path in folder.rglob("*.parquet")) for folder in tmp_path.iterdir()]
    assert kept[0] == kept[1]


# The first run that the second node is given kills the node; one run kills its worker. The other node waits for that.
DYING = """
import sys
from functools import partial
from pathlib import Path
from analysis.batch.engine import Readers, map_runs
from analysis.commands._output_folder import DrawingOptions, write_results
from analysis.files.result_folder import ResultFolder
from analysis.run.build import analyze_logs
from analysis.project.choose_options import choose

def dying(analyze, folder, raylet):
    def read(logs, name):
        import os, signal, time
        node, worker = folder / "node", folder / "worker"
        if os.getppid() == raylet:
            node.touch()
            for process in (raylet, os.getpid()):
                os.kill(process, signal.SIGKILL)
        while not node.exists():
            time.sleep(0.05)
        if name == "5" and not worker.exists():
            worker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return analyze(logs, name=name)
    return read

folder, raylet, *logs = sys.argv[1:]
analyze = partial(analyze_logs, how=choose({}))
runs = [(str(n), [log]) for n, log in enumerate(logs * 3)]
for name, read, engine in (("here", analyze, "local"), ("there", dying(analyze, Path(folder), int(raylet)), "ray")):
    results = list(map_runs(read, runs, Readers(engine)))
    write_results(results, ResultFolder(folder + "/" + name), DrawingOptions(None), force=False)
"""


def test_a_node_and_a_worker_that_are_killed_lose_nothing(cluster, logs, tmp_path):
    readable = [name for name in names(logs) if name != "rubbish.log"]
    done = run_process(
        str(tmp_path),
        str(cluster["pids"][1]),
        *readable,
        command=(sys.executable, "-c", DYING),
        cwd=logs,
        RAY_ADDRESS=cluster["RAY_ADDRESS"],
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert (tmp_path / "node").exists()
    assert (tmp_path / "worker").exists()
    assert_tables_equal(tmp_path / "here", tmp_path / "there")
    assert pl.read_parquet(tmp_path / "there/steps.parquet")["run"].n_unique() == 3 * len(readable)
