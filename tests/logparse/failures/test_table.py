"""The table of failures: one block says all of a failure, and the rows that no case reaches become fewer."""

import subprocess
import sys
from pathlib import Path

import pytest

from logparse.failures import scan, signatures, table
from logparse.failures.general import words_for
from logparse.failures.scan import find_hits
from logparse.inputs.blocks import TextBlock
from logparse.language import LANGUAGES

# The files of failed runs, and how many rows none of them reaches: this number may only fall.
CASES = Path(__file__).parent / "cases"
MOST_UNREACHED = 414
NEW_FAILURE = """
from logparse.failures import table
rows = {
    "melted": {
        "family": "hardware",
        "cause": {"en": "a device melted", "zh": "设备熔化"},
        "step": {"en": "cool the room", "zh": "给机房降温"},
        "signature": {"test.melted": {"marks": ["device melted"], "sample": "device melted: 900 C"}},
        "general": [{"words": "turned to vapour", "sample": "ValueError: it turned to vapour"}],
        "detail": {"heat": {
            "pattern": r"melted: (?P<degrees>\\d+) C", "sample": "device melted: 900 C",
            "text": {"en": "it had {degrees} C, cool it", "zh": "温度为 {degrees} C，请降温"},
        }},
    }
}
failures = (*table.failures(), *rows.items())
table.failures = lambda: failures
from logparse.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("line", "language", "cause", "step"),
    [
        ("device melted: 900 C", "en", "a device melted", "it had 900 C, cool it"),
        ("device melted: 900 C", "zh", "设备熔化", "温度为 900 C，请降温"),
        ("ValueError: it turned to vapour", "en", "a device melted", "cool the room"),
    ],
)
def test_one_block_adds_a_failure(line, language, cause, step, tmp_path):
    (tmp_path / "run.log").write_text(f"{line}\n")
    command = [sys.executable, "-c", NEW_FAILURE, "diagnose", str(tmp_path / "run.log"), "--lang", language]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    assert cause in done.stdout
    assert step in done.stdout


def test_each_failure_is_said_in_each_language():
    words_of = {code: set() for code, _ in table.failures()}
    for code, failure in table.failures():
        fields = failure.keys() & {"name", "cause", "step"}
        assert all(failure[field].keys() == set(LANGUAGES) for field in fields), code
        words_of[code] |= fields
    families = {code for code, fields in words_of.items() if "name" in fields}
    assert [code for code in families if "cause" not in words_of[code]] == []
    assert [code for code, fields in words_of.items() if "step" not in fields] == []
    assert {failure.get("family", code) for code, failure in table.failures() if "step" in failure} <= families


def test_code_and_rows_use_the_same_traits():
    folder = Path(table.__file__).parent
    code = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    legend = (folder / "rules" / "README.md").read_text(encoding="utf-8").partition("## Traits")[2]
    for trait in {trait for row in table.rows("signature") for trait in row.get("traits", ())}:
        assert f'"{trait}"' in code, trait
        assert f"`{trait}`" in legend, trait


def unreached(monkeypatch):
    """The rows that no line of the cases reaches."""
    reached = set()

    def first(rules, text, read=scan._first):
        found = read(rules, text)
        reached.update([found[0].id] if found else [])
        return found

    def general(text):
        entry = words_for(text)
        reached.update([entry.sample] if entry else [])
        return entry

    monkeypatch.setattr(scan, "_first", first)
    monkeypatch.setattr(signatures, "words_for", general)
    scan._remembered_hit.cache_clear()
    scan._rules_of_kind.cache_clear()
    for path in CASES.glob("*.log"):
        text = path.read_bytes()
        reached.update(hit.detail for hit in find_hits(TextBlock(path.name, 1, text.count(b"\n"), True, text)))
    every = {
        "signature": {row["id"]: row["id"] for row in table.rows("signature")},
        "general": {row["sample"]: f"{row['remedy']}: {row['sample'][0]}" for row in table.rows("general")},
        "detail": {row["code"]: row["code"] for row in table.rows("detail")},
    }
    return [f"{kind} {name}" for kind, rows in every.items() for key, name in rows.items() if key not in reached]


def test_rows_that_no_case_reaches_become_fewer(monkeypatch):
    rows = unreached(monkeypatch)
    sys.stdout.write("\n".join(rows))
    assert len(rows) <= MOST_UNREACHED, f"a new row needs a case: {len(rows)} rows are unreached"
