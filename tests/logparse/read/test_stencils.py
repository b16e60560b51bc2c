"""Lines that differ in numbers alone are read without a cut, and nothing tells from the rows that they were."""

import random
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import regex
from helpers import arguments_dump, few, megatron_line
from hypothesis import given
from hypothesis import strategies as st

from logparse.formats import all_formats, find_format
from logparse.formats._base import TIMESTAMP, LogFormat
from logparse.read import stencils
from logparse.read.find import BlockContents, find, search_all
from logparse.read.layouts import FEWEST
from logparse.read.lines import TextBlock, read_blocks
from logparse.read.outlines import outlined
from logparse.read.reader import read_sources
from logparse.read.settings import settings_frame, settings_of_sentences
from logparse.read.sources import Source
from logparse.read.stencil import FiguresRead, Number, moments
from logparse.read.stencils import REFUSALS, TRIES, Stencils
from logparse.read.steps import StepLines, decode_steps, join_blocks
from logparse.read.versions import versions_of

FORMATS = all_formats()
MEGATRON = find_format("megatron")
DIGITS = "0123456789"
FIXTURES = sorted(Path(__file__).parents[3].glob("fixtures/*/*/*.log"))


# Formats all lines of whose samples stencils read, and some samples of others. A new format need not be here.
BY_STENCILS = {
    *("fleetx", "maxtext", "mindformers", "mindformers-pynative", "paddlenlp"),
    # Words stand there without a delimiter between them.
    *("deepspeed", "deepspeed-pipeline", "internevo", "libai", "megatron-bridge", "modded-nanogpt", "nanotron"),
    *("ms-swift", "torchtitan", "torchtune"),
    # Records of several lines, and companions.
    *("colossalai-dreambooth", "composer", "litgpt", "mindspeed-rl", "mindspore", "nemo-rl", "olmo", "openclip"),
    ("knover", 0),
    *("mllog", "mllog-blocks", "mllog-losses", "mllog-tokens"),
    # Times are in parts there, most of them on bars.
    *("hf-trainer", "levanter", "llama-factory", "nemo-bar", "openrlhf", "torchtune-bar", ("accelerate-bar", 1)),
    *(("megatron", sample) for sample in range(3)),
}
# Step 0 of theirs is no step; no layout reads their lines.
WITH_DIGITS = {"deepspeed", "deepspeed-pipeline", "openrlhf"}


@pytest.fixture(autouse=True, scope="module")
def few_lines_are_enough():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stencils, "FEWEST", 2)
        patch.setattr(stencils, "ENOUGH", 2)
        patch.setattr(stencils, "SHARE", 0.01)
        patch.setattr("logparse.read.contents.WORTH_A_REGEX", 0)
        yield


@dataclass
class Counting(Stencils):
    """Counts the lines that stencils take."""

    taken: int = 0

    def read(self, block, wanted):
        found, rest = super().read(block, wanted)
        self.taken += block.count - rest.count
        return found, rest


def in_blocks(text: bytes, cuts: int) -> list[TextBlock]:
    """Nearly as many lines each; the last may end without a newline."""
    lines = [line + b"\n" for line in text.split(b"\n")]
    lines = lines[:-1] if text.endswith(b"\n") else [*lines[:-1], lines[-1][:-1]]
    size = -(-len(lines) // cuts)
    parts = {at: lines[at : at + size] for at in range(0, len(lines), size)}
    return [
        TextBlock("run.log", at + 1, len(part), part[-1].endswith(b"\n"), b"".join(part)) for at, part in parts.items()
    ]


def read(blocks: list[TextBlock], fmt: LogFormat, misses: int = 0) -> tuple[StepLines, list[BlockContents], int]:
    """The step lines, what else each block says, and how many lines stencils took."""
    search = search_all(FORMATS)
    search = replace(search, stencils=Counting(misses=misses))
    found = [find(replace(block), search) for block in blocks]
    steps = [block.steps[fmt.name].compact("run.log") for block in found if fmt.name in block.steps]
    return join_blocks(steps, fmt), found, search.stencils.taken


def require_equal(text: bytes, fmt: LogFormat = MEGATRON, cuts: int = 4) -> int:
    """Hold a log to the patterns, cell for cell, and what stands beside the steps to what is found without stencils.

    Returns how many lines stencils took.
    """
    blocks = in_blocks(text, cuts)
    fast, beside, taken = read(blocks, fmt)
    slow = decode_steps(pl.concat(block.lines for block in blocks), fmt)
    assert fast.steps.equals(slow.steps)
    assert replace(fast, steps=slow.steps) == replace(slow, steps=slow.steps)
    _, expected, none = read(blocks, fmt, misses=TRIES)
    assert none == 0
    assert said_in_sentences(beside) == said_in_sentences(expected)
    for one, other in zip(beside, expected, strict=True):
        said, expected_said = ({k: in_order(v) for k, v in found.records.items() if len(v)} for found in (one, other))
        assert said == expected_said
    return taken


def said_in_sentences(found: list[BlockContents]) -> list[object]:
    """Whatever any format reads of sentences, and the versions."""
    lines = pl.concat(block.sentences for block in found)
    settings = {setting for fmt in FORMATS for setting in settings_of_sentences(lines, fmt.sentences)}
    return [*sorted(settings), *versions_of(lines).items()]


def in_order(rows: pl.DataFrame) -> list[tuple[object, ...]]:
    """As they are joined; those of one line stay in order."""
    return rows.sort("line_number", maintain_order=True).rows()


def steps(first: int, last: int, **pairs: str) -> bytes:
    lines = (megatron_line(step, 7000 + step / 8, clock_of(step), pairs) for step in range(first, last + 1))
    return "".join(f"{line}\n" for line in lines).encode()


def clock_of(step: int) -> str:
    clock = f"{step // 100 % 24:02d}:{step % 60:02d}:{step % 59:02d}.{step * 997 % 10**6:06d}"
    return f"2026-03-{1 + step // 2400:02d} {clock}"


def test_a_dense_log_is_read_by_stencils():
    """All but the first block, of which the layout is learnt, though numbers grow by a digit."""
    taken = require_equal(steps(51, 1250))
    assert taken > 850


def other_digits(text: str, draw: random.Random) -> str:
    """Exponents, words such as ``bf16``, time stamps and fractions of zeros stay.

    Few numbers get a 0 in front: they are of another kind, and to learn one takes long.
    """
    kept = rf"(?:{TIMESTAMP}|(?<=\d\.)0+(?!\d))(*SKIP)(*FAIL)"
    digit = rf"{kept}|(?<![eE][-+]\d?)(?<!\b[^\W\d]\w*)(?:(?<!\d)(?P<first>[1-9])|\d)"
    return regex.sub(digit, lambda found: draw.choice("123456789" * 4 + "0" if found["first"] else DIGITS), text)


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("sample", range(3))
def test_samples_of_every_format(fmt, sample):
    if sample >= len(fmt.samples):
        pytest.skip("the format has fewer samples")
    draw, text = random.Random(1), fmt.samples[sample].text
    begin = next(regex.finditer(fmt.head, text, regex.M)).start()
    log = "".join(f"{text[:begin]}{other_digits(text[begin:], draw)}\n" for _ in range(4 * FEWEST))
    taken = require_equal(log.encode(), fmt)
    told = sum(any(marker in line for marker in fmt.step_markers) for line in text.split("\n"))
    # Half of those that come after the first block; a 0 where none was is left to the patterns.
    assert taken >= 1.5 * FEWEST * told or not {fmt.name, (fmt.name, sample)} & BY_STENCILS


@pytest.mark.parametrize("odd", ["02/30/26 08:00:00", "03/31/61 08:00:00", "03/31/99 08:00:00", "03/31/26 24:00:00"])
def test_a_time_with_the_month_in_front_is_read_as_one_with_the_year(odd):
    fmt = find_format("colossalai-dreambooth")
    times = [f"{1 + n // 28:02d}/{1 + n % 28:02d}/{24 + n % 4} 0{n % 10}:{n % 60:02d}:{n % 59:02d}" for n in range(200)]
    text = "".join(fmt.samples[0].text.replace("03/31/26 08:00:01", time) + "\n" for time in [*times, odd, *times])
    # All but the first block and the times of the one in which the odd one stands.
    assert require_equal(text.encode(), fmt) > 450


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parent.parent.name}/{path.parent.name}")
def test_fixtures_give_the_same(path):
    text = b"".join(block.text for block in read_blocks(Source("run.log", path)))
    text = (text if text.endswith(b"\n") else text + b"\n") * 2
    require_equal(text, find_format(path.parent.parent.name), cuts=2)


VALUES = st.one_of(
    st.floats(-1e9, 1e9, allow_nan=False).map(lambda v: f"{v:.3f}"),
    st.floats(1e-9, 1e9).map(lambda v: f"{v:.6E}"),
    st.floats(0, 1, allow_nan=False).map(repr),
    st.floats(1e-320, 1e300).map(lambda v: f"{v:.4e}"),
    st.integers(0, 10**17).map(str),
    st.integers(0, 99).map(lambda v: f"{v:5d}"),
    st.sampled_from(
        ["nan", "inf", "-0.0", "+7", "1,234.5", "1e999", "1.0E-25", "", "None", "x", ".5", "7.", "0", "1e+05"]
    ),
)
LABELS = ["lm loss", "grad norm", "learning rate", "global batch size", "router temperature", "lm loss", "loss scale"]
FRONTS = st.sampled_from(
    [
        "",
        "[rank0]: ",
        "[2026-03-{:02d} 08:{:02d}:00.123456] ",
        "[2026-03-01 08:00:{}0] ",
        "[2026-02-{:02d}T08:00:00,125] ",
        "2026/02/{:02d} 08:00:0{} - ",
        "2026-02-{:02d},08:00:0{} | ",
        "2026-01-{:02d} 0{}:00:00.123456789 ",
        "saving checkpoint at iteration {} ",
    ]
)
ODD = st.sampled_from(
    [
        b"",
        b"\r",
        b"\t",
        b"\x1b[31m red \x1b[0m",
        "第".encode(),
        "步骤".encode("gbk"),
        b"saving checkpoint at iteration 30 to x",
        b" iteration        7/     500 | elapsed time per iteration (ms): 7.0",
        b"validation loss at iteration 5 |",
    ]
)


@st.composite
def logs(draw):
    """Lines of a few layouts, so that some are alike, with whatever damages a line now and then."""
    labels = draw(st.lists(st.sampled_from(LABELS), max_size=4))
    front = draw(FRONTS)
    values = st.lists(VALUES, min_size=len(labels), max_size=len(labels))
    kinds = draw(st.lists(values, min_size=1, max_size=3))
    chance = random.Random(draw(st.integers(0, 2**32)))
    lines = []
    for step in range(1, 4 * FEWEST):
        values = [other_digits(value, chance) for value in chance.choice(kinds)]
        pairs = "".join(f" {label}: {value} |" for label, value in zip(labels, values, strict=True))
        before = front.format(chance.randrange(34), chance.randrange(10))
        ms = other_digits("7000.1", chance) if chance.random() < 0.9 else "0.0"
        lines.append(f"{before} iteration {step:8d}/     500 | elapsed time per iteration (ms): {ms} |{pairs}".encode())
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        lines[at] = draw(ODD) + lines[at][draw(st.integers(0, 30)) :] + draw(ODD)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        place = draw(st.integers(0, len(lines[at]) - 1))
        lines[at] = lines[at][:place] + draw(st.sampled_from([b"/", b":", b" ", b"-"])) + lines[at][place + 1 :]
    return b"\n".join(lines) + draw(st.sampled_from([b"\n", b""]))


@few(15)
@given(text=logs(), cuts=st.integers(2, 3))
def test_whatever_stands_on_the_lines_the_rows_are_the_same(text, cuts):
    require_equal(text, cuts=cuts)


@given(
    whole=st.text(DIGITS, min_size=1, max_size=14),
    fraction=st.text(DIGITS, min_size=1, max_size=20),
    power=st.integers(0, 99),
    sign=st.sampled_from(["", "-"]),
    tens=st.sampled_from([-1, 1]),
)
def test_a_number_is_the_float_of_its_text(whole, fraction, power, sign, tens):
    """Ties to even and all; 15 digits and ten to the 22nd are exact, and so is one operation on them; more are read."""
    text = f"{sign}{whole}.{fraction}e{'-' if tens < 0 else '+'}{power:02d}"
    lines = next(
        outlined(f"a: {text}\na:  12.5e+00\n".encode().replace(b"e+00", f"e{text[-3]}00".encode())).by_length(1, 99)
    )
    read = FiguresRead(lines, np.arange(3))
    assert Number("", (0,), 1, 2, tens, 1.0).of(read).tolist() == [float(text), 12.5]


@pytest.mark.parametrize("beside", "/:- ")
def test_what_stands_beside_the_digits_in_ascii_is_none(beside):
    text = steps(101, 200) + steps(201, 201).replace(b": 7025.1 ", f": 702{beside}.1 ".encode()) + steps(202, 300)
    assert f"702{beside}.1".encode() in text
    assert require_equal(text) > 100


def test_lines_without_a_marker_are_passed_over_too():
    among = b"".join(line + b"[rank3]: heartbeat %04d\n" % n for n, line in enumerate(steps(101, 300).splitlines(True)))
    assert require_equal(among) > 250


@pytest.mark.parametrize("hidden", [b" iter\x1b[0mation ", "第 iteration ".encode("gbk")])
def test_a_marker_behind_codes_or_in_another_encoding_is_found(hidden):
    require_equal(steps(101, 300).replace(b" iteration ", hidden))


def test_a_log_that_is_cut_within_its_last_line():
    assert require_equal(steps(101, 300)[:-30]) > 100


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("taken", [[], [4], [8], [6, 5, 7], [4, 5, 6, 7, 8]])
def test_lines_that_are_left_are_as_they_were(end, taken):
    block = TextBlock("run.log", 4, 5, bool(end), b"a\n\nc\td\ne\x1b[1mf\ng" + end)
    left = block.lines.filter(~pl.col("line_number").is_in(taken))
    assert block.without(np.array(taken, np.int64)).lines.equals(left)


def test_a_bar_that_grows_is_read_by_one_stencil():
    """Block by block and within a block, with numbers that grow beside it."""
    lines = steps(1, 1300).decode().splitlines()
    bars = ("█" * (step // 130) + "▏▎▍▌▋▊▉█"[step % 8] for step in range(1300))
    text = "".join(f"{bar:<11}| {line}\n" for bar, line in zip(bars, lines, strict=True))
    search = search_all(FORMATS)
    for block in in_blocks(text.encode(), 2):
        find(block, search)
    # Before 11 blocks there are blanks behind them.
    assert len(search.stencils.known) <= 2
    assert require_equal(text.encode()) > 900


NUMBERS = [
    *(
        "7",
        "12",
        "1999",
        "80000",
        "123456789012345678",
        "0",
        "0.0",
        "00",
        "007",
        "-3",
        "-0.25",
        "1.5",
        "12.50",
        "0.000",
    ),
    *(
        "3.141592653589793",
        "0.12345678901234567",
        "   8",
        "  -8.5",
        "1e-05",
        "9.5E-04",
        "2e+10",
        "1,234,567",
        "1:02:03",
    ),
]


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
def test_numbers_of_any_width_sign_and_blanks_give_the_same(fmt):
    """A number of each line, now and then, is one that no trial of a stencil may have seen."""
    draw = random.Random(fmt.name)

    def other(found):
        if draw.random() < 0.1:
            return draw.choice(NUMBERS)
        width = max(1, len(found.group()) + draw.choice((-1, 0, 0, 1)))
        return str(draw.randrange(10 ** (width - 1), 10**width))

    log = "".join(f"{regex.sub('[0-9]+', other, fmt.samples[0].text)}\n" for _ in range(3 * FEWEST))
    require_equal(log.encode(), fmt, cuts=3)


def test_a_kind_of_line_is_learnt_once_whatever_the_widths_of_its_numbers():
    log = b"".join(steps(step, step, **{"lm loss": f"{step * step % 977}.{step}"}) for step in range(1, 900, 7))
    search = search_all(FORMATS)
    for block in in_blocks(log, 4):
        find(block, search)
    assert len(search.stencils.known) == 1
    assert require_equal(log) > 90


def test_a_minus_stays_before_a_zero():
    taken = require_equal(steps(101, 300, **{"lm loss": "-0.000"}))
    assert taken


@pytest.mark.parametrize("day", ["2026-02-30", "2026-13-01"])
def test_a_day_that_does_not_exist_is_left_to_the_patterns(day):
    text = steps(1001, 1200).replace(b"2026-03-01 11:30", f"{day} 11:30".encode())
    assert day.encode() in text
    require_equal(text)


def test_a_value_that_cannot_be_is_told_as_the_patterns_tell_it():
    text = steps(101, 200) + steps(201, 201).replace(b": 7025.1 ", b": 0000.0 ") + steps(202, 300)
    assert b"0000.0" in text
    assert require_equal(text) > 100


def test_what_else_stands_on_the_lines_is_told_too():
    said = "saving checkpoint at iteration 123 "
    assert require_equal("".join(f"{said}{line}\n" for line in steps(101, 300).decode().splitlines()).encode()) > 100


def test_lines_with_what_no_row_holds_are_not_taken():
    said = "ascend_cann version .............. 8.0.RC2 "
    assert require_equal("".join(f"{said}{line}\n" for line in steps(101, 300).decode().splitlines()).encode()) == 0


def test_settings_that_are_printed_among_steps_are_read_to_their_end(tmp_path):
    """Also where no line of a block is read but by stencils while settings still come."""
    begun = arguments_dump({"num_layers": 32, "seq_length": 4096}).split("\n")
    text = steps(101, 300) + "\n".join(begun[:2]).encode() + b"\n" + steps(301, 500) + "\n".join(begun[2:]).encode()
    path = tmp_path / "run.log"
    path.write_bytes(text + b"\n" + steps(501, 600))
    read = [read_sources([Source(path.name, path)], FORMATS, size, jobs=1) for size in (15_000, 2**24)]
    frames = [settings_frame(contents.sentences, contents.inside, MEGATRON) for contents in read]
    assert frames[0].equals(frames[1])
    assert set(frames[0]["name"]) == {"num_layers", "seq_length"}
    few, whole = [next(found.steps for fmt, found in contents.steps if fmt is MEGATRON) for contents in read]
    assert few.equals(whole)


def test_a_log_that_disappoints_is_tried_no_more():
    """Each line has another length, and the first block showed step lines, close."""
    text = b"".join(b" " * (step * 7 % 64) + steps(step, step) for step in range(101, 600))
    search = search_all(FORMATS)
    for block in in_blocks(text, 12):
        find(block, search)
    assert search.stencils.misses in (0, TRIES)


def test_a_kind_of_line_that_was_refused_is_tried_no_more(monkeypatch):
    tried = []
    monkeypatch.setattr(stencils, "learn_stencil", lambda line, _: tried.append(line))
    search = search_all(FORMATS)
    for block in in_blocks(steps(101, 600), 3):
        find(block, search)
    kinds = Counter(regex.sub(rb"[0-9]", b"0", outlined(line + b"\n").outline.tobytes()) for line in tried)
    assert 0 < max(kinds.values()) <= REFUSALS


def test_lines_of_a_format_that_is_not_looked_for_any_more(tmp_path):
    """These are torn for two formats, and the log is read again for the one that is above."""
    path = tmp_path / "run.log"
    path.write_text("".join(f"{{'loss': 2.{n}, 'grad_norm': 1.{n}, 'epoch': 0.{n}}}\n" for n in range(100, 900)))
    contents = read_sources([Source(path.name, path)], FORMATS, 8000, jobs=1)
    assert {fmt.name: found.torn for fmt, found in contents.steps if found.torn} == {"ms-swift": 800}


def test_words_that_find_lines_hold_no_digit():
    """Or other digits could make one, and a head or a pair could depend on the digits that it finds."""
    for fmt in (fmt for fmt in FORMATS if fmt.name not in WITH_DIGITS):
        assert not regex.search(r"\d", "".join((*fmt.markers, fmt.delimiter)))
        classes = regex.sub(r"\\d|0-9|\{\d+(,\d*)?\}|\(\?P<\w+>|\\.", "", fmt.head + fmt.pair)
        assert not regex.search(r"\d", classes), f"{fmt.name}: {classes}"


@given(st.lists(st.datetimes(), min_size=1, max_size=20), st.integers(0, 6), st.sampled_from("T ,"))
def test_times_are_counted_as_they_are_written(moments_written, digits, mark):
    texts = [f"{moment:{f'%Y-%m-%d{mark}%H:%M:%S.%f'}}".rjust(26, "0") for moment in moments_written]
    size = 19 + digits + (digits > 0)
    stamps = np.array([list(text[:size].encode()) for text in texts], np.uint8)
    cut = [
        moment.replace(microsecond=moment.microsecond // 10 ** (6 - digits) * 10 ** (6 - digits))
        for moment in moments_written
    ]
    assert moments(stamps).tolist() == cut


@pytest.mark.parametrize(
    "impossible", ["2023-17-07 12:00:00", "2023-02-29 12:00:00", "2023-04-00 12:00:00", "2023-04-01 24:00:00"]
)
def test_one_time_among_many_that_cannot_be_is_refused(impossible):
    texts = ["2024-02-29 23:59:59"] * 1000 + [impossible]
    with pytest.raises(ValueError, match=r"^$"):
        moments(np.array([list(text.encode()) for text in texts], np.uint8))
