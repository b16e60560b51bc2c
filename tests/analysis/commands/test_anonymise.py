"""With --anonymise no output shows a host, a user, a path, a run's name or a job's number, and no number changes."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from helpers import SETTINGS, arguments_dump, megatron_line, run_logparse

import logparse
from analysis.history.pseudonym_key import KEY_FILE, pseudonyms_of_history
from logparse.errors import LogparseError
from logparse.package_tables import read_table
from logparse.pseudonyms import Pseudonyms, change_of, kind_of

TABLE = read_table(Path(__file__).parents[3] / "logparse" / "identities.toml")
# Parts of the names that are planted in a log and in its path.
PLANTED = ("alicja", "acme", "node17", "node18", "10.31.7.5", "81723", "corp")
# What is planted in settings.
NAMED = {
    "save": "/mnt/acme/alicja/ckpt/exp7",
    "tokenizer_model": "/home/alicja/tok/tokenizer.model",
    "data_path": "0.3 data/acme/corp_text_document 0.7 /data/acme/corp2",
    "wandb_exp_name": "acme-exp-7",
    "wandb_project": "acmeproj",
    "master_addr": "gpu-node17",
    "slurm_nodelist": "gpu-node[17-18],gpu-node18",
    "slurm_job_id": 81723,
    "tensorboard_dir": "s3://acme-bucket/corp/board",
    "log_dir": "acmelogs",
    "vocab_path2": "['acme/corp_vocab']",
    "nodes": "acmenode[1-4]",
    "slurm_partition": "acmepart",
}
FIGURES = ("metrics", "rates", "coverage", "goodput", "time_breakdown", "checks", "device", "formula")


def log_of_alicja(folder: Path, name: str = "train-acme7.log", ms: float = 1000.0) -> str:
    """A log that names people, machines and places, below ``folder``; its path, relative to that."""
    path = folder / "alicja" / "acme-run" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    missing = "'/mnt/acme/alicja/x.bin' on gpu-node17 (10.31.7.5:29500) for alicja@gpu-node17"
    failure = [
        "Traceback (most recent call last):",
        '  File "/home/alicja/src/acme/train.py", line 7, in main',
        "    main('/mnt/acme/alicja/x.bin')",
        f"FileNotFoundError: [Errno 2] No such file or directory: {missing}",
    ]
    lines = [
        arguments_dump(SETTINGS | {"world_size": 8} | NAMED),
        *(megatron_line(step, ms=ms + step % 7) for step in range(1, 41)),
        *(f"gpu-node17: [rank3]: {line}" for line in failure),
        "srun: error: gpu-node17: task 3: Exited with exit code 1",
    ]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return str(path.relative_to(folder))


def shown_in(path: Path, below: Path) -> str:
    data = (
        pl.read_parquet(path).write_json()
        if path.suffix == ".parquet"
        else path.read_bytes().decode("utf-8", "replace")
    )
    return f"{path.relative_to(below)} {data}"


@pytest.mark.usefixtures("analysed_once")
def test_no_output_of_analyze_shows_a_name(tmp_path):
    log, bad = log_of_alicja(tmp_path), tmp_path / "alicja" / "acme-bad.log"
    bad.write_text("nothing of acme\n", encoding="utf-8")
    both = ["--each", log, "alicja/acme-bad.log"]
    forms = ([], ["-v"], ["-q"], ["--json"], ["--markdown"], ["--lang", "zh"], ["-o", "out", "--chart-format", "json"])
    shown = {}
    for logs, shows in (([log], forms), (both, forms), ([str(tmp_path / log)], forms[:1])):
        for form in shows:
            form = [*form[:1], f"{form[1]}{len(shown)}", *form[2:]] if form[:1] == ["-o"] else form
            done = run_logparse("analyze", *logs, *form, "--anonymise", cwd=tmp_path)
            assert done.returncode == (3 if logs == both else 0), done.stderr
            shown[" ".join((*logs, *form))] = done.stdout + done.stderr
    files = [path for folder in tmp_path.glob("out*") for path in folder.rglob("*") if path.is_file()]
    shown |= {str(path): shown_in(path, tmp_path) for path in files}
    assert {path.suffix for path in files} >= {".html", ".json", ".csv", ".parquet"}
    leaks = {place: name for place, text in shown.items() for name in PLANTED if name in text.lower()}
    assert leaks == {}


def test_no_number_changes(tmp_path):
    log = log_of_alicja(tmp_path)
    plain, anonymous = (
        json.loads(run_logparse("analyze", log, "--json", *more, cwd=tmp_path).stdout)["runs"][0]
        for more in ([], ["--anonymise"])
    )
    assert {name: plain[name] for name in FIGURES} == {name: anonymous[name] for name in FIGURES}
    assert plain["ending"]["line"] == anonymous["ending"]["line"]
    assert [note["code"] for note in plain["notes"]] == [note["code"] for note in anonymous["notes"]]
    assert plain["context"].keys() == anonymous["context"].keys()


def test_the_api_shows_no_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = log_of_alicja(tmp_path)
    run, plain = (logparse.analyze(log, anonymise=anonymous) for anonymous in (True, False))
    run.write_tables("out", tables="csv")
    shown = [
        json.dumps(run.to_dict()),
        run._repr_html_(),
        *(shown_in(path, tmp_path) for path in tmp_path.glob("out/*")),
    ]
    with pytest.raises(LogparseError) as caught:
        logparse.analyze("alicja/acme-run/none.log", anonymise=True)
    assert [name for text in (*shown, str(caught.value)) for name in PLANTED if name in text.lower()] == []
    assert run.to_dict()["metrics"] == plain.to_dict()["metrics"]


def test_recorded_runs_have_the_same_pseudonyms_and_compare(tmp_path):
    logs = [log_of_alicja(tmp_path, f"acme{n}.log", 1000.0 + 5 * n) for n in range(6)]
    for n, log in enumerate(logs):
        command = ("record", log, "--history", "runs", "--release", str(n // 3), "--anonymise")
        done = run_logparse(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert not [name for name in PLANTED if name in done.stdout]
    commands = (
        ["trend", "--history", "runs", "--json"],
        ["compare", "release=0", "release=1", "--history", "runs", "--json"],
        ["history", "list", "--history", "runs", "--json"],
    )
    texts = [run_logparse(*command, cwd=tmp_path).stdout for command in commands]
    texts += [shown_in(path, tmp_path) for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert [name for text in texts for name in PLANTED if name in text] == []
    rows = json.loads(texts[2])["runs"]
    runs = [run_logparse("history", "show", row["run_id"], "--history", "runs", cwd=tmp_path).stdout for row in rows]
    assert len(runs) == len(logs)
    assert len({json.loads(run)["ending"]["host"] for run in runs}) == 1
    assert len({row["name"] for row in rows}) == len(logs)
    assert (tmp_path / "runs" / KEY_FILE).is_file()


def test_each_setting_and_shape_of_the_table_is_known():
    change = change_of({}, (), "", Pseudonyms(b"key"))
    for kind, names in TABLE["names"].items():
        assert {name: kind_of(f"my_{name}") for name in names} == dict.fromkeys(names, kind)
    for shape in TABLE["shape"]:
        assert change(shape["sample"]) != shape["sample"], shape["sample"]
        assert not any(name in change(shape["sample"]) for name in ("SECRET", "10.31", "fe80", "81723"))


def test_a_pseudonym_needs_the_key_and_stays():
    one, other = Pseudonyms(b"one"), Pseudonyms(b"other")
    assert one.of("host", "node7") == one.of("host", "node7") != other.of("host", "node7")
    paths = ("~bob/x: no", "\\\\corp\\share\\x", "'corp/a.bin' is missing", "C:\\work\\a.txt")
    for text in ("open /data/x/a.bin: no", "s3://bucket/a/b.log", "node: gpu7", *paths):
        once = change_of({}, (), "", one)(text)
        assert once != text
        assert change_of({}, (), "", one)(once) == once
    kept = (
        "16,300 tokens/s",
        "torch/nn/modules/linear.py",
        "/dev/shm is full",
        "CANN 8.0.0.1",
        "step 3/500",
        "eos </s>",
        "train/loss: 3",
        "read/write of 3/4",
    )
    assert {text: change_of({}, (), "", one)(text) for text in kept} == {text: text for text in kept}
    path = "/opt/conda/lib/python3.10/site-packages/torch/nn/modules/linear.py"
    assert change_of({}, (), "", one)(path).endswith("/lib/python3.10/site-packages/torch/nn/modules/linear.py")


@pytest.mark.parametrize("scheme", ["", "file://"], ids=["folder", "store"])
def test_those_who_record_first_at_once_have_one_key(scheme, tmp_path):
    (tmp_path / "runs").mkdir()
    place = f"{scheme}{tmp_path}/runs"
    with ThreadPoolExecutor(8) as pool:
        keys = {made.key for made in pool.map(lambda _: pseudonyms_of_history(place), range(16))}
    assert len(keys) == 1
    assert keys == {(tmp_path / "runs" / KEY_FILE).read_bytes()}
    assert {path.name for path in (tmp_path / "runs").rglob("*") if path.is_file()} == {KEY_FILE}


def test_an_answer_uses_the_key_of_the_history_of_the_project(tmp_path):
    log = log_of_alicja(tmp_path)
    (tmp_path / "logparse.toml").write_text('history = "runs"\n', encoding="utf-8")
    command = ("analyze", log, "--anonymise", "--json")
    without = [json.loads(run_logparse(*command, cwd=tmp_path).stdout)["runs"][0]["name"] for _ in range(2)]
    assert without[0] != without[1]
    recorded = run_logparse("record", log, "--release", "1", "--anonymise", cwd=tmp_path).stdout
    same = [json.loads(run_logparse(*command, cwd=tmp_path).stdout)["runs"][0]["name"] for _ in range(2)]
    assert same == [recorded.partition(":")[0]] * 2


def test_a_shard_has_no_pseudonyms(tmp_path):
    done = run_logparse(
        "analyze", "--each", log_of_alicja(tmp_path), "--shard", "1/2", "-o", "x", "--anonymise", cwd=tmp_path
    )
    assert done.returncode == 2
    assert "exclude each other" in done.stderr
