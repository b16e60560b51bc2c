"""Files that grow, are rotated, cut or piped: the answer is that of ``analyze``, and no block is read twice."""

import gzip
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fixture_runs import FOLDERS, name_of
from growing import HOW, answer_at, answer_at_once, hold_growth
from helpers import arguments_dump, megatron_line

from analysis.present.words import say
from analysis.run.checks.targets import gather_requirements
from analysis.watch.moment import Moment
from analysis.watch.refresh import SHARE, Follower
from logparse.errors import InputError, UsageError
from logparse.pseudonyms import Pseudonyms

HEAD = arguments_dump({"world_size": 8, "num_layers": 32, "seq_length": 4096})
# One with damage and restarts, one of several ranks, one whose bar draws one line; and one of many blocks.
AT_EACH_LANDING = ("megatron/messy", "megatron/multi-node", "hf-trainer/bar-and-banner")
LARGE = "megatron/core-v0.12-llama2-7b"


def steps(first: int, last: int) -> str:
    return "".join(f"{megatron_line(step, 1000.0 + step % 7)}\n" for step in range(first, last + 1))


def add(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def last_step(moment: Moment) -> int:
    return int(moment.runs[-1].steps["step"][-1])


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(case, id=name_of(case), marks=() if name_of(case) in AT_EACH_LANDING else pytest.mark.sweep)
        for case in FOLDERS
    ],
)
def test_a_fixture_that_grows_is_answered_as_analyze_does(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    texts = {path.name: path.read_bytes() for path in sorted(folder.glob("*.log"))}
    hold_growth(Path(), texts, seed=len(folder.name), one_block=folder.name == "wrapped")


def mixed(steps_each: int, second_stops: int | None = None) -> str:
    """Two runs that take turns in one file; the second may stop."""
    lines = []
    for step in range(1, steps_each + 1):
        lines += [megatron_line(step, 1000.0 + step % 3)]
        lines += [megatron_line(200 + step, 1300.0 + step % 3)] if step <= (second_stops or step) else []
    return HEAD + "\n".join(lines) + "\n"


def test_the_answer_has_what_the_options_of_analyze_ask_for(tmp_path):
    how = replace(
        HOW,
        strict=True,
        requirements=gather_requirements([(["tokens_per_second_per_device>=1e9", "final_loss<=9"], None)]),
        pseudonyms=Pseudonyms(b"key"),
    )
    answer = hold_growth(tmp_path, {"secret.log": mixed(30).encode()}, seed=3, how=how, split=True)
    assert [[one["outcome"] for one in run["requirements"]] for run in answer["runs"]] == [["fail", "pass"]] * 2
    assert [run["name"][-2:] for run in answer["runs"]] == ["#1", "#2"]
    assert "secret" not in str(answer)
    torn = mixed(30).replace("elapsed", "\nelapsed", 9).encode()
    refusal = hold_growth(tmp_path, {"secret.log": torn}, seed=3, how=how)
    assert refusal.startswith("truncated step lines")


def test_what_is_known_of_the_files_has_pseudonyms_too(tmp_path):
    path = tmp_path / "secret.log"
    path.write_text(HEAD + steps(1, 4))
    follower = Follower([str(path), "secret2.log"], replace(HOW, pseudonyms=Pseudonyms(b"key")))
    moment = follower.refresh(0.0)
    assert moment.files[0].name == moment.runs[0].steps["source"][0]
    path.unlink()
    for one, missing in ((moment, 1), (follower.refresh(1.0), 2)):
        assert (one.name[:4], len(one.waiting)) == ("run-", missing)
        assert "secret" not in f"{replace(one, runs=(), refusal=None)} {one.refusal}"


@pytest.mark.slow
def test_a_large_log_that_grows_is_answered_as_analyze_does(tmp_path):
    """With the blocks that a user has."""
    text = HEAD + "".join(steps(1, 20_000).replace(f"/{500:8d}", f"/{20_000:8d}"))
    path = tmp_path / "run.log"
    follower = Follower([str(path)], HOW)
    for at, part in enumerate((0.1, 0.5, 0.77, 1.0)):
        path.write_text(text[: int(len(text) * part)])
        moment = follower.refresh(float(at))
    assert answer_at(moment) == answer_at_once(path)
    assert follower.read_again == 0


def test_blocks_that_have_ended_are_not_read_again(tmp_path, monkeypatch):
    """Nothing is seen of what is written over them."""
    monkeypatch.setattr("logparse.inputs.blocks.FIRST_BYTES", 4000)
    path = tmp_path / "run.log"
    path.write_text(HEAD + steps(1, 60))
    follower = Follower([str(path)], HOW, block_bytes=4000)
    follower.refresh(0.0)
    with path.open("r+b") as file:
        file.seek(2000)
        file.write(b"x" * 6000)
    add(path, steps(61, 80))
    moment = follower.refresh(1.0)
    assert (len(moment.runs[0].steps), follower.read_again) == (80, 0)
    assert moment.files[0].lines == 80 + HEAD.count("\n")


def test_a_name_without_a_file_waits_for_it(tmp_path):
    path = tmp_path / "run.log"
    follower = Follower([str(path)], HOW)
    moment = follower.refresh(0.0)
    assert (moment.runs, moment.waiting, moment.files) == ((), (str(path),), ())
    path.write_text("loading\n")
    moment = follower.refresh(1.0)
    assert moment.waiting == ()
    assert "no step line" in str(moment.refusal)
    assert moment.ending.state == "unknown"
    add(path, HEAD + steps(1, 3))
    assert last_step(follower.refresh(2.0)) == 3


def test_a_line_that_is_not_whole_waits_until_the_file_grows_no_more(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(HEAD + steps(1, 4) + steps(5, 5)[:-40])
    follower = Follower([str(path)], HOW)
    moment = follower.refresh(0.0)
    assert (last_step(moment), moment.runs[0].log.coverage.torn_lines) == (4, 0)
    assert answer_at(follower.refresh(1.0)) == answer_at_once(path)
    add(path, steps(5, 5)[-40:] + steps(6, 6)[:30])
    moment = follower.refresh(2.0)
    assert (last_step(moment), moment.runs[0].log.coverage.torn_lines) == (5, 0)


def test_with_strict_a_line_that_is_not_whole_waits_as_long_as_more_of_it_may_come(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(HEAD + steps(1, 4) + steps(5, 5)[:-40])
    follower = Follower([str(path)], replace(HOW, strict=True))
    assert [last_step(follower.refresh(float(at))) for at in range(3)] == [4, 4, 4]
    add(path, steps(5, 5)[-40:])
    assert last_step(follower.refresh(3.0)) == 5


def test_what_has_not_grown_is_not_built_again(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(HEAD + steps(1, 4))
    follower = Follower([str(path)], HOW)
    first, second = follower.refresh(0.0), follower.refresh(60.0)
    assert second.runs[0] is first.runs[0]
    assert (second.at, second.files) == (60.0, first.files)


def test_a_file_that_is_renamed_stays_part_of_the_run_of_its_folder(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(HEAD + steps(1, 40))
    follower = Follower([str(tmp_path)], HOW)
    follower.refresh(0.0)
    path.rename(tmp_path / "run.log.1")
    path.write_text(steps(41, 50))
    moment = follower.refresh(1.0)
    assert answer_at(moment) == answer_at_once(tmp_path)
    assert (last_step(moment), len(moment.runs[0].steps), moment.notes) == (50, 50, ())


def rename(path: Path) -> None:
    path.rename(path.with_name("old"))


def copy_and_cut(path: Path) -> None:
    shutil.copy(path, path.with_name("old"))
    os.truncate(path, 0)


@pytest.mark.parametrize("rotate", [rename, copy_and_cut])
def test_a_file_that_is_rotated_is_begun_anew_and_this_is_reported(tmp_path, rotate: Callable[[Path], None]):
    path = tmp_path / "run.log"
    path.write_text(HEAD + steps(1, 40))
    follower = Follower([str(path)], HOW)
    follower.refresh(0.0)
    rotate(path)
    add(path, steps(41, 45))
    moment = follower.refresh(1.0)
    assert answer_at(moment) == answer_at_once(path)
    assert [say(note) for note in moment.notes] == [f"{path} was replaced or truncated: it is read from its beginning"]
    assert follower.refresh(2.0).notes == ()


def test_a_file_that_is_cut_and_is_longer_again_at_the_next_look(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(steps(1, 10))
    follower = Follower([str(path)], HOW)
    follower.refresh(0.0)
    path.write_text(steps(11, 40))
    moment = follower.refresh(1.0)
    assert answer_at(moment) == answer_at_once(path)
    assert len(moment.notes) == 1


def test_a_file_that_is_cut_to_nothing_has_no_run(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(HEAD + steps(1, 40))
    follower = Follower([str(path)], HOW)
    follower.refresh(0.0)
    os.truncate(path, 0)
    moment = follower.refresh(1.0)
    assert answer_at(moment) == answer_at_once(path)
    assert (moment.runs, moment.files[0].size, moment.files[0].grown_at) == ((), 0, 1.0)
    path.unlink()
    moment = follower.refresh(2.0)
    assert (moment.waiting, moment.is_blind, follower.refresh(3.0).notes) == ((str(path),), True, ())
    (gone,) = map(say, moment.notes)
    assert gone == f"{path} cannot be read any more: it was removed, renamed or unmounted"


def test_ranks_that_appear_one_after_another_are_one_run(tmp_path):
    follower = Follower([str(tmp_path)], HOW)
    assert follower.refresh(0.0).waiting == (str(tmp_path),)
    for rank in range(3):
        add(tmp_path / f"rank_{rank}.log", HEAD + steps(1, 5))
        for earlier in range(rank):
            add(tmp_path / f"rank_{earlier}.log", steps(6 + rank, 6 + rank))
        moment = follower.refresh(rank + 1.0)
        assert answer_at(moment) == answer_at_once(tmp_path)
        assert len(moment.files) == rank + 1


def test_ranks_that_show_nothing_are_sampled_as_analyze_does(tmp_path, monkeypatch):
    """One of them begins to print its steps later."""
    monkeypatch.setattr("logparse.decode.sample_files.SPOT_BYTES", 1000)
    monkeypatch.setattr("logparse.decode.sample_files.FEWEST_BYTES", 0)
    for rank in range(4):
        add(tmp_path / f"rank_{rank}.log", "nothing of interest\n" * 500)
    add(tmp_path / "rank_3.log", HEAD + steps(1, 9))
    follower = Follower([str(tmp_path)], HOW)
    for at, rank in enumerate((3, 0, 2)):
        add(tmp_path / f"rank_{rank}.log", steps(10 + at, 20 + at))
        moment = follower.refresh(float(at))
        assert answer_at(moment) == answer_at_once(tmp_path)
    probed = next(note for note in moment.runs[0].notes if note.code == "files_probed")
    assert probed.fields["n"] == 1


def test_a_compressed_file_is_read_whole_at_each_change(tmp_path):
    path = tmp_path / "run.log.gz"
    follower = Follower([str(path)], HOW)
    for last in (20, 40):
        path.write_bytes(gzip.compress((HEAD + steps(1, last)).encode()))
        moment = follower.refresh(float(last))
        assert answer_at(moment) == answer_at_once(path)


def test_options_that_cannot_be_used_are_refused(tmp_path):
    (tmp_path / "run.log").write_text(HEAD + steps(1, 4))
    with pytest.raises(UsageError):
        Follower([str(tmp_path / "run.log")], replace(HOW, hw="no such device")).refresh(0.0)


def test_refreshes_take_no_more_of_a_core_than_allowed(tmp_path, monkeypatch):
    """The first one, which reads what is there, does not keep the next ones back; what has not grown costs nothing."""
    clock = iter([0.0, 60.0, 60.0, 61.5, 61.5, 61.5, 61.5, 62.5])
    monkeypatch.setattr("analysis.watch.refresh.time.process_time", lambda: next(clock))
    path = tmp_path / "run.log"
    follower = Follower([str(path)], HOW)
    waits = []
    for text in (HEAD + steps(1, 3), steps(4, 4), "", steps(5, 5)):
        add(path, text)
        follower.refresh(float(len(waits)))
        waits.append(follower.seconds_to_wait(2.0))
    assert waits == pytest.approx([2.0, 1.5 / SHARE, 1.5 / SHARE, 1.0 / SHARE])
    assert follower.seconds_to_wait(20.0) == 20.0


@pytest.fixture
def standard_input() -> Iterator[int]:
    """The end of a pipe into standard input to write to."""
    kept, (there, here) = os.dup(0), os.pipe()
    os.dup2(there, 0)
    os.close(there)
    yield here
    os.dup2(kept, 0)
    os.close(kept)


def refreshed_until(follower: Follower, holds: Callable[[Moment], bool]) -> Moment:
    """The first moment at which something ``holds``; what a process prints takes its time."""
    for at in range(2000):
        moment = follower.refresh(float(at))
        if holds(moment):
            return moment
        time.sleep(0.01)
    raise AssertionError(moment)


def test_what_tail_follows_is_read_from_standard_input(tmp_path, standard_input):
    path = tmp_path / "run.log"
    path.write_text(HEAD + steps(1, 5))
    with subprocess.Popen(["tail", "-f", "-n", "+1", str(path)], stdout=standard_input) as tail:
        os.close(standard_input)
        try:
            follower = Follower(["-"], HOW)
            refreshed_until(follower, lambda moment: bool(moment.runs))
            add(path, steps(6, 9))
            moment = refreshed_until(follower, lambda moment: bool(moment.runs) and last_step(moment) == 9)
            assert not moment.ended
        finally:
            tail.terminate()
    moment = refreshed_until(follower, lambda moment: moment.ended)
    with path.open("rb") as text:
        os.dup2(text.fileno(), 0)
        assert answer_at(moment) == answer_at_once("-")


def test_a_pipe_that_cannot_be_kept_is_an_error(tmp_path, standard_input, monkeypatch):
    (tmp_path / "kept").symlink_to("/dev/full")
    place = lambda **_: (os.open(os.devnull, os.O_RDONLY), str(tmp_path / "kept"))  # noqa: E731
    monkeypatch.setattr("logparse.inputs.follow.mkstemp", place)
    os.write(standard_input, (HEAD + steps(1, 5)).encode())
    os.close(standard_input)
    with pytest.raises(InputError, match="No space left on device"):
        refreshed_until(Follower(["-"], HOW), lambda moment: moment.ended)
