"""Each command with file names in Chinese and Turkish, in the encodings of the locales of clusters."""

import json
import locale
import os
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote_to_bytes

import cores
import pytest
from helpers import PROGRAM, SETTINGS, arguments_dump, megatron_line, megatron_log

from logparse.inputs.discovery import printable
from logparse.inputs.run_names import run_names

CHINESE, TURKISH = "训练", "eğitim_ışık_İ"
# A locale, its encoding, and the word that names of files begin with.
CASES = [
    ("zh_CN.GBK", "gbk", CHINESE),
    ("zh_CN.GB18030", "gb18030", CHINESE + TURKISH),
    ("tr_TR.UTF-8", "utf-8", TURKISH + CHINESE),
    ("C", "utf-8", CHINESE + TURKISH),
    ("C.UTF-8", "utf-8", CHINESE + TURKISH),
]
# What each command is asked; WORD becomes the word of the case. Later ones read what earlier ones wrote.
COMMANDS = """
analyze WORD0.log -o WORD-a --tables parquet --tables csv --tables jsonl --no-charts
analyze WORD0.log --json
record --each WORD-logs --release WORD --history WORD-h
trend --history WORD-h --json
analyze --each WORD-logs -o WORD-each --chart-format json
export WORD0.log --to tensorboard -o WORD-e
export WORD0.log --to openmetrics -o WORD-e
export WORD0.log --to jsonl -o WORD-e
diagnose WORD0.log
record WORD0.log --release 2 --history WORD-h --label who=WORD
trend --history WORD-h -o WORD-t
history compact --history WORD-h
history list --history WORD-h
history export WORD.csv --history WORD-h
history export WORD.parquet --history WORD-h
gate --history WORD-h
compare WORD-logs/WORD1.log WORD-logs/WORD2.log -o WORD-c
compare release=WORD release=2 --history WORD-h
gate --baseline WORD-logs/WORD1.log --candidate WORD-logs/WORD2.log -o WORD-g
bisect WORD-logs WORD-more
formats suggest WORD0.log -o WORD.toml
formats test WORD.toml WORD0.log
estimate --from WORD0.log --tokens 2e12
formulas WORD0.log
analyze --each WORD-logs --shard 1/1 -o WORD-s --no-charts
merge WORD-s -o WORD-m
watch WORD0.log --once --fail-on nan --state WORD.state.json
config --config WORD.settings.toml
self-check
mcp --root WORD-logs --help
models
hardware
baselines
explain
""".strip().splitlines()


def test_each_command_is_tried():
    tried = {command.split()[0] for command in COMMANDS}
    from analysis.cli import COMMANDS as ALL

    assert tried == set(ALL)


def make_inputs(folder: Path, word: str) -> None:
    """Logs whose names are ``word`` and a number, and settings."""
    for part, numbers in ((".", [0]), (f"{word}-logs", [1, 2, 3]), (f"{word}-more", [4, 5, 6])):
        (folder / part).mkdir(exist_ok=True)
        for number in numbers:
            lines = (megatron_line(step, ms=1000 + number + step / 7) for step in range(1, 21))
            text = arguments_dump(SETTINGS) + "".join(f"{line}\n" for line in lines)
            (folder / part / f"{word}{number}.log").write_text(text)
    (folder / f"{word}.settings.toml").write_text('hw = "h100"\n')


def has_locale(name: str) -> bool:
    kept = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, name)
    except locale.Error:
        return False
    finally:
        locale.setlocale(locale.LC_CTYPE, kept)
    return True


class Place:
    """A folder in which commands run in one locale."""

    def __init__(self, folder: Path, name: str, encoding: str, word: str, names: str | None = None) -> None:
        if not has_locale(name):
            pytest.skip(f"this machine has no locale {name}")
        self.folder, self.encoding, self.word, self.names = folder, encoding, word, names or encoding
        self.env = {**os.environ, "LC_ALL": name, "LANGUAGE": "en", "LOGPARSE_DEBUG": "1"}
        make_inputs(folder, os.fsdecode(word.encode(self.names)))

    def run(self, command: str) -> tuple[int, str, str]:
        words = [word.replace("WORD", self.word).encode(self.names) for word in command.split()]
        with cores.on_all():
            done = subprocess.run(
                [PROGRAM, *words], cwd=self.folder, env=self.env, capture_output=True, check=False, timeout=100
            )
        return done.returncode, done.stdout.decode(self.encoding), done.stderr.decode(self.encoding)

    def file(self, name: str) -> Path:
        return Path(os.fsdecode(os.fsencode(self.folder) + b"/" + name.replace("WORD", self.word).encode(self.names)))


def check_links(place: Place) -> None:
    """The index leads to the page of each run, whose folder has the bytes of the run's name."""
    page = place.file("WORD-each/index.html")
    links = set(re.findall(r'href="(runs/[^"]+)"', page.read_text("utf-8")))
    assert len(links) == 3
    for link in links:
        assert os.path.isfile(os.fsencode(page.parent) + b"/" + unquote_to_bytes(link))  # noqa: PTH113


def check_commands(place: Place, commands: list[str]) -> None:
    for command in commands:
        code, stdout, stderr = place.run(command)
        assert (code, stdout + stderr != "") == (0, True), (command, stdout, stderr)
        assert not re.search(r"Traceback|\bdamaged\b|left out|can be deleted|损坏|可删除", stdout + stderr), command
        if command == "analyze WORD0.log --json":
            (run,) = json.loads(stdout)["runs"]
            assert (run["name"], run["sources"]) == (f"{place.word}0", [f"{place.word}0.log"])


def test_the_names_of_one_cluster(tmp_path):
    check_commands(Place(tmp_path, *CASES[0]), COMMANDS[:4])


# Half a minute each: one with every landing, all of them with `make explore`.
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.sweep if n else pytest.mark.slow, id=case[0])
        for n, case in enumerate(CASES)
    ],
)
def test_commands_take_and_write_the_names(tmp_path, case):
    place = Place(tmp_path, *case)
    check_commands(place, COMMANDS)
    check_links(place)
    for written in ("WORD-a/steps.jsonl", "WORD-t/report.html", "WORD-c/report.html", "WORD.csv", "WORD-g/junit.xml"):
        assert place.file(written).stat().st_size > 0


@pytest.mark.slow
@pytest.mark.parametrize("word", [b"\xff\x81-\xc5\x9f", "训练".encode(), "训练".encode("gbk")], ids=ascii)
@pytest.mark.parametrize("case", [CASES[0], CASES[3]], ids=lambda case: case[0])
def test_a_name_of_another_encoding_is_read_and_recorded(tmp_path, case, word):
    place = Place(tmp_path, *case)
    (tmp_path / os.fsdecode(word + b".log")).write_text(megatron_log(40))

    def run(command: str) -> bytes:
        words = [part.encode().replace(b"WORD", word) for part in command.split()]
        done = subprocess.run([PROGRAM, *words], cwd=tmp_path, env=place.env, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout or done.stderr

    run("analyze --each WORD.log -o out --chart-format json")
    run("formats suggest WORD.log -o draft.toml")
    # JSON is UTF-8 in every locale.
    assert json.loads(run("analyze WORD.log --json").decode())["runs"]
    run("record WORD.log --release 1 --history WORD-h")
    assert not re.search(b"damaged|can be deleted", run("trend --history WORD-h --lang en"))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(CASES[0], marks=pytest.mark.slow, id=CASES[0][0]),
        pytest.param(CASES[1], marks=pytest.mark.sweep, id=CASES[1][0]),
    ],
)
def test_names_in_utf8_are_those_of_the_disk_in_each_locale(tmp_path, case):
    place = Place(tmp_path, *case, names="utf-8")
    check_commands(place, COMMANDS)
    check_links(place)


def test_the_text_of_a_name_is_that_of_its_bytes():
    assert printable(os.fsdecode("训练.log".encode())) == "训练.log"
    assert printable(os.fsdecode(b"caf\xe9\n.log")) == "caf�\\n.log"
    assert printable("\ud800.log") == "\\ud800.log"
    assert run_names([(os.fsdecode("训练.log".encode()),)]) == ["训练"]
