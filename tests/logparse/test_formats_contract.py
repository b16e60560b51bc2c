"""What every format must keep, whoever adds it. A failure says what to add or mend."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import regex

from logparse import formats
from logparse.decode.samples import PLACE, decode_sample, plain_row
from logparse.decode.step_lines import StepLines, decode_steps
from logparse.formats import all_formats, find_format
from logparse.formats._base import LogFormat, Sample
from logparse.schema import DECODED_COLUMNS, QUANTITY

FIXTURES = Path(__file__).parents[2] / "fixtures"
COLUMNS = {c.name for c in DECODED_COLUMNS}

# Words in the description of a format whose samples are no text.
OTHER_DATA = regex.compile(
    r"(?i)\bimages?\b|vision|yolo|\bocr|paddleocr|detection|detectron|speech|espnet|funasr|dreambooth|diffus|\bssd\b|timm"
)


_decoded: dict[tuple[str, int], tuple[LogFormat, StepLines]] = {}


def decode(sample: Sample, fmt: LogFormat) -> StepLines:
    """What a format reads in a sample; several rules ask, and it is read once."""
    # A format that is kept here shares its number with no other.
    key = (sample.text, id(fmt))
    if key not in _decoded:
        _decoded[key] = (fmt, decode_sample(sample, fmt))
    return _decoded[key][1]


# Each rule gives what a format does against it: a sentence that says what to add or mend.


def has_samples_and_a_fixture(fmt: LogFormat) -> Iterator[str]:
    if not fmt.samples:
        yield "add a Sample, a line as printed with the row it must become"
    if not any(path.is_dir() for path in (FIXTURES / fmt.name).glob("*")):
        yield (
            f"add fixtures/{fmt.name}/<case>/run.log, a log of 10 to 60 steps, run pytest --update-goldens "
            "tests/logparse/test_goldens.py, and check the goldens by hand"
        )


def samples_become_exactly_their_row(fmt: LogFormat) -> Iterator[str]:
    for sample in fmt.samples:
        found = decode(sample, fmt)
        if unknown := set(sample.row) - COLUMNS:
            yield f"add {unknown} to DECODED_COLUMNS of logparse/schema.py, or correct the Sample"
        if found.torn:
            yield f"a required column is missing: {fmt.required}; correct head, pair or labels"
        if found.unread:
            yield f"add these to labels or to ignored: {found.unread}"
        if found.malformed:
            yield f"give the Reading of a label a suffix, or name the word in absent: {found.malformed}"
        rows = [plain_row(row) for row in found.steps.drop(PLACE).to_dicts()]
        if rows != [plain_row(sample.row)]:
            yield f"one Sample is one step line (and its companions): {rows} instead of {sample.row}"


def one_format_claims_a_sample(fmt: LogFormat) -> Iterator[str]:
    """What a library prints under the trainer stands beside the trainer's own lines, which are read."""
    for sample in fmt.samples:
        # A line without a marker of a format is not looked at.
        marked = [f for f in all_formats() if any(marker in sample.text for marker in f.marker)]
        if fmt not in marked:
            yield f"add a literal of this line to marker: {sample.text}"
        claims = [f.name for f in marked if f.beneath <= fmt.beneath and len(decode(sample, f).steps)]
        if claims != [fmt.name]:
            yield f"make the head of one of {claims} narrower: {sample.text}"


def a_step_line_that_was_cut_off_loses_its_last_value_only(fmt: LogFormat) -> Iterator[str]:
    for sample in fmt.samples:
        line = {"source": "sample", "line_number": [1], "text": sample.text.split("\n")[0]}
        whole, cut = (decode_steps(pl.DataFrame({**line, "complete": complete}), fmt) for complete in (True, False))
        if sum(whole.labels.values()) - sum(cut.labels.values()) > 1:
            yield f"say in separator what ends a pair; now it is {fmt.separator!r}"


def companions_are_shown_by_a_sample(fmt: LogFormat) -> Iterator[str]:
    beside = [text for sample in fmt.samples if "\n" in sample.text for text in sample.text.split("\n")]
    for companion in fmt.companions:
        if not any(companion.marker in text and regex.search(companion.pattern, text) for text in beside):
            yield f"add a Sample with the line of {companion.marker!r} beside its step line"


def names_exist(fmt: LogFormat) -> Iterator[str]:
    """By name; an ignored pattern may be wider than a label, because a label that is read is not ignored."""
    if both := set(fmt.labels) & fmt.ignored:
        yield f"take these out of labels or out of ignored: {both}"
    patterns = [fmt.head, *(companion.pattern for companion in fmt.companions)]
    groups = {name for pattern in patterns for name in regex.compile(pattern).groupindex}
    columns = {reading.column for reading in fmt.labels.values()} | groups | set(fmt.required)
    # A part of a step is numbered, and no column.
    if unknown := columns - {"part"} - COLUMNS:
        yield f"add these to DECODED_COLUMNS of logparse/schema.py, or correct the name: {unknown}"
    if unknown := {rule.quantity for rule in (*fmt.names, *fmt.choices)} - set(QUANTITY):
        yield f"add these to QUANTITIES of logparse/schema.py, or correct the name: {unknown}"


def settings_have_a_block_or_a_sentence(fmt: LogFormat) -> Iterator[str]:
    """A setting of a kind that nothing reads is a rule that never applies."""
    kinds = {part.kind for part in (*fmt.blocks, *fmt.sentences)}
    asked = {name.setting for name in fmt.names} | {key for rule in (*fmt.names, *fmt.choices) for key in rule.when}
    if unknown := {setting for setting in asked if setting.split(":")[0] not in kinds}:
        yield f"add a Block or a SettingSentence of that kind, or take the rule out: {unknown}"


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


def patterns_compile(fmt: LogFormat) -> Iterator[str]:
    for pattern in step_patterns(fmt):
        try:
            pl.Series(["text"]).str.contains(pattern, strict=True)
        except pl.exceptions.ComputeError as error:
            yield f"polars cannot read {pattern!r} (it has no look-around): {error}"
    for pattern in setting_patterns(fmt):
        regex.compile(pattern)


def patterns_have_the_groups_their_reader_needs(fmt: LogFormat) -> Iterator[str]:
    if fmt.pair and regex.compile(fmt.pair).groups < 2:
        yield "pair needs two groups, label and value"
    for block in fmt.blocks:
        if regex.compile(block.entry).groups != 2:
            yield f"entry of {block.kind!r} needs name and value"
    for sentence in fmt.sentences:
        if not regex.compile(sentence.pattern).groupindex:
            yield f"name the group in {sentence.pattern!r}"


def says_what_a_sample_is_unless_it_is_text(fmt: LogFormat) -> Iterator[str]:
    """Trainers of images and speech have no tokens; one of several kinds of data has a choice."""
    about = f"{fmt.title} {fmt.framework} {sys.modules[module_of(fmt)].__doc__}"
    of_text = {"mindspeed-mm-ocr"}  # its samples have tokens
    if OTHER_DATA.search(about) and fmt.name not in of_text:
        chosen = {choice.value for choice in fmt.choices if choice.quantity == "training_data"}
        if not {fmt.trains_on, *chosen} & {"images", "speech"}:
            yield "set trains_on, or add a choice"


def module_of(fmt: LogFormat) -> str:
    return next(name for name, module in sys.modules.items() if getattr(module, "FORMAT", None) is fmt)


CONTRACT = (
    *(has_samples_and_a_fixture, samples_become_exactly_their_row, one_format_claims_a_sample),
    *(a_step_line_that_was_cut_off_loses_its_last_value_only, companions_are_shown_by_a_sample, names_exist),
    *(settings_have_a_block_or_a_sentence, patterns_compile, patterns_have_the_groups_their_reader_needs),
    says_what_a_sample_is_unless_it_is_text,
)


@pytest.mark.parametrize("fmt", all_formats(), ids=lambda fmt: fmt.name)
def test_a_format_keeps_the_contract(fmt: LogFormat) -> None:
    broken = [f"{rule.__name__}: {what}" for rule in CONTRACT for what in rule(fmt)]
    assert not broken, "\n".join([fmt.name, *broken])


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
    assert [what.split(",")[0] for rule in CONTRACT for what in rule(fmt)] == ["add fixtures/unheard-of/<case>/run.log"]
    unseparated = replace(fmt, separator=r"\|")
    (said,) = a_step_line_that_was_cut_off_loses_its_last_value_only(unseparated)
    assert said.startswith("say in separator what ends a pair")
    wrong = replace(fmt, marker=("turn=",), samples=(replace(fmt.samples[0], row={"step": 4}),))
    (misread,), (unmarked,) = samples_become_exactly_their_row(wrong), one_format_claims_a_sample(wrong)
    assert misread.startswith("one Sample is one step line")
    assert unmarked.startswith("add a literal of this line to marker")


def test_the_new_module_is_gone_again() -> None:
    assert not {"unheard-of", "draft"} & {fmt.name for fmt in all_formats()}
