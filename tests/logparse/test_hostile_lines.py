"""No line takes a time that grows with the square of its length: each pattern is bounded, anchored or possessive."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import polars as pl
import pytest
from helpers import lines_of, run_logparse

from logparse.decode.detect_format import _LABEL
from logparse.decode.line_template import LONGEST, kind_of
from logparse.decode.records import find_records
from logparse.decode.settings import BlockReader, matches, settings_of_block
from logparse.decode.step_lines import decode_steps
from logparse.decode.versions import MARKERS, SPELLINGS, first_matches
from logparse.errors import InputError
from logparse.failures.scan import find_hits
from logparse.failures.trainers import FileEnds, find_trainer
from logparse.formats import all_formats
from logparse.formats._base import LogFormat
from logparse.formats._user import read_format
from logparse.inputs.blocks import TextBlock
from logparse.masking import mask_setting

LONG = 2**16
# A quarter in `make test`; each pattern that costs the square of the length is far above its limit there too.
SIZES = pytest.mark.parametrize("size", [2**14, pytest.param(LONG, marks=pytest.mark.sweep)])
# What patterns look for, again and again: words, numbers, the signs of pairs and lists, beginnings without an end.
PARTS = (
    "x",
    " ",
    "1",
    "a ",
    "a_",
    "a.",
    "a: ",
    "a=1 ",
    "1 | a: ",
    ", ",
    "'",
    '"a": ',
    "{",
    "[",
    "(",
    "%|",
    "\t",
    "-",
    "<",
)
# A machine that does much else must not fail a test; a pattern of quadratic cost takes minutes.
MOST_SECONDS = 10.0


def limit(size: int) -> float:
    """The most seconds for lines of ``size``."""
    return MOST_SECONDS * size / LONG


def hostile(size: int) -> Iterable[str]:
    return ((part * size)[:size] for part in PARTS)


def frame(texts: Iterable[str]) -> pl.DataFrame:
    return lines_of("".join(f"{text}\n" for text in texts))


def block(*texts: str) -> TextBlock:
    return TextBlock("run.log", 1, len(texts), True, "".join(f"{text}\n" for text in texts).encode())


def seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def around(marker: str, size: int) -> Iterable[str]:
    return (text for long in hostile(size) for text in (marker + long, long + marker))


@SIZES
def test_formats(size: int):
    slow = {}
    for fmt in all_formats():
        for what, work in {"steps": decode_all, "records": find_all, "settings": read_settings}.items():
            if (took := seconds(lambda work=work, fmt=fmt: work(fmt, size))) > limit(size):
                slow[fmt.name, what] = took
    assert slow == {}


def decode_all(fmt: LogFormat, size: int) -> None:
    sample = fmt.samples[0].text.split("\n")[0]
    half = len(sample) // 2
    steps = [
        text for long in hostile(size) for text in (sample + long, long + sample, sample[:half] + long + sample[half:])
    ]
    decode_steps(frame([*around(fmt.marker[0], size), *steps]), fmt)


def find_all(fmt: LogFormat, size: int) -> None:
    markers = {record.marker for record in fmt.records}
    find_records(frame(text for marker in markers for text in around(marker, size)), [fmt])


def read_settings(fmt: LogFormat, size: int) -> None:
    for sentence in fmt.sentences:
        list(matches((("run.log", n, text) for n, text in enumerate(around(sentence.marker, size), 1)), sentence))
    for kind in fmt.blocks:
        text = block(kind.marker, *around(kind.marker, size))
        reader = BlockReader([kind])
        reader.read(text, text.lines)
        list(settings_of_block(kind, (("run.log", 1, n, long) for n, long in enumerate(hostile(size), 2))))


@SIZES
def test_unknown_log(size: int):
    slow = {}
    for part, text in zip(PARTS, hostile(size), strict=True):
        for what, work in works(text).items():
            if (took := seconds(work)) > limit(size) / 5:
                slow[part, what] = took
    assert slow == {}


def works(text: str) -> dict[str, Callable[[], object]]:
    ends = FileEnds([block(text)], [block(f"{text} RuntimeError: x", f"RuntimeError: {text}", text)])
    return {
        "label": lambda: _LABEL.findall(text),
        "trainer": lambda: find_trainer(ends, all_formats()),
        "errors": lambda: [find_hits(tail) for tail in ends.tails],
        "versions": lambda: first_matches(
            frame([*(m + text for m in MARKERS), *(text + m for m in MARKERS)]), SPELLINGS
        ),
        "kind": lambda: kind_of(text[: LONGEST * len(text) // LONG]),
        "mask": lambda: (mask_setting("a", text), mask_setting(text, "x"), mask_setting("token", text)),
    }


@pytest.mark.parametrize(
    "word",
    ["NPU function error", "srun: error: ", "<a> in cluster ", "sk-a", "eyJa.", "://a:", "--a ", "password=***abcd:"],
)
def test_words_that_begin_a_pattern(word: str):
    text = (word * LONG)[:LONG]
    assert seconds(lambda: [find_hits(block(f"{text} RuntimeError: x")) for _ in range(4)]) < MOST_SECONDS
    assert seconds(lambda: mask_setting("a", text)) < MOST_SECONDS


def test_detection_of_a_line_without_a_sign_grows_with_its_length():
    short, long = (seconds(lambda n=n: _LABEL.findall("x" * n * 2**10)) for n in (64, 1024))
    assert long < 1.0 + 64 * short


def test_a_log_of_one_long_line_is_answered(tmp_path):
    (tmp_path / "run.log").write_text("x" * LONG, encoding="utf-8")
    begin = time.process_time()
    assert run_logparse("analyze", "run.log", cwd=tmp_path).returncode == 3
    assert time.process_time() - begin < MOST_SECONDS


USERS = """
marker = ["| time "]
head = 'step (?P<step>\\d+) \\|'
pair = '{pair}'
ignored_patterns = ['{ignored}']
[labels]
time = {{ column = "elapsed_time_per_iteration_ms", suffix = " ms" }}
"""


def users_format(folder: Path, pair: str = r"(\w+) ([^|]*?)\s*\|", ignored: str = "colour") -> LogFormat:
    path = folder / "mine.toml"
    path.write_text(USERS.format(pair=pair, ignored=ignored), encoding="utf-8")
    return read_format(str(path))


@pytest.mark.parametrize("ignored", ["(a|a)+$", "(a|aa)+$"])
def test_slow_pattern_of_a_user_is_stopped_with_its_name(tmp_path, monkeypatch, ignored):
    monkeypatch.setattr("logparse.decode.step_lines.SECONDS", 0.1)
    lines = frame([f"step 1 | time 10 ms | {'a' * 60}b 3 |"])
    with pytest.raises(InputError, match="'mine' takes more than"):
        decode_steps(lines, users_format(tmp_path, ignored=ignored))


@pytest.mark.parametrize("pair", [r"((?:a+)+) (\d+)\|", r"(.*) (.*)\|", r"(.*?) (.*?)zzz"])
def test_nested_repeats_of_a_user_cost_no_more_than_others(tmp_path, pair):
    fmt = users_format(tmp_path, pair=pair)
    lines = frame(f"step 1 | time 10 ms | {long}" for long in hostile(LONG))
    assert seconds(lambda: decode_steps(lines, fmt)) < MOST_SECONDS


def test_pattern_of_twenty_thousand_words_is_refused(tmp_path):
    words = "|".join(f"word{n}" for n in range(20_000))
    with pytest.raises(InputError, match="pair is longer than 10000 characters"):
        users_format(tmp_path, pair=rf"({words}) (\d+)")
