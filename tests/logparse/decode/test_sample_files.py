"""Many files: those that show nothing where they are probed are left out, and everything else is read as ever."""

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from helpers import arguments_dump, few, megatron_line, run_logparse
from hypothesis import given
from hypothesis import strategies as st

from logparse.decode import sample_files as probe
from logparse.decode.read_run import Amount, ParsedLog, read_run
from logparse.decode.reader import Contents, read_sources
from logparse.decode.records import join_records
from logparse.decode.settings import settings_frames
from logparse.formats import all_formats, find_format
from logparse.inputs.sources import Source

SPOT = 2000
DUMP = arguments_dump({"world_size": 8, "num_layers": 32, "seq_length": 4096})
NOISE = "[2026-01-01 00:00:00] some chatter of a rank with nothing of note in it\n"
PIECES = {
    "noise": NOISE * 60,
    "steps": "".join(f"{megatron_line(step)}\n" for step in range(1, 9)),
    "settings": DUMP,
    "save": "saving checkpoint at iteration 3 to x\n",
    "version": "torch version .................... 2.0.1\n",
    "nothing": "\n",
}
STEPS = NOISE * 30 + PIECES["steps"] * 6 + NOISE * 30


@pytest.fixture(autouse=True)
def small_spots() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "SPOT_BYTES", SPOT)
        patch.setattr(probe, "FEWEST_BYTES", 0)
        yield


def write(folder: Path, texts: Sequence[str | bytes]) -> list[Source]:
    sources = []
    for rank, text in enumerate(texts):
        path = folder / f"worker_{rank}.log"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        sources.append(Source(path.name, path))
    return sources


def parts(folder: Path, *texts: str | bytes) -> list[int | None]:
    """How much is read of files that hold ``texts``, beside one with step lines and two without a word."""
    sources = write(folder, [STEPS, *[NOISE * 400] * 2, *texts])
    read_sources(sources, all_formats())
    assert [source.part for source in sources[:3]] == [None, 0, 0]
    return [source.part for source in sources[3:]]


def everything(contents: Contents) -> list[object]:
    """All that Megatron's format makes of ``contents``, as values that can be compared."""
    fmt = find_format("megatron")
    found = next(found for known, found in contents.steps if known is fmt)
    records = join_records(contents.records, found.steps, fmt)
    printed = next(settings_frames(contents.sentences, contents.inside, [fmt]))
    return [
        contents.lines,
        (found.torn, found.labels, found.malformed),
        *(repr(frame.rows()) for frame in (found.steps, printed, contents.sentences, *records.values())),
    ]


@few(6)
@given(files=st.lists(st.lists(st.sampled_from(list(PIECES)), max_size=12), min_size=3, max_size=6))
def test_what_is_left_out_is_all_that_is_missing(tmp_path_factory, files):
    """Reading files of any content gives what they give when cut to the parts that are said to have been read."""
    folder = tmp_path_factory.mktemp("ranks")
    texts = ["".join(map(PIECES.__getitem__, pieces)) for pieces in files]
    sources = write(folder, [STEPS, *texts])
    found = everything(read_sources(sources, all_formats()))
    cut = write(folder, [text[: source.part] for text, source in zip([STEPS, *texts], sources, strict=True)])
    assert found == everything(read_sources(cut, all_formats(), all_files=True))


@few(8)
@given(silent=st.lists(st.integers(0, 400), min_size=2, max_size=5), dumps=st.integers(0, 2))
def test_ranks_that_only_chatter_change_nothing(tmp_path_factory, silent, dumps):
    folder = tmp_path_factory.mktemp("ranks")
    texts = [STEPS, *(DUMP * (rank < dumps) + NOISE * lines for rank, lines in enumerate(silent)), STEPS]
    probed = everything(read_sources(write(folder, texts), all_formats()))
    assert probed[1:] == everything(read_sources(write(folder, texts), all_formats(), all_files=True))[1:]


def test_a_word_in_any_spot_has_the_file_read_whole(tmp_path):
    long = NOISE * 200
    spots = [f"{piece}{long}{long}" for piece in (PIECES["steps"], PIECES["save"])]
    spots += [f"{long}{PIECES[name]}{long}" for name in ("steps", "save", "settings", "version")]
    spots += [f"{long}{long}{PIECES[name]}" for name in ("steps", "save", "settings", "version")]
    assert parts(tmp_path, *spots) == [None] * len(spots)


def test_settings_in_the_first_lines_are_all_that_is_read_but_of_the_first_rank(tmp_path):
    """Its saves may stand anywhere; other ranks print none."""
    text = DUMP + NOISE * 400
    first, *others = parts(tmp_path, text, text, text)
    assert first is None
    assert [text[:part] for part in others] == [text[: text[:SPOT].rindex("\n") + 1]] * 2


def test_a_block_that_goes_on_behind_the_first_lines_is_read_whole(tmp_path):
    long = arguments_dump({f"option_{n}": n for n in range(100)})
    assert len(long) > SPOT
    assert parts(tmp_path, DUMP + NOISE * 400, long + NOISE * 400) == [None, None]


@pytest.mark.parametrize(
    "text",
    [
        gzip.compress(STEPS.encode()) + b"\n" * 5 * SPOT,
        b"\0" * SPOT + STEPS.encode(),
        NOISE.replace("\n", "\r").encode() * 400,
        (NOISE * 400).encode().replace(b"chatter", b"\xb2\xbd\xca\xfd") + PIECES["steps"].encode(),
        (NOISE * 400).encode() + megatron_line(1).replace("elapsed time", "elapsed \x1b[0mtime").encode() + b"\n",
        PIECES["noise"].encode()[: 4 * SPOT],
    ],
    ids=["compressed", "NUL", "one long line", "GBK", "terminal codes", "short"],
)
def test_what_cannot_be_probed_is_read_whole(tmp_path, text):
    assert parts(tmp_path, text) == [None]


def test_where_no_file_shows_a_step_line_all_are_read(tmp_path):
    hidden = NOISE * 100 + PIECES["steps"] + NOISE * 300
    sources = write(tmp_path, [NOISE * 400, hidden, NOISE * 400, NOISE * 400])
    probed = read_sources(sources, all_formats())
    assert [source.part for source in sources] == [None] * 4
    assert everything(probed) == everything(read_sources(sources, all_formats(), all_files=True))


def read(folder: Path, **how: bool) -> ParsedLog:
    return read_run([str(folder)], **how)


def test_a_note_says_what_was_left_out_and_all_files_reads_it(tmp_path):
    hidden = NOISE * 100 + PIECES["steps"].replace("1/", "9/") + NOISE * 300
    write(tmp_path, [STEPS, NOISE * 400, hidden, NOISE * 400, NOISE * 400])
    (note,) = read(tmp_path).notes
    names = [str(tmp_path / f"worker_{rank}.log") for rank in (1, 2, 3)]
    assert (note.code, note.level) == ("files_probed", "info")
    assert note.fields == {"n": 4, "of": 5, "names": names, "spot": 64}
    everywhere = read(tmp_path, all_files=True)
    assert not everywhere.notes
    assert len(everywhere.steps) - len(read(tmp_path).steps) == 8


@pytest.mark.parametrize("names", [("FEWEST_FILES", 5), ("FEWEST_BYTES", 10**6)], ids=lambda pair: pair[0])
def test_few_files_and_few_bytes_are_not_probed(tmp_path, monkeypatch, names):
    monkeypatch.setattr(probe, *names)
    write(tmp_path, [STEPS, *[NOISE * 400] * 3])
    assert not read(tmp_path).notes
    assert read(tmp_path).coverage.lines > 1200


def test_the_command_line_reads_all_files_and_with_any_number_of_jobs(tmp_path):
    write(tmp_path, [STEPS, *[NOISE * 400] * 3])
    said = [
        json.loads(run_logparse("analyze", str(tmp_path), "--json", *flags, cwd=tmp_path).stdout)["runs"][0]
        for flags in ((), ("--all-files",), ("--jobs", "1"), ("--all-files", "--jobs", "3"))
    ]
    codes = [{note["code"] for note in run["notes"]} & {"files_probed"} for run in said]
    assert codes == [{"files_probed"}, set(), {"files_probed"}, set()]
    assert [run["metrics"] for run in said] == [said[0]["metrics"]] * 4


def test_progress_ends_at_what_was_to_be_read(tmp_path):
    sources = write(tmp_path, [STEPS, *[DUMP + NOISE * 400] * 3])
    told: list[Amount] = []
    read_run([str(tmp_path)], watch=told.append)
    last = told[-1]
    assert last.read == last.total
    assert (last.files, last.of) == (4, 4)
    assert 0 < last.read < sum(source.size or 0 for source in sources)
