"""What the README shows is what happens: every command runs, every shown output is the real one."""

import pytest
import regex
from helpers import ROOT, run_shown

pytestmark = pytest.mark.usefixtures("analysed_once")

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = regex.findall(r"```(\w+)\n(.*?)```", README, regex.DOTALL)
COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
SHOWN = [(BLOCKS[i][1].strip(), BLOCKS[i + 1][1]) for i in range(len(BLOCKS) - 1) if BLOCKS[i + 1][0] == "text"]


def test_the_first_two_commands_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    indented = regex.findall(r"^    (make \w+)", README, regex.MULTILINE)
    assert indented[:2] == ["make demo", "make test"]
    assert all(regex.search(rf"^{command.split()[1]}:", makefile, regex.MULTILINE) for command in indented)


def test_it_is_short():
    assert len(README.splitlines()) <= 130


def test_there_are_commands():
    assert len(COMMANDS) >= 4
    assert SHOWN


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs(command, tmp_path):
    done = run_shown(command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize(("command", "shown"), SHOWN)
def test_output_is_the_real_one(command, shown, tmp_path):
    printed = "\n".join(line.rstrip() for line in run_shown(command, tmp_path).stdout.rstrip().splitlines())
    assert printed == shown.rstrip()


@pytest.mark.parametrize("text", [text for kind, text in BLOCKS if kind == "python"])
def test_python_example(text, tmp_path, monkeypatch, capsys):
    writing = next(command for command in COMMANDS if "-o out/readme" in command)
    assert run_shown(writing, tmp_path).returncode == 0
    monkeypatch.chdir(tmp_path)
    exec(text, {})
    assert float(capsys.readouterr().out) > 0


def test_pictures_are_there():
    shown = regex.findall(r"!\[[^]]+\]\(([^)]+)\)", README)
    assert shown
    assert all((ROOT / path).is_file() for path in shown)


def test_files_the_readme_links_to_exist():
    links = regex.findall(r"\]\(([\w./-]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
