"""What stands around lines changes nothing but their clock and their writer: every format, every failure."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import cycle, islice
from pathlib import Path

import polars as pl
import pytest
from fixture_runs import FIXTURES, name_of, run_of_fixture

from logparse.decode.read_run import read_run
from logparse.failures.scan import find_hits
from logparse.failures.signatures import signatures
from logparse.inputs.blocks import TextBlock, read_blocks
from logparse.inputs.cut_lines import joined_where_cut
from logparse.inputs.sources import Source
from logparse.inputs.stamps import STAMPS
from logparse.inputs.unwrap import learn_wrapping, unescaped

FORMATS = sorted({run.parents[1]: run.parent for run in FIXTURES.glob("*/*/run.log")}.values())
WRITERS = {
    "torchrun": "[rank3]: {}",
    "torchrun without a blank": "[default3]:{}",
    "mpirun": "[1,3]<stdout>:{}",
    "srun": "3: {}",
    "pdsh": "node7: {}",
    "ray": "(Worker pid=7, ip=10.0.0.1) {}",
    "docker compose": "trainer-1  | {}",
    "ray in colour": "\x1b[36m(Worker pid=7)\x1b[0m {}",
    "kubectl --prefix": "[pod/job-worker-3/main] {}",
}
ENVELOPES: dict[str, Callable[[str], str]] = {
    "docker": lambda line: json.dumps({"log": f"{line}\n", "stream": "stderr"}),
    "containerd": "2025-03-04T05:06:07.123456789+08:00 stdout F {}".format,
    **{stamp.sample: f"{stamp.sample} {{}}".format for stamp in STAMPS},
    **{name: text.format for name, text in WRITERS.items()},
}
# Lines of a log that an envelope is learnt from; none of them is of interest.
PLAIN = ("begin", "go on", "and on", "and so on")


def wrapped(text: str, envelope: Callable[[str], str]) -> str:
    return "\n".join(map(envelope, text.removesuffix("\n").split("\n"))) + "\n" * text.endswith("\n")


def read_otherwise(folder: Path, names: Sequence[str], place: Path) -> Iterator[tuple[str, str]]:
    """The envelopes behind which steps or settings are not those of the log itself; the clock may be another."""
    text = (folder / "run.log").read_bytes().decode("utf-8", "replace")
    plain, path = run_of_fixture(folder).log, place / "run.log"
    for name in names:
        path.write_text(wrapped(text, ENVELOPES[name]), encoding="utf-8")
        read = read_run([str(path)])
        pairs = ((read.steps, plain.steps), (read.settings, plain.settings))
        if not all(without_names(one).equals(without_names(other)) for one, other in pairs):
            yield name_of(folder), name


def without_names(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop("source", "run", "timestamp", strict=False)


def test_every_format_is_read_behind_an_envelope(tmp_path):
    """Each format has its turn with one; the sweep holds every format behind each."""
    pairs = zip(FORMATS, cycle(ENVELOPES), strict=False)
    assert [wrong for folder, name in pairs for wrong in read_otherwise(folder, [name], tmp_path)] == []


@pytest.mark.sweep
@pytest.mark.parametrize("folder", FORMATS, ids=map(name_of, FORMATS))
def test_every_format_is_read_behind_each_envelope(tmp_path, folder):
    assert list(read_otherwise(folder, list(ENVELOPES), tmp_path)) == []


def hits_behind(lines: Sequence[str], envelope: Callable[[str], str] = str) -> list[tuple[int, str]]:
    text = unescaped("".join(f"{envelope(line)}\n" for line in (*PLAIN, *lines)).encode())
    block = TextBlock("run.log", 1, len(PLAIN) + len(lines), True, text, learn_wrapping(text))
    return [(hit.line, hit.meaning.signature) for hit in find_hits(block)]


SAMPLES = [sample for entry in signatures() for sample in entry.sample if "\n" not in sample]


@pytest.mark.parametrize(("turn", "name"), [*enumerate(ENVELOPES)], ids=ENVELOPES)
def test_every_failure_is_read_behind_an_envelope(turn, name):
    """Each envelope has a part of the samples, a line each."""
    lines = list(islice(SAMPLES, turn, None, len(ENVELOPES)))
    assert hits_behind(lines, ENVELOPES[name]) == hits_behind(lines)


@pytest.mark.parametrize("stamp", STAMPS, ids=lambda stamp: stamp.sample)
def test_the_stamp_before_a_line_is_its_clock(tmp_path, stamp):
    path = tmp_path / "run.log"
    path.write_text("".join(f"{stamp.sample} {line}\n" for line in PLAIN))
    (block,) = read_blocks(Source("run.log", path))
    clocks = {clock.replace(microsecond=0, year=2026, month=3) for clock in block.lines["clock"]}
    printed = datetime(2026, 3, 1, 0 if "AM" in stamp.sample else 20, 0, 30)
    assert clocks == {printed}
    assert block.bare(block.lines)["text"].to_list() == list(PLAIN)


def test_the_clock_of_a_logger_is_its_own(tmp_path):
    """A level, a dash or a name after most stamps: the program prints them, and its lines stay as they are."""
    path = tmp_path / "run.log"
    path.write_text("".join(f"2026-03-01 20:00:30,123 - INFO - {line}\n" for line in PLAIN))
    (block,) = read_blocks(Source("run.log", path))
    assert block.clocks is None
    assert block.bare(block.lines)["text"][0] == "2026-03-01 20:00:30,123 - INFO - begin"


@pytest.mark.parametrize(
    ("written", "printed"),
    {
        "#015 as syslog keeps it": (b"#015 10%|# | 1/9", b"\r 10%|# | 1/9"),
        "^M as an editor shows it": (b"^M 10%|# | 1/9^M\n", b"\r 10%|# | 1/9\r\n"),
        "a colour": (b"paint it #015fff", b"paint it #015fff"),
        "HTML": (b"  File &quot;a.py&quot;, line 3, in &lt;module&gt;", b'  File "a.py", line 3, in <module>'),
        "the order of bytes": (b"\xef\xbb\xbfbegin", b"begin"),
        "a quote": (b"> a\n> b\n>\n> c\n", b"a\nb\n\nc\n"),
        "a comment above other lines": (b"# a\n# b\n# c\nd\n", b"# a\n# b\n# c\nd\n"),
    }.values(),
)
def test_what_a_tool_wrote_in_another_way(written, printed):
    assert unescaped(written) == printed


def test_the_example_of_the_page_is_read(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "formats.md").read_text(encoding="utf-8")
    text = page.split("## What may be around a line")[1].split("```text\n")[1].split("```")[0]
    (tmp_path / "run.log").write_text(text)
    steps = read_run([str(tmp_path / "run.log")]).steps
    assert steps["step"].to_list() == [1, 2, 3]
    assert steps["timestamp"].to_list() == [datetime(2026, 3, 1, 23, 59, 50 + n) for n in (0, 5)] + [
        datetime(2026, 3, 2)
    ]


PAIRS = "step 10 | " + " | ".join(f"value {n}: {n}.25" for n in range(8))
WORDS = "the optimizer goes on with its configuration and prints so many words that a line is full"


@pytest.mark.parametrize(
    "lines",
    {
        "lines of words at one width": [WORDS, "short", WORDS.replace("words", "texts")],
        "one line of pairs, in a number": ["begin", PAIRS],
    }.values(),
)
@pytest.mark.parametrize("width", range(70, 86))
def test_lines_that_a_terminal_cut_in_a_word_are_joined(lines, width):
    cut = [part for line in lines for part in (line[:width], line[width:]) if part]
    places = [len(line) > width and line[width - 1 : width + 1].isalnum() for line in lines]
    joined = [text for text in joined_where_cut(pl.Series(cut)) if text]
    in_words = all(place for place, line in zip(places, lines, strict=True) if len(line) > width)
    assert joined == (lines if in_words else joined)


@pytest.mark.parametrize(
    "lines",
    {
        "steps of one width with a save": [*[f"step {n:03} | loss {n}.25 | " + "x" * 60 for n in range(5)], "saving"],
        "one line after another": [f"{'y' * 70} {n}" for n in range(9)],
        "a table": [f"{name:70} {n} GFLOPS" for n, name in enumerate(("fwd", "bwd", "step", "iter"))],
        "two loggers, each twice": 2 * ["x" * 70 + " closing signal SIGTERM", "ERROR:api:failed", "next"],
        "words, once": ["z" * 80, "and then other words"],
    }.values(),
)
def test_whole_lines_are_not_joined(lines):
    assert joined_where_cut(pl.Series(lines)).to_list() == lines


@pytest.mark.parametrize(
    ("label", "host"), [("node7: ", "node7"), ("trainer-1  | ", "trainer-1"), ("localhost: ", None)]
)
def test_the_host_before_a_line_is_that_of_its_failure(label, host):
    text = "".join(f"{label}{line}\n" for line in (*PLAIN, "MemoryError")).encode()
    block = TextBlock("run.log", 1, len(PLAIN) + 1, True, text, learn_wrapping(text))
    assert [(hit.line, hit.host) for hit in find_hits(block)] == [(len(PLAIN) + 1, host)]
