"""Logs on object stores: the same frames as from files; a store that fails is told of."""

import bz2
import gzip
import io
import lzma
from dataclasses import fields
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from helpers import megatron_log, run_logparse
from polars.testing import assert_frame_equal
from s3 import put, s3, web

from logparse.decode.read_run import ParsedLog, read_run
from logparse.errors import InputError
from logparse.inputs.discovery import find_sources
from logparse.inputs.remote import entries, find_objects
from logparse.inputs.run_discovery import named_runs
from logparse.inputs.run_names import run_names

FIXTURES = Path(__file__).parents[3] / "fixtures"
CASES = sorted({path.parent for path in FIXTURES.glob("*/*/*.log")})
PACKERS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}
__all__ = ["s3"]


def assert_same(one: ParsedLog, other: ParsedLog, place: str) -> None:
    """All of it, but for the folder in which the files lie."""
    for name in (field.name for field in fields(ParsedLog)):
        pair = [getattr(one, name), getattr(other, name)]
        if isinstance(pair[0], pl.DataFrame):
            pair = [{name: pair[0]}, {name: pair[1]}]
        if isinstance(pair[0], dict) and all(isinstance(v, pl.DataFrame) for v in pair[0].values()):
            for key, frame in pair[0].items():
                assert_frame_equal(_moved(frame, place), _moved(pair[1][key], place))
        else:
            assert str(pair[0]).replace(place, "") == str(pair[1]).replace(place, "").replace("s3://bucket", "")


def _moved(frame: pl.DataFrame, place: str) -> pl.DataFrame:
    if "source" not in frame.columns:
        return frame
    return frame.with_columns(pl.col("source").str.replace(f"^({place}|s3://bucket)", ""))


@pytest.fixture(scope="module")
def fixtures(s3):
    put({path.relative_to(FIXTURES).as_posix(): path.read_bytes() for case in CASES for path in case.glob("*.log")})
    return s3


# Where bytes are from is nothing that a format knows: those of several files, and one of one.
BY_SEVERAL = [case for case in CASES if len([*case.glob("*.log")]) > 1]


@pytest.mark.parametrize("case", [*BY_SEVERAL, CASES[0]], ids=lambda case: f"{case.parent.name}/{case.name}")
def test_a_bucket_gives_the_same_as_a_folder(fixtures, case):
    """By a pattern, which finds what their keys and the folder do."""
    folder = f"s3://bucket/{case.relative_to(FIXTURES).as_posix()}"
    local = read_run([str(case / "*.log")], name="run")
    assert local.sources
    assert_same(local, read_run([f"{folder}/*.log"], name="run"), str(FIXTURES))
    found = describe(f"{folder}/*.log")
    assert found == describe(folder) == describe(*(f"{folder}/{path.name}" for path in sorted(case.glob("*.log"))))


def describe(*arguments: str) -> list[tuple[str, str, int | None]]:
    """What ``arguments`` find."""
    return [(source.name, str(source.path), source.size) for source in find_sources(arguments)]


@pytest.mark.parametrize("ending", PACKERS)
def test_compressed_objects(s3, tmp_path, ending):
    data = PACKERS[ending](megatron_log(steps=200).encode())
    (tmp_path / f"run.log.{ending}").write_bytes(data)
    put({f"packed/run.log.{ending}": data})
    local = read_run([str(tmp_path / f"run.log.{ending}")], name="run")
    stored = read_run([f"s3://bucket/packed/run.log.{ending}"], name="run")
    assert local.coverage.step_lines == 200
    assert_frame_equal(local.steps.drop("source"), stored.steps.drop("source"))


@pytest.fixture(scope="module")
def tree(s3):
    log = megatron_log().encode()
    names = ("rank_10.log", "rank_2.log", "deep/er/rank_3.log", "deep/rank_4.log", ".hidden.log", ".git/a.log")
    put({f"tree/{name}": log for name in names} | {"tree/picture": b"\x89PNG\0", "trees/rank_9.log": log})
    return s3


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("tree", ["deep/er/rank_3.log", "deep/rank_4.log", "rank_2.log", "rank_10.log"]),
        ("tree/", ["deep/er/rank_3.log", "deep/rank_4.log", "rank_2.log", "rank_10.log"]),
        ("tree/rank_*.log", ["rank_2.log", "rank_10.log"]),
        ("tree/rank_?.log", ["rank_2.log"]),
        ("tree/rank_[13]*.log", ["rank_10.log"]),
        ("tree/*/*.log", ["deep/rank_4.log"]),
        ("tree/**/rank_[34].log", ["deep/er/rank_3.log", "deep/rank_4.log"]),
        ("tree/.h*", [".hidden.log"]),
        ("tree/rank_2.log", ["rank_2.log"]),
    ],
)
def test_what_a_url_names(tree, url, names):
    assert [source.name for source in find_sources([f"s3://bucket/{url}"])] == [f"s3://bucket/tree/{n}" for n in names]


def test_an_object_named_twice_is_read_once(tree):
    assert len(find_sources(["s3://bucket/tree/rank_2.log", "s3://bucket/tree/rank_2*"])) == 1


def test_entries_of_a_folder(tree):
    assert entries("s3://bucket/tree/") == [
        f"s3://bucket/tree/{n}" for n in ("deep/", "picture", "rank_10.log", "rank_2.log")
    ]
    assert entries("s3://bucket/tree/rank_2.log") == ["s3://bucket/tree/rank_2.log"]
    assert entries("s3://bucket/tree/rank_*") == ["s3://bucket/tree/rank_*"]


@pytest.mark.parametrize(
    ("url", "files"),
    [
        ("s3://bucket/tree/rank_2.log", {"rank_2": ["rank_2.log"]}),
        ("s3://bucket/tree/rank_*.log", {"tree": ["rank_10.log", "rank_2.log"]}),
        ("s3://bucket/tree/deep/", {"er": ["deep/er/"], "deep": ["deep/rank_4.log"]}),
        ("s3://bucket/tree/none/", {"none": ["none/"]}),
        ("https://host/run.log?X=1*", {"run": [None]}),
    ],
)
def test_entries_of_a_url_are_runs(tree, url, files):
    told = {name: [f"s3://bucket/tree/{file}" if file else url for file in listed] for name, listed in files.items()}
    assert dict(named_runs([url], each=True)) == told


@pytest.mark.parametrize("url", ["s3://bucket/tree/rank_3.log", "s3://bucket/none/", "s3://bucket/tree/x*"])
def test_a_key_that_is_not_there(tree, url):
    with pytest.raises(InputError, match="no such file: s3://") as told:
        find_sources([url])
    assert told.value.remedy


def test_a_folder_without_logs(tree, s3):
    put({"pictures/a": b"\x89PNG\0"})
    with pytest.raises(InputError, match="no log in the folder s3://bucket/pictures/"):
        find_sources(["s3://bucket/pictures/"])


@pytest.mark.parametrize(
    ("url", "environment", "said"),
    [
        ("s3://bucket/tree/rank_2.log", {"AWS_SECRET_ACCESS_KEY": "wrong"}, "signature we calculated does not match"),
        ("s3://bucket/tree/", {"AWS_ACCESS_KEY_ID": "wrong"}, "does not exist in our records"),
        ("s3://nowhere/run.log", {}, "The specified bucket does not exist"),
        ("s3://nowhere/*.log", {}, "The specified bucket does not exist"),
        ("s3://bucket/none.log", {}, "no such file: s3://bucket/none.log"),
        ("s3://bucket/run.log", {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "error sending request"),
        ("ftp://bucket/run.log", {}, "cannot use ftp://bucket"),
    ],
)
def test_failures_are_told(tree, tmp_path, url, environment, said):
    done = run_logparse("analyze", url, "-o", "out", cwd=tmp_path, **environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "\n  try:" in done.stderr
    assert len(done.stderr.splitlines()) <= 3
    assert list(tmp_path.iterdir()) == []


LOG = megatron_log(steps=2000).encode()


@pytest.mark.parametrize("e_tag", [None, '"1"'])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, PACKERS["zst"]], ids=["plain", "gz", "zst"])
def test_a_cut_connection_is_gone_on_with(tmp_path, pack, e_tag):
    pytest.importorskip("obstore")
    (tmp_path / "run.log").write_bytes(LOG)
    data = pack(LOG)
    # The first answer only says how large it is.
    with web(data, [-1, len(data) // 2, -1], e_tag) as (url, asked):
        steps = read_run([url], name="run").steps.drop("source")
    assert_frame_equal(steps, read_run([str(tmp_path / "run.log")], name="run").steps.drop("source"))
    assert asked[:2] == [None, None]
    assert asked[2].startswith(f"bytes={len(data) // 2}-")


@pytest.mark.parametrize("pack", [bytes, gzip.compress, PACKERS["zst"]], ids=["plain", "gz", "zst"])
def test_a_connection_cut_for_good_is_an_error(tmp_path, pack):
    pytest.importorskip("obstore")
    data = pack(LOG)
    with web(data, [-1, len(data) // 2, 0]) as (url, asked):
        done = run_logparse("analyze", f"{url}?X-Amz-Signature=secret", "-o", "out", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"cannot read {url}: " in done.stderr
    assert f"where: byte {len(data) // 2} of {len(data)}" in done.stderr
    assert "\n  try:" in done.stderr
    assert "secret" not in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert len(asked) < 10


def test_the_name_of_a_signed_url_holds_no_secret():
    pytest.importorskip("obstore")
    with web(megatron_log().encode(), [-1]) as (url, _):
        log = read_run([f"{url}?X-Amz-Signature=secret"])
        apart = find_sources([f"{url}?id=1", f"{url}?id=2", f"{url}?id=2"])
    assert (log.name, log.sources, log.steps["source"].unique().to_list()) == ("run", (url,), [url])
    assert [source.name for source in apart] == [url, f"{url} (2)"]
    assert run_names([["https://h/a.log?b=c/d[1]"], ["s3://bucket/b.log"]]) == ["a", "b"]


def test_an_object_can_be_sought_in():
    pytest.importorskip("obstore")
    data = bytes(range(256)) * 4096
    with web(data, [-1]) as (url, _):
        (found,) = find_objects(url)
        with found.open() as raw:
            raw.seek(-10, io.SEEK_END)
            assert (raw.read(), raw.tell()) == (data[-10:], found.size)
            raw.seek(500_000)
            assert (raw.read(1000), raw.tell()) == (data[500_000:501_000], 501_000)
            raw.seek(0)
            assert raw.read() == data


def test_an_empty_object(s3):
    put({"empty.log": b""})
    (found,) = find_objects("s3://bucket/empty.log")
    assert found.open().read() == b""


def test_an_object_that_changes_while_it_is_read(s3):
    put({"changing.log": b"a" * 10**6})
    (found,) = find_objects("s3://bucket/changing.log")
    with found.open() as raw:
        assert raw.read(10) == b"a" * 10
        put({"changing.log": b"b" * 10**6})
        raw.seek(900_000)
        with pytest.raises(InputError, match=r"cannot read s3://bucket/changing\.log"):
            raw.read()
