"""What docs/failures.md shows is what happens, and it names everything that an ending can hold."""

import pytest
import regex
from helpers import ROOT, run_logparse

from logparse.failures.ending import FAILED
from logparse.failures.judge import SAME_STEPS
from logparse.failures.precedence import NEAR_LINES, NEAR_SECONDS
from logparse.failures.signatures import GRADES, signatures
from logparse.failures.table import failure_words

TEXTS = {
    language: (ROOT / "docs" / page).read_text(encoding="utf-8")
    for language, page in (("en", "failures.md"), ("zh", "zh/failures.md"))
}
TEXT = TEXTS["en"]


@pytest.mark.parametrize("language", TEXTS)
def test_the_log_that_is_shown_is_answered_as_shown(language, tmp_path):
    (log,) = regex.findall(r"```log\n(.*?)```", TEXTS[language], regex.DOTALL)
    (answer,) = regex.findall(r"```text\n(.*?)```", TEXTS[language], regex.DOTALL)
    (tmp_path / "crashed.log").write_text(log)
    done = run_logparse("diagnose", "crashed.log", "--lang", language, cwd=tmp_path, COLUMNS="80")
    assert (done.stdout.rstrip() + "\n", done.stderr, done.returncode) == (answer, "", 0)


@pytest.mark.parametrize("language", TEXTS)
def test_everything_is_named(language):
    named = set(regex.findall(r"`(\w+)`", TEXTS[language]))
    assert set(failure_words("en")["failure_names"]) | FAILED | {"completed", "cut_off", "unknown"} <= named
    assert set(GRADES.values()) | {signature.grade for signature in signatures() if signature.grade} <= named


def test_every_other_log_to_collect_is_named():
    named = set(regex.findall(r"`(\w+)`", TEXT))
    assert {signature.collect for signature in signatures() if signature.collect} <= named


def test_the_sizes_are_right():
    assert f"Within {NEAR_SECONDS:.0f} seconds, or {NEAR_LINES} lines" in TEXT
    assert f"within {SAME_STEPS} steps" in TEXT
