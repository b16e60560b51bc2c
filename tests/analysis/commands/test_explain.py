"""``logparse explain``: what a code means and what to do, for every code that a run can show."""

import pytest
from helpers import ROOT, run_logparse

from analysis.present.views.explain import every_code, explain
from analysis.present.words import words
from logparse.errors import UsageError
from logparse.language import LANGUAGES, speaking


def shown(*arguments, **environment):
    done = run_logparse("explain", *arguments, cwd=ROOT, **environment)
    return done.returncode, " ".join(done.stdout.split()), done.stderr


def test_a_warning_says_what_to_do():
    code, text, _ = shown("stamps_kept_back")
    assert code == 0
    assert text.startswith("warning stamps_kept_back: Steps and time A buffer kept the lines back")


def test_a_link_of_the_page_is_its_words():
    assert "](" not in "".join(explain(code).text for code in every_code())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_failure_says_what_to_try_in_each_language(language):
    with speaking(language):
        found = explain("device_memory")
    assert found.text == words(language)["remedies"]["device_memory"]


@pytest.mark.parametrize("spelled", ["`stamps_kept_back`", "[stamps_kept_back]", "Stamps_Kept_Back"])
def test_a_code_may_be_pasted_as_it_was_shown(spelled):
    assert explain(spelled).code == "stamps_kept_back"


def test_every_clause_and_every_family_has_an_explanation():
    clauses = words("en")["clauses"].keys()
    assert set(clauses) - set(every_code()) == set()
    assert set(words("en")["failure_names"]) - set(every_code()) == set()


def test_a_note_asks_for_nothing():
    code, text, _ = shown("warm_up_found")
    assert (code, text) == (
        0,
        "note warm_up_found: a note of -v -v prints it to say how a figure was obtained: nothing has to be done",
    )


def test_without_a_code_all_are_listed():
    code, text, _ = shown()
    assert code == 0
    assert "stamps_kept_back" in text
    assert "device_memory" in text


def test_an_unknown_code_names_its_neighbours():
    code, text, error = shown("stamps_kep")
    assert (code, text) == (2, "")
    assert "did you mean stamps_kept_back" in error
    with pytest.raises(UsageError):
        explain("")
