"""``logparse watch``: once and on and on, what it prints, remembers and sends, and how it ends."""

import fcntl
import json
import os
import struct
import subprocess
import sys
import termios
import time
from datetime import datetime, timedelta
from pathlib import Path

import jsonschema
import pytest
import regex
from helpers import PROGRAM, ROOT, SETTINGS, arguments_dump, megatron_line, run_logparse, run_process
from moments import HOW

from analysis.commands import watch as command
from analysis.commands._watch_screen import drawn
from analysis.present.views.watch import watch_parts
from analysis.watch.alarm_limits import DEFAULTS
from analysis.watch.alarms import Alarm
from analysis.watch.moment import Moment
from analysis.watch.refresh import Follower
from analysis.watch.snapshot import WatchedRun
from analysis.watch.watcher import Watcher

HEAD = arguments_dump(SETTINGS)
DONE = "[after training is done] datetime: 2026-01-05 10:00:00\n"
SCHEMA = jsonschema.Draft202012Validator(json.loads((ROOT / "docs/schema/watch.json").read_text(encoding="utf-8")))


def log(folder: Path, name: str = "run.log", steps: int = 60, age: float = 0.0, end: str = "", **pairs: str) -> Path:
    """A log whose last step was made ``age`` seconds ago; its last line has ``pairs``."""
    text, last = HEAD, datetime.now() - timedelta(seconds=age)
    for step in range(1, steps + 1):
        stamp = f"{last - timedelta(seconds=5 * (steps - step)):%Y-%m-%d %H:%M:%S}"
        text += megatron_line(step, 5000 + step % 3, stamp, pairs if step == steps else {}) + "\n"
    path = folder / name
    path.write_text(text + end)
    os.utime(path, (time.time() - age, time.time() - age))
    return path


def watch(folder: Path, *arguments: str, code: int = 0) -> str:
    done = run_logparse("watch", *arguments, cwd=folder)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout


def test_once_says_how_a_run_is(tmp_path):
    log(tmp_path)
    assert ": running, step 60 of 500, 5.00 s/step, loss 2.35" in watch(tmp_path, "run.log", "--once")
    log(tmp_path, age=600)
    text = watch(tmp_path, "run.log", "--once", code=1)
    assert "run: ALARM hang: no step line for 10 min 0 s after step 60 (typical: 5 s), line 82" in text
    assert "stopped, step 60 of 500" in text
    # Only what --fail-on names fails.
    watch(tmp_path, "run.log", "--once", "--fail-on", "nan", code=0)
    assert "waiting for none.log" in watch(tmp_path, "none.log", "--once", code=2)
    log(tmp_path, end=DONE)
    assert "completed" in watch(tmp_path, "run.log", "--once")


def test_limits_are_those_of_the_project(tmp_path):
    log(tmp_path, age=600)
    (tmp_path / "logparse.toml").write_text("[watch]\nhang_steps = 1000\n")
    watch(tmp_path, "run.log", "--once")
    shown = json.loads(run_logparse("config", "--json", cwd=tmp_path).stdout)["settings"]
    limits = {one["name"]: (one["value"], one["from"]["kind"], one["from"]["line"]) for one in shown if one["origin"]}
    assert limits["watch.hang_steps"] == (1000.0, "config", 2)
    assert limits["watch.slow_share"] == (0.08, "assumed", None)
    (tmp_path / "logparse.toml").write_text("[watch]\nhang = 1\n")
    assert "keys of [watch]" in run_logparse("watch", "run.log", cwd=tmp_path).stderr


def test_a_state_file_keeps_an_alarm_from_being_sent_twice(tmp_path):
    log(tmp_path, **{"lm loss": "nan"})
    code = "import sys; open('sent', 'a').write(sys.stdin.read())"
    (tmp_path / "send.py").write_text(code)
    again = ("run.log", "--once", "--state", "state.json", "--on-alarm", f"{sys.executable} send.py")
    for _ in range(2):
        watch(tmp_path, *again, code=1)
    (sent,) = map(json.loads, (tmp_path / "sent").read_text().splitlines())
    assert (sent["kind"], sent["state"], sent["code"], sent["level"]) == ("alarm", "begins", "nan", "critical")
    assert sent["origin"]["line"] == 82
    (tmp_path / "state.json").write_text("{}")
    assert "is no state file" in run_logparse("watch", *again, cwd=tmp_path).stderr
    before = (tmp_path / "run.log").read_bytes()
    assert "is no state file" in run_logparse("watch", "run.log", "--state", "run.log", cwd=tmp_path).stderr
    assert (tmp_path / "run.log").read_bytes() == before


def test_json_lines_are_valid_and_have_the_metrics_of_analyze(tmp_path):
    log(tmp_path, **{"lm loss": "nan"})
    arguments = ("run.log", "--fail-on", "nan", "--jsonl")
    lines = [json.loads(line) for line in watch(tmp_path, *arguments, code=1).splitlines()]
    assert [line["kind"] for line in lines] == ["alarm", "state"]
    assert [error.message for line in lines for error in SCHEMA.iter_errors(line)] == []
    (run,) = json.loads(run_logparse("analyze", "run.log", "--json", cwd=tmp_path).stdout)["runs"]
    assert lines[1]["metrics"] == run["metrics"]
    assert lines[0]["text"] == lines[1]["alarms"][0]["text"]


def test_several_runs_are_a_line_each(tmp_path):
    for name in ("a", "b"):
        log(tmp_path, f"{name}.log", **({"lm loss": "nan"} if name == "b" else {}))
    lines = watch(tmp_path, "a.log", "b.log", "--each", "--once", code=1).splitlines()
    assert [line.split(" ", 2)[2].partition(",")[0] for line in lines[1:]] == ["a: running", "b: running"]


def test_runs_that_write_to_one_file_are_watched_each_by_itself(tmp_path):
    """One of them hangs, which the stamps of the other show."""
    first = log(tmp_path, steps=160).read_text().splitlines()[len(HEAD.splitlines()) :]
    second = [
        regex.sub(r"(?<=iteration) +(\d+)", lambda step: f" {200 + int(step[1]):8d}", line) for line in first[:60]
    ]
    lines = [line for pair in zip(first, second, strict=False) for line in pair] + first[60:]
    (tmp_path / "run.log").write_text("\n".join([HEAD, *lines, ""]))
    text = watch(tmp_path, "run.log", "--split", "--once", code=1)
    assert "run#2: ALARM hang: no step line for 8 min 20 s" in text
    assert "run#1: running, step 160" in text
    assert "running, step" in watch(tmp_path, "run.log", "--once")
    planned = [HEAD, *(line.replace("/     500", f"/     {260 if line in second else 160}") for line in lines), ""]
    (tmp_path / "run.log").write_text("\n".join(planned))
    assert "completed, step 260 of 260" in watch(tmp_path, "run.log", "--split", "--until", "done")


def test_targets_are_an_alarm_and_the_exit_code_of_the_end(tmp_path):
    log(tmp_path)
    text = watch(
        tmp_path,
        "run.log",
        "--once",
        "--require",
        "tokens_per_second_per_device>=1e9",
        "--require",
        "completed",
        code=1,
    )
    assert "ALARM target missed: required tokens_per_second_per_device>=1e9, found 3" in text
    log(tmp_path, end=DONE)
    watch(tmp_path, "run.log", "--until", "done", "--require", "steps>=61", code=1)
    watch(tmp_path, "run.log", "--until", "done", "--require", "mfu>=0.1", code=4)


def test_a_log_that_strict_refuses_is_an_alarm_and_ends_the_watch(tmp_path):
    path = log(tmp_path)
    path.write_text(path.read_text().replace("elapsed", "\nelapsed", 1))
    refused = run_logparse("watch", "run.log", "--until", "done", "--strict", cwd=tmp_path)
    assert refused.returncode == 2
    assert "ALARM refused: --strict does not allow" in refused.stdout
    assert "refused, truncated step lines: 1, alarm: refused" in refused.stdout


def test_pseudonyms_are_the_same_at_each_start_with_a_state_file(tmp_path):
    log(tmp_path, "lab7.log", **{"lm loss": "nan"})
    again = ("lab7.log", "--once", "--jsonl", "--anonymise", "--state", "state.json")
    first, second = (watch(tmp_path, *again, code=1) for _ in range(2))
    assert "lab7" not in first + second + (tmp_path / "state.json").read_text()
    kinds = [[json.loads(line)["kind"] for line in text.splitlines()] for text in (first, second)]
    assert kinds == [["alarm", "state"], ["state"]]


def test_it_ends_when_a_run_is_done_or_has_the_alarm(tmp_path):
    log(tmp_path, end=DONE)
    assert "completed" in watch(tmp_path, "run.log", "--until", "done")
    log(tmp_path, **{"lm loss": "nan"})
    watch(tmp_path, "run.log", "--fail-on", "hang,nan", code=1)
    crash = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nMemoryError\n'
    log(tmp_path, end=crash)
    assert "; try: " in watch(tmp_path, "run.log", "--until", "done", code=1)


def test_a_heartbeat_stops_where_nothing_can_be_read(tmp_path):
    watch(tmp_path, "none.log", "--once", "--heartbeat", "alive", code=2)
    assert not (tmp_path / "alive").exists()
    log(tmp_path)
    watch(tmp_path, "run.log", "--once", "--heartbeat", "alive")
    assert (tmp_path / "alive").exists()


def test_a_job_of_slurm_is_found_by_its_number(tmp_path, monkeypatch):
    path = log(tmp_path, "slurm-77.out")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "without scontrol no job of Slurm" in run_logparse("watch", "77", "--once", cwd=tmp_path).stderr
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f"#!{sys.executable}\nprint('JobId=77 JobName=x\\n   StdErr={path}\\n   StdOut={path}')\n")
    scontrol.chmod(0o755)
    assert "slurm-77: running" in watch(tmp_path, "77", "--once")
    log(tmp_path, "78", steps=30)
    assert "step 30 of 500" in watch(tmp_path, "78", "--once")
    scontrol.write_text(
        f"#!{sys.executable}\nimport sys\nsys.exit('slurm_load_jobs error: Invalid job id specified')\n"
    )
    assert "Invalid job id specified" in run_logparse("watch", "79", "--once", cwd=tmp_path).stderr


def test_standard_input_is_watched_to_its_end(tmp_path):
    text = log(tmp_path).read_bytes()
    done = run_process("watch", "-", "--every", "0.1", cwd=tmp_path, stdin=text)
    assert (done.returncode, "step 60 of 500" in done.stdout) == (0, True)


class Hours:
    """A clock that each wait puts forward by 20 minutes, and where summaries go; the user ends it after 3 hours."""

    def __init__(self) -> None:
        self.now, self.lines, self.sent = 0.0, [], []

    def time(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        assert seconds >= 2
        self.now += 1200
        return self.now <= 3 * 3600

    def show(self, *_: object) -> None:
        """Nothing is looked at here."""

    def summary(self, text: str) -> None:
        self.lines.append(text)

    def end(self, *_: object) -> None:
        """Nothing is looked at here."""


def test_each_hour_has_a_summary_and_each_minute_a_beat(tmp_path, monkeypatch):
    path, hours = log(tmp_path), Hours()
    beats = []
    monkeypatch.setattr(command, "time", hours)
    monkeypatch.setattr(command, "post", lambda _, message, *__: hours.sent.append(message))
    monkeypatch.setattr(command, "beat", lambda *_: beats.append(hours.now))
    watcher = Watcher(lambda: [("run", [str(path)])], lambda _, logs: Follower(logs, HOW), DEFAULTS)
    senders = command.Senders((), "http://127.0.0.1:9", None, "alive", print)
    assert command.Loop(watcher, hours, senders, None, 2.0, None, until_done=False).run() == 0
    assert len(hours.lines) == 3
    assert "summary of the last hour: 1 " in hours.lines[0]
    assert [message["kind"] for message in hours.sent if message["kind"] == "summary"] == ["summary"] * 3
    assert beats == [1200 * n for n in range(10)]


def on_terminal(folder: Path, *arguments: str, keys: bytes) -> str:
    """What ``logparse watch`` draws on a terminal of 80 x 24, where the user presses ``keys`` once it has drawn."""
    master, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    drawn = b""
    with subprocess.Popen(
        [PROGRAM, "watch", *arguments],
        cwd=folder,
        env=environment,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        preexec_fn=lambda: os.login_tty(terminal),
    ) as process:
        os.close(terminal)
        try:
            while b"? help" not in drawn:
                drawn += os.read(master, 65536)
            os.write(master, keys)
            while piece := os.read(master, 65536):
                drawn += piece
        except OSError:
            # The other end is closed.
            pass
        finally:
            process.kill()
            os.close(master)
    assert process.wait() in (0, 130), drawn
    return drawn.decode()


@pytest.mark.parametrize(
    ("keys", "shown"), [(b"p?q", ("reading the logs", "PAUSED", "q: end, the result stays")), (b"\x03", ())]
)
def test_the_screen_is_left_with_the_answer_of_analyze(tmp_path, keys, shown):
    log(tmp_path)
    drawn = on_terminal(tmp_path, "run.log", "--heartbeat", "no/alive", keys=keys)
    screen, _, receipt = drawn.rpartition("\x1b[?1049l")
    assert all(text in screen for text in ("status", *shown))
    answer = run_logparse("analyze", "run.log", cwd=tmp_path, COLUMNS="80").stdout
    plain = regex.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", receipt)
    assert [line.rstrip() for line in plain.splitlines()] == [line.rstrip() for line in answer.splitlines()]


def test_a_terminal_of_24_lines_shows_the_worst_alarms_of_many_runs():
    fields = {"waited": 900.0, "typical": 5.0, "step": 40}
    names = [f"a-long-name-of-an-experiment-seed{n}" for n in range(31)]
    runs = [
        WatchedRun(name, Moment(0.0, (), ()), None, (Alarm("hang", "critical", name, fields, None, 0.0),) * (n > 25))
        for n, name in enumerate(names)
    ]
    lines = [line.rstrip() for line in drawn(watch_parts(runs, room=23), 80, no_color=True)][:23]
    assert "- 22 more runs" in lines
    assert lines[2].startswith("…n-experiment-seed26 waiting")
    assert lines[lines.index("Alarms") + 1].startswith("! …n-experiment-seed26: ")
    assert len([line for line in lines if line.startswith("! ")]) > 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--fail-on", "hangs"), "hang"),
        (("--on-alarm", "'"), "--on-alarm is no command"),
        (("--webhook", "ftp://x"), "not an http or https address"),
        (("--heartbeat", "ftp://x"), "--heartbeat is no"),
    ],
)
def test_wrong_options_are_refused(tmp_path, arguments, message):
    done = run_logparse("watch", "run.log", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_an_address_that_is_none_is_refused_in_words_that_are_not_masked(tmp_path):
    done = run_logparse("watch", "run.log", "--once", "--webhook", "ftp://x", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("logparse: `--webhook` is not an http or https address\n  try: ")
