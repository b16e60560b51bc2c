"""What the line of a cause says beyond its kind: figures and names for the next step."""

import string

import pytest

from analysis.present.parts import ScreenRows
from analysis.present.views.ending import ending_parts
from analysis.present.words import words
from logparse.decode.read_run import diagnose_run
from logparse.failures.details import complete_details, detail_of, detail_patterns
from logparse.failures.frames import frames_above
from logparse.failures.signatures import remedies
from logparse.language import LANGUAGES

ERROR = "TypeError: a"
SAMPLES = [
    (entry, sample, remedy) for entry in detail_patterns() for sample in entry.sample for remedy in entry.remedies
]


def test_each_detail_reads_its_samples():
    wrong = {}
    for entry, sample, remedy in SAMPLES:
        found = detail_of(remedy, sample, calls=frames_above([sample], ERROR))
        if found is None or found[0] != entry.code or not all(found[1].values()):
            wrong[sample] = (remedy, entry.code, found)
    assert wrong == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_words_of_a_detail_use_its_figures(language):
    table = words(language)["details"]
    assert table.keys() == {entry.code for entry in detail_patterns()}
    for entry in detail_patterns():
        named = {name for _, name, _, _ in string.Formatter().parse(table[entry.code]) if name}
        assert named == set(entry.groups), entry.code


def test_details_belong_to_remedies():
    assert {remedy for entry in detail_patterns() for remedy in entry.remedies} <= set(remedies())
    assert complete_details() <= {entry.code for entry in detail_patterns()}


def test_lines_below_count_only_where_a_detail_is_there():
    mismatch = (
        "\tsize mismatch for a.b: copying a param with shape torch.Size([8]) from checkpoint, "
        "the shape in current model is torch.Size([9])."
    )
    assert detail_of("checkpoint_keys", "RuntimeError: Error(s) in loading state_dict for A:", mismatch) == (
        "size_of_parameter",
        {"name": "a.b", "saved": "[8]", "current": "[9]"},
    )
    assert detail_of("install", "ImportError: x", "ModuleNotFoundError: No module named 'apex'") is None


def next_step(tmp_path, text):
    path = tmp_path / "run.log"
    path.write_text(f"{text}\n")
    (rows,) = (part for part in ending_parts(diagnose_run([str(path)])) if isinstance(part, ScreenRows))
    return " | ".join(str(row) for row in rows.rows)


def test_a_step_that_is_complete_stands_alone(tmp_path):
    shown = next_step(tmp_path, "ModuleNotFoundError: No module named 'apex'")
    assert "install what provides the module apex" in shown
    assert "that the line names" not in shown


def test_a_line_of_own_code_failed_itself_where_no_library_is_below_it():
    own = ['File "/home/a/train.py", line 3, in main', "    f(x)"]
    library = ['File "/usr/lib/python3.11/json/decoder.py", line 9, in decode']
    named = {"path": "train.py", "line": "3", "name": "main"}
    assert detail_of("versions_of_code", ERROR, calls=frames_above(own, ERROR)) == ("raised_here", named)
    assert detail_of("versions_of_code", ERROR, calls=frames_above(own + library, ERROR)) is None
