"""Lines that repeat are read by a template, and nothing tells from the rows that they were."""

import random
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
import regex
from fixture_runs import FIXTURES, name_of
from helpers import lines_of, megatron_line
from hypothesis import given
from hypothesis import strategies as st

from logparse.decode.fast_path import MOST, Templates
from logparse.decode.line_template import kind_of, learn_template
from logparse.decode.marker_filter import search_all
from logparse.decode.step_lines import StepLines, decode_block, decode_steps, join_blocks
from logparse.formats import all_formats, find_format
from logparse.formats._base import LogFormat
from logparse.inputs.blocks import read_blocks
from logparse.inputs.sources import Source

LOGS = sorted(FIXTURES.glob("*/*/*.log"))
FIRST_OF_EACH = {path.parts[-3]: path for path in reversed(LOGS)}.values()
FORMATS = all_formats()
# So few lines of a kind are learnt from here.
FEW = 16


def both_ways(lines: pl.DataFrame, fmt: LogFormat, cuts: int = 1) -> tuple[StepLines, StepLines, int]:
    """The step lines by templates (in blocks) and by the rule alone, and how many lines a template explained."""
    fast, taken = by_templates(lines, fmt, cuts)
    return fast, decode_steps(lines, fmt), taken


def by_templates(lines: pl.DataFrame, fmt: LogFormat, cuts: int) -> tuple[StepLines, int]:
    """The step lines by templates, in blocks, and how many lines a template explained."""
    templates, size = Templates(fmt, FORMATS, FEW), -(-len(lines) // cuts) or 1
    blocks = [decode_block(lines.slice(at, size), fmt, templates) for at in range(0, max(len(lines), 1), size)]
    return join_blocks([block for block, _ in blocks], fmt), len(lines) - sum(len(rest) for _, rest in blocks)


def require_equal(fast: StepLines, slow: StepLines) -> None:
    assert fast.steps.equals(slow.steps)
    assert account(fast) == account(slow)


def equal(fast: StepLines, slow: StepLines) -> bool:
    """Cell for cell, NaN equal to NaN, and the whole account."""
    return fast.steps.equals(slow.steps) and account(fast) == account(slow)


def account(found: StepLines) -> tuple[object, ...]:
    return (found.torn, found.labels, found.unread, found.malformed)


NUMBER = regex.compile(r"[0-9]+(?:[.,][0-9]+)*(?:e[-+]?[0-9]+)?")
SPELLINGS = ("0", "0.0", "nan", "1e-05", "1,234", "12,34", "inf", "None", ".5", "7.", "1e400", "00012", "7.0", "3e2")


def other_number(draw: random.Random, number: str) -> str:
    """Another number in the place of one, spelled the same or otherwise."""
    ways = (
        lambda: "".join(draw.choice("0123456789") if c.isdigit() else c for c in number),
        lambda: number + str(draw.randrange(100)),
        lambda: number[: max(1, len(number) // 2)],
        lambda: "-" + number,
        lambda: draw.choice(SPELLINGS),
        lambda: f" {number} ",
    )
    return draw.choices(ways, (10, 2, 2, 1, 2, 1))[0]()


def with_other_numbers(draw: random.Random, line: str, share: float) -> str:
    """The line with this share of its numbers replaced."""
    return NUMBER.sub(lambda n: other_number(draw, n.group()) if draw.random() < share else n.group(), line)


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
def test_samples_with_other_numbers_give_the_same_rows(fmt):
    """However their numbers are spelled: the lines of each sample, half of them damaged."""
    draw = random.Random(fmt.name)
    texts = [
        "\n".join(with_other_numbers(draw, line, share) for line in sample.text.split("\n")) + "\n"
        for sample in fmt.samples
        for share in draw.choices((0.0, 0.0, 0.1, 0.3), k=2 * FEW)
    ]
    # The last line has no end: a number at its end may have lost digits.
    require_equal(*both_ways(lines_of("".join(texts)[:-1]), fmt, cuts=3)[:2])


WITHOUT_A_BAR = [fmt for fmt in FORMATS if not regex.search("bar|lightning|openrlhf|levanter|lingua", fmt.name)]


def test_a_sample_has_a_template():
    """One that reads its own line; bars differ in more than numbers."""
    by_the_rule_alone, misread = [], []
    for fmt in (fmt for fmt in WITHOUT_A_BAR if fmt.pair):
        texts = [line for sample in fmt.samples for line in sample.text.split("\n") if regex.search(fmt.head, line)]
        templates = [learn_template(text, fmt, ()) for text in texts]
        read = [t.read(lines_of(f"{text}\n")) for t, text in zip(templates, texts, strict=True) if t]
        by_the_rule_alone += [] if read or fmt.pair_lines else [fmt.name]
        misread += [fmt.name for rows in read if len(rows) != 1]
    assert (by_the_rule_alone, misread) == ([], []), "the rule alone reads lines three times as slowly"


def differs(path: Path, fmt: LogFormat, cuts: Sequence[int]) -> list[str]:
    """The log and the format, where templates and the rule differ in what they read."""
    lines = four_times(path)
    slow = decode_steps(lines, fmt)
    same = all(equal(by_templates(lines, fmt, n)[0], slow) for n in cuts)
    return [] if same else [f"{name_of(path.parent)}/{path.name}, read as {fmt.name}"]


def test_fixtures_give_the_same_rows():
    """The first of each format, by that format."""
    assert [bad for path in FIRST_OF_EACH for bad in differs(path, find_format(path.parts[-3]), [3])] == []


@pytest.mark.sweep
@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{name_of(path.parent)}/{path.name}")
def test_fixtures_give_the_same_rows_by_other_formats(path):
    """By every format of which a word is in the log; of the others it holds nothing."""
    text = path.read_text("utf-8", "replace")
    marked = [fmt for fmt in FORMATS if any(marker in text for marker in fmt.step_markers)]
    assert [bad for fmt in marked for bad in differs(path, fmt, [1, 3])] == []


def four_times(path: Path) -> pl.DataFrame:
    """Often enough for a template to be learnt, line numbers going on."""
    blocks = [block.lines for block in read_blocks(Source("run.log", path))]
    return pl.concat(blocks * 4).with_columns(line_number=pl.int_range(pl.len(), dtype=pl.Int64) + 1)


VALUES = st.one_of(
    st.floats(0, 1e9, allow_nan=False).map(lambda v: f"{v:.3f}"),
    st.floats(1e-9, 1e9).map(lambda v: f"{v:.6E}"),
    st.integers(0, 10**6).map(str),
    st.sampled_from(
        ["nan", "inf", "-1.5", "1,234.5", "1,23", "1e999", "", "None", "x", "5 iteration 7/ 9 ", "0", ".5", "7."]
    ),
)
LABELS = ["lm loss", "grad norm", "learning rate", "global batch size", "router temperature", "lm loss", "MFU"]
FRONTS = st.sampled_from(
    [
        "",
        "[rank0]: ",
        "[2026-03-01 08:00:00.123456] ",
        "[2026-03-01 08:00:00] ",
        "[2026-03-01T08:00:00,12] ",
        "2026/03/01 08:00:00 - ",
        "2026-03-01,08:00:00 | ",
        "2026-13-01 08:00:00,123 - ",
        "saving checkpoint at iteration 3 ",
    ]
)
ENDS = st.sampled_from(
    ["", "\r", " [Rank 1] (after 3 iterations) memory (MB) | allocated: 5.0", " grad norm: 0.5", "|"]
)


@st.composite
def step_lines(draw):
    """Lines of one kind, most of them, with whatever damages a line now and then."""
    labels = draw(st.lists(st.sampled_from(LABELS), max_size=4))
    front = draw(FRONTS)
    lines = []
    for step in range(1, draw(st.integers(FEW, FEW + 8)) + 1):
        odd = draw(st.integers(0, 7)) == 0
        values = [draw(VALUES) if odd else f"{step / 7:.3f}" for _ in labels]
        pairs = "".join(f" {label}: {value} |" for label, value in zip(labels, values, strict=True))
        end = draw(ENDS) if odd else ""
        before = draw(FRONTS) if odd else front
        head = f"{before} iteration {step:8d}/     500 | elapsed time per iteration (ms): {7000 + step:.1f} |"
        lines.append(f"{head}{pairs}{end}")
    return "\n".join(lines) + draw(st.sampled_from(["\n", ""]))


@given(text=step_lines(), cuts=st.integers(1, 5))
def test_whatever_stands_on_the_lines_the_rows_are_the_same(text, cuts):
    lines = lines_of(text)
    fast, slow, _ = both_ways(lines, find_format("megatron"), cuts)
    require_equal(fast, slow)


UNITS = ["{}ms", "{} ms", "{}", "[{}]", "[ {} ]", "{}/9.9", "nanms", "{}s", "None", "1{}"]


@given(
    units=st.lists(st.sampled_from(UNITS), min_size=1, max_size=3),
    label=st.sampled_from(["per_step_time", "time", "loss", "x"]),
)
def test_units_and_brackets_are_as_the_rule_has_them(units, label):
    values = [units[min(step // FEW, len(units) - 1)].format(f"{step}.5") for step in range(3 * FEW)]
    head = "{{ Epoch:[  1/  2], step:[{:5d}/ 6500], per_step_time: 7ms, "
    text = "".join(f"{head.format(step)}{label}: {value}, lr: 1e-05 }}\n" for step, value in enumerate(values, start=1))
    require_equal(*both_ways(lines_of(text), find_format("mindformers"))[:2])


@pytest.mark.parametrize("blanks", ["", "  ", "     "])
@pytest.mark.parametrize("name", ["fleetx", "megatron", "nemo", "paddlenlp", "verl"])
def test_blanks_before_a_value_are_as_the_rule_has_them(name, blanks):
    """A number aligned by blanks is one for some formats; in others its label is none then."""
    fmt = find_format(name)
    text = next(line for line in fmt.samples[0].text.split("\n") if regex.search(fmt.head, line))
    begin = next(regex.finditer(fmt.head, text)).end()
    odd = text[:begin] + regex.sub(r"(?<=:) *(?=\d)", blanks, text[begin:])
    fast, slow, _ = both_ways(lines_of(f"{text}\n" * FEW * 2 + f"{odd}\n" * 3), fmt)
    require_equal(fast, slow)


def test_a_plain_log_is_read_by_templates_alone():
    lines = lines_of("".join(megatron_line(step) + "\n" for step in range(1, 1001)))
    fast, slow, explained = both_ways(lines, find_format("megatron"))
    require_equal(fast, slow)
    assert explained == 1000


BARS = ["50%|##| 5/10 [00:01<00:01]", "", "iteration 3/ 9 |", "iteration", "saving checkpoint at iteration 3", "5 |"]


@given(bars=st.lists(st.lists(st.sampled_from(BARS), max_size=3), min_size=1, max_size=4))
def test_step_lines_behind_a_progress_bar(bars):
    lines = ["\r".join([*bars[step % len(bars)], megatron_line(step)]) for step in range(1, FEW + 5)]
    require_equal(*both_ways(lines_of("".join(f"{line}\n" for line in lines)), find_format("megatron"))[:2])


@pytest.mark.parametrize(("bar", "explained"), [("50%|##| 5/10", 100), ("saving checkpoint at iteration 3 ", 0)])
def test_a_progress_bar_is_nothing_of_interest_by_itself(bar, explained):
    text = "".join(f"{bar}\r{megatron_line(step)}\n" for step in range(1, 101))
    assert both_ways(lines_of(text), find_format("megatron"))[2] == explained


def test_digits_and_blanks_of_other_scripts_are_left_to_the_rule():
    """A number of a template has digits of ASCII alone."""
    plain = [megatron_line(step) for step in range(1, 2 * FEW)]
    odd = [plain[1].replace("2/", "\u0662/", 1), plain[2].replace("iteration ", "iteration\u00a0", 1)]
    assert not set(odd) & set(plain)
    fast, slow, taken = both_ways(lines_of("\n".join([*plain, *odd, ""])), find_format("megatron"))
    require_equal(fast, slow)
    assert taken == len(plain)


def test_ranks_that_print_their_name_share_a_template():
    text = "".join(f"[rank{step % 40}]:{megatron_line(step)}\n" for step in range(1, 401))
    templates = search_all(FORMATS).templates["megatron"]
    templates.fewest = FEW
    block, _ = decode_block(lines_of(text), find_format("megatron"), templates)
    assert (len(block.rows), len(templates.known)) == (400, 1)
    require_equal(*both_ways(lines_of(text), find_format("megatron"))[:2])


def test_lines_of_ever_new_words_are_read_by_the_rule():
    text = "".join(f"[{'x' * step}]:{megatron_line(step)}\n" for step in range(1, 101))
    fast, slow, taken = both_ways(lines_of(text), find_format("megatron"))
    require_equal(fast, slow)
    assert taken == 0


def test_a_format_keeps_few_templates():
    templates = Templates(find_format("megatron"), FORMATS, FEW)
    for width in range(MOST + 2):
        text = "".join(f"[{'x' * width}]:{megatron_line(step)}\n" for step in range(1, 2 * FEW))
        decode_block(lines_of(text), find_format("megatron"), templates)
    assert len(templates.known) == MOST


STAMP = "[2026-03-01 08:00:00] "


@pytest.mark.parametrize("damaged", ["[2026-99-01 08:00:00] ", "[20-03-01 08:00:00] ", "[-2026-03-0108:00:00] "])
def test_a_damaged_time_stamp_hides_no_whole_one(damaged):
    """A template of lines without a time stamp must not read one that has it."""
    lines = [damaged + megatron_line(step) for step in range(1, 4 * FEW)]
    lines[5::7] = [STAMP + megatron_line(step) for step in range(6, 4 * FEW, 7)]
    fast, slow, _ = both_ways(lines_of("".join(f"{line}\n" for line in lines)), find_format("megatron"))
    require_equal(fast, slow)


def test_a_line_with_another_word_of_interest_is_handed_on():
    text = "".join(f"saving checkpoint at iteration {step} {megatron_line(step)}\n" for step in range(1, 101))
    fast, slow, explained = both_ways(lines_of(text), find_format("megatron"))
    require_equal(fast, slow)
    assert explained == 0


@pytest.mark.parametrize("numbers", [200, 20_000])
def test_lines_of_very_many_numbers_are_left_to_the_rule(numbers):
    """Their regex would be too large, and their trials too many."""
    tail = " routed: " + " ".join(str(n) for n in range(numbers)) + " |"
    text = "".join(f"{megatron_line(step)}{tail}\n" for step in range(1, 2 * FEW))
    fast, slow, taken = both_ways(lines_of(text), find_format("megatron"))
    require_equal(fast, slow)
    assert taken == 0


def test_a_kind_is_known_whatever_blanks_are_in_front_of_its_numbers():
    texts = pl.Series([megatron_line(step) for step in (1, 22, 333_333)])
    assert texts.str.contains(kind_of(texts[0])).all()
    assert texts.str.contains(kind_of(texts[2])).all()
