"""What is said of a run later holds everywhere, newest first, and changes nothing of what was recorded."""

import os
import random
import time
from dataclasses import replace
from datetime import date, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from releases import record, write_run

from analysis.history.annotations import ANNOTATION_COLUMNS, acceptances_of
from analysis.history.events import USER, Event, speaker, standing
from analysis.history.folder import DEAD_SECONDS
from analysis.history.selection import select_evidence, select_runs
from analysis.history.storage import open_storage
from analysis.history.store import History

pytestmark = pytest.mark.usefixtures("analysed_once")

AT = datetime(2026, 3, 1, 10)


@pytest.fixture(params=["folder", "bucket"])
def store(request, tmp_path):
    if request.param == "bucket":
        pytest.importorskip("obstore")
        (tmp_path / "bucket").mkdir()
    place = "store" if request.param == "folder" else "bucket"
    made = History(open_storage(f"{'file://' if place == 'bucket' else ''}{tmp_path}/{place}"))
    for number in range(3):
        made.add(record(write_run(tmp_path / f"{number}.log", number), "r1", team="a", night="1"))
    return made


def said(store, place, kind, minutes=0, **what):
    store.say([Event(store.runs()["run_id"][place], kind, AT + timedelta(minutes=minutes), "kim", **what)])


def test_without_events_nothing_is_said(store):
    runs = store.runs()
    assert [runs.schema[name] for name in ANNOTATION_COLUMNS] == list(ANNOTATION_COLUMNS.values())
    assert runs.select(*ANNOTATION_COLUMNS).null_count().row(0) == (3, 3, 3)
    assert store.events() == []


def test_the_newest_holds(store):
    said(store, 0, "exclude", 1, text="first")
    said(store, 0, "exclude", 3, text="bad node")
    said(store, 0, "include", 2)
    said(store, 1, "exclude", 0, text="once")
    said(store, 1, "include", 2)
    said(store, 2, "annotate", 1, text="new")
    said(store, 2, "annotate", 0, text="old")
    assert store.runs()["excluded"].to_list() == ["bad node", None, None]
    assert store.runs()["annotation"].to_list() == [None, None, "new"]
    said(store, 2, "annotate", 2, text="")
    assert store.runs()["annotation"].to_list() == [None] * 3
    assert [event.text for event in store.events() if event.kind == "exclude"] == ["once", "first", "bad node"]


def test_later_labels_are_labels(store):
    before = store.settings(store.runs()["run_id"].to_list())
    said(store, 0, "label", 1, labels=(("Team", "b"), ("node", "17")))
    said(store, 0, "label", 2, labels=(("team", "c"),))
    found = store.runs()
    assert select_runs(found, "team=c,node=17,night=1")["run_id"].to_list() == [found["run_id"][0]]
    assert len(select_runs(found, "team=a")) == 2
    labels = {pair["name"]: pair["value"] for pair in store.row(found["run_id"][0])["labels"][0]}
    assert labels == {"team": "c", "node": "17", "night": "1"}
    assert store.row(found["run_id"][1]).equals(before.filter(pl.col("run_id") == found["run_id"][1]))


def test_what_was_recorded_stays(store, tmp_path):
    """So that a log recorded again with the same labels differs in nothing."""
    again = record(tmp_path / "0.log", "r1", team="a", night="1")
    store.say([Event(again.run_id, "label", AT, labels=(("team", "b"),))])
    assert store.differences(again) == []
    store.compact()
    assert select_runs(store.runs(), "team=b")["run_id"].to_list() == [again.run_id]
    assert store.add(again) == "known"


def test_acceptances_are_of_a_metric_or_of_all(store):
    said(store, 0, "accept", 0, text="known", metric="goodput", until=date(2026, 3, 5), issue="#1")
    said(store, 0, "accept", 1, text="known since", metric="goodput", until=date(2026, 3, 9), until_release="r9")
    said(store, 0, "accept", 2, text="all of it")
    (run_id,) = store.acceptances()
    goodput, everything = store.acceptances()[run_id]
    assert (goodput.reason, goodput.issue, goodput.until_release, goodput.user) == ("known since", None, "r9", "kim")
    assert goodput.is_of("goodput", date(2026, 3, 9))
    assert not goodput.is_of("goodput", date(2026, 3, 10))
    assert not goodput.is_of("final_loss", date(2026, 3, 1))
    assert everything.is_of("final_loss", date(2036, 1, 1))
    assert acceptances_of(store.runs()) == dict(store.acceptances())


def test_removed_runs_take_with_them_what_was_said(store):
    said(store, 0, "annotate", text="x")
    said(store, 1, "annotate", text="y")
    store.remove([store.runs()["run_id"][0]])
    assert [event.text for event in store.events()] == ["y"]
    assert store.runs()["annotation"].to_list() == ["y", None]


def test_what_is_said_of_no_run_is_swept(store, tmp_path):
    store.say([Event("ab" * 16, "annotate", AT, text="x")])
    assert store.compact().removed == 0
    for path in tmp_path.rglob("*/events/*"):
        os.utime(path, (time.time() - 2 * DEAD_SECONDS,) * 2)
    assert store.compact().removed == 1


def test_what_is_damaged_or_newer_is_left_out_and_named(store):
    said(store, 0, "annotate", text="x")
    said(store, 1, "exclude", text="y")
    first, other = store.storage.keys("events")
    store.storage.put(first, b"PAR1" + bytes(40))
    store.storage.put(other.replace(".v1.", ".v2."), b"new")
    told = []
    careful = replace(store, warn=told.append)
    assert len(careful.runs()) == 3
    assert {(note.code, note.fields["path"]) for note in told} == {
        ("file_left_out", first),
        ("newer_left_out", other.replace(".v1.", ".v2.")),
    }


def test_an_event_under_another_name_is_not_believed(store):
    """Copied by hand to another run, say."""
    said(store, 0, "exclude", text="x")
    (key,) = store.storage.keys("events")
    data = store.storage.get(key)
    first, other, _ = store.runs()["run_id"]
    store.storage.put(key.replace(first, other), data)
    told = []
    assert replace(store, warn=told.append).runs()["excluded"].to_list() == ["x", None, None]
    assert [note.code for note in told] == ["file_left_out"]


def test_excluded_runs_are_no_evidence_unless_named(store):
    said(store, 2, "exclude", text="bad night")
    runs = store.runs()
    ids = runs["run_id"].to_list()
    for selector in (None, "release=r1", "release=r1,last 3"):
        found = select_evidence(runs, selector)
        assert (found.runs["run_id"].to_list(), found.excluded["run_id"].to_list()) == (ids[:2], ids[2:])
        assert [note.fields["names"] for note in found.notes] == [[f"{ids[2][:12]} (bad night)"]]
    assert select_evidence(runs, "last 1").runs["run_id"].to_list() == [ids[1]]
    for selector in (f"id={ids[2]}", ids[2][:8], f"run_id in {ids[2]}|x"):
        found = select_evidence(runs, selector)
        assert (found.runs["run_id"].to_list(), found.notes) == (ids[2:], [])
    assert len(select_runs(runs, "release=r1")) == 3
    assert select_runs(runs, "excluded~bad*")["run_id"].to_list() == ids[2:]


def test_those_excluded_before_the_last_ones_are_not_told(store):
    said(store, 0, "exclude", text="long ago")
    assert select_evidence(store.runs(), "last 2").notes == []


MOMENTS = st.integers(0, 2)


@given(
    events=st.lists(
        st.builds(
            lambda kind, minute, text: Event("ab", kind, AT + timedelta(minutes=minute), None, text),
            st.sampled_from(["exclude", "include", "annotate"]),
            MOMENTS,
            st.sampled_from("xyz"),
        ),
        max_size=6,
    )
)
def test_in_whatever_order_files_are_listed_the_same_holds(events):
    """Also of events of one moment."""
    shuffled = random.Random(0).sample(events, len(events))

    def order(some):
        return sorted(some, key=lambda event: (event.at, event.id))

    assert standing(order(events)) == standing(order(shuffled))


def test_the_id_of_an_event_is_all_that_it_says():
    one = Event("ab", "accept", AT, "kim", "x", (("k", "v"),), "goodput", "#1", date(2026, 3, 1), "r9")
    assert one.id == replace(one).id
    others = (
        {"run_id": "ac"},
        {"kind": "label"},
        {"at": AT + timedelta(1)},
        {"user": None},
        {"text": "y"},
        {"labels": ()},
        {"metric": None},
        {"issue": None},
        {"until": None},
        {"until_release": None},
    )
    assert len({one.id, *(replace(one, **other).id for other in others)}) == 1 + len(others)


def test_who_speaks(monkeypatch):
    monkeypatch.setenv(USER, "kim")
    assert speaker() == "kim"
    monkeypatch.delenv(USER)
    monkeypatch.setattr("getpass.getuser", lambda: "root")
    assert speaker() == "root"

    def nobody():
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert speaker() is None
