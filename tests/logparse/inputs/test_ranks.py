"""Files of ranks: their names tell job, node, rank and attempt; folders with several jobs are several runs."""

import json
from pathlib import Path

import pytest
from helpers import megatron_log, run_logparse

from logparse.inputs.ranks import FILE_NAMES, missing_ranks, place_of
from logparse.inputs.run_discovery import named_runs, split_jobs


@pytest.mark.parametrize("name", FILE_NAMES, ids=lambda name: name.source)
def test_each_spelling_reads_its_sample(name):
    place = place_of(name.sample)
    assert place is not None
    assert place.job == name.job
    told = [known for known in ("node", "rank", "attempt") if getattr(place, known) is not None]
    assert told == [known for known in ("node", "rank", "attempt") if f"<{known}>" in name.pattern]


@pytest.mark.parametrize("name", FILE_NAMES, ids=lambda name: name.source)
def test_each_spelling_is_needed(name, monkeypatch):
    found = place_of(name.sample)
    monkeypatch.setattr("logparse.inputs.ranks.FILE_NAMES", [other for other in FILE_NAMES if other is not name])
    assert place_of(name.sample) != found


@pytest.mark.parametrize(
    ("path", "job", "rank"),
    [
        ("/worker_3.log", "/", 3),
        ("rank_3.log", ".", 3),
        ("rank_2024/rank_3.err", "rank_2024", 3),
        ("a/job7_rank12.out", "a/job7", 12),
        ("a/job7-Rank12.out", None, None),
        ("a/frank3.log", None, None),
        ("a/coworker_3.log", None, None),
        ("train.log", None, None),
    ],
)
def test_names_that_are_like_samples(path, job, rank):
    place = place_of(path)
    assert (place and place.job, place and place.rank) == (job, rank)


@pytest.mark.parametrize(
    ("names", "world_size", "missing"),
    [
        (["worker_0.log", "worker_1.log", "worker_2.log", "worker_5.log"], None, [3, 4]),
        (["worker_0.log", "worker_1.log", "worker_2.log"], 4, [3]),
        (["worker_1.log", "worker_2.log", "scheduler.log"], None, [0]),
        (["worker_0.log", "worker_1.log"], 2, []),
        (["worker_0.log", "worker_1.log", "worker_2.log"], 2, []),
        (["worker_0.log", "worker_7.log"], None, []),
        (["worker_0.log"], 8, []),
        (["node0_rank0.log", "node0_rank1.log", "node1_rank0.log", "node1_rank1.log"], 8, []),
        (["node0.log", "node1.log", "run.log"], 8, []),
        ([], None, []),
    ],
)
def test_missing_ranks(names, world_size, missing):
    assert missing_ranks(names, world_size) == missing


def test_a_folder_is_as_many_runs_as_names_tell_jobs():
    names = ["a/worker_0.log", "a/worker_1.log", "a/scheduler.log", "b/rank_0/info.log", "b/rank_0/error.log", "notes"]
    assert split_jobs(names) == [("a", names[:3]), ("b", names[3:5]), ("notes", ["notes"])]


def test_a_file_beside_two_jobs_is_of_neither():
    names = ["one_rank0.log", "two_rank0.log", "launcher.log"]
    assert split_jobs(names) == [("one", names[:1]), ("two", names[1:2]), ("launcher.log", ["launcher.log"])]


@pytest.mark.parametrize(
    "names",
    [
        ["a/worker_0.log", "a/worker_1.log", "notes"],
        ["one.log", "two.log"],
        # So many nodes each was run on.
        ["llama_node1.log", "llama_node2.log", "qwen_node1.log"],
    ],
)
def test_a_folder_whose_names_do_not_tell_several_jobs_is_one_run(names):
    assert split_jobs(names) == []


def write_ranks(folder: Path, *jobs: str) -> None:
    for job in jobs:
        (folder / job).mkdir(parents=True)
        (folder / job / "worker_0.log").write_text("started\n")
        (folder / job / "worker_1.log").write_text(megatron_log(world_size=4, data_parallel_size=2))


def test_runs_are_called_after_their_jobs(tmp_path):
    write_ranks(tmp_path / "all", "one", "two")
    (tmp_path / "other.log").write_text(megatron_log(world_size=4, data_parallel_size=2))
    arguments = [str(tmp_path / "all"), str(tmp_path / "other.log"), str(tmp_path / "missing"), "-"]
    told = named_runs(arguments, each=True)
    assert [name for name, _ in told] == ["one", "two", "other", "missing", "stdin"]
    assert [list(files) for _, files in told[2:]] == [[argument] for argument in arguments[1:]]
    assert named_runs(arguments, each=False) == [("all", arguments)]


def test_every_entry_of_a_folder_or_a_pattern_is_a_run(tmp_path, monkeypatch):
    """A file, a folder with all below it, or the files of the ranks of one job; what no training prints is none."""
    write_ranks(tmp_path / "all", "job")
    for name in ("a.log", "b.txt", "notes.md", "runs.csv", "sub/x.log", "sub/y.log", "no-logs/config.yaml"):
        (tmp_path / "all" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "all" / name).write_text("hello\n")
    (tmp_path / "ranks").mkdir()
    for rank in (0, 1):
        (tmp_path / "ranks" / f"r_rank{rank}.log").write_text("hello\n")
    monkeypatch.chdir(tmp_path)

    def told(*arguments):
        return dict(named_runs(arguments, each=True))

    files = {"a": ["all/a.log"], "b": ["all/b.txt"]}
    assert told("all") == told("all/") == files | {"job": ["all/job"], "sub": ["all/sub"]}
    assert told("all/job") == {"job": ["all/job"]}
    assert told("all/sub") == {"x": ["all/sub/x.log"], "y": ["all/sub/y.log"]}
    assert told("all/*.*") == files
    assert told("all/*o[ab]") == {"job": ["all/job"]}
    assert told("ranks/*.log") == {"r": ["ranks/r_rank0.log", "ranks/r_rank1.log"]}
    assert told("none/*.log") == {"none": ["none/*.log"]}


def runs_of(folder, names):
    for name in names:
        (folder / name).write_text("hello\n")
    return {name: sorted(Path(file).name for file in files) for name, files in named_runs([str(folder)], each=True)}


def test_the_ranks_of_one_job_leave_the_other_files_of_a_folder_apart(tmp_path):
    names = ["c-rank0.log", "c-rank1.log", "a.log", "b.log", "d.md"]
    assert runs_of(tmp_path, names) == {"c": names[:2], "a": ["a.log"], "b": ["b.log"]}


def test_files_that_differ_in_more_than_the_rank_are_several_runs(tmp_path):
    names = ["c-rank0-new.log", "c-rank0-old.log", "c-rank1-old.log", "c-rank1.log"]
    assert runs_of(tmp_path, names) == {"c-new": names[:1], "c-old": names[1:3], "c": names[3:]}


def test_the_files_of_a_launcher_go_with_its_ranks(tmp_path):
    names = ["scheduler.log", "worker_0.log", "worker_1.log"]
    assert list(runs_of(tmp_path, names).values()) == [[tmp_path.name]]
    others = ["a.log", "b.log", "c.log"]
    assert list(runs_of(tmp_path, others).values()) == [names[1:], *([name] for name in (*others, names[0]))]


def test_ranks_that_are_named_one_by_one_are_one_run(tmp_path):
    logs = [str(tmp_path / name) for name in ("c-rank0.log", "c-rank1.log", "a.log")]
    assert dict(named_runs(logs, each=True)) == {"c": logs[:2], "a": logs[2:]}


def test_a_run_of_each_is_not_told_to_pass_each(tmp_path):
    (tmp_path / "all" / "sub").mkdir(parents=True)
    for name, layers in (("x.log", 32), ("y.log", 40)):
        (tmp_path / "all" / "sub" / name).write_text(megatron_log(num_layers=layers))
    done = run_logparse("analyze", "--each", "all", cwd=tmp_path)
    assert done.returncode == 2
    assert "--each" not in done.stderr
    assert "pass that folder itself" in done.stderr
    assert run_logparse("analyze", "--each", "all/sub", "-q", cwd=tmp_path).returncode == 0


def test_each_job_of_a_folder_is_analysed_and_missing_ranks_are_named(tmp_path):
    write_ranks(tmp_path, "one", "two")
    (tmp_path / "two" / "worker_3.log").write_text("started\n")
    done = run_logparse("analyze", "--each", ".", "--json", cwd=tmp_path)
    runs = json.loads(done.stdout)["runs"]
    assert [(run["name"], len(run["sources"]), run["coverage"]["step_lines"]) for run in runs] == [
        ("one", 2, 6),
        ("two", 3, 6),
    ]
    (note,) = [note for run in runs for note in run["notes"] if note["code"] == "ranks_missing"]
    assert note["fields"] == {"ranks": [2], "n": 1, "of": 4}
    assert note["text"] == "1 of 4 ranks are missing, according to the file names: 2"
