"""What docs/watch.md shows is what happens: its command, its table of alarms, its limits and its screen."""

import math
import time
from datetime import datetime, timedelta

import pytest
import regex
from helpers import ROOT, SETTINGS, arguments_dump, megatron_line, run_logparse, run_shown
from moments import HOW, Watching

from analysis.commands._watch_screen import drawn
from analysis.present.views.watch import watch_parts
from analysis.watch.alarm_limits import DEFAULTS
from analysis.watch.alarms import KINDS
from analysis.watch.snapshot import WatchedRun, snapshot_of
from logparse.language import speaking
from logparse.light_dataclass import asdict, replace

PAGE = ROOT / "docs/watch.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = {row[0]: row[1:] for row in regex.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) ?\|$", TEXT, regex.MULTILINE)}
BEGIN = datetime(2026, 1, 5, 8)
SAVE = "saving checkpoint at iteration {0:7d} to ckpt in torch_dist format\n"
SAVE += "  successfully saved checkpoint from iteration {0:7d} to ckpt [ t 1/2, p 1/1 ]\n"


@pytest.mark.usefixtures("analysed_once")
def test_the_command_runs(tmp_path):
    (command,) = regex.findall(r"```sh\n(.*?)\n```", TEXT)
    done = run_shown(command, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "completed, step 60 of 5,000" in done.stdout


def test_the_table_has_every_alarm_and_every_limit():
    assert {code: kind.level for code, kind in KINDS.items()} == {code: row[0] for code, row in ROWS.items()}
    shown = {name: float(value) for name, value in regex.findall(r"`(\w+)` (?:= )?\(?([\d.]+)\)?", TEXT)}
    assert {name: shown.get(name) for name in asdict(DEFAULTS)} == asdict(DEFAULTS)


def test_the_project_file_is_read(tmp_path):
    (text,) = regex.findall(r"```toml\n(.*?)```", TEXT, regex.DOTALL)
    (tmp_path / "logparse.toml").write_text(text)
    shown = run_logparse("config", cwd=tmp_path).stdout
    assert regex.search(r"watch\.hang_steps +5", shown)


def test_every_option_that_is_named_exists():
    option = r"(?<![\w-])--[a-z][a-z-]+"
    of_analyze = set(regex.findall(option, TEXT.partition("\nOptions that write")[2].partition("\n## Alarms")[0]))
    known, others = (
        set(regex.findall(option, run_logparse(name, "--help-all", cwd=ROOT).stdout)) for name in ("watch", "analyze")
    )
    assert set(regex.findall(option, TEXT)) - of_analyze - {"--replace"} <= known
    assert of_analyze <= others - known


def log_of_example() -> str:
    """A run of 8,000 steps that saves every 500, up to step 1,240."""
    text = arguments_dump(SETTINGS | {"train_iters": 8000})
    for step in range(10, 1250, 10):
        seconds = 5 * step + 40 * (step // 500)
        loss = 2 + 8 / math.sqrt(1 + step / 40) + 0.03 * math.sin(7 * step)
        stamp = f"{BEGIN + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"
        line = megatron_line(step, 5000 + 20 * math.sin(step), stamp, {"lm loss": f"{loss:.6E}"})
        text += line.replace("/     500", "/    8000") + "\n"
        text += SAVE.format(step) if step % 500 == 0 else ""
    return text


def screen_of_example(folder, width: int) -> list[str]:
    how = replace(HOW, hw="Ascend910B3", published=())
    watching, text = Watching(folder, how=how), log_of_example()
    at = datetime(2026, 1, 5, 9, 44, 42).timestamp()
    watching.look(at - 50, run_log=text[: text[:-1].rindex("\n") + 1])
    watching.look(at, run_log=text)
    watching.look(at + 170)
    assert watching.codes == ["hang"]
    moment = replace(watching.moment, at=at + 170)
    shown = snapshot_of(moment, watching.state, DEFAULTS)
    run = WatchedRun("run", moment, shown, watching.state.alarms)
    return [line.rstrip() for line in drawn(watch_parts([run]), width, no_color=True)]


def test_the_screen_is_the_real_one(tmp_path, monkeypatch, update_goldens):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    try:
        made = "\n".join(screen_of_example(tmp_path, 80))
        with speaking("zh"):
            chinese = screen_of_example(tmp_path, 80)
    finally:
        monkeypatch.undo()
        time.tzset()
    if update_goldens:
        PAGE.write_text(regex.sub(r"RECORDING|(?<=```text\n).*?(?=\n```)", lambda _: made, TEXT, 1, regex.DOTALL))
    assert f"```text\n{made}\n```" in PAGE.read_text(encoding="utf-8")
    # 80 x 24, with the line of keys.
    assert max(map(len, made.splitlines())) <= 80
    assert len(made.splitlines()) < 24
    assert any("告警" in line for line in chinese)
    assert any("卡住" in line for line in chinese)
