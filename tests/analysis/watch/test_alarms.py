"""Each alarm begins where its condition is, with figures and a line, and not before; what is in its place is none."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from helpers import SETTINGS, arguments_dump, megatron_line
from moments import HOW, Watching, moment_of

from analysis.present.views.watch import alarm_text
from analysis.watch.alarm_limits import DEFAULTS, read_limits
from analysis.watch.alarm_state import KeptStates, RunState, advance, memory_of_document, state_document
from analysis.watch.alarms import KINDS
from analysis.watch.moment import FileGrowth, Moment
from analysis.watch.snapshot import snapshot_of
from analysis.watch.watcher import Watcher
from logparse.errors import UsageError
from logparse.failures.ending import Ending

BEGIN = datetime(2026, 1, 5, 8)
HEAD = arguments_dump(SETTINGS)
SECONDS = 5.0
SAVE = "saving checkpoint at iteration {:7d} to ckpt in torch_dist format\n"
SAVED = "  successfully saved checkpoint from iteration {:7d} to ckpt [ t 1/2, p 1/1 ]\n"
LOADED = "  successfully loaded checkpoint from ckpt [ t 1/2, p 1/1 ] at iteration {}\n"
CRASH = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nMemoryError\n'
FULL = "OSError: [Errno 28] No space left on device"
# Losses that fall and vary, without chance.
LOSSES = [2 + 8 / math.sqrt(1 + step / 40) + 0.03 * math.sin(7 * step) for step in range(500)]


def lines(
    first: int,
    last: int,
    ms: Callable[[int], float] = lambda step: 5000 + 20 * math.sin(step),
    pairs: Callable[[int], Mapping[str, str]] = lambda _: {},
    saves: int = 0,
    begin: float = 0.0,
) -> str:
    """Step lines with stamps, and the saves after every so many steps."""
    text = ""
    for step in range(first, last + 1):
        stamp = f"{BEGIN + timedelta(seconds=begin + SECONDS * step):%Y-%m-%d %H:%M:%S}"
        text += megatron_line(step, ms(step), stamp, {"lm loss": f"{LOSSES[step]:.6E}", **pairs(step)}) + "\n"
        if saves and step % saves == 0:
            text += SAVE.format(step) + SAVED.format(step)
    return text


def at(step: float) -> float:
    """The watcher's clock when a step is done."""
    return 1000 + SECONDS * step


class OfMoments:
    """Follows what has ``moments``, one after the other."""

    def __init__(self, moments: list[Moment]) -> None:
        self.refresh = lambda _: moments.pop(0)
        self.seconds_to_wait = lambda every: every


def watching(tmp_path, text: str, step: int, **more) -> Watching:
    """A watcher that has seen a run up to ``step``, and one line come before."""
    watch = Watching(tmp_path, **more)
    watch.look(at(step - 1), run_log=text[: text[:-1].rindex("\n") + 1])
    watch.look(at(step), run_log=text)
    return watch


def test_a_hang_begins_after_three_typical_steps_and_ends_with_the_next_line(tmp_path):
    watch = watching(tmp_path, HEAD + lines(1, 40), 40)
    assert watch.look(at(43)) == ()
    (news,) = watch.look(at(43) + 1)
    assert (news.kind, news.alarm.code, news.alarm.level) == ("begins", "hang", "critical")
    assert news.alarm.origin.line == HEAD.count("\n") + 40
    assert alarm_text(news.alarm) == "no step line for 16 s after step 40 (typical: 5 s), line 62"
    assert watch.look(at(45)) == ()
    assert watch.look(at(46), run_log=HEAD + lines(1, 41)) == ()
    assert watch.codes == ["hang"]
    (over,) = watch.look(at(46) + 90, run_log=HEAD + lines(1, 59))
    assert (over.kind, over.alarm.code, watch.codes) == ("ends", "hang", [])


def test_an_alarm_whose_end_was_sent_is_sent_again_and_its_next_end_waits():
    state, failed, limits = RunState(), Ending("failed"), replace(DEFAULTS, startup_minutes=1e6)

    def sent(minutes: float, ending: Ending | None, size: int = 9, files: tuple[str, ...] = ("run.log",)) -> list[str]:
        nonlocal state
        grown = tuple(FileGrowth(name, size, 1, 60 * minutes) for name in files)
        moment = Moment(60 * minutes, (), grown, ending=ending)
        state, news = advance("run", state, moment, limits)
        return [one.kind for one in news]

    assert [sent(0, failed), sent(2, None), sent(4, failed)] == [["begins"], ["ends"], ["begins"]]
    # It comes and goes: its beginning was sent, so that only the screen shows it.
    for minutes, ending in ((6, None), (8, failed), (20, None), (30, failed), (33.9, failed)):
        assert (sent(minutes, ending), len(state.alarms)) == ([], 1 if ending else 0)
    # It is still on when the cooldown of its last message ends.
    assert [sent(34, failed), state.alarms[0].since, sent(40, failed)] == [["begins"], 60 * 30, []]
    assert [sent(69.9, None), sent(70, None), state.open] == [[], ["ends"], ()]
    # What cannot be read does not show that an alarm is over: the file is empty, or gone.
    assert [sent(99, failed), sent(101, None, size=0), sent(103, None, files=())] == [["begins"], [], []]
    assert [len(state.alarms), sent(105, None)] == [1, ["ends"]]


@pytest.mark.parametrize(("ahead", "late", "codes"), [(0, 3600, ["hang"]), (5 * 3600, 1, [])])
def test_time_before_the_first_look_counts_by_one_clock(tmp_path, ahead, late, codes):
    def save(step: int, seconds: float) -> str:
        return f"{BEGIN + timedelta(seconds=SECONDS * step + ahead + seconds):%Y-%m-%d %H:%M:%S} " + SAVED.format(step)

    watch = Watching(tmp_path)
    watch.look(at(0), run_log=HEAD + lines(1, 20) + save(20, 1) + lines(21, 40) + save(40, late))
    assert watch.codes == codes


def test_a_bar_that_moves_after_the_last_step_line_is_no_hang(tmp_path):
    watch = Watching(tmp_path)
    for step, done in [(40, 3), (48, 9)]:
        watch.look(at(step), run_log=HEAD + lines(1, 40) + f"\r {done}%|█ | {done}/63 [00:0{done}<01:00,  1.00s/it]")
    watch.look(at(57))
    assert watch.codes == []
    watch.look(at(57) + 1)
    assert watch.codes == ["hang"]


def test_a_watcher_that_is_started_again_neither_repeats_nor_forgets(tmp_path):
    watch = watching(tmp_path, HEAD + lines(1, 40), 40)
    watch.look(at(44))
    again = Watching(tmp_path)
    kept = KeptStates({"run": watch.state}, b"key")
    again_kept = memory_of_document(json.loads(json.dumps(state_document(kept))))
    assert again_kept == kept
    again.state = again_kept.states["run"]
    assert again.state == watch.state
    assert again.look(at(50), run_log=HEAD + lines(1, 40)) == ()
    assert again.codes == ["hang"]
    with pytest.raises(ValueError, match="version"):
        memory_of_document({})


def test_nothing_hangs_while_a_process_starts_or_saves(tmp_path):
    first = Watching(tmp_path)
    assert first.look(0.0, run_log=HEAD) == ()
    assert first.look(1799.0) == ()
    assert [one.alarm.code for one in first.look(1801.0)] == ["startup"]
    # The first save may take a quarter of an hour.
    saving = HEAD + lines(1, 40) + SAVE.format(40)
    watch = watching(tmp_path, saving, 40)
    assert watch.look(at(48) + 899) == ()
    # Three times as long as after a first new line, which a buffer may hold back.
    assert [one.alarm.code for one in watch.look(at(48) + 901)] == ["hang"]
    # A process that was started again has its half hour too.
    again = watching(tmp_path, HEAD + lines(1, 40) + HEAD + LOADED.format(40), 40)
    assert again.look(at(39) + 1799) == ()
    assert [one.alarm.code for one in again.look(at(39) + 1801)] == ["startup"]


@pytest.mark.parametrize(("planned", "codes"), [(499, []), (63, ["hang"])])
def test_a_run_that_is_done_does_not_hang(tmp_path, planned, codes):
    # A step after the last planned one shows that the plan is not that of the run.
    watch = watching(tmp_path, (HEAD + lines(480, 499)).replace("/     500", f"/{planned:8d}"), 499)
    assert [one.alarm.code for one in watch.look(at(499) + 1e6)] == codes


def test_a_run_is_done_once_its_last_save_is(tmp_path):
    def status(seconds: float) -> str:
        return snapshot_of(replace(watch.moment, at=at(499) + seconds), watch.state, DEFAULTS).status

    # Whether this trainer prints the end of a save is not known before the first one.
    text = (HEAD + lines(490, 499)).replace("/     500", "/     499") + SAVE.format(499)
    watch = Watching(tmp_path)
    watch.look(at(499), run_log=text)
    assert [status(5), status(900), status(901)] == ["running", "running", "completed"]
    (news,) = watch.look(at(501), run_log=text + CRASH.replace("MemoryError", FULL))
    assert alarm_text(news.alarm).startswith("last save in doubt: disk after the last step, line 36; try: ")
    assert (status(10), watch.look(at(1000))) == ("failed", ())
    text = text.replace(SAVE.format(499), SAVE.format(495) + SAVED.format(495) + SAVE.format(499))
    watch = Watching(tmp_path)
    watch.look(at(499), run_log=text)
    assert [one.alarm.code for one in watch.look(at(1000))] == ["hang"]
    for end in (SAVED.format(499), "[after training is done] datetime: 2026-01-05 10:00:00\n"):
        watch.look(at(1001), run_log=text + end)
        assert status(9000) == "completed"


@pytest.mark.parametrize(("share", "within"), [(0.5, 10), (0.2, 20), (0.1, 60)])
def test_a_slower_pace_is_found_within_its_steps(tmp_path, share, within):
    def ms(step: int) -> float:
        return (5000 + 20 * math.sin(step)) * (1 + share if step > 150 else 1)

    watch = watching(tmp_path, HEAD + lines(1, 150, ms), 150)
    assert watch.codes == []
    # One slow step is none.
    assert watch.look(at(151), run_log=HEAD + lines(1, 151, ms)) == ()
    (news,) = watch.look(at(150 + within), run_log=HEAD + lines(1, 150 + within, ms))
    assert news.alarm.code == "slow"
    assert news.alarm.fields["share"] == pytest.approx(share, abs=0.02)


def test_a_slow_second_is_no_pace(tmp_path):
    def ms(step: int) -> float:
        return (200 + step % 3) * (1.6 if step > 200 else 1)

    watch = watching(tmp_path, HEAD + lines(1, 210, ms), 210)
    assert "slow" not in watch.codes
    watch.look(at(260), run_log=HEAD + lines(1, 260, ms))
    assert "slow" in watch.codes


VALUES = {
    "nan": (lambda step: {"lm loss": "NAN", "grad norm": "nan"} if step > 150 else {}, 151),
    "spike": (lambda step: {"lm loss": "2.5E+01"} if step > 150 else {}, 152),
    "flat": (lambda step: {"lm loss": "4.0E+00"} if step > 150 else {}, 180),
    "skipped": (lambda step: {"number of skipped iterations": "1"} if step > 150 else {}, 160),
    "scale": (lambda step: {"loss scale": f"{65536 / 2 ** max(0, step - 150)}"}, 154),
}


@pytest.mark.parametrize("code", VALUES)
def test_values_that_go_wrong_are_found_at_their_line(tmp_path, code):
    pairs, found = VALUES[code]
    watch = watching(tmp_path, HEAD + lines(1, 150, pairs=pairs), 150)
    assert watch.look(at(found - 1), run_log=HEAD + lines(1, found - 1, pairs=pairs)) == ()
    news = watch.look(at(found), run_log=HEAD + lines(1, found, pairs=pairs))
    assert [one.alarm.code for one in news] == [code]
    assert news[0].alarm.origin.line > HEAD.count("\n") + 140


def test_what_is_not_finite_since_many_lines_is_shown_from_the_first_of_them(tmp_path):
    text = HEAD + lines(1, 40, pairs=lambda step: {"lm loss": "nan"} if step in (10, *range(25, 41)) else {})
    watch = watching(tmp_path, text, 40)
    assert alarm_text(watch.state.alarms[0]) == (
        "loss or gradient norm not finite since step 25 (5 of the last 5 lines), line 47"
    )
    assert math.isnan(snapshot_of(watch.moment, watch.state, DEFAULTS).loss)


def test_an_infinite_gradient_that_a_loss_scaler_leaves_out_is_no_nan(tmp_path):
    pairs = lambda step: {"grad norm": "nan", "number of skipped iterations": "1"} if step == 150 else {}  # noqa: E731
    assert watching(tmp_path, HEAD + lines(1, 150, pairs=pairs), 150).codes == []


def test_a_save_that_did_not_end_is_late_by_half_its_interval(tmp_path):
    text = HEAD + lines(1, 80, saves=20) + lines(81, 100) + SAVE.format(100)
    watch = watching(tmp_path, text + lines(101, 110), 110)
    assert watch.codes == []
    (news,) = watch.look(at(111), run_log=text + lines(101, 111))
    assert (news.alarm.code, news.alarm.fields["saved"]) == ("save_late", 80)
    assert "typical interval 20 steps" in alarm_text(news.alarm)


def test_a_failure_is_an_alarm_with_the_next_step_and_ends_where_the_run_goes_on(tmp_path):
    watch = watching(tmp_path, HEAD + lines(1, 40), 40)
    (news,) = watch.look(at(41), run_log=HEAD + lines(1, 40) + CRASH)
    assert (news.alarm.code, news.alarm.fields["step"]) == ("ending", 40)
    assert "; try: " in alarm_text(news.alarm)
    # It does not hang too.
    assert watch.look(at(4000)) == ()
    more = HEAD + lines(1, 40) + CRASH + HEAD + LOADED.format(20) + lines(21, 35, begin=20000)
    assert [one.kind for one in watch.look(at(4020), run_log=more)] == ["ends"]
    shown = snapshot_of(watch.moment, watch.state, DEFAULTS)
    assert (shown.step, shown.redoing_to) == (35, 40)


def test_a_next_job_in_the_folder_of_a_failed_one_is_noted_once(tmp_path):
    files = {"rank_0.log": (HEAD + lines(1, 20) + CRASH, 0.0), "job2_rank_0.log": (HEAD + lines(1, 5), 30.0)}
    moment = moment_of(tmp_path, files, 30.0)
    grown = [
        replace(moment, files=(moment.files[0], replace(moment.files[1], grown_at=at))) for at in (30.0, 90.0, 95.0)
    ]
    watcher = Watcher(lambda: [("jobs", ["."])], lambda *_: OfMoments(grown), DEFAULTS)
    notes = [watcher.look(100.0)[0][0].moment.notes for _ in range(3)]
    assert [[note.code for note in of_look] for of_look in notes] == [[], ["files_of_next_run"], []]
    assert [name[-15:] for name in notes[1][0].fields["names"]] == ["job2_rank_0.log"]


def test_a_loop_of_restarts_is_found_at_its_third_start(tmp_path):
    again = CRASH + HEAD + LOADED.format(40)
    text = HEAD + lines(1, 43)
    watch = watching(tmp_path, text, 43)
    for n in range(2):
        text += again if n == 0 else lines(41, 43, begin=600 * n) + again
        news = watch.look(at(100 + 100 * n), run_log=text)
    assert "restarts" in [one.alarm.code for one in news]
    text += lines(41, 80, begin=2000)
    watch.look(at(400), run_log=text)
    assert "restarts" not in watch.codes


@pytest.mark.parametrize("grows", [True, False])
def test_memory_that_goes_on_growing_towards_that_of_the_device(tmp_path, grows):
    # What grew in one step, and by a little since, is no leak.
    def pairs(step: int) -> dict[str, str]:
        used = 62.5 + 0.001 * step if step > 90 and not grows else 40 + max(0, step - 60) * 0.1
        return {"max_memory_allocated(GB)": f"{used:.3f}"}

    how = replace(HOW, hw="Ascend910B3", published=())
    watch = watching(tmp_path, HEAD + lines(1, 60, pairs=pairs), 60, how=how)
    assert watch.codes == []
    news = watch.look(at(120), run_log=HEAD + lines(1, 120, pairs=pairs))
    assert [one.alarm.code for one in news] == (["memory"] if grows else [])
    assert not grows or "46.0 of 64.0 GiB used and growing" in alarm_text(news[0].alarm)


def test_slow_and_fast_steps_in_turn_are_the_pace_of_a_run(tmp_path):
    # Of each 30 steps so many are slow: now and then most of those in a window are.
    slow = [10, 9, 11, 10, 9, 9, 10, 11, 9, 12, 10]

    def ms(step: int) -> float:
        return (760 if step % 30 < slow[step // 30] else 430) + step % 3

    assert watching(tmp_path, HEAD + lines(1, 286, ms), 286).codes == []


def test_a_rank_that_stops_is_behind_the_others(tmp_path):
    watch = Watching(tmp_path)
    both = HEAD + lines(1, 60)
    watch.look(at(59), rank0_log=HEAD + lines(1, 59), rank1_log=HEAD + lines(1, 59))
    assert watch.look(at(60), rank0_log=both, rank1_log=both) == ()
    assert watch.look(at(62), rank0_log=HEAD + lines(1, 62), rank1_log=both) == ()
    (news,) = watch.look(at(64), rank0_log=HEAD + lines(1, 64), rank1_log=both)
    assert (news.alarm.code, news.alarm.fields["step"]) == ("rank", 60)
    assert alarm_text(news.alarm).startswith("rank1.log stopped at step 60; others are at step 64")


def test_a_rank_that_writes_blocks_of_a_buffer_is_judged_by_its_own_rhythm(tmp_path):
    watch = Watching(tmp_path)
    # Until a block of lines was seen, the rank may wait for it; then three times as long as one takes.
    for mine, buffered in [(20, 20), (34, 20), (49, 35)]:
        watch.look(at(mine), rank0_log=HEAD + lines(1, mine), rank1_log=HEAD + lines(1, buffered))
        assert watch.codes == []
    for step, is_lost in [(63, False), (91, False), (92, True)]:
        watch.look(at(step))
        assert ("rank" in watch.codes) is is_lost
    kept = KeptStates({"run": watch.state})
    assert memory_of_document(json.loads(json.dumps(state_document(kept)))) == kept


def test_a_slow_rank_is_named(tmp_path):
    watch = Watching(tmp_path)
    slow = HEAD + lines(1, 40, lambda step: 6500 + 20 * math.sin(step))
    (news,) = watch.look(at(40), rank0_log=HEAD + lines(1, 40), rank1_log=slow, rank2_log=HEAD + lines(1, 40))
    assert news.alarm.code == "rank_slow"
    assert alarm_text(news.alarm) == "rank1.log takes 6.50 s a step, 30 % more than the typical rank"


def test_a_save_that_takes_much_longer_is_slow(tmp_path):
    text = HEAD
    for n in range(1, 6):
        seconds = 120 if n == 5 else 10
        timer = (
            f"(min, max) time across ranks (ms):\n    save-checkpoint ........: ({seconds}000.00, {seconds}001.00)\n"
        )
        text += lines(20 * n - 19, 20 * n, saves=20) + timer
    watch = watching(tmp_path, text, 100)
    assert watch.codes == ["save_slow"]
    assert "the save at step 100 took 2 min 0 s (typical: 10 s)" in alarm_text(watch.state.alarms[0])


def without_clock(ms: float) -> str:
    return HEAD + "".join(megatron_line(step, ms) + "\n" for step in range(1, 61))


def test_rates_below_the_plan_the_history_and_what_is_published(tmp_path):
    how = replace(HOW, hw="Ascend910B3")
    looks = {
        "plan": replace(how, published=(), utilisation=0.9),
        "published": how,
        "history": replace(how, published=tuple(replace(row, recorded=True) for row in how.published)),
    }
    for code, options in looks.items():
        watch = Watching(tmp_path, how=options)
        assert [one.alarm.code for one in watch.look(0.0, run_log=without_clock(20_000))] == [code]
        assert "below" in alarm_text(watch.state.alarms[0]) or "planned 90.0 %" in alarm_text(watch.state.alarms[0])


def test_limits_are_read_and_wrong_ones_are_refused():
    assert read_limits({"hang_steps": 5}) == replace(DEFAULTS, hang_steps=5.0)
    with pytest.raises(UsageError, match="hang_step"):
        read_limits({"hang_step": 5})
    for wrong in (0, -1, "3", True, float("nan"), float("inf")):
        with pytest.raises(UsageError, match=r"watch\.hang_steps is"):
            read_limits({"hang_steps": wrong})


def test_every_alarm_has_a_level():
    assert {kind.level for kind in KINDS.values()} == {"critical", "warning"}
