"""What docs/trust.md says is what the product says."""

import regex
from complaints import COMPLAINTS
from helpers import ROOT
from second_opinion import FUNCTIONS, RUNS
from work_settings import VERSIONS

PAGE = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")


def test_each_thread_is_in_a_row_of_its_cause():
    rows = regex.findall(r"^\| [^|]+ \| (`\w+`|none) \| (.+) \|$", PAGE, regex.MULTILINE)
    causes = {thread: code.strip("`") for code, threads in rows for thread in threads.split(", ")}
    assert set(causes) == {complaint["thread"] for complaint in COMPLAINTS}
    for complaint in COMPLAINTS:
        assert causes[complaint["thread"]] in (complaint["codes"] or ["none"])


def test_the_counts_are_right():
    assert f"{len(FUNCTIONS)} counts of the frameworks' own functions" in PAGE
    assert f"For {len(RUNS)} TFLOP/s that" in PAGE
    assert f"each setting of {len(VERSIONS)} versions" in PAGE


def test_the_files_it_names_exist():
    paths = [path.rstrip("/") for path in regex.findall(r"`((?:tests|fixtures)/[\w./-]+)`", PAGE)]
    assert len(paths) >= 3
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_readme_links_it():
    assert "(docs/trust.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
