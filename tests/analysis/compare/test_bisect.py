"""Which change made a side slower: what recorded runs exclude, what to run next, and what cannot be told."""

import json
import math

import numpy as np
import pytest
from helpers import run_logparse
from hypothesis import given
from hypothesis import strategies as st
from releases import fill, record, write_run

from analysis.compare.bisect import OtherRun, make_plan
from analysis.compare.comparability import Change
from analysis.compare.side_level import levels
from analysis.compare.verdict import DEFAULT_METRIC
from analysis.history.folder import Folder
from analysis.history.store import History
from analysis.metrics import JUDGED
from analysis.present.console import make_console
from analysis.present.terminal import print_parts
from analysis.present.views.bisect import compose_plan, document
from analysis.stats.prediction import expect
from logparse.errors import UsageError

pytestmark = pytest.mark.usefixtures("analysed_once")

METRIC = JUDGED[DEFAULT_METRIC]
SIDES = ([998.0, 1000.0, 1002.0], [1038.0, 1040.0, 1042.0])
KINDS = ("version", "setting", "label")


def change(name, kind="setting", good="on", bad="off"):
    return Change(kind, name, (good,) if good else (), (bad,) if bad else (), ((3, 3), (3, 3)))


A, B, C, D = (change(name) for name in "abcd")
ALL = (A, B, C, D)


def tried(bad, value, candidates=ALL, beside=()):
    """A run that has ``bad`` of the candidates as BAD and the others as GOOD."""
    good = tuple(one for one in candidates if one not in bad)
    run_id = f"run {value} {[one.name for one in bad]}"
    return OtherRun(run_id, "name", "r", value, good, tuple(bad), beside)


def plan(*recorded, changes=ALL, sides=SIDES):
    return make_plan(METRIC, "job", changes, sides, recorded)


def said(found):
    return [part.text for part in compose_plan(found, "G", "B") if hasattr(part, "text")]


def test_levels_are_hand_worked():
    """Both sides have 3 runs, so 4 degrees of freedom: t 4.604, and a further run is apart by sqrt(1 + 1/3) of it."""
    good, bad = levels(*SIDES)
    usual = [expect([math.log(value) for value in side]) for side in SIDES]
    spread = math.sqrt((usual[0].spread ** 2 + usual[1].spread ** 2) / 2)
    assert (good.log, bad.log) == (usual[0].level, usual[1].level)
    assert good.near == bad.near == pytest.approx(good.reach)
    assert good.reach == bad.reach == pytest.approx(4.604 * spread * math.sqrt(4 / 3), rel=1e-4)


def test_sides_without_noise_are_a_tenth_of_the_way_wide():
    good, bad = levels([1000.0, 1000.0, 1000.1], [1040.0, 1040.0, 1040.1])
    assert good.near == bad.near == pytest.approx(math.log(1.04) / 10, rel=1e-3)
    assert good.reach < good.near


def test_half_of_the_candidates_are_tried_first():
    found = plan()
    assert (found.outcome, found.to_try, found.runs_needed) == ("next", (A, B), 2)
    assert said(found)[:3] == [
        "remaining candidates: 4 of 4",
        "next: run with a off, b off, everything else as in G, and record it",
        "runs still needed: at most 2",
    ]


def test_two_causes_are_found_one_by_one():
    """a and c each make it 2 % slower: the first half is like neither side, also when it is repeated."""
    halves = [tried((A, B), value) for value in (1020.0, 1020.5)]
    assert (plan(halves[0]).outcome, plan(halves[0]).to_try) == ("next", (A, B))
    found = plan(*halves)
    assert (found.outcome, found.to_try, found.runs_needed) == ("several", (A,), 4)
    assert said(found)[:2] == [
        "more than one cause: one within a, b, one within c, d",
        "next: run with a off, everything else as in G, and record it",
    ]
    singles = [tried((one,), value) for one, value in zip(ALL, (1020.0, 1000.0, 1020.0, 1000.5), strict=True)]
    assert plan(*halves, *singles[:1]).to_try == (B,)
    done = plan(*halves, *singles)
    assert (done.outcome, done.to_try, [one.name for one in done.effects]) == ("causes", (), ["a", "c"])
    assert "a +2.02 %, c +2.00 %" in said(done)[0]
    assert said(done)[1] == "explained change in step time, steady: +4.06 % of +4.00 %"


def test_settings_are_tried_before_labels_and_these_before_versions():
    changes = [change("torch", "version"), change("node", "label"), change("overlap")]
    assert [one.name for one in plan(changes=changes).candidates] == ["overlap", "node", "torch"]


@pytest.mark.parametrize(
    ("value", "stands", "remain"),
    [
        (1040.0, "bad", (A, B)),
        (1000.0, "good", (C, D)),
        (1010.0, "good", (C, D)),
        (1011.0, "between", ALL),
        (1020.0, "between", ALL),
        (1100.0, "between", ALL),
        (900.0, "between", ALL),
    ],
)
def test_a_trial_excludes_what_cannot_be_the_cause(value, stands, remain):
    found = plan(tried([A, B], value))
    assert [(trial.placement, trial.remain) for trial in found.trials] == [(stands, remain)]
    assert found.remain == remain


def test_trials_follow_each_other_to_the_cause():
    found = plan(tried([A, B], 1000.0), tried([C], 1040.0))
    assert [trial.remain for trial in found.trials] == [(C, D), (C,)]
    assert (found.outcome, found.remain, found.to_try, found.runs_needed) == ("cause", (C,), (), 0)
    assert said(found)[:2] == [
        "cause according to the logs: setting c, on -> off",
        "explained change in step time, steady: +4.00 % of +4.00 %",
    ]


def test_trials_that_no_single_change_explains():
    """Slow with a and b as BAD, and with c and d: two causes, or one that no log tells."""
    found = plan(tried([A, B], 1040.0), tried([C, D], 1041.0))
    assert (found.outcome, found.remain, found.to_try, found.runs_needed) == ("contradiction", (), (A,), 4)
    assert said(found)[0] == "no single change explains it: there are several causes, or the cause is not in the logs"


def test_a_part_of_the_cause_is_named_with_the_rest():
    """Each excluded half is 1 % slower, within the noise: what remains explains 2 of 4 %. Next are parts alone."""
    halves = tried((A, B), 1010.0), tried((C,), 1010.0)
    found = plan(*halves)
    assert (found.outcome, found.named, found.to_try, found.runs_needed) == ("part", (D,), (D,), 3)
    assert said(found)[:3] == [
        "a part of the cause: setting d, on -> off",
        "explained change in step time, steady: +1.95 % of +4.00 %; the rest, +2.01 %, lies elsewhere",
        "next: run with d off, everything else as in G, and record it",
    ]
    told = document(found)
    assert (told["named"], told["rest_is_noise"]) == (["d"], False)
    assert (1 + told["explained"]) * (1 + told["rest"]) == pytest.approx(1 + told["effect"])
    whole = plan(*halves, tried((D,), 1039.0))
    assert (whole.outcome, whole.named, whole.to_try) == ("cause", (D,), ())
    alone = *halves, tried((D,), 1020.0)
    assert (plan(*alone).outcome, plan(*alone).to_try) == ("part", (A,))
    done = plan(*alone, tried((A,), 1012.0), tried((B,), 1000.0))
    assert (done.outcome, done.to_try, [one.name for one in done.named]) == ("causes", (), ["d", "a"])
    assert said(done)[1] == "explained change in step time, steady: +3.22 % of +4.00 %"
    none = plan(*alone, tried((A,), 1005.0), tried((B,), 1005.0))
    assert (none.outcome, [one.name for one in none.named]) == ("cause", ["d"])
    assert "+2.00 % of +4.00 %" in said(none)[1]
    assert "the rest, +1.96 %, lies elsewhere: in changes that act only together" in said(none)[1]


def test_what_no_trial_separates_is_tried_alone():
    """Both runs have b and another change: what is left of them is not measured by itself."""
    found = plan(tried((A, B), 1040.0), tried((B, C), 1040.0))
    assert (found.outcome, found.remain, found.to_try, found.runs_needed, found.share) == ("next", (B,), (B,), 1, None)
    done = plan(tried((A, B), 1040.0), tried((B, C), 1040.0), tried((B,), 1040.0))
    assert (done.outcome, done.share.is_all) == ("cause", True)


def test_what_neither_side_has_excludes_nothing():
    """A third release of a library may have mended what the second broke, or broken more."""
    for value in (1000.0, 1040.0):
        found = plan(tried([A], value, beside=("torch 3",)))
        assert ([trial.placement for trial in found.trials], found.remain) == (["other"], ALL)


def test_what_a_run_does_not_print_is_excluded_by_neither():
    slow = OtherRun("i", "n", None, 1040.0, as_good=(A,), as_bad=(B,))
    fast = OtherRun("j", "n", None, 1000.0, as_good=(A,), as_bad=(B,))
    assert plan(slow).remain == (B, C, D)
    assert plan(fast).remain == (A, C, D)


def test_sides_that_are_too_close_tell_of_no_run():
    found = plan(sides=([990.0, 1000.0, 1010.0], [995.0, 1006.0, 1015.0]))
    assert (found.outcome, found.to_try) == ("not_apart", ())
    assert said(found)[:2] == [
        "the two sides are too close to classify a run",
        "record more runs of each side",
    ]


def test_nothing_differs_that_both_sides_tell():
    found = plan(changes=[change("seed"), change("new", good=None)])
    assert (found.outcome, found.candidates, found.runs_needed) == ("no_candidate", (), 0)
    assert document(found)["only_one_side_tells"] == ["new"]


@pytest.mark.parametrize(
    ("sides", "problem"),
    [
        (SIDES[::-1], "the bad side (1,000.0 ms) is better than the good side (1,040.0 ms)"),
        (([1000.0], [1040.0]), "1 + 1 runs are too few to estimate the noise between runs"),
        (([], [1040.0, 1041.0]), "0 + 2 runs are too few to estimate the noise between runs"),
    ],
)
def test_sides_without_a_plan(sides, problem):
    with pytest.raises(UsageError) as raised:
        plan(sides=sides)
    assert raised.value.problem == problem


def test_one_run_stands_beside_several_of_the_other_side():
    assert plan(sides=([998.0, 1000.0, 1002.0, 1001.0], [1040.0])).outcome == "next"


def follow(candidates, causes, seed, by=0.04):
    """Do the runs that the plan asks for until it knows: the plan, and how many runs it took."""
    rng = np.random.default_rng(seed)

    def run(bad):
        return 1000 * math.exp(rng.normal(0, 0.004) + len(set(bad).intersection(causes)) * math.log1p(by))

    sides = [run(()) for _ in range(5)], [run(causes) for _ in range(5)]
    done = []
    found = plan(changes=candidates, sides=sides)
    while found.to_try and len(done) < 50:
        done.append(tried(found.to_try, run(found.to_try), candidates))
        found = plan(*done, changes=candidates, sides=sides)
    return found, len(done)


@st.composite
def hidden_causes(draw):
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=20))
    candidates = [change(f"c{place}", kind) for place, kind in enumerate(kinds)]
    return candidates, draw(st.sampled_from(candidates)), draw(st.integers(0, 2**32 - 1))


@given(hidden_causes())
def test_the_plan_ends_at_the_hidden_cause(case):
    """A run in between, rare as it is, is asked for again; each of the others halves what remains."""
    candidates, cause, seed = case
    found, runs = follow(candidates, (cause,), seed)
    again = sum(trial.placement == "between" for trial in found.trials)
    # Noise may rarely be so large that no run could be told, or that it seems to be a second cause.
    if found.outcome != "not_apart":
        assert cause in found.named
        seems_two = again > 1 or not (found.share is None or found.share.is_all)
        assert runs <= math.ceil(math.log2(len(candidates))) + again + seems_two * len(candidates)


def test_hardly_a_run_is_asked_for_again():
    """Of 200 plans all name the cause, 195 of them alone, within one run more than halving takes."""
    soon = 0
    for seed in range(200):
        number = 1 + seed % 16
        candidates = [change(f"c{place}") for place in range(number)]
        found, runs = follow(candidates, (candidates[seed % number],), seed)
        assert candidates[seed % number] in found.named
        soon += found.outcome == "cause" and runs <= math.ceil(math.log2(number)) + 1
    assert soon >= 195


@pytest.mark.parametrize("number", [3, 8])
def test_of_three_causes_none_is_named_for_all(number):
    """Each of 3 %: all plans end at several causes, none of more than its share, and most name just these."""
    candidates = [change(f"c{place}") for place in range(number)]
    causes = {candidates[0], candidates[number // 2], candidates[-1]}
    right = 0
    for seed in range(20):
        found, _ = follow(candidates, causes, seed, by=0.03)
        assert found.outcome == "causes"
        assert len(found.named) > 1
        assert max(found.effects.values()) < 0.05
        right += set(found.named) == causes
    assert right >= 17


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two releases of which two settings and a version differ; the settings are both seen apart."""
    folder = tmp_path_factory.mktemp("bisect")
    good, bad = {"overlap": "on", "fused": "yes"}, {"overlap": "off", "fused": "no"}
    fill(folder, {"r1": (1000, 4, good), "r2": (1050, 4, bad), "other": (1050, 1, good | bad | {"seq_length": 8192})})
    return folder


def bisect(folder, *arguments):
    return run_logparse("bisect", "release=r1", "release=r2", "--history", "h", *arguments, cwd=folder)


def test_a_history_leads_to_the_cause(folder):
    """Runs of other work, and those with a third value, exclude nothing; the one that is asked for ends it."""
    told = json.loads(bisect(folder, "--json").stdout)
    assert (told["outcome"], told["runs_needed"], told["trials"]) == ("next", 1, [])
    assert told["next"] == [{"kind": "setting", "name": "fused", "value": "no"}]
    history = History(Folder(folder / "h"))
    third = write_run(folder / "third.log", 901, 1050, overlap="maybe", fused="yes")
    wanted = write_run(folder / "wanted.log", 900, 1000, overlap="on", fused="no")
    kept = [record(third, "r3"), record(wanted, "r4")]
    for one in kept:
        history.add(one)
    told = json.loads(bisect(folder, "--json").stdout)
    assert {run["run_id"]: (run["stands"], run["beside"]) for run in told["trials"]} == {
        kept[0].run_id: ("other", ["overlap maybe"]),
        kept[1].run_id: ("good", []),
    }
    assert (told["outcome"], told["effect"]) == ("cause", pytest.approx(0.05, abs=0.01))
    assert {one["name"]: one["remains"] for one in told["candidates"]} == {"fused": False, "overlap": True}
    done = bisect(folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("cause according to the logs: setting overlap, on -> off\n")
    excluded = run_logparse(
        "history", "exclude", kept[1].run_id[:12], "--history", "h", "--reason", "throttled", cwd=folder
    )
    assert excluded.returncode == 0
    assert json.loads(bisect(folder, "--json").stdout)["outcome"] == "next"


def test_sides_of_other_work_are_refused(folder):
    done = run_logparse("bisect", "release=r1", "release=other", "--history", "h", cwd=folder)
    assert done.returncode == 2
    assert "the two sides differ in seq_length" in done.stderr


def test_sides_of_logs_need_no_history(folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
    for seed in range(3):
        write_run(folder / "a" / f"{seed}.log", 950 + seed, 1000, overlap="on")
        write_run(folder / "b" / f"{seed}.log", 960 + seed, 1050, overlap="off")
    done = run_logparse("bisect", "a", "b", cwd=folder)
    assert done.stdout.startswith("cause according to the logs: setting overlap, on -> off\n")
    assert run_logparse("bisect", "a", cwd=folder).returncode == 2


def test_the_whole_table_is_shown_at_100_columns(capsys, monkeypatch):
    """Six settings of long names and values, and a run that has three of them as BAD."""
    monkeypatch.setenv("COLUMNS", "100")
    names = [f"tp_comm_overlap_reduce_scatter_with_a_long_name_{n}" for n in range(6)]
    values = (("a very long value " * 5,), ("another very long value " * 5,))
    changes = [Change("setting", name, *values, ((3, 3), (3, 3))) for name in names]
    run = OtherRun("a" * 32, "n", "r", 1100.0, tuple(changes[:3]), tuple(changes[3:]), ())
    plan = make_plan(
        JUDGED["with_stalls_step_time_ms"], "job", changes, ((1000.0, 1001.0, 1002.0), (1100.0, 1101.0, 1102.0)), [run]
    )
    print_parts(make_console(), compose_plan(plan, "release=A", "release=B"))
    text = capsys.readouterr().out
    table = text[text.index("candidate, in order") :]
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 100
    pieces = "".join(table.split())
    assert "recordedrun" in pieces
    assert "like BAD" in table
    assert all(name[-4:] in table for name in names)
