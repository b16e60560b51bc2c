"""Run the examples of docs/releases.md, gate.md and history.md, in this order and in one folder."""

import itertools

import pytest
import regex
from helpers import ROOT, run_shown

pytestmark = pytest.mark.usefixtures("analysed_once")

PAGES = ("releases.md", "gate.md", "history.md")
TEXT = "\n".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in PAGES)
BLOCKS = regex.findall(r"```(sh|text|python)([^\n]*)\n(.*?)```", TEXT, regex.DOTALL)
CHINESE = regex.findall(
    r"```(sh|text)\n(.*?)\n```", (ROOT / "docs/zh/releases.md").read_text(encoding="utf-8"), regex.DOTALL
)
SPEAKING = " --lang zh"


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The folder, and every command with its result, in the order of the pages; and the answers of the Chinese page."""
    folder = tmp_path_factory.mktemp("story")
    done, answers = [], {}
    for kind, said, text in BLOCKS:
        for command in text.splitlines() if kind == "sh" else ():
            done.append((command, regex.search(r"exit=(\d)", said), run_shown(command, folder)))
            for chinese, _ in shown_in_chinese():
                if command.startswith(chinese.removesuffix(SPEAKING)) and chinese not in answers:
                    answers[chinese] = run_shown(chinese, folder).stdout
    return folder, done, answers


def shown_in_chinese():
    """Each command of the Chinese page whose output it shows, with that output."""
    following = itertools.pairwise(CHINESE)
    return [(command, shown) for (_, command), (kind, shown) in following if kind == "text"]


def test_every_command_ends_as_the_page_says(told):
    assert len(told[1]) >= 26
    for command, code, done in told[1]:
        assert done.returncode == (int(code[1]) if code else 0), f"{command}: {done.stderr}"


def test_output_is_the_real_one(told):
    shown = [text.rstrip() for kind, _, text in BLOCKS if kind == "text"]
    outputs = ["\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines()) for _, _, done in told[1]]
    assert len(shown) == 3
    assert [text for text in shown if text not in outputs] == []


def test_the_chinese_page_has_the_same_commands_and_shows_what_they_print(told):
    commands = [line.removesuffix(SPEAKING) for kind, text in CHINESE if kind == "sh" for line in text.splitlines()]
    english = [command for command, _, _ in told[1]]
    assert [command for command in commands if not any(line.startswith(command) for line in english)] == []
    printed = {
        command: "\n".join(line.rstrip() for line in answer.rstrip().splitlines())
        for command, answer in told[2].items()
    }
    assert len(printed) == 2
    assert printed == dict(shown_in_chinese())


def test_the_last_bisect_names_the_cause_of_the_page(told):
    (*_, done) = [done for command, _, done in told[1] if command.startswith("logparse bisect")]
    cause, effect, *_ = done.stdout.splitlines()
    assert cause == "cause according to the logs: setting overlap_grad_reduce, True -> False"
    part, whole = regex.search(r"It explains (\S+ %) of the change of (\S+ %)", TEXT).groups()
    assert effect == f"explained change in step time, steady: {part} of {whole}"


def test_the_trend_of_the_rounds_is_as_the_page_says(told):
    (done,) = [done for command, _, done in told[1] if command.startswith("logparse trend --history out/rounds")]
    assert (
        regex.search(r"^-([\d.]+ %) at run", done.stdout, regex.MULTILINE)[1]
        == regex.search(r"The round v5.1 is ([\d.]+ %) faster", TEXT)[1]
    )


def test_the_gate_names_the_setting(told):
    (done,) = [done for _, code, done in told[1] if code]
    assert done.returncode == 1
    assert regex.search(r"setting overlap_grad_reduce +True +False", done.stdout)


def test_python_example(told, monkeypatch, capsys):
    monkeypatch.chdir(told[0])
    exec(next(text for kind, _, text in BLOCKS if kind == "python"), {})
    assert "CANN 8.0.RC2" in capsys.readouterr().out
