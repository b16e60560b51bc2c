"""Every code of a comparison has its words, in every language."""

from typing import get_args, get_type_hints

import pytest

from analysis.compare.comparability import KINDS
from analysis.compare.independent_records import LeftOut
from analysis.compare.loss_remarks import RemarkCode
from analysis.compare.same_loss import LossReason
from analysis.compare.verdict import VERDICTS, Method, Reason
from analysis.history.migrations import read_origin
from analysis.present.words import describe_origin, fill, say, word
from analysis.stats.parting import Shape
from logparse.findings import Note, info, warning
from logparse.language import LANGUAGES, speaking

CODES = {
    "verdicts": VERDICTS,
    "verdict_reasons": get_args(Reason),
    "p_methods": get_args(Method),
    "change_kinds": tuple(KINDS),
    "left_out": get_args(get_type_hints(LeftOut)["reason"]),
    "loss_reasons": get_args(LossReason),
    "loss_shapes": (*get_args(Shape), "growing_within"),
    "loss_remarks": get_args(RemarkCode),
    "sides": ("baseline", "candidate"),
}
NOTES = (
    warning("file_left_out", path="summary/a.parquet", reason="it is empty"),
    info("log_left_out", path="notes.txt"),
    warning("steps_left_out", problem="it is gone", remedy="record it again"),
    warning("recorded_otherwise", name="a", names=[f"label {n}" for n in range(10)], id="0a1b"),
    info("wrote", path="out/"),
    warning("job_summary_not_written", path="page.md", reason="Permission denied"),
    info("series_left_out", n=3),
    info("series_no_room", n=3),
)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("table", CODES)
def test_words_of_codes(table, language):
    with speaking(language):
        said = [word(table, code) for code in CODES[table]]
    assert all(said)
    assert len(set(said)) == len(said)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.code)
def test_notes_are_said_with_all_their_fields(note: Note, language):
    with speaking(language):
        said = say(note)
    texts = [str(value) for value in note.fields.values() if not isinstance(value, list)]
    assert [text for text in texts if text not in said] == []


def test_of_many_names_some_are_said():
    said = say(NOTES[3])
    assert "label 0, label 1" in said
    assert "label 7 and 2 more\n" in said
    assert "label 8" not in said


def test_random_orders_are_counted():
    told = fill("p_methods", "permutation", {"n": 9999, "percent": 0.905})
    assert told.endswith(", 9,999 random permutations")
    assert "90.5 %" in told


def test_words_of_an_old_history_that_nobody_knows_stay():
    assert describe_origin(read_origin("written by hand")) == "written by hand"
