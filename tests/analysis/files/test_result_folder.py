"""Results on an object store: what a folder would hold, whole or not at all."""

import json

import polars as pl
import pytest
import regex
from helpers import ROOT, run_logparse
from polars.testing import assert_frame_equal
from s3 import keys, put, s3

from analysis.files.own_files import LIST
from analysis.files.result_folder import ResultFolder
from logparse.errors import InputError, UsageError
from logparse.inputs.stores import open_store

pytestmark = pytest.mark.usefixtures("analysed_once")

LOG = str(ROOT / "fixtures/megatron/core-v0.12-llama2-7b/run.log")
CLIP = regex.compile(rb"clip\d+")
__all__ = ["s3"]


@pytest.fixture(scope="module")
def written(s3, tmp_path_factory):
    """What the same command writes into a folder and onto the store."""
    folder = tmp_path_factory.mktemp("results")
    for out in (str(folder / "out"), "s3://bucket/out"):
        done = run_logparse("analyze", LOG, "--hw", "910b3", "-o", out, cwd=folder)
        assert (done.returncode, done.stderr) == (0, f"wrote {out}/report.html\n")
    return folder / "out"


def content(key: str) -> bytes:
    return open_store("s3://bucket").read(key)


def test_a_store_holds_what_a_folder_does(written):
    files = {path.relative_to(written).as_posix(): path for path in written.rglob("*") if path.is_file()}
    assert keys("out") == sorted(f"out/{name}" for name in files)
    assert {"report.html", "charts/mfu.png", "steps.parquet"} < set(files)
    for name, path in files.items():
        if name.endswith(".parquet"):
            assert_frame_equal(pl.read_parquet(content(f"out/{name}")), pl.read_parquet(path))
        elif name.endswith(".json"):
            assert json.loads(content(f"out/{name}")) == json.loads(path.read_bytes())
        else:
            # Clips are numbered on and on in one process.
            stored, local = (CLIP.sub(b"", data) for data in (content(f"out/{name}"), path.read_bytes()))
            assert stored == local


def test_nothing_is_overwritten_without_force(written, tmp_path):
    put({"taken/mine.txt": b"mine"})
    done = run_logparse("analyze", LOG, "-o", "s3://bucket/taken/", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "the folder s3://bucket/taken is not empty\n  try:   give another folder with -o" in done.stderr
    assert keys("taken") == ["taken/mine.txt"]


def test_with_force_earlier_results_go_and_nothing_else(s3, tmp_path):
    listed = {"files": {"charts/mfu.png": "analyze", "report.html": "analyze"}}
    put({f"old/{name}": b"old" for name in ("mine.txt", "charts/mfu.png", "charts/mine.png", "report.html")})
    put({f"old/{LIST}": json.dumps(listed).encode()})
    done = run_logparse("analyze", LOG, "-o", "s3://bucket/old", "--no-charts", "--force", "-q", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    left = [key.removeprefix("old/") for key in keys("old")]
    assert [name for name in left if not name.endswith(".parquet")] == [LIST, "charts/mine.png", "mine.txt"]
    assert content("old/mine.txt") == b"old"
    assert "steps.parquet" in left


def test_a_file_of_others_in_a_store_is_not_overwritten(s3, tmp_path):
    put({"others/steps.parquet": b"theirs"})
    done = run_logparse("analyze", LOG, "-o", "s3://bucket/others", "--no-charts", "--force", "-q", cwd=tmp_path)
    assert (done.returncode, "others/steps.parquet is in the way" in done.stderr) == (2, True)
    assert content("others/steps.parquet") == b"theirs"


@pytest.mark.parametrize(
    ("out", "environment", "said"),
    [
        ("s3://bucket/none", {"AWS_SECRET_ACCESS_KEY": "wrong"}, "signature we calculated does not match"),
        ("s3://nowhere/none", {}, "cannot read s3://nowhere/none: The specified bucket does not exist"),
        ("s3://bucket/none", {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "error sending request"),
        ("s3://", {}, "cannot use s3://"),
    ],
)
def test_failures_are_told_before_any_work(s3, tmp_path, out, environment, said):
    done = run_logparse("analyze", "no.log", "-o", out, cwd=tmp_path, **environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "\n  try:" in done.stderr


def test_who_may_only_read_writes_nothing(s3, tmp_path):
    done = run_logparse("analyze", LOG, "-o", "s3://bucket/denied", "--no-charts", cwd=tmp_path, **s3.reader)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot write s3://bucket/denied/" in done.stderr
    assert "Access Denied" in done.stderr
    assert keys("denied") == []


def test_a_failure_half_way_leaves_the_store_as_it_was(s3):
    put({"half/report.html": b"old", "half/steps.parquet": b"old"})

    def fail():
        with ResultFolder("s3://bucket/half").opened("analyze", force=True) as folder:
            (folder / "report.html").write_text("new")
            raise InputError("stop")

    with pytest.raises(InputError, match="stop"):
        fail()
    assert keys("half") == ["half/report.html", "half/steps.parquet"]
    assert content("half/report.html") == b"old"


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (["gate", "--baseline", "1", "--candidate", "2"], {"junit.xml", "summary.md"}),
        (["compare", "1", "2"], {"report.html"}),
    ],
)
def test_other_commands(s3, tmp_path, command, names):
    releases = {"1": "s3://bucket/releases/RC1/", "2": "s3://bucket/releases/RC3-1.log"}
    logs = ROOT / "fixtures/releases"
    put({f"releases/RC1/{n}.log": (logs / f"8.0.RC1-{n}.log").read_bytes() for n in (1, 2, 3)})
    put({"releases/RC3-1.log": (logs / "8.0.RC3-1.log").read_bytes()})
    arguments = [releases.get(word, word) for word in command]
    done = run_logparse(*arguments, "-o", f"s3://bucket/{command[0]}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert names <= {key.removeprefix(f"{command[0]}/") for key in keys(command[0])}


def test_the_name_holds_no_secret():
    assert str(ResultFolder("https://user:secret@host/out/?sig=secret")) == "https://host/out"
    assert str(ResultFolder("out/")) == "out"


def test_without_a_bucket_it_is_a_usage_error():
    pytest.importorskip("obstore")
    with pytest.raises(UsageError, match="cannot use s3://"):
        ResultFolder("s3://").check(force=False)
