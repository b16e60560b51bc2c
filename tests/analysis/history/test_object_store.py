"""What a bucket does where the store says no; benchmarks/object_store.py tries all commands on a whole S3 server."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from analysis.history.storage import Bucket, open_storage
from logparse.errors import InputError, UsageError

MESSAGE = "The specified bucket does not exist"
KEY = "summary/release=8/00.v1.parquet"


class Missing(BaseHTTPRequestHandler):
    """S3 without the bucket."""

    def do_GET(self):
        body = f"<?xml version='1.0'?>\n<Error><Code>NoSuchBucket</Code><Message>{MESSAGE}</Message></Error>".encode()
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def bucket(monkeypatch):
    pytest.importorskip("obstore")
    with ThreadingHTTPServer(("127.0.0.1", 0), Missing) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "any")
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield open_storage("s3://nowhere/runs/")
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("act", [lambda b: b.keys("summary"), lambda b: b.put(KEY, b"x")], ids=["keys", "put"])
def test_a_missing_bucket_is_told_with_its_place_and_a_remedy(bucket, act):
    with pytest.raises(InputError, match="s3://nowhere/runs/summary") as told:
        act(bucket)
    assert told.value.problem.endswith(f": {MESSAGE}")
    assert told.value.remedy


@pytest.mark.parametrize("act", [lambda b: b.get(KEY), lambda b: b.age_seconds(KEY)], ids=["read", "age"])
def test_a_file_that_is_gone_is_the_callers(bucket, act):
    with pytest.raises(FileNotFoundError):
        act(bucket)


def test_removing_what_is_gone_is_no_error(bucket):
    bucket.remove(KEY)


def test_plain_http_must_be_allowed(bucket, monkeypatch):
    monkeypatch.setenv("AWS_ALLOW_HTTP", "false")
    with pytest.raises(InputError, match="cannot read s3://nowhere/runs/summary: GET http://127"):
        open_storage("s3://nowhere/runs").keys("summary")


@pytest.mark.parametrize("place", ["ftp://host/runs", "s3://"])
def test_urls_that_no_store_has(place):
    pytest.importorskip("obstore")
    with pytest.raises(UsageError, match="cannot use") as told:
        open_storage(place)
    assert "\n" not in told.value.problem


def test_waiting_is_bounded(bucket):
    assert isinstance(bucket, Bucket)
    assert bucket.store.store.retry_config["retry_timeout"].total_seconds() <= 30
