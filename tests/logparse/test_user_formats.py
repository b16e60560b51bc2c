"""A format of the user's own, from a TOML file."""

import json

import pytest
import regex
from helpers import ROOT, run_logparse

from logparse.context.dialects import interpret
from logparse.decode.read_run import read_run
from logparse.errors import LogparseError
from logparse.formats import all_formats, find_format
from logparse.formats._user import FLAGS, LISTS, TEXTS

DOCS = (ROOT / "docs/formats.md").read_text(encoding="utf-8")
CONSOLE = regex.findall(r"```console\n(.*?)```", DOCS, regex.DOTALL)
BLOCKS = dict(regex.findall(r"```(text|toml|sh|console)\n(.*?)```", DOCS, regex.DOTALL))
OURS = BLOCKS["toml"]


@pytest.fixture
def folder(tmp_path):
    """The file of docs/formats.md, and a log as it describes."""
    (tmp_path / "ours.toml").write_text(OURS)
    first, line = BLOCKS["text"].splitlines()
    lines = [line.replace("12/500", f"{step}/500").replace("3.25", f"3.{step % 5}") for step in range(1, 21)]
    (tmp_path / "ours.log").write_text("\n".join([first, *lines]) + "\n")
    return tmp_path


def test_the_page_is_right(folder):
    done = run_logparse(*BLOCKS["sh"].split()[1:], "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert (run["format"], run["framework"]["name"], run["coverage"]["unread_labels"]) == ("ours", "Our trainer", {})
    # 64 samples of 4,096 tokens on 8 devices in the median of 3.0 to 3.4 s.
    assert run["rates"]["steady"]["tokens_per_second_per_device"] == pytest.approx(64 * 4096 / 8 / 3.2, rel=0.04)


def test_a_printed_rate_gives_the_time(folder):
    """Whether or not the file says what it covers: no other time is printed."""
    text = OURS.replace(
        'time = { column = "elapsed_time_per_iteration_ms", scale = 1000', 'time = { column = "logged_steps_per_second"'
    )
    for covers in ("", 'rate_covers = "interval"\n'):
        (folder / "rate.toml").write_text(covers + text)
        log = read_run([str(folder / "ours.log")], str(folder / "rate.toml"))
        assert interpret(log).steps["step_time_ms"].median() == pytest.approx(1000 / 3.2)


def test_a_format_is_drafted_and_tested_as_the_page_shows(folder):
    lines = [f"update {n}: loss {3 - n / 100:.2f}, time {500 + n % 3}.5ms" for n in range(1, 41)]
    (folder / "unknown.log").write_text("\n".join(lines) + "\n")
    for command, said in regex.findall(r"^\$ (.*)\n((?:[^$].*\n)+)", "".join(CONSOLE), regex.MULTILINE):
        done = run_logparse(*command.split()[1:], cwd=folder, COLUMNS="80")
        assert done.returncode == 0, done.stderr
        assert all(line in done.stdout + done.stderr for line in said.splitlines())
    assert run_logparse("formats", "suggest", "ours.log", "-o", "draft.toml", cwd=folder).returncode == 2
    assert run_logparse("formats", "test", "megatron", "ours.log", "--json", cwd=folder).returncode == 1


def test_every_word_is_explained():
    told = set(regex.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", DOCS, regex.MULTILINE))
    others = {"rate_covers", "trains_on", "labels", "pair_lines"}
    assert set(regex.findall(r"\w+", " ".join(told))) == {*TEXTS, *LISTS, *FLAGS, *others}


def test_a_trainer_of_images_has_no_tokens(folder):
    (folder / "images.toml").write_text(f'trains_on = "images"\n{OURS}')
    log = read_run([str(folder / "ours.log")], str(folder / "images.toml"))
    assert log.format.trains_on == "images"
    done = run_logparse("analyze", "ours.log", "--format-file", "images.toml", "--json", cwd=folder)
    (run,) = json.loads(done.stdout)["runs"]
    assert "no_tokens" in {note["code"] for note in run["notes"]}
    (folder / "images.toml").write_text(f'trains_on = "sound"\n{OURS}')
    with pytest.raises(LogparseError, match="trains_on is 'sound', not one of text, images, speech"):
        read_run([str(folder / "ours.log")], str(folder / "images.toml"))


def test_it_is_the_format_that_the_same_python_makes(folder):
    read = find_format(str(folder / "ours.toml"))
    assert read.labels["time"].scale == 1000
    assert (read.name, read.ignored, read.required) == ("ours", frozenset({"colour"}), ("step",))
    assert read not in all_formats()


RECORD = """
marker = ["== step "]
head = '== step (?P<step>\\d+)'
labels = { "tokens/s" = { column = "logged_tokens_per_second", multiples = true } }
pair_lines = { marker = ["  rate/"], pair = '  rate/([^=]+)=(\\S+)$' }
"""


def test_a_record_of_several_lines(tmp_path):
    (tmp_path / "ours.toml").write_text(RECORD)
    lines = [f"== step {step}\nnoise\n  rate/tokens/s={step}.5K\n  rate/left=3" for step in range(1, 4)]
    (tmp_path / "ours.log").write_text("\n".join(lines) + "\n")
    log = read_run([str(tmp_path / "ours.log")], format_name=str(tmp_path / "ours.toml"))
    assert log.steps["logged_tokens_per_second"].to_list() == [1500.0, 2500.0, 3500.0]
    assert log.coverage.unread_labels == {"left": 3}


UNITS = """
marker = ["step "]
head = 'step (?P<step>\\d+) \\|'
pair = '(?:(?P<label>[a-z]+) (?P<value>\\S+)|(?P<number>[\\d.]+) (?P<unit>[a-z/]+)) *(?:\\||$)'
labels = { loss = "loss", ms = "elapsed_time_per_iteration_ms" }
"""


def test_the_unit_of_a_number_without_a_label_is_its_label(tmp_path):
    (tmp_path / "ours.toml").write_text(UNITS)
    lines = [f"step {step} | loss 2.5 | 4{step}.5 ms | 91886 tok/s" for step in range(1, 4)]
    (tmp_path / "ours.log").write_text("\n".join(lines) + "\n")
    log = read_run([str(tmp_path / "ours.log")], format_name=str(tmp_path / "ours.toml"))
    assert log.steps["elapsed_time_per_iteration_ms"].to_list() == [41.5, 42.5, 43.5]
    assert log.steps["loss"].to_list() == [2.5] * 3
    assert log.coverage.unread_labels == {"tok/s": 3}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[labels]", 'pair_lines = "x"\n[labels]', "pair_lines is 'x', not a table"),
        ("[labels]", "pair_lines = { pair = '(a) (b)' }\n[labels]", "pair_lines is missing"),
        ("[labels]", "redrawn = 1\n[labels]", "redrawn is 1, not true or false"),
        ("[labels]", "rate_covers = 1\n[labels]", "rate_covers is 1, not one of step, interval, start, recent"),
        ("[labels]", "pair_lines = { pairs = 1 }\n[labels]", "unknown setting 'pairs'"),
        (r"title", "titel", "unknown setting 'titel'"),
        ('marker = ["| time "]', "", "marker is missing"),
        ("pair = ", "# ", "pair is missing"),
        ('["| time "]', '"| time "', "marker is '| time ', not a list of strings"),
        (r"(?P<step>\d+)", r"(\d+)", "head has no group (?P<step>...)"),
        (r"(\w+) ([^", r"\w+ ([^", "pair has 1 groups instead of two: label and value"),
        (r"'\|'", "'(|'", "separator is not a valid regex: "),
        ('"loss"', '"los"', "unknown column 'los'"),
        ("scale = 1000", 'scale = "1000"', "scale of label 'time' is invalid: '1000'"),
        ("scale = 1000", "factor = 1000", "unknown setting 'factor'"),
        ('{ column = "elapsed_time_per_iteration_ms", ', "{ ", "label 'time' has no column"),
        ('loss = "loss"', "loss = 1", "label 'loss' has no column"),
        ("[labels]", "[labels", "not a TOML file: "),
    ],
)
def test_a_file_that_says_it_wrong_is_told_where_and_how_to_mend_it(folder, old, new, said):
    assert old in OURS
    (folder / "ours.toml").write_text(OURS.replace(old, new, 1))
    with pytest.raises(LogparseError) as refused:
        find_format(str(folder / "ours.toml"))
    told = str(refused.value)
    assert said in told
    assert "ours.toml" in told or "did you mean" in told
    assert "try: " in told


def test_a_file_that_is_not_there(tmp_path):
    done = run_logparse("formats", "none.toml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot read none.toml: " in done.stderr
    assert "check the path given with --format" in done.stderr


def test_all_formats_are_listed_with_a_line(tmp_path):
    done = run_logparse("formats", cwd=tmp_path)
    told = json.loads(run_logparse("formats", "--json", cwd=tmp_path).stdout)
    assert [one["name"] for one in told] == [fmt.name for fmt in all_formats()]
    for one in told:
        assert f"{one['name']}: " in done.stdout
        assert one["samples"]


def test_one_format_shows_its_labels(folder):
    shown = run_logparse("formats", "ours.toml", cwd=folder).stdout
    assert "'| time '" in shown
    assert regex.search(r"time +elapsed_time_per_iteration_ms +ms", shown)
