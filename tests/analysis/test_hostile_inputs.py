"""Packed, wide, looped and badly served inputs: the figures, or a line of error, and never a traceback."""

import bz2
import lzma
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from helpers import megatron_log, run_logparse

TEXT = megatron_log(40)
ENCODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32")
PACKED = {"xz": lzma.compress(TEXT.encode()), "bz2": bz2.compress(TEXT.encode())}
# The first line of the answer about the whole log.
WHOLE = "steps 1 to 40 of 500"


@pytest.mark.parametrize("data", [*map(TEXT.encode, ENCODINGS), *PACKED.values()], ids=[*ENCODINGS, *PACKED])
def test_wide_and_packed_text_is_read(tmp_path, data):
    (tmp_path / "run.log").write_bytes(data)
    done = run_logparse("analyze", "run.log", cwd=tmp_path)
    assert (done.returncode, WHOLE in done.stdout, done.stderr) == (0, True, "")


def test_wide_text_is_read_from_a_pipe(tmp_path):
    done = run_logparse("analyze", "-", cwd=tmp_path, stdin=f"训练开始\n{TEXT}".encode("utf-32"))
    assert (done.returncode, WHOLE in done.stdout, done.stderr) == (0, True, "")


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("at", [0.01, 0.5, 0.99])
def test_a_flipped_byte_is_told(tmp_path, kind, at):
    data = bytearray(PACKED[kind])
    data[int(len(data) * at)] ^= 0xFF
    (tmp_path / "run.log").write_bytes(data)
    done = run_logparse("analyze", "run.log", cwd=tmp_path)
    said = done.stdout + done.stderr
    assert (done.returncode in (0, 2, 3), "internal error" in said) == (True, False)
    assert "corrupted" in said or "not a text file" in said


def test_an_archive_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        archive.writestr("run.log", TEXT)
    done = run_logparse("analyze", "run.zip", cwd=tmp_path)
    assert (done.returncode, "not a text file: run.zip" in done.stderr) == (2, True)


def test_links_in_a_circle_are_no_endless_walk(tmp_path):
    (tmp_path / "run.log").write_text(TEXT)
    (tmp_path / "again").symlink_to(".")
    (tmp_path / "one.log").symlink_to("two.log")
    (tmp_path / "two.log").symlink_to("one.log")
    done = run_logparse("analyze", ".", cwd=tmp_path)
    assert (done.returncode, WHOLE in done.stdout) == (0, True)
    done = run_logparse("analyze", "one.log", cwd=tmp_path)
    assert (done.returncode, "no such file: one.log" in done.stderr) == (2, True)


def test_a_name_with_a_nul_is_refused(tmp_path):
    (tmp_path / "run.log").write_text(TEXT)
    (tmp_path / "logparse.toml").write_text('history = "\\u0000"\n')
    done = run_logparse("record", "run.log", "--release", "1", cwd=tmp_path)
    assert (done.returncode, "history is '\\\\x00'" in done.stderr) == (2, True)


# A web server: what each path sends, as status, further headers, length that is told, and bytes.
DATA = TEXT.encode()
ANSWERS: dict[str, tuple[int, dict[str, str], int, bytes]] = {
    "/moved.log": (302, {"Location": "/run.log"}, 0, b""),
    "/circle.log": (302, {"Location": "/circle.log"}, 0, b""),
    "/to-a-file.log": (302, {"Location": "file:///etc/passwd"}, 0, b""),
    "/cut.log": (200, {}, len(DATA), DATA[:3000]),
    "/longer.log": (200, {}, len(DATA) + 1000, DATA),
    "/run.log": (200, {}, len(DATA), DATA),
}


class Faulty(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        status, headers, length, _ = ANSWERS[self.path]
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()
        self.wfile.write(ANSWERS[self.path][3])
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def faulty_server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Faulty) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("path", ANSWERS)
def test_a_server_with_faults(tmp_path, path):
    pytest.importorskip("obstore")
    with faulty_server() as address:
        done = run_logparse("analyze", f"{address}{path}", cwd=tmp_path)
    if path in ("/run.log", "/moved.log"):
        assert (done.returncode, WHOLE in done.stdout) == (0, True)
    else:
        assert (done.returncode, done.stdout) == (2, "")
        assert f"cannot read {address}{path}" in done.stderr
        assert "  try:   check the URL" in done.stderr
