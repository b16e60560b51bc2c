"""`logparse export`: each target is read back by its own reader, with the numbers of the run."""

import json
import math
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
from helpers import SETTINGS, arguments_dump, megatron_line, run_logparse

from analysis import metrics
from analysis.commands._export_targets import MODULES
from analysis.commands.export import To
from analysis.export import TABLES, TARGETS
from analysis.export import exported_run as exports
from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions

FILE = "events.out.tfevents.logparse"
BEGIN = datetime(2026, 1, 5, 8)
# Steps of the log: the job fails after step 12 and goes on from 9.
STEPS = (*range(1, 13), *range(9, 25))
NAN_AT = 20
LIBRARIES = {"tensorboard": "tensorboard", "openmetrics": "prometheus_client", "mlflow": "mlflow", "swanlab": "swanlab"}
EVALUATION = exports.ExportedSeries("eval", "evaluation_loss_validation", "", "evaluation loss")
SERIES = {one.tag: one for one in (*exports.all_series(), EVALUATION)}


def log(steps=STEPS, stamped=True, **settings) -> str:
    """A run with a restart, a loss that is NaN, memory and, if ``stamped``, a clock."""
    lines = []
    for at, step in enumerate(steps):
        if at and step <= steps[at - 1]:
            lines.append(arguments_dump(SETTINGS | settings).rstrip("\n"))
        loss = "nan" if step == NAN_AT else f"{5 - at / 100:.6E}"
        clock = f"{BEGIN + timedelta(seconds=2 * at):%Y-%m-%d %H:%M:%S}" if stamped else ""
        lines.append(megatron_line(step, ms=1000 + at, clock=clock, pairs={"lm loss": loss}))
        if step == 12:
            lines.append(f" validation loss at iteration 12 | lm loss value: {3 - at / 100:.6E} | lm loss PPL: 9.0 |")
        if step == 1:
            lines.append("[Rank 0] (after 1 iterations) memory (MB) | allocated: 900.5 | max allocated: 1000.5 |")
            lines[-1] += " reserved: 1100.0 | max reserved: 1200.0"
            lines.append(lines[-1].replace("Rank 0", "Rank 4").replace("1000.5", "1010.5"))
    return arguments_dump(SETTINGS | settings) + "".join(f"{line}\n" for line in lines)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run.log").write_text(log())
    (tmp_path / "bare.log").write_text(log(steps=range(1, 61), stamped=False))
    return tmp_path


def export(folder: Path, to: str, *more: str, logs=("run.log",), out="out", code=0, **env: str):
    if to in LIBRARIES and code == 0:
        pytest.importorskip(LIBRARIES[to])
    done = run_logparse("export", *logs, "--hw", "910b3", "--to", to, "-o", out, *more, cwd=folder, **env)
    assert done.returncode == code, done.stderr
    return done


def expected(folder: Path, name="run.log") -> tuple[dict[str, dict[int, float]], dict[str, float]]:
    """The series by step and the figures, from the steps and the summary of the run themselves."""
    return computed((folder / name).read_text(), name)


@cache
def computed(text: str, name: str) -> tuple[dict[str, dict[int, float]], dict[str, float]]:
    with TemporaryDirectory() as folder:
        (path := Path(folder, name)).write_text(text)
        run = analyze_logs([str(path)], RunOptions(hw="910b3"))
    last = {row["step"]: row for row in run.steps.iter_rows(named=True)}
    series = {
        tag: {step: row[one.column] for step, row in last.items() if row[one.column] is not None}
        for tag, one in SERIES.items()
        if one is not EVALUATION
    }
    if name == "run.log":
        # Steps 12 of the two starts are the 12th and the 16th line.
        series["eval/loss_validation"] = {12: 2.85}
        series["memory/max_memory_allocated_bytes"] = {1: 1010.5 * 2**20}
        series["memory/max_memory_reserved_bytes"] = {1: 1200 * 2**20}
    figures = {metric.column: run.value(metric.column) for metric in metrics.OF_ROWS} | {"goodput": run.goodput}
    known = {name: value for name, value in figures.items() if value is not None}
    return {tag: values for tag, values in series.items() if values}, known


def as_32_bits(values: dict) -> dict:
    return {key: float(np.float32(value)) for key, value in values.items()}


def equal(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k], equal_nan=True) for k in one)


def test_the_targets_are_named_in_the_help():
    (option,) = To.__metadata__
    assert tuple(option.help.split("|")) == (*MODULES, *TABLES) == TARGETS


def events(path: Path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    # Without this the reader keeps 10,000 points.
    accumulator = reader.EventAccumulator(str(path), size_guidance={"scalars": 0})
    return accumulator.Reload()


def test_tensorboard_reads_equal_numbers(folder):
    done = export(folder, "tensorboard")
    assert done.stdout == f"run: 24 steps, {len(expected(folder)[0])} series in out/run/{FILE}\n"
    read, (series, figures) = events(folder / "out/run"), expected(folder)
    tags = read.Tags()["scalars"]
    assert {tag for tag in tags if not tag.startswith("run/")} == set(series)
    for tag, values in series.items():
        assert equal({event.step: event.value for event in read.Scalars(tag)}, as_32_bits(values)), tag
    loss = read.Scalars("train/loss")
    assert [event.step for event in loss] == list(range(1, 25))
    assert math.isnan(loss[NAN_AT - 1].value)
    # Step 9 is that of the second start, the 13th line.
    assert loss[8].wall_time == (BEGIN + timedelta(seconds=24)).replace(tzinfo=UTC).timestamp()
    # The log is too short for it, and what is unknown is absent.
    assert "run/goodput" not in tags
    assert {metric.column for metric in metrics.OF_ROWS} == figures.keys()
    assert equal({name: read.Scalars(f"run/{name}")[0].value for name in figures}, as_32_bits(figures))
    texts = {tag: read.Tensors(tag)[0].tensor_proto.string_val[0].decode() for tag in ("run/page", "run/facts")}
    assert "MFU" in texts["run/page"]
    assert "\n| device | Ascend910B3 |\n" in texts["run/facts"]


def test_a_log_without_stamps_gets_no_wall_time(folder):
    export(folder, "tensorboard", logs=["bare.log"])
    read = events(folder / "out/bare")
    assert {event.wall_time for tag in read.Tags()["scalars"] for event in read.Scalars(tag)} == {0.0}
    export(folder, "csv", logs=["bare.log"], out="tables")
    assert pl.read_csv(folder / "tables/steps.csv")["timestamp"].null_count() == 60


def test_a_second_export_is_the_same_run(folder):
    export(folder, "tensorboard")
    first = (folder / "out/run" / FILE).read_bytes()
    refused = export(folder, "tensorboard", code=2)
    assert f"out/run/{FILE} exists" in refused.stderr
    # A second log goes into the same folder.
    export(folder, "tensorboard", logs=["bare.log"])
    export(folder, "tensorboard", "--force")
    assert (folder / "out/run" / FILE).read_bytes() == first
    assert sorted(str(path.relative_to(folder / "out")) for path in (folder / "out").glob("*/*")) == [
        f"bare/{FILE}",
        f"run/{FILE}",
    ]


def test_a_damaged_time_is_absent(folder):
    lines = (folder / "bare.log").read_text().replace("(ms): 1029.0", "(ms): 10.0")
    (folder / "damaged.log").write_text(lines)
    export(folder, "csv", logs=["damaged.log"])
    row = pl.read_csv(folder / "out/steps.csv").row(29, named=True)
    assert (row["step"], row["excluded_reason"]) == (30, "time_damaged")
    speed = [one.column for one in SERIES.values() if one.group == "speed" and one.column in row]
    assert {row[column] for column in speed} == {None}
    assert row["loss"] is not None


def test_the_time_zone_of_the_clock(folder):
    export(folder, "tensorboard", "--time-zone", "Asia/Shanghai")
    begin = events(folder / "out/run").Scalars("train/loss")[0].wall_time
    assert begin == (BEGIN - timedelta(hours=8)).replace(tzinfo=UTC).timestamp()
    assert "is no time zone" in export(folder, "csv", "--time-zone", "Mars", code=2).stderr


def families(path: Path) -> dict:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    text = path.read_text(encoding="utf-8")
    assert text.endswith("# EOF\n")
    return {family.name: family for family in parser.text_string_to_metric_families(text)}


def test_openmetrics_reads_equal_numbers(folder):
    export(folder, "openmetrics")
    series, figures = expected(folder)
    (now, history) = (families(folder / f"out/run.{ending}") for ending in ("prom", "openmetrics.txt"))
    # The node exporter refuses a file with time stamps, and reads the older format of Prometheus.
    older = pytest.importorskip("prometheus_client.parser").text_string_to_metric_families
    assert {family.name for family in older((folder / "out/run.prom").read_text())} == set(now)
    assert {sample.timestamp for family in now.values() for sample in family.samples} == {None}
    assert {len(family.samples) for family in now.values()} == {1}
    values = {name: family.samples[0].value for name, family in now.items()}
    assert equal({name: values[f"logparse_run_{name}"] for name in figures}, figures)
    for tag, one in SERIES.items():
        name = f"logparse_{one.column}"
        assert (name in now) == (name in history) == (tag in series), tag
        if tag in series:
            assert np.array_equal(values[name], list(series[tag].values())[-1], equal_nan=True)
            assert np.array_equal(
                [sample.value for sample in history[name].samples], list(series[tag].values()), equal_nan=True
            )
    times = [float(sample.timestamp) for sample in history["logparse_step"].samples]
    assert times == sorted(set(times))
    assert len(times) == 24


def test_sixty_lines_without_stamps_are_one_sample(folder):
    (folder / 'a "b" \\c.log').write_text(log(steps=range(1, 61), stamped=False))
    export(folder, "openmetrics", logs=['a "b" \\c.log'])
    (path,) = (folder / "out").glob("[!.]*")
    read = families(path)
    assert [sample.value for sample in read["logparse_step"].samples] == [60]
    assert read["logparse_loss"].samples[0].labels["run"] == path.name.removesuffix(".prom")


def test_tables_read_equal_numbers(folder):
    export(folder, "csv", "--each", logs=["run.log", "bare.log"])
    export(folder, "jsonl", out="lines")
    csv = pl.read_csv(folder / "out/steps.csv").filter(run="run")
    lines = pl.read_ndjson(folder / "lines/steps.jsonl")
    for tag, values in expected(folder)[0].items():
        column = SERIES[tag].column
        read = {step: value for step, value in csv.select("step", column).iter_rows() if value is not None}
        assert equal(read, values), tag
        # JSON has no NaN.
        known = {step: value for step, value in lines.select("step", column).iter_rows() if value is not None}
        assert known == {step: value for step, value in values.items() if not math.isnan(value)}, tag
    runs = pl.read_csv(folder / "out/runs.csv")
    assert runs["run"].to_list() == ["run", "bare"]
    assert runs["mfu"][0] == expected(folder)[1]["mfu"]


def test_a_new_metric_is_in_every_export(folder, monkeypatch):
    """Without a word in any exporter."""
    new = metrics.Metric("new", "steps", "", "a new metric", row_column="iterations")
    monkeypatch.setattr(metrics, "METRICS", (*metrics.METRICS, new))
    for to in ("tensorboard", "openmetrics", "csv", "jsonl"):
        export(folder, to, out=to)
    assert "speed/iterations" in events(folder / "tensorboard/run").Tags()["scalars"]
    assert families(folder / "openmetrics/run.prom")["logparse_iterations"].documentation == "a new metric (steps)"
    assert "iterations" in pl.read_csv(folder / "csv/steps.csv").columns
    lines = (folder / "jsonl/steps.jsonl").read_text().splitlines()
    assert all("iterations" in json.loads(line) for line in lines)


@pytest.fixture
def called(monkeypatch) -> list[str]:
    """The hosts to which anything is sent."""
    hosts: list[str] = []

    def connect(self, address):
        hosts.append(str(address[0] if isinstance(address, tuple) else address))
        return kept(self, address)

    kept = socket.socket.connect
    monkeypatch.setattr(socket.socket, "connect", connect)
    return hosts


def check_mlflow(folder: Path, place: str, uri: str) -> None:
    """Export to ``place``, and read what the client of MLflow has at ``uri``."""
    client = pytest.importorskip("mlflow.tracking").MlflowClient(uri)
    first = export(folder, "mlflow", out=place).stdout
    (experiment,) = (one for one in client.search_experiments() if one.name == "logparse")
    (run,) = client.search_runs([experiment.experiment_id])
    assert first == f"run: 24 steps, {len(expected(folder)[0])} series in run {run.info.run_id}\n"
    series, figures = expected(folder)
    assert {tag for tag in run.data.metrics if not tag.startswith("run/")} == set(series)
    for tag in ("train/loss", "speed/mfu", "memory/max_memory_allocated_bytes"):
        history = client.get_metric_history(run.info.run_id, tag)
        assert equal({one.step: one.value for one in history}, series[tag])
    assert equal({name: run.data.metrics[f"run/{name}"] for name in figures}, figures)
    stamp = client.get_metric_history(run.info.run_id, "train/loss")[0].timestamp / 1000
    assert stamp == BEGIN.replace(tzinfo=UTC).timestamp()
    assert {name: run.data.params[name] for name in ("world_size", "num_layers", "device")} == {
        "world_size": "8",
        "num_layers": "32",
        "device": "Ascend910B3",
    }
    assert [one.path for one in client.list_artifacts(run.info.run_id)] == ["report.html"]
    # The same log again is the same run.
    again = export(folder, "mlflow", out=place).stdout
    assert again == f"run: run {run.info.run_id} has all of it; nothing changed\n"
    # A longer log of the run replaces it, when asked.
    (folder / "run.log").write_text(log(steps=(*STEPS, 25)))
    assert "with other content" in export(folder, "mlflow", out=place, code=2).stderr
    export(folder, "mlflow", "--force", out=place)
    (longer,) = client.search_runs([experiment.experiment_id])
    assert len(client.get_metric_history(longer.info.run_id, "train/loss")) == 25
    assert longer.info.run_id != run.info.run_id


@pytest.mark.slow
def test_mlflow_reads_equal_numbers_from_a_folder(folder, monkeypatch, called):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    check_mlflow(folder, "out", (folder / "out").as_uri())
    assert called == []


@pytest.mark.slow
def test_mlflow_reads_equal_numbers_from_a_server(folder, called):
    with server(folder) as address:
        check_mlflow(folder, address, address)
    assert set(called) == {"127.0.0.1"}
    refused = export(folder, "mlflow", out=address, code=2)
    assert refused.stderr.startswith(f"logparse: MLflow at {address} did not keep the run")


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """The address of a server of MLflow, which only the whole of MLflow has."""
    program = shutil.which("mlflow") or pytest.skip("no command mlflow on PATH")
    python = Path(program).read_text().partition("\n")[0].removeprefix("#!")
    if subprocess.run([python, "-c", "import sqlalchemy"], capture_output=True, check=False).returncode:
        pytest.skip("the small client of MLflow has no server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = [f"--backend-store-uri=sqlite:///{folder}/ml.db", f"--artifacts-destination={folder}/artifacts"]
    command = [program, "server", "--host=127.0.0.1", f"--port={port}", "--workers=1", *store]
    quiet = os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
    with (folder / "server.txt").open("wb") as talk:
        process = subprocess.Popen(command, env=quiet, stdout=talk, stderr=talk, start_new_session=True)
    try:
        while not answers(port):
            assert process.poll() is None, (folder / "server.txt").read_text()
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_swanlab_reads_equal_numbers(folder, called):
    store = pytest.importorskip("swanlab.sdk.internal.core_python.store")
    from swanlab.proto.swanlab.record.v1.record_pb2 import Record

    done = export(folder, "swanlab", SWANLAB_WEBHOOK="http://127.0.0.1:9/")
    (path,) = (folder / "out").glob("*/*.swanlab")
    assert done.stdout == f"run: 24 steps, {len(expected(folder)[0])} series in out/{path.parent.name}\n"
    reader = store.DataStoreReader()
    reader.open(path)
    records = [Record.FromString(data) for data in reader]
    reader.close()
    read: dict[str, dict[int, float]] = {}
    for record in records:
        if record.WhichOneof("record_type") == "scalar":
            read.setdefault(record.scalar.key, {})[record.scalar.step] = record.scalar.value.number
    series, figures = expected(folder)
    assert {tag for tag in read if not tag.startswith("run/")} == set(series)
    assert [tag for tag in series if not equal(read[tag], series[tag])] == []
    assert equal({name: read[f"run/{name}"][24] for name in figures}, figures)
    assert "Ascend910B3" in (path.parent / "files/config.yaml").read_text()
    metadata = json.loads((path.parent / "files/swanlab-metadata.json").read_text())
    assert {name: value for name, value in metadata.items() if value} == {"_version": 2}
    assert "exists" in export(folder, "swanlab", code=2).stderr
    export(folder, "swanlab", "--force")
    assert list((folder / "out").glob("*/*.swanlab")) == [path]
    assert called == []


def test_swanlab_imports_the_file_of_tensorboard(folder):
    reader = pytest.importorskip("swanlab.converter.tfb.utils")
    export(folder, "tensorboard")
    path = str(folder / "out/run" / FILE)
    read = reader.get_tf_events_tags_data(path, reader.get_tf_events_tags_type(path))
    loss = expected(folder)[0]["train/loss"]
    assert equal({step: value for step, value, _ in read["train/loss"]}, as_32_bits(loss))


@pytest.mark.parametrize("to", ["tensorboard", "openmetrics", "mlflow", "swanlab"])
def test_a_missing_extra_is_named(folder, monkeypatch, to):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("analysis.export.libraries.import_module", missing)
    done = export(folder, to, code=2)
    assert f"logparse: --to {to} needs " in done.stderr
    assert f"  try:   pip install 'logparse[{to}]'" in done.stderr
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--to", "wandb", "-o", "out"), "unknown target 'wandb'"),
        (("--to", "mlflow", "-o", "ftp://host/runs"), "ftp://host/runs is no place for MLflow runs"),
        (("--to", "csv", "-o", ""), "-o has an empty folder name"),
        (("--to", "swanlab", "-o", "out", "--experiment", " "), "--experiment has no name"),
        (("--to", "csv", "-o", "out", "--time-zone", "x"), "'x' is no time zone"),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_what_cannot_be_exported_is_refused(folder, arguments, problem):
    done = run_logparse("export", "run.log", *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"logparse: {problem}")


def test_a_log_that_cannot_be_read_does_not_stop_the_others(folder):
    (folder / "none.log").write_text("nothing\n")
    done = export(folder, "csv", "--each", logs=["none.log", "run.log"], code=3)
    assert done.stdout.startswith("run: 24 steps")
    assert "none.log" in done.stderr
