"""Names, docstrings and comments use the words of the field."""

import pytest
from helpers import ROOT
from plain_names import offences


@pytest.mark.parametrize("package", ["logparse", "analysis"])
def test_no_word_is_used_that_the_field_has_a_better_one_for(package):
    """`python tests/support/plain_names.py` says what to write instead."""
    found = [
        f"{path.relative_to(ROOT)}:{line} {name}: {word}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, word, name in offences(path)
    ]
    assert found == []


SOURCE = '''"""What no line tells."""

told = {}


def odd_rows(beside):  # as usual
    """One."""
    return info("code", told=1)
'''


def test_a_word_is_seen_wherever_it_is(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    assert sorted(word for _, word, _ in offences(path)) == ["beside", "odd", "tells", "told", "usual"]
