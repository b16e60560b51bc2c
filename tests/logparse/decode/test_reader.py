"""Files in blocks: whatever their size, and whoever reads them, they say the same."""

import gzip
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import polars as pl
import pytest
from fixture_runs import FIXTURES, name_of
from helpers import arguments_dump, few, megatron_line
from hypothesis import given
from hypothesis import strategies as st

from logparse.decode.detect_format import richest
from logparse.decode.fast_path import Templates
from logparse.decode.merge_formats import may_complete
from logparse.decode.reader import Contents, read_sources
from logparse.decode.records import join_records
from logparse.decode.settings import settings_frames
from logparse.decode.step_lines import StepLines, decode_steps
from logparse.formats import all_formats, find_format
from logparse.formats._base import LogFormat
from logparse.inputs.blocks import TextBlock, read_blocks
from logparse.inputs.sources import Source

FOLDERS = sorted({path.parent for path in FIXTURES.glob("*/*/*.log")})
# The first of each format, and all of several files.
FIRST = dict.fromkeys(folder.parent for folder in FOLDERS)
CASES = [folder for folder in FOLDERS if FIRST.pop(folder.parent, 0) is None or len([*folder.glob("*.log")]) > 1]
MINDFORMERS_LINE = (
    "{{ Epoch:[  1/  1], step:[{step:5d}/ 9000], loss: 2.5, per_step_time: 1000ms, lr: 1e-05, overflow cond: False }}"
)
SAMPLES_LINE = "    0.0% |          | 0.36029 samples/s/p  10:01:16 }"


def read(*paths: Path, block_bytes: int = 2**24) -> Contents:
    return read_sources([Source(path.name, path) for path in paths], all_formats(), block_bytes)


def best_of(contents: Contents) -> tuple[LogFormat, StepLines]:
    return min((found for found in contents.steps if len(found[1].steps)), key=richest, default=contents.steps[0])


def everything(contents: Contents) -> dict[str, object]:
    """All that the formats make of ``contents``, as values that can be compared."""
    said: dict[str, object] = {"lines": contents.lines}
    for fmt, found in contents.steps:
        time_breakdown = (found.torn, found.labels, found.unread, found.malformed)
        said[fmt.name] = (
            found.steps.select("source", "line_number", "step").rows(),
            repr(found.steps.rows()),
            time_breakdown,
            next(settings_frames(contents.sentences, contents.inside, [fmt])).rows(),
        )
    fmt, found = best_of(contents)
    records = join_records(contents.records, found.steps, fmt)
    return said | {name: repr(frame.rows()) for name, frame in records.items()}


def parts_of(case: Path) -> tuple[object, ...]:
    """The kinds of lines that the format of a case reads, each of which blocks can cut; and whether it has files."""
    fmt = find_format(case.parent.name)
    parts = (fmt.companions, fmt.pair_lines, fmt.blocks, fmt.sentences, fmt.records, fmt.beneath)
    return (*map(bool, parts), len([*case.glob("*.log")]) > 1)


# One of each kind is read in `make test`.
OF_EACH_KIND = {parts_of(case): case for case in reversed(CASES)}.values()


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=name_of(case), marks=() if case in OF_EACH_KIND else pytest.mark.sweep) for case in CASES],
)
def test_any_size_of_blocks_says_the_same(case, monkeypatch):
    """Words of interest are looked for as literals in a small log; in the blocks of a large one first by parts."""
    paths = sorted(case.glob("*.log"))
    whole = read(*paths)
    best = best_of(whole)[0]
    expected = everything(whole)
    # What lies beneath the best is looked for only until it is known, where it cannot complete it.
    beneath = {fmt.name for fmt in all_formats() if fmt.beneath > best.beneath and not may_complete(fmt, best)}
    size = max(path.stat().st_size for path in paths)
    monkeypatch.setattr("logparse.inputs.literals.WORTH_A_REGEX", 0)
    found = everything(read(*paths, block_bytes=max(700, size // 5)))
    # Of the other formats only the step lines are looked for once one is known.
    others = {fmt.name for fmt in all_formats()} - {best.name}
    assert {k: found[k][0] if k in others else found[k] for k in found.keys() - beneath} == {
        k: expected[k][0] if k in others else expected[k] for k in expected.keys() - beneath
    }


@few(20)
@given(block_bytes=st.integers(700, 3000), dumps=st.integers(0, 1), noise=st.integers(0, 1))
def test_blocks_end_anywhere(tmp_path_factory, block_bytes, dumps, noise):
    path = tmp_path_factory.getbasetemp() / f"cut-{dumps}-{noise}.log"
    dump = arguments_dump({"world_size": 8, "num_layers": 32, "seq_length": 4096}) * dumps
    steps = "".join(f"{megatron_line(step)}\n" + "noise\n" * noise for step in range(1, 4))
    path.write_text(f"{dump}{steps}saving checkpoint at iteration 3 to x\n{dump}{steps}")
    assert everything(read(path, block_bytes=block_bytes)) == in_one_block(path)


@cache
def in_one_block(path: Path):
    return everything(read(path))


@pytest.mark.parametrize(("few", "enough"), [(500, 1500), (900, 10**6)])
def test_marked_lines_of_several_blocks_are_read_together(tmp_path, monkeypatch, few, enough):
    """Or at once, where there are many; of one file each time, and in order."""
    dump = arguments_dump({"world_size": 8, "num_layers": 32, "seq_length": 4096})
    paths = [tmp_path / name for name in ("a.log", "b.log")]
    steps = [f"{megatron_line(step)}\n" * (1 + step % 3) + "noise\n" * (step % 7 * 30) for step in range(1, 20)]
    last = [dump, "saving checkpoint at iteration 19 to x\n", *steps[:3], f"{megatron_line(60)}\n", "cut off"]
    for path in paths:
        path.write_text("".join(["noise\n" * 300, *steps, *last]))
    expected = everything(read(*paths))
    monkeypatch.setattr("logparse.decode.reader.FEW", few)
    monkeypatch.setattr("logparse.decode.reader.ENOUGH", enough)
    assert everything(read(*paths, block_bytes=1000)) == expected


@pytest.mark.parametrize("few", [0, 2**19])
def test_blocks_of_one_kind_of_line_give_the_rows_of_the_rule(tmp_path, monkeypatch, few):
    """Each block has lines enough for a template, among noise and lines that do not fit; each waits, or none does."""
    odd = {50: "saving checkpoint at iteration 50\n", 51: "iteration 51/ 9 |\n", 52: "[rank1]:"}
    lines = [f"{odd.get(step % 70, '')}{megatron_line(step, ms=7000 + step / 8)}\n" for step in range(1, 401)]
    path = tmp_path / "run.log"
    path.write_text("".join(line + "noise\n" * (step % 3) for step, line in enumerate(lines)) + lines[0][:-40])
    monkeypatch.setattr("logparse.decode.reader.FEW", few)
    monkeypatch.setattr("logparse.decode.marker_filter.Templates", partial(Templates, fewest=32))
    blocks = list(read_blocks(Source(path.name, path), 20_000))
    assert min(block.text.count(b"elapsed time per") for block in blocks[:-1]) >= 32
    assert len(blocks) > 5
    fmt = find_format("megatron")
    fast = next(steps for found, steps in read(path, block_bytes=20_000).steps if found is fmt)
    slow = decode_steps(pl.concat(block.lines for block in blocks), fmt)
    assert fast.steps.equals(slow.steps)
    assert replace(fast, steps=slow.steps) == replace(slow, steps=slow.steps)


def two_formats(folder: Path, first: str, many: str) -> Path:
    path = folder / "two.log"
    path.write_text(first + "noise\n" * 200 + many)
    return path


def test_a_format_that_comes_later_and_has_more_lines_is_read_whole(tmp_path):
    """Its other lines in front of the first step line, too, though only step lines were looked for by then."""
    lines = [f"{MINDFORMERS_LINE.format(step=step)}\n{SAMPLES_LINE}\n" for step in range(1, 41)]
    path = two_formats(tmp_path, f"{megatron_line(1)}\n", "Current world size: 16\n" + "".join(lines))
    contents = read(path, block_bytes=1000)
    found = {fmt.name: steps.steps for fmt, steps in contents.steps}
    assert (len(found["megatron"]), len(found["mindformers"])) == (1, 40)
    assert found["mindformers"]["logged_samples_per_second_per_device"].to_list() == [0.36029] * 40
    settings = next(settings_frames(contents.sentences, contents.inside, [find_format("mindformers")]))
    assert settings.select("name", "value").rows() == [("world_size", "16")]


def test_damage_is_told_once_of_a_log_that_is_read_twice(tmp_path):
    lines = [f"{MINDFORMERS_LINE.format(step=step)}\n" for step in range(1, 400)]
    text = two_formats(tmp_path, f"{megatron_line(1)}\n", "".join(lines)).read_bytes()
    packed = gzip.compress(text)
    path = tmp_path / "two.log.gz"
    path.write_bytes(packed[: len(packed) - 12])
    source = Source(path.name, path)
    contents = read_sources([source], all_formats(), 1000)
    most = max(contents.steps, key=lambda found: len(found[1].steps))[0]
    assert most.name == "mindformers"
    assert [note.code for note in source.notes] == ["file_damaged"]
    assert source.bytes_read == source.size


def test_what_cannot_be_read_again_is_searched_for_every_format(tmp_path):
    lines = [f"{MINDFORMERS_LINE.format(step=step)}\n{SAMPLES_LINE}\n" for step in range(1, 41)]
    path = two_formats(tmp_path, f"{megatron_line(1)}\n", "".join(lines))
    source = Source("-", None)
    reads = iter([path])

    def once(*_: object) -> object:
        return next(reads).open("rb")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("logparse.inputs.sources.open_source", once)
        contents = read_sources([source], all_formats(), 1000)
    found = {fmt.name: steps.steps for fmt, steps in contents.steps}
    assert found["mindformers"]["logged_samples_per_second_per_device"].to_list() == [0.36029] * 40


PIECES = [b"\n", b"\r", b"\r\n", b"a", b" x^ ", b"\xff", "第".encode(), "步骤".encode("gbk"), b"\0", b"\xef\xbb\xbf"]


@given(st.lists(st.sampled_from(PIECES), max_size=9).map(b"".join))
def test_few_lines_are_cut_as_many_are(text):
    count = text.count(b"\n") + (not text.endswith(b"\n") and text != b"")
    block = TextBlock("run.log", 1, count, text.endswith(b"\n"), text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("logparse.inputs.blocks._WORTH_POLARS", 0)
        many = replace(block).lines
    assert block.lines.equals(many)
