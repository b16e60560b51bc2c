"""An S3 server for the tests that need one, and web servers that fail."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest.mock import patch

import pytest
from s3_server import Server, serve

from logparse.inputs import remote as objects
from logparse.inputs import stores
from logparse.inputs.stores import open_store


@pytest.fixture(scope="module")
def s3() -> Iterator[Server]:
    """A server with an empty bucket; this process may write there."""
    pytest.importorskip("obstore")
    # Nobody waits for a server that is not there.
    at_once = patch.object(stores, "RETRY_TIMEOUT", timedelta(milliseconds=100))
    with serve() as server, patch.dict(os.environ, server.writer), at_once:
        yield server


def put(files: dict[str, bytes]) -> None:
    """Put objects into the bucket of the server."""
    store = open_store("s3://bucket")
    for key, data in files.items():
        store.put(key, data)


def keys(folder: str = "") -> list[str]:
    """The keys below ``folder`` in the bucket of the server."""
    return sorted(found["path"] for found in open_store("s3://bucket").list(folder))


@contextmanager
def web(data: bytes, cuts: list[int], e_tag: str | None = None) -> Iterator[tuple[str, list[str | None]]]:
    """The address of a web server with one file, and the ranges it was asked for.

    Every answer is cut after the next of ``cuts`` bytes, the later ones after the last of them; 0 is at once, -1 never.
    """
    asked: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            span = self.headers.get("Range")
            cut = cuts[min(len(asked), len(cuts) - 1)]
            asked.append(span)
            begin = int(span.removeprefix("bytes=").split("-")[0]) if span else 0
            self.send_response(206 if span else 200)
            if span:
                self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
            if e_tag:
                self.send_header("ETag", e_tag)
            self.send_header("Content-Length", str(len(data) - begin))
            self.end_headers()
            # What is already known of the file needs no body, and may have gone away.
            try:
                self.wfile.write(data[begin:] if cut < 0 else data[begin : begin + cut])
            except ConnectionError:
                return
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    local, at_once = patch.dict(os.environ, {"NO_PROXY": "127.0.0.1"}), patch.object(objects, "WAIT_SECONDS", 0.001)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, local, at_once:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/run.log", asked
        server.shutdown()
        thread.join()
