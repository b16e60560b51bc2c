"""Completion in the shells: what they are given, what they get back, and where it is installed."""

import shutil
import subprocess

import pytest
from helpers import PROGRAM, run_logparse

from analysis.commands._completion import SHELLS, with_shell
from analysis.hardware.devices import find_device
from analysis.model.catalogue import find_model


def completed(tmp_path, line):
    """What bash is told for ``line``, of which the last word is being typed."""
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_LOGPARSE_COMPLETE": "complete_bash"}
    done = run_logparse(cwd=tmp_path, **asked)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("logparse an", {"analyze"}),
        ("logparse ", {"analyze", "config", "history"}),
        ("logparse history ex", {"export"}),
        ("logparse analyze --hw 910b", {"910b", "910b1", "910b2", "910b3", "910b4"}),
        ("logparse analyze run.log --hw H1", {"H100", "H100-sxm"}),
        ("logparse analyze run.log --model qwen2.5-7", {"qwen2.5-7b", "qwen2.5-72b"}),
        ("logparse estimate --model llama2-7", {"llama2-7b", "llama2-70b"}),
        ("logparse analyze --formula me", {"megatron"}),
        ("logparse estimate --formula as", {"ascendspeed"}),
        ("logparse models mix", {"mixtral-8x7b"}),
        ("logparse hardware gb", {"gb200"}),
        ("logparse analyze --dtype bf", {"bf16"}),
        ("logparse analyze --recompute ", {"none", "selective", "full"}),
        ("logparse analyze --format mindf", {"mindformers", "mindformers-pynative"}),
        ("logparse analyze --baseline modellink-llama2-7b-1", {"modellink-llama2-7b-1x8"}),
        ("logparse analyze --require goo", {"goodput"}),
        ("logparse trend --metric tok", {"tokens_per_second_per_device"}),
        ("logparse compare --lang ", {"en", "zh"}),
        ("logparse analyze --tensor", {"--tensor-model-parallel-size"}),
    ],
)
def test_what_is_offered(tmp_path, line, expected):
    offered = completed(tmp_path, line)
    assert expected <= set(offered)
    assert all(word.startswith(line.split(" ")[-1]) for word in offered)


def test_files_are_left_to_the_shell(tmp_path):
    assert completed(tmp_path, "logparse analyze run") == []


def test_every_name_that_is_offered_is_known(tmp_path):
    names = completed(tmp_path, "logparse analyze --hw ")
    assert len(names) > 100
    assert all(find_device(name) for name in names)
    assert all(find_model(name) for name in completed(tmp_path, "logparse analyze --model "))


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_each_shell_asks_this_program(tmp_path, shell):
    done = run_logparse("--show-completion", shell, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"_LOGPARSE_COMPLETE=complete_{shell}" in done.stdout
    assert "logparse" in done.stdout


@pytest.mark.parametrize(
    ("shell", "script", "start"),
    [
        ("bash", ".bash_completions/logparse.sh", ".bashrc"),
        ("zsh", ".zfunc/_logparse", ".zshrc"),
        ("fish", ".config/fish/completions/logparse.fish", None),
    ],
)
def test_it_is_installed_where_the_shell_looks(tmp_path, shell, script, start):
    done = run_logparse("--install-completion", shell, cwd=tmp_path, HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert f"wrote completion for {shell} to {tmp_path / script}" in done.stdout
    assert "_LOGPARSE_COMPLETE" in (tmp_path / script).read_text()
    assert start is None or (tmp_path / start).exists()


def test_without_a_name_it_is_the_shell_in_use(tmp_path):
    """In a test no shell may stand above; the variable SHELL tells then."""
    done = run_logparse("--show-completion", cwd=tmp_path, SHELL="/usr/bin/bash")
    assert (done.returncode, "complete_" in done.stdout) == (0, True)


def test_another_shell_is_refused(tmp_path):
    done = run_logparse("--show-completion=tcsh", cwd=tmp_path)
    assert (done.returncode, "'tcsh' is not one of bash, zsh, fish" in done.stderr) == (2, True)


def test_the_value_may_be_left_out():
    assert with_shell(["--show-completion"]) == ["--show-completion="]
    assert with_shell(["--show-completion", "zsh"]) == ["--show-completion", "zsh"]
    assert with_shell(["--show-completion", "analyze"]) == ["--show-completion=", "analyze"]
    assert with_shell(["analyze", "x"]) == ["analyze", "x"]


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_bash_itself_completes(tmp_path):
    script = """
    eval "$("$1" --show-completion bash)"
    COMP_WORDS=(logparse analyze --hw 910b3); COMP_CWORD=3
    _logparse_completion "$1"
    echo "${COMPREPLY[*]}"
    complete -p logparse
    """
    told = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert told == ["910b3", "complete -o default -F _logparse_completion logparse"]
