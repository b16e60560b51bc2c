"""What `logparse history` says of runs, and where it is shown and heeded."""

import json

import pytest
from helpers import run_logparse
from releases import fill
from rich.cells import cell_len

pytestmark = pytest.mark.usefixtures("analysed_once")
RELEASES = {"r1": (1000.0, 3, {}), "r2": (1060.0, 3, {})}


@pytest.fixture
def history(tmp_path):
    return fill(tmp_path, RELEASES)


@pytest.fixture
def logparse(history, tmp_path, monkeypatch):
    monkeypatch.setenv("LOGPARSE_USER", "kim")
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments, code=0):
        done = run_logparse(*arguments, "--history", "h", cwd=tmp_path)
        assert done.returncode == code, done.stderr
        return done

    return run


@pytest.fixture
def ids(history):
    return history.runs()["run_id"].to_list()


def test_excluded_runs_take_no_part_and_each_command_says_so(logparse, ids):
    assert logparse("history", "exclude", ids[0][:8], ids[5], "--reason", "bad node").stdout == "2 runs excluded\n"
    sides = ("release=r1", "release=r2")
    gate = ("gate", "--baseline", sides[0], "--candidate", sides[1], "--json")
    for done in (logparse("compare", *sides, "--json"), logparse(*gate, code=1)):
        assert [len(json.loads(done.stdout)[side]["runs"]) for side in ("baseline", "candidate")] == [2, 2]
        for run_id in (ids[0], ids[5]):
            assert f"1 run excluded: {run_id[:12]} (bad node)\n" in done.stderr
    trend = logparse("trend", "--json")
    assert len(json.loads(trend.stdout)["series"][0]["runs"]) == 4
    assert f"2 runs excluded: {ids[0][:12]} (bad node), {ids[5][:12]} (bad node)\n" in trend.stderr
    assert len(json.loads(logparse("trend", "--json", "--select", "release=r1").stdout)["series"][0]["runs"]) == 2
    named = json.loads(logparse("compare", ids[0][:8], "release=r2", "--json").stdout)
    assert named["baseline"]["runs"][0]["excluded"] == "bad node"
    logparse("history", "include", "release=r1")
    assert len(json.loads(logparse("compare", *sides, "--json").stdout)["baseline"]["runs"]) == 3


def test_a_side_of_which_all_are_excluded_is_an_error(logparse):
    logparse("history", "exclude", "release=r1", "--reason", "x")
    done = logparse("compare", "release=r1", "release=r2", code=2)
    assert "all runs of release=r1 are excluded" in done.stderr
    assert "logparse history include" in done.stderr


def test_what_is_said_is_shown_wherever_the_run_is(logparse, ids, tmp_path):
    logparse("history", "annotate", ids[0], ids[1], "a new switch")
    logparse("history", "label", ids[3][:9], "team=infra", "night=7")
    accepted = ("--issue", "https://x/1", "--until", "2030-03-01", "--until-release", "r9", "--metric", "goodput")
    logparse("history", "accept", ids[3], "--reason", "known", *accepted)
    both = f"- runs {ids[0][:12]}, {ids[1][:12]}: a new switch\n"
    known = f"- run {ids[3][:12]}: goodput is accepted: known (https://x/1, until 2030-03-01, until release r9)\n"
    for command in (("history", "list"), ("trend",), ("compare", "release=r1", "release=r2")):
        told = logparse(*command).stdout.replace(" \n", " ").replace("release\nr9", "release r9")
        assert both in told
        assert known in told
    logparse("trend", "-o", "out")
    page = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert "a new switch" in page
    assert "goodput is accepted: known" in page
    (run,) = json.loads(logparse("history", "list", "team=infra", "--json").stdout)["runs"]
    assert (run["labels"], run["annotation"], run["excluded"]) == ({"team": "infra", "night": "7"}, None, None)
    assert (run["acceptances"][0]["until"], run["acceptances"][0]["user"]) == ("2030-03-01", "kim")
    shown = json.loads(logparse("history", "show", ids[3]).stdout)
    assert [(event["kind"], event["user"]) for event in shown["events"]] == [("label", "kim"), ("accept", "kim")]
    for document in (logparse("trend", "--json"), logparse("compare", "release=r1", "release=r2", "--json")):
        assert '"annotation": "a new switch"' in document.stdout


TOLD = ("verdict", "ms/step", "tokens/s/p")


def test_the_list_fits_a_terminal(logparse, ids):
    logparse("history", "label", *ids, "team=large-scale-infrastructure", "night=2026-03-01")
    lines = logparse("history", "list").stdout.splitlines()
    assert max(map(cell_len, lines)) <= 100
    assert lines[2].split() == ["run", "release", "begun", "model", "devices", "labels", "ending", *TOLD]
    row = next(line for line in lines if line.startswith(ids[0][:12]))
    assert row.split()[:3] == [ids[0][:12], "r1", "2026-02-02"]


def test_runs_are_named_by_ids_and_selectors_each_once(logparse, history, ids):
    done = logparse("history", "accept", ids[0], "release=r1", "--reason", "known")
    assert done.stdout == "3 runs accepted\n"
    assert sorted(event.run_id for event in history.events()) == sorted(ids[:3])


WRONG = [
    ["exclude", "RUN"],
    ["exclude", "RUN", "--reason", " "],
    ["exclude", "RUN", "--reason", "a\nb"],
    ["exclude", "zz", "--reason", "x"],
    ["exclude", "release=none", "--reason", "x"],
    ["exclude", "team=none", "--reason", "x"],
    ["include"],
    ["annotate", "RUN"],
    ["label", "RUN"],
    ["label", "k=v"],
    ["label", "RUN", "device=x"],
    ["label", "RUN", "excluded=x"],
    ["label", "RUN", "k="],
    ["accept", "RUN"],
    ["accept", "RUN", "--reason", "x", "--until", "May"],
    ["accept", "RUN", "--reason", "x", "--metric", "speed"],
    ["accept", "RUN", "--reason", "x", "--issue", ""],
]


def test_wrong_usage(logparse, history, ids):
    for arguments in WRONG:
        done = logparse("history", *(ids[0] if one == "RUN" else one for one in arguments), code=2)
        assert "Traceback" not in done.stderr, arguments
        assert history.events() == [], arguments


def test_show_and_remove_take_selectors(logparse, history, ids):
    one, both = (json.loads(logparse("history", "show", asked).stdout) for asked in (ids[0], "release=r1"))
    assert one["run_id"] == ids[0]
    assert [run["release"] for run in both] == ["r1"] * len(both)
    assert logparse("history", "remove", "release=r1").stdout == f"{len(both)} runs removed\n"
    assert set(history.runs()["release"]) == {"r2"}
