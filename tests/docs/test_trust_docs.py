"""What docs/trust.md shows is what the product says."""

import pytest
import regex
from complaints import COMPLAINTS, table
from helpers import ROOT
from second_opinion import functions_table, runs_table
from work_settings import HARMLESS, work_table

PATH = ROOT / "docs" / "trust.md"


def written(name, lines, update):
    """The lines between the marks of ``name``; made anew from ``lines`` where that is asked for."""
    page = PATH.read_text(encoding="utf-8")
    marks = regex.compile(rf"(<!-- {name} -->\n).*?(\n?<!-- end of {name} -->)", regex.DOTALL)
    if update:
        page = marks.sub(lambda found: found[1] + lines + "\n" + found[2].lstrip(), page)
        PATH.write_text(page, encoding="utf-8")
    found = marks.search(page)
    assert found
    return found[0].split("\n", 1)[1].rsplit("\n", 1)[0]


def test_the_table_of_complaints_is_what_is_said(tmp_path, update_goldens):
    made = table(tmp_path)
    assert written("complaints", made, update_goldens) == made
    assert len(COMPLAINTS) >= 20


@pytest.mark.parametrize(("name", "lines"), [("functions", functions_table), ("runs", runs_table)])
def test_a_table_of_the_second_opinion_is_what_is_computed(name, lines, update_goldens):
    made = "\n".join(lines())
    assert written(name, made, update_goldens) == made


def test_the_table_of_settings_that_change_the_work_is_what_the_formats_read(update_goldens):
    made = "\n".join(work_table())
    assert written("work", made, update_goldens) == made


def test_the_settings_without_effect_are_listed(update_goldens):
    reasons = {reason: [name for name, other in HARMLESS.items() if other == reason] for reason in HARMLESS.values()}
    rows = [f"| {', '.join(f'`{name}`' for name in names)} | {reason} |" for reason, names in reasons.items()]
    made = "\n".join(["| setting | reason |", "| --- | --- |", *rows])
    assert written("harmless", made, update_goldens) == made


def test_the_files_it_names_exist():
    page = PATH.read_text(encoding="utf-8")
    named = [path.rstrip("/") for path in regex.findall(r"`((?:tests|fixtures)/[\w./-]+)`", page)]
    assert len(named) >= 3
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_readme_links_it():
    assert "(docs/trust.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
