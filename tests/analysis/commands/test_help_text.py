"""The help of every command: short, examples first, in plain English; an unknown log has an error of three lines."""

import pytest
import regex
from helpers import ROOT, megatron_log, run_logparse

from analysis.commands._help_pages import EXAMPLES

LONGEST = 60
BANNED = regex.compile(
    r"\b(tells|told|beside|behind|lacks|lacking|alike|usual|mend|mended|odd|cannot be|stands|dearest|delivered|all-in"
    r"|as built|heard)\b",
    regex.IGNORECASE,
)


def shown(path: str, flag: str = "--help") -> str:
    done = run_logparse(*path.split(), flag, cwd=ROOT, COLUMNS="80")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", EXAMPLES)
def test_help_is_short_and_begins_with_two_examples(path):
    lines = shown(path).splitlines()
    assert len(lines) <= LONGEST
    assert max(map(len, lines)) <= 80
    assert lines[0] == "Examples:"
    assert all(line.startswith(f"  logparse {path}".rstrip()) for line in lines[1:3])
    assert lines[3:5] == ["", lines[4]]
    assert lines[4].startswith("Usage: ")


@pytest.mark.parametrize("path", EXAMPLES)
def test_no_word_of_ours_is_in_any_help(path):
    assert BANNED.findall(shown(path, "--help-all")) == []


def test_all_options_are_listed_on_request():
    assert "--num-layers" not in shown("analyze")
    assert "--num-layers NUMBER" in shown("analyze", "--help-all")


def test_an_unknown_log_has_an_error_of_three_lines(tmp_path):
    (tmp_path / "x.log").write_text("hello\nworld step 3\n")
    done = run_logparse("analyze", "x.log", cwd=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 3)
    assert "`logparse formats`" in done.stderr


UNKNOWN_NAMES = {
    "analyze run.log --require mf>=1": "with_stalls_mfu",
    "analyze --each run.log --sort mf": "largest_overhead",
    "analyze --each run.log --where mf<1": "run_seconds",
    "analyze run.log --dialect mega": "torchtitan",
    "compare a.log b.log --allow mbs": "micro_batch_size",
    "compare a.log b.log --metric zzz": "steady_step_time_ms",
}


@pytest.mark.parametrize(("command", "name"), UNKNOWN_NAMES.items())
def test_an_error_about_a_name_leads_to_the_names(command, name, tmp_path):
    (tmp_path / "run.log").write_text(megatron_log())
    done = run_logparse(*command.split(), cwd=tmp_path)
    assert done.returncode == 2
    (path,) = regex.findall(r"`logparse (\w+) --help-all` lists all", done.stderr)
    assert name in regex.findall(r"[\w-]+", shown(path, "--help-all"))
