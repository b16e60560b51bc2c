"""Files to numbered lines: compression, encodings, line ends, and what the user may name."""

import bz2
import gzip
import io
import lzma
import os
import random
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from logparse.errors import InputError
from logparse.inputs import blocks as lines
from logparse.inputs import sources
from logparse.inputs.blocks import LINE_COLUMNS, read_blocks
from logparse.inputs.discovery import find_sources, printable
from logparse.inputs.sources import Source, looks_binary

BODY = b"".join(b"line %d holds %d\n" % (i, i * i) for i in range(1, 20001))


def zstd(data: bytes) -> bytes:
    return pa.compress(data, "zstd", asbytes=True)


COMPRESSED = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": partial(lzma.compress, preset=0), "zstd": zstd}


def read_bytes(tmp_path: Path, data: bytes, block_bytes: int = 2**20, name: str = "run.log") -> pl.DataFrame:
    path = tmp_path / name
    path.write_bytes(data)
    return read_path(Source(name, path), block_bytes)


def read_path(source: Source, block_bytes: int = 2**20) -> pl.DataFrame:
    blocks = (block.lines for block in read_blocks(source, block_bytes))
    return pl.concat([pl.DataFrame(schema=LINE_COLUMNS), *blocks]).drop("source", "clock")


def texts(frame: pl.DataFrame) -> list[str]:
    return frame["text"].to_list()


@pytest.mark.parametrize("kind", COMPRESSED)
@pytest.mark.parametrize("name", ["run.log", "run.gz", "run.zst", "run"])
def test_compression_is_known_by_its_content_not_by_the_name(tmp_path, kind, name):
    frame = read_bytes(tmp_path, COMPRESSED[kind](BODY), name=name)
    assert texts(frame) == BODY.decode().splitlines()
    assert frame["complete"].all()


def test_plain_text_called_gz_is_plain_text(tmp_path):
    assert texts(read_bytes(tmp_path, b"a\nb\n", name="run.log.gz")) == ["a", "b"]


@pytest.mark.parametrize("kind", COMPRESSED)
def test_several_members_in_one_file_are_read_as_one(tmp_path, kind):
    compress = COMPRESSED[kind]
    frame = read_bytes(tmp_path, compress(b"one\ntw") + compress(b"o\nthree\n"))
    assert texts(frame) == ["one", "two", "three"]


# Random text, so that half of the compressed bytes hold about half of it, in several blocks of the compressor.
@cache
def random_text() -> bytes:
    draw = random.Random(0)
    return b"".join(b"%s\n" % draw.randbytes(40).hex().encode() for _ in range(40000))


@cache
def packed(kind: str) -> bytes:
    return COMPRESSED[kind](random_text())


def cut_file(tmp_path: Path, kind: str) -> Source:
    path = tmp_path / "run.log"
    path.write_bytes(packed(kind)[: len(packed(kind)) * 3 // 4])
    return Source("run.log", path)


@pytest.mark.parametrize(
    "block_bytes",
    [2**14, 2**26],
)
@pytest.mark.parametrize("kind", COMPRESSED)
def test_truncated_compressed_file_keeps_what_stands_before_and_adds_a_note(tmp_path, kind, block_bytes):
    source = cut_file(tmp_path, kind)
    frame = read_path(source, block_bytes)
    (note,) = source.notes
    assert (note.code, note.level, note.fields["path"]) == ("file_damaged", "warning", "run.log")
    assert note.fields["reason"]
    assert frame.height > 10000
    whole = random_text().decode().splitlines()
    assert texts(frame.filter("complete")) == whole[: frame["complete"].sum()]
    assert not frame["complete"][:-1].not_().any()


def test_damaged_gzip_is_no_crash(tmp_path):
    """A wrong bit in the deflate stream is zlib.error, which is no OSError."""
    damaged = bytearray(gzip.compress(BODY))
    damaged[10] = 0b111  # a block of the reserved type
    path = tmp_path / "run.log"
    path.write_bytes(bytes(damaged))
    source = Source("run.log", path)
    assert read_path(source).is_empty()
    assert len(source.notes) == 1


def test_gbk_line_among_utf8_lines(tmp_path):
    data = "损失 loss: 1.5 |\n".encode() + "损失 loss: 2.5 |\n".encode("gbk") + "loss: 3.5 ▌\n".encode()
    assert texts(read_bytes(tmp_path, data)) == ["损失 loss: 1.5 |", "损失 loss: 2.5 |", "loss: 3.5 ▌"]


def test_a_byte_order_mark_before_any_line_is_left_out(tmp_path):
    """Files of an editor that are put together have one in the middle."""
    data = "\ufeff[2026-03-01 08:00:01] one\n\ufeff[2026-03-01 08:00:02] two\n".encode()
    assert texts(read_bytes(tmp_path, data)) == ["[2026-03-01 08:00:01] one", "[2026-03-01 08:00:02] two"]


def test_bytes_of_no_encoding_are_replaced_and_the_rest_of_the_line_kept(tmp_path):
    assert texts(read_bytes(tmp_path, b"loss: \xff 1.5\nok\n")) == ["loss: � 1.5", "ok"]


def test_nul_bytes_of_a_crashed_file_system_are_dropped(tmp_path):
    frame = read_bytes(tmp_path, b"one\n" + b"\0" * 5000 + b"two\nthr\0ee\n")
    assert frame.rows() == [(1, "one", True), (2, "two", True), (3, "three", True)]


@pytest.mark.parametrize("data", [b"", b"\0" * 100], ids=["empty", "only NUL"])
def test_file_without_text_has_no_line(tmp_path, data):
    assert read_bytes(tmp_path, data).is_empty()


def test_crlf_ends_a_line(tmp_path):
    assert read_bytes(tmp_path, b"one\r\ntwo\r\n").rows() == [(1, "one", True), (2, "two", True)]


def test_lone_carriage_return_stays_inside_its_line(tmp_path):
    assert read_bytes(tmp_path, b"10%\r20%\r30%\nend\n").rows() == [(1, "10%\r20%\r30%", True), (2, "end", True)]


@pytest.mark.parametrize("block_bytes", [1, 3, 4, 2**20])
def test_last_line_without_newline_is_not_complete(tmp_path, block_bytes):
    frame = read_bytes(tmp_path, b"one\n\ntwo", block_bytes)
    assert frame.rows() == [(1, "one", True), (2, "", True), (3, "two", False)]


# CR is left out because it also ends a line together with a newline, which str.split does not know.
PIECES = st.sampled_from(["a", "loss: 1.5 |", "\n", "\n\n", "\0", "▌", "损失", "\t", "\x1b[0m", "\u2028", "\x85", ""])


@given(parts=st.lists(PIECES, max_size=30), block_bytes=st.integers(1, 40), encoding=st.sampled_from(["utf-8", "mix"]))
def test_any_block_size_gives_the_lines_of_the_whole_text(tmp_path_factory, parts, block_bytes, encoding):
    text = "".join(parts)
    expected = text.replace("\0", "").split("\n")
    complete = [True] * (len(expected) - 1) + [False]
    # What closes a last line shows that it is whole.
    complete[-1] = expected[-1].rstrip().endswith((")", "]", "}", "|"))
    if expected[-1] == "":
        expected, complete = expected[:-1], complete[:-1]
    # "mix": every second line as a terminal set to GBK would have written it.
    lines = [
        line.encode("gb18030" if encoding == "mix" and i % 2 else "utf-8") for i, line in enumerate(text.split("\n"))
    ]
    frame = read_bytes(tmp_path_factory.getbasetemp(), b"\n".join(lines), block_bytes, "blocks.log")
    if encoding == "utf-8":
        assert texts(frame) == [line.replace("\x1b[0m", "").replace("\x85", "") for line in expected]
    assert frame["complete"].to_list() == complete
    assert frame["line_number"].to_list() == list(range(1, len(expected) + 1))


@given(data=st.binary(max_size=200), block_bytes=st.integers(1, 40))
def test_any_block_size_gives_the_same_frame_for_any_bytes(tmp_path_factory, data, block_bytes):
    text = bytes(b for b in data if b >= 32 or b in b"\n\r\0")
    assume(not looks_binary(text))
    folder = tmp_path_factory.getbasetemp()
    in_one = read_bytes(folder, text, 2**20, "bytes.log")
    assert read_bytes(folder, text, block_bytes, "bytes.log").rows() == in_one.rows()
    assert in_one["text"].str.contains("\0", literal=True).sum() == 0


@pytest.mark.parametrize("magic", [b"x^", b"x\x01", b"x\x9c", b"\x1f\x8b\x08", b"(\xb5/\xfd"])
def test_block_that_begins_like_packed_text_is_no_crash(tmp_path, magic):
    """Polars would unpack it; as it stands it is a line of a log, damaged or not."""
    frame = read_bytes(tmp_path, b"before\n" + magic + b"abcdef\nbehind\n", block_bytes=1)
    assert texts(frame)[::2] == ["before", "behind"]
    assert texts(frame)[1].endswith("bcdef")


def test_line_of_eight_megabytes_is_cut(tmp_path):
    frame = read_bytes(tmp_path, b"before\n" + b"loss 12345 " * (3 * 2**18) + b"\nafter\n", block_bytes=2**16)
    first, long, last = texts(frame)
    assert (first, last) == ("before", "after")
    assert 2**20 - 2**12 <= len(long) <= 2**20
    assert long.endswith(("loss ", "12345 "))
    assert frame["line_number"].to_list() == [1, 2, 3]


def test_bar_of_eight_megabytes_is_read_whole(tmp_path):
    bar = b"\r".join([b"state of a progress bar"] * (2**19))
    assert texts(read_bytes(tmp_path, bar + b"\n")) == [bar.decode()]


def names(found: list[Source]) -> list[str]:
    return [Path(source.name).name for source in found]


def test_folder_gives_its_text_files_in_natural_order(tmp_path):
    for name in ("worker_10.log", "worker_2.log", "worker_1.log", ".hidden.log"):
        (tmp_path / name).write_text("text\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("text\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "worker_3.log").write_text("text\n")
    (tmp_path / "model.bin").write_bytes(bytes(range(1, 32)) * 100)
    (tmp_path / "packed.log.gz").write_bytes(gzip.compress(b"text\n"))
    found = names(find_sources([str(tmp_path)]))
    assert found == ["packed.log.gz", "worker_3.log", "worker_1.log", "worker_2.log", "worker_10.log"]


def test_hidden_folder_named_by_the_user_is_read(tmp_path):
    hidden = tmp_path / ".runs"
    hidden.mkdir()
    (hidden / "run.log").write_text("text\n")
    assert names(find_sources([str(hidden)])) == ["run.log"]


def test_folder_keeps_a_truncated_gzip_log(tmp_path):
    (tmp_path / "rank0.log").write_text("text\n")
    (tmp_path / "rank1.log.gz").write_bytes(gzip.compress(b"text\n" * 100)[:-6])
    assert names(find_sources([str(tmp_path)])) == ["rank0.log", "rank1.log.gz"]


def test_glob_gives_files_in_natural_order(tmp_path):
    for name in ("a10.log", "a9.log", "b.log", "a.txt"):
        (tmp_path / name).write_text("text\n")
    (tmp_path / "a_folder.log").mkdir()
    assert names(find_sources([str(tmp_path / "a*.log")])) == ["a9.log", "a10.log"]


def test_file_whose_name_looks_like_a_pattern_is_taken_as_it_is(tmp_path):
    for name in ("run[1].log", "run1.log"):
        (tmp_path / name).write_text("text\n")
    assert names(find_sources([str(tmp_path / "run[1].log")])) == ["run[1].log"]


def test_file_named_twice_is_read_once(tmp_path):
    path = tmp_path / "run.log"
    path.write_text("text\n")
    (tmp_path / "link.log").symlink_to(path)
    found = find_sources([str(path), str(tmp_path), str(tmp_path / "*.log"), str(tmp_path / "link.log")])
    assert [source.path for source in found] == [path]


@contextmanager
def standard_input(path: Path) -> Iterator[None]:
    kept = os.dup(0)
    try:
        with path.open("rb") as file:
            os.dup2(file.fileno(), 0)
            yield
    finally:
        os.dup2(kept, 0)
        os.close(kept)


def test_standard_input_is_one_source(tmp_path):
    path = tmp_path / "in.log.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    (source,) = find_sources(["-", "-"])
    assert (source.name, source.path) == ("-", None)
    with standard_input(path):
        assert texts(read_path(source)) == ["one", "two"]


@pytest.mark.parametrize("argument", ["gone.log", "*.gone", "gone/"])
def test_missing_file(tmp_path, argument):
    with pytest.raises(InputError, match=rf"^no such file: .*{re.escape(argument.rstrip('/'))}"):
        find_sources([str(tmp_path / argument)])


def test_name_too_long_for_the_file_system():
    with pytest.raises(InputError, match=r"no such file|cannot read"):
        find_sources(["a" * 300])


@pytest.mark.parametrize("files", [{}, {".hidden.log": b"text\n"}, {"model.bin": bytes(range(1, 32)) * 9}])
def test_folder_without_a_log(tmp_path, files):
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=f"^no log in the folder {re.escape(str(tmp_path))}"):
        find_sources([str(tmp_path)])


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_binary_file_is_refused(tmp_path, pack):
    with pytest.raises(InputError, match=r"^not a text file: run\.log"):
        read_bytes(tmp_path, pack(bytes(range(256)) * 100))


def test_colours_and_progress_bars_are_not_binary():
    assert not looks_binary(b"\x1b[32mloss\x1b[0m 5%\r6%\r\t\b\b\n" * 10)
    assert looks_binary(b"\x01\x02\x03text" * 10)


def test_file_that_may_not_be_opened(tmp_path, monkeypatch):
    path = tmp_path / "run.log"
    path.write_text("text\n")

    def refuse(*_: object) -> io.BufferedReader:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"^cannot read run\.log: Permission denied"):
        read_path(Source("run.log", path))


def test_a_rotated_log_begins_with_nul(tmp_path, monkeypatch):
    """What copytruncate leaves of a file that is written without O_APPEND; it may be longer than any line."""
    monkeypatch.setattr(lines, "LONGEST_LINE", 2**16)
    frame = read_bytes(tmp_path, b"\0" * 2**20 + b"one\ntwo\n", block_bytes=2**12)
    assert frame.rows() == [(1, "one", True), (2, "two", True)]


@pytest.mark.parametrize(("length", "refused"), [(2**16 - 2, False), (2**17, True)])
def test_longest_line(tmp_path, monkeypatch, length, refused):
    monkeypatch.setattr(lines, "LONGEST_LINE", 2**16)
    text = b"before\n" + b"x" * length + b"\nafter\n"
    if refused:
        with pytest.raises(InputError, match=r"^run\.log has a line longer than 0 MiB"):
            read_bytes(tmp_path, text, block_bytes=2**12)
    else:
        assert len(read_bytes(tmp_path, text, block_bytes=2**12)) == 3


def test_a_device_is_refused():
    with pytest.raises(InputError, match=r"^not a file: /dev/zero is a device"):
        read_path(Source("/dev/zero", Path("/dev/zero")))


def test_a_device_on_standard_input_is_refused():
    with standard_input(Path("/dev/zero")), pytest.raises(InputError, match=r"^not a file: - is a device"):
        read_path(Source("-", None))


def test_the_null_device_is_an_empty_file():
    assert read_path(Source("/dev/null", Path("/dev/null"))).is_empty()
    with standard_input(Path("/dev/null")):
        assert read_path(Source("-", None)).is_empty()


def test_named_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(BODY,))
    writer.start()
    (source,) = find_sources([str(path)])
    assert texts(read_path(source)) == BODY.decode().splitlines()
    writer.join()


def test_a_pipe_without_a_writer_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "PIPE_SECONDS", 0.05)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    (source,) = find_sources([str(path)])
    with pytest.raises(InputError, match="nothing writes to the pipe"):
        read_path(source)


def test_carriage_returns_alone_end_lines(tmp_path):
    path = tmp_path / "run.log"
    path.write_bytes(b"one\rtwo\rthree\rfour\r")
    assert texts(read_path(Source("run.log", path))) == ["one", "two", "three", "four"]


def test_a_bar_that_is_drawn_again_stays_one_line(tmp_path):
    bar = "".join(f"\r {n}%|#   | {n}/100 [00:0{n}<00:09,  1.00it/s]" for n in range(5))
    path = tmp_path / "run.log"
    path.write_text(bar, encoding="utf-8", newline="")
    assert len(read_path(Source("run.log", path))) == 1


def test_process_substitution(tmp_path):
    """A shell gives /dev/fd/63, the end of a pipe."""
    end, other = os.pipe()
    os.write(other, b"one\ntwo\n")
    os.close(other)
    (source,) = find_sources([f"/dev/fd/{end}"])
    assert (source.name, texts(read_path(source))) == (f"/dev/fd/{end}", ["one", "two"])
    os.close(end)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain 损失.log", "plain 损失.log"),
        ("a\x1b[31mb\x07.log", r"a\x1b[31mb\x07.log"),
        ("a\x9b31m\u202eb.log", r"a\x9b31m\u202eb.log"),
        ("a\nb\tc.log", r"a\nb\tc.log"),
        ("a\udcffb.log", "a�b.log"),
    ],
)
def test_a_path_is_shown_without_what_a_terminal_obeys(tmp_path, name, shown):
    assert printable(name) == shown
    (tmp_path / name).write_text("text\n")
    assert find_sources([str(tmp_path / name)])[0].name == f"{tmp_path}/{shown}"
    with pytest.raises(InputError) as caught:
        find_sources([str(tmp_path / f"gone {name}")])
    assert f"gone {shown}" in caught.value.problem


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("block_bytes", [9000, 10**7])
def test_the_beginning_of_a_long_file_comes_alone(tmp_path, monkeypatch, block_bytes, end):
    """Short, whole lines, and so do those behind it; nothing is lost."""
    monkeypatch.setattr(lines, "FIRST_BYTES", 500)
    path = tmp_path / "run.log"
    path.write_bytes(BODY[:20_000] + end)
    blocks = list(read_blocks(Source("run.log", path), block_bytes))
    assert 500 < len(blocks[0].text) < 540
    assert 2000 <= len(blocks[1].text) < 2040
    assert blocks[0].text.endswith(b"\n")
    assert b"".join(block.text for block in blocks) == BODY[:20_000] + end
    assert [block.first for block in blocks[1:]] == [block.first + block.count for block in blocks[:-1]]


def test_a_beginning_without_a_line_end_is_not_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "FIRST_BYTES", 500)
    path = tmp_path / "run.log"
    path.write_bytes(b"x" * 5000 + b"\n")
    assert [block.text for block in read_blocks(Source("run.log", path))] == [b"x" * 5000 + b"\n"]
