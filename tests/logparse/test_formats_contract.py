"""What every format must keep, whoever adds it. A failure says what to add or mend."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import regex

from logparse import formats
from logparse.decode.step_lines import StepLines, decode_steps
from logparse.formats import all_formats, find_format
from logparse.formats._base import LogFormat, Sample
from logparse.schema import DECODED_COLUMNS, QUANTITY

FIXTURES = Path(__file__).parents[2] / "fixtures"
COLUMNS = {c.name for c in DECODED_COLUMNS}
PLACE = ("run", "source", "line_number")  # where a line stands, not what it says

# Words in the description of a format whose samples are no text.
OTHER_DATA = regex.compile(
    r"(?i)\bimages?\b|vision|yolo|\bocr|paddleocr|detection|detectron|speech|espnet|funasr|dreambooth|diffus|\bssd\b|timm"
)

each_format = pytest.mark.parametrize("fmt", all_formats(), ids=lambda f: f.name)
each_sample = pytest.mark.parametrize(
    ("fmt", "sample"),
    [
        pytest.param(fmt, sample, id=f"{fmt.name}-{number}")
        for fmt in all_formats()
        for number, sample in enumerate(fmt.samples, start=1)
    ],
)


def decode(sample: Sample, fmt: LogFormat) -> StepLines:
    texts = sample.text.split("\n")
    lines = pl.DataFrame({"source": "sample", "line_number": range(1, len(texts) + 1), "text": texts, "complete": True})
    return decode_steps(lines.cast({"line_number": pl.Int64}), fmt)


def plain(value: Any) -> Any:
    """A cell so that NaN equals NaN and a time is text."""
    if isinstance(value, datetime):
        return value.isoformat()
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


@each_format
def test_has_samples(fmt: LogFormat) -> None:
    assert fmt.samples, f"{fmt.name}: add a Sample, a line as printed with the row it must become"


@each_sample
def test_sample_becomes_exactly_its_row(fmt: LogFormat, sample: Sample) -> None:
    found = decode(sample, fmt)
    assert found.torn == 0, f"a required column is missing: {fmt.required}; correct head, pair or labels"
    assert len(found.steps) == 1, f"{len(found.steps)} rows; one Sample is one step line (and its companions)"
    (row,) = found.steps.drop(PLACE).to_dicts()
    assert {name: plain(value) for name, value in row.items() if value is not None} == {
        name: plain(value) for name, value in sample.row.items() if value is not None
    }


@each_sample
def test_sample_row_names_columns_of_the_schema(fmt: LogFormat, sample: Sample) -> None:
    unknown = set(sample.row) - COLUMNS
    assert not unknown, f"{fmt.name}: add {unknown} to DECODED_COLUMNS of logparse/schema.py, or correct the Sample"


@each_sample
def test_exactly_one_format_claims_the_sample(fmt: LogFormat, sample: Sample) -> None:
    # What a library prints under the trainer stands beside the trainer's own lines, which are read. A line without a
    # marker of a format is not looked at.
    marked = (f for f in all_formats() if any(marker in sample.text for marker in f.marker))
    claims = [f.name for f in marked if f.beneath <= fmt.beneath and len(decode(sample, f).steps)]
    assert claims == [fmt.name], "make the head of one of them narrower"


@each_sample
def test_sample_has_no_unread_label_and_no_malformed_value(fmt: LogFormat, sample: Sample) -> None:
    found = decode(sample, fmt)
    assert not found.unread, f"{fmt.name}: add these to labels or to ignored"
    assert not found.malformed, f"{fmt.name}: give the Reading of this label a suffix, or name the word in absent"


@each_sample
def test_marker_is_on_the_step_line(fmt: LogFormat, sample: Sample) -> None:
    assert any(marker in sample.text for marker in fmt.marker), f"{fmt.name}: add a literal of this line to marker"


@each_sample
def test_a_step_line_that_was_cut_off_loses_its_last_value_only(fmt: LogFormat, sample: Sample) -> None:
    line = {"source": "sample", "line_number": [1], "text": sample.text.split("\n")[0]}
    whole, cut = (decode_steps(pl.DataFrame({**line, "complete": complete}), fmt) for complete in (True, False))
    lost = sum(whole.labels.values()) - sum(cut.labels.values())
    assert lost <= 1, f"{fmt.name}: say in separator what ends a pair; now it is {fmt.separator!r}"


@each_format
def test_companion_is_shown_by_a_sample(fmt: LogFormat) -> None:
    for companion in fmt.companions:
        beside = [text for sample in fmt.samples if "\n" in sample.text for text in sample.text.split("\n")]
        shown = any(companion.marker in text and regex.search(companion.pattern, text) for text in beside)
        assert shown, f"{fmt.name}: add a Sample with the line of {companion.marker!r} beside its step line"


@each_format
def test_no_label_is_both_read_and_ignored(fmt: LogFormat) -> None:
    """By name; an ignored pattern may be wider than a label, because a label that is read is not ignored."""
    both = set(fmt.labels) & fmt.ignored
    assert not both, f"{fmt.name}: take these out of labels or out of ignored"


@each_format
def test_columns_exist(fmt: LogFormat) -> None:
    patterns = [fmt.head, *(companion.pattern for companion in fmt.companions)]
    groups = {name for pattern in patterns for name in regex.compile(pattern).groupindex}
    # A part of a step is numbered, and no column.
    unknown = ({reading.column for reading in fmt.labels.values()} | groups | set(fmt.required)) - {"part"} - COLUMNS
    assert not unknown, f"{fmt.name}: add these to DECODED_COLUMNS of logparse/schema.py, or correct the name"


@each_format
def test_labels_without_a_separator_are_read(fmt: LogFormat) -> None:
    assert fmt.tail <= set(fmt.labels), f"{fmt.name}: add these to labels, or take them out of tail"


@each_format
def test_quantities_exist(fmt: LogFormat) -> None:
    unknown = {rule.quantity for rule in (*fmt.names, *fmt.choices)} - set(QUANTITY)
    assert not unknown, f"{fmt.name}: add these to QUANTITIES of logparse/schema.py, or correct the name"


@each_format
def test_settings_have_a_block_or_a_sentence(fmt: LogFormat) -> None:
    """A setting of a kind that nothing reads is a rule that never applies."""
    kinds = {part.kind for part in (*fmt.blocks, *fmt.sentences)}
    asked = {name.setting for name in fmt.names} | {key for rule in (*fmt.names, *fmt.choices) for key in rule.when}
    unknown = {setting for setting in asked if setting.split(":")[0] not in kinds}
    assert not unknown, f"{fmt.name}: add a Block or a SettingSentence of that kind, or take the rule out"


def step_patterns(fmt: LogFormat) -> Iterator[str]:
    """Patterns that polars reads."""
    yield from (fmt.head, fmt.pair, fmt.separator, *fmt.ignored_patterns)
    yield from (companion.pattern for companion in fmt.companions)
    yield from (pattern for block in fmt.blocks for pattern in (block.start, block.end))
    yield from (pattern for reading in fmt.labels.values() for pattern in (reading.suffix, reading.absent))


def setting_patterns(fmt: LogFormat) -> Iterator[str]:
    """Patterns that the regex module reads."""
    yield from (block.entry for block in fmt.blocks)
    yield from (sentence.pattern for sentence in fmt.sentences)
    yield from (pattern for rule in (*fmt.names, *fmt.choices) for pattern in rule.when.values())


@each_format
def test_patterns_compile(fmt: LogFormat) -> None:
    for pattern in step_patterns(fmt):
        try:
            pl.Series(["text"]).str.contains(pattern, strict=True)
        except pl.exceptions.ComputeError as error:
            pytest.fail(f"{fmt.name}: polars cannot read {pattern!r} (it has no look-around): {error}")
    for pattern in setting_patterns(fmt):
        regex.compile(pattern)


@each_format
def test_patterns_have_the_groups_their_reader_needs(fmt: LogFormat) -> None:
    if fmt.pair:
        assert regex.compile(fmt.pair).groups >= 2, f"{fmt.name}: pair needs two groups, label and value"
    for block in fmt.blocks:
        assert regex.compile(block.entry).groups == 2, f"{fmt.name}: entry of {block.kind!r} needs name and value"
    for sentence in fmt.sentences:
        assert regex.compile(sentence.pattern).groupindex, f"{fmt.name}: name the group in {sentence.pattern!r}"


@each_format
def test_says_what_a_sample_is_unless_it_is_text(fmt: LogFormat) -> None:
    """Trainers of images and speech have no tokens; one of several kinds of data has a choice."""
    about = f"{fmt.title} {fmt.framework} {sys.modules[module_of(fmt)].__doc__}"
    of_text = {"mindspeed-mm-ocr"}  # its samples have tokens
    if OTHER_DATA.search(about) and fmt.name not in of_text:
        chosen = {choice.value for choice in fmt.choices if choice.quantity == "training_data"}
        assert {fmt.trains_on, *chosen} & {"images", "speech"}, f"{fmt.name}: set trains_on, or add a choice"


def module_of(fmt: LogFormat) -> str:
    return next(name for name, module in sys.modules.items() if getattr(module, "FORMAT", None) is fmt)


@each_format
def test_has_a_fixture(fmt: LogFormat) -> None:
    cases = [p for p in (FIXTURES / fmt.name).glob("*") if p.is_dir()]
    assert cases, (
        f"add fixtures/{fmt.name}/<case>/run.log, a log of 10 to 60 steps, run pytest --update-goldens "
        "tests/logparse/test_goldens.py, and check the goldens by hand"
    )


def test_names_differ() -> None:
    names = [fmt.name for fmt in all_formats()]
    assert len(names) == len(set(names)), f"two formats share a name: {names}"


NEW_FORMAT = r"""
from logparse.formats._base import LogFormat, Reading, Sample

FORMAT = LogFormat(
    name="NAME",
    title="a trainer nobody has heard of",
    marker=("round=",),
    head=r"round=(?P<step>\d+);",
    pair=r"(\w+)=([^;]*);",
    labels={"ms": Reading("elapsed_time_per_iteration_ms"), "loss": Reading("loss")},
    separator=";",
    samples=(Sample("round=3;ms=250.5;loss=2.5;", {"step": 3, "elapsed_time_per_iteration_ms": 250.5, "loss": 2.5}),),
)
"""


@pytest.fixture
def new_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two more modules in the folder of formats: one to be found, one that an underscore hides."""
    for module, name in (("zz_unheard_of", "unheard-of"), ("_zz_draft", "draft")):
        (tmp_path / f"{module}.py").write_text(NEW_FORMAT.replace("NAME", name), encoding="utf-8")
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path)])
    all_formats.cache_clear()
    yield
    all_formats.cache_clear()
    for module in ("zz_unheard_of", "_zz_draft"):
        sys.modules.pop(f"logparse.formats.{module}", None)
        vars(formats).pop(module, None)


@pytest.mark.usefixtures("new_modules")
def test_a_new_module_is_a_new_format() -> None:
    names = [fmt.name for fmt in all_formats()]
    assert "unheard-of" in names
    assert "draft" not in names
    fmt = find_format("unheard-of")
    test_sample_becomes_exactly_its_row(fmt, fmt.samples[0])
    test_exactly_one_format_claims_the_sample(fmt, fmt.samples[0])
    test_a_step_line_that_was_cut_off_loses_its_last_value_only(fmt, fmt.samples[0])
    with pytest.raises(AssertionError, match="say in separator what ends a pair"):
        test_a_step_line_that_was_cut_off_loses_its_last_value_only(replace(fmt, separator=r"\|"), fmt.samples[0])
    with pytest.raises(AssertionError, match=r"add fixtures/unheard-of/<case>/run\.log"):
        test_has_a_fixture(fmt)


def test_the_new_module_is_gone_again() -> None:
    assert not {"unheard-of", "draft"} & {fmt.name for fmt in all_formats()}
