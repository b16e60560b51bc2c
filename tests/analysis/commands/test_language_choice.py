"""Where the language of the output may be given, and which of several places counts."""

import json

import pytest
from helpers import run_logparse

from analysis.project.choose_language import choose_language

CHINESE = "用法："


@pytest.mark.parametrize(
    "words",
    [
        ("diagnose", "--help", "--lang", "zh"),
        ("diagnose", "--lang", "zh", "--help"),
        ("--lang", "zh", "diagnose", "--help"),
        ("--lang=zh", "--help"),
    ],
)
def test_the_option_is_read_wherever_it_is(tmp_path, words):
    done = run_logparse(*words, cwd=tmp_path)
    assert done.returncode == 0
    assert CHINESE in done.stdout


def test_refusals_are_in_the_language_too(tmp_path):
    assert "没有这个选项" in run_logparse("analyze", "--lang", "zh", "--nonsense", cwd=tmp_path).stderr
    done = run_logparse("--lang", "fr", "models", cwd=tmp_path)
    assert (done.returncode, "'fr' is not one of en, zh" in done.stderr) == (2, True)


def test_the_file_the_variable_and_the_option_in_that_order(tmp_path):
    (tmp_path / "logparse.toml").write_text('lang = "zh"\n')
    assert CHINESE in run_logparse("diagnose", "--help", cwd=tmp_path).stdout
    assert run_logparse("diagnose", "--help", cwd=tmp_path, LOGPARSE_LANG="en").stdout.startswith("Examples:")
    done = run_logparse("diagnose", "--help", "--lang", "zh", cwd=tmp_path, LOGPARSE_LANG="en")
    assert CHINESE in done.stdout
    found = json.loads(run_logparse("config", "--json", cwd=tmp_path).stdout)["settings"]
    assert [setting["value"] for setting in found if setting["name"] == "lang"] == ["zh"]


@pytest.mark.parametrize(("text", "variable"), [('lang = "fr"\n', ""), ("", "fr")])
def test_a_language_that_does_not_exist_is_refused(tmp_path, text, variable):
    (tmp_path / "logparse.toml").write_text(text)
    done = run_logparse("config", cwd=tmp_path, LOGPARSE_LANG=variable)
    assert done.returncode == 2
    assert "unknown language 'fr'" in done.stderr
    assert "use one of en, zh" in done.stderr


def test_a_project_file_that_cannot_be_read_gives_no_language(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logparse.toml").write_text("lang = [")
    assert choose_language(["analyze", "--", "--lang", "zh"], {}) is None
    assert choose_language(["--lang", "en", "x", "--lang=zh"], {}) == "zh"
    assert choose_language(["--lang"], {"LOGPARSE_LANG": "zh"}) == "zh"
