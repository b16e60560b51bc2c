"""One tool: the same flags in every command, help behind -h, filters as arguments, hints for what has no flag."""

import json

import pytest
from helpers import megatron_log, run_logparse

from analysis import cli
from logparse.schema import QUANTITIES

SHORT = {q.short: q.name for q in QUANTITIES if q.short}
# Commands that compute runs, and the options each must have to be called so.
COMPUTING = ("analyze", "record", "compare", "gate", "formulas", "estimate", "config")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run.log").write_text(megatron_log(world_size=8))
    return tmp_path


def test_the_short_names_are_those_of_the_field():
    assert {"--tp", "--pp", "--dp", "--cp", "--ep"} < SHORT.keys()


@pytest.mark.parametrize("command", COMPUTING)
def test_every_command_that_computes_has_both_names(command, folder):
    told = run_logparse(command, "--help-all", cwd=folder, COLUMNS="200").stdout
    for short, name in SHORT.items():
        assert f"{short} NUMBER" in told or f"{short} 0|" in told, short
        assert f"--{name.replace('_', '-')}" in told, name


def test_a_short_name_gives_what_the_long_one_does(folder):
    values = {"--tp": "4", "--pp": "2", "--dp": "2", "--cp": "1", "--ep": "2", "--devices": "16"}
    flags = [word for pair in values.items() for word in pair]
    done = run_logparse("analyze", "run.log", *flags, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    for short, value in values.items():
        fact = run["context"][SHORT[short]]
        assert (fact["value"], fact["from"]["kind"]) == (int(value), "flag")


@pytest.mark.parametrize("command", [*((name,) for name in cli.COMMANDS), (), ("history", "list")], ids=" ".join)
def test_h_is_help(command, folder):
    short, long = (run_logparse(*command, word, cwd=folder) for word in ("-h", "--help"))
    assert (short.returncode, short.stdout) == (0, long.stdout)
    assert "-h, --help" in short.stdout


def test_the_version_is_told(folder):
    assert run_logparse("--version", cwd=folder).stdout.startswith("logparse ")


@pytest.mark.parametrize("language", ["en", "zh_CN.UTF-8"])
def test_help_lists_every_command_in_one_whole_line(folder, language):
    told = run_logparse("--help", cwd=folder, COLUMNS="80", LANG=language).stdout.splitlines()
    for name in cli.COMMANDS:
        (line,) = [line for line in told if line.startswith(f"  {name} ")]
        assert line.endswith((".", "。"))
    assert "..." not in "".join(told[6:])


def test_help_of_a_group_cuts_nothing(folder):
    told = run_logparse("history", "--help", cwd=folder, COLUMNS="80").stdout
    for line in told.partition("Commands:")[2].strip().splitlines():
        assert line.endswith(".")


def test_a_quantity_without_a_flag_is_named_where_it_can_be_given(folder):
    done = run_logparse("analyze", "run.log", "--num-microbatches", "4", cwd=folder)
    assert done.returncode == 2
    assert "num_microbatches has no option: set it in a --config file" in done.stderr
    assert "has no flag" not in run_logparse("analyze", "run.log", "--nonsense", "4", cwd=folder).stderr


def test_an_option_without_its_value_says_what_it_takes(folder):
    done = run_logparse("analyze", "run.log", "--recompute", cwd=folder)
    assert done.returncode == 2
    assert "--recompute none|selective|full" in done.stderr
    assert "has no option" not in done.stderr


# Filters.


def listed(*words, cwd):
    done = run_logparse(*words, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return [entry["name"] for entry in json.loads(done.stdout)]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("qwen2.5", "72"), ["qwen2.5-72b"]),
        (("QWEN 2.5 72",), ["qwen2.5-72b"]),
        (("llama2_7b",), ["llama2-7b"]),
        (("llama2",), ["llama2-7b", "llama2-13b", "llama2-34b", "llama2-70b"]),
    ],
)
def test_models_are_filtered(folder, words, names):
    assert listed("models", *words, cwd=folder) == names


def test_devices_are_filtered(folder):
    assert listed("hardware", "910b3", cwd=folder) == ["Ascend910B3"]
    assert set(listed("hardware", "a100", "40", cwd=folder)) == {"A100 SXM4 40GB", "A100 PCIe 40GB"}
    assert len(listed("hardware", "910", cwd=folder)) > 10


def test_one_that_is_left_is_shown_with_its_source(folder):
    assert "source:" in run_logparse("models", "qwen2.5", "72", cwd=folder).stdout
    assert "source:" not in run_logparse("models", "llama2", cwd=folder).stdout


@pytest.mark.parametrize("words", [("models", "nothing-like-it"), ("hardware", "nothing-like-it")], ids=" ".join)
def test_a_filter_that_leaves_nothing_is_refused(folder, words):
    done = run_logparse(*words, cwd=folder)
    assert (done.returncode, done.stdout, "try:" in done.stderr) == (2, "", True)
