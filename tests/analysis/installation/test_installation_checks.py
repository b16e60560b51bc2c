"""``logparse self-check``: it passes here, and each check fails for what it is there to find."""

import json
from dataclasses import replace
from importlib import metadata

import pytest
from helpers import ROOT, run_logparse

from analysis.installation import checks
from analysis.installation.worked_numbers import WORKED_NUMBERS
from analysis.present.views.self_check import NAMES, REMEDIES, self_check_parts
from logparse.formats import find_format
from logparse.package_tables import read_table

GOLDEN = read_table(ROOT / "analysis/installation/golden.toml")


def test_this_installation_passes(tmp_path):
    done = run_logparse("self-check", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert (done.returncode, document["passed"]) == (0, True)
    found = {check["code"]: check["fields"] for check in document["checks"]}
    assert list(found) == list(NAMES) == list(REMEDIES)
    assert found["versions"]["packages"]["polars"] == metadata.version("polars")
    assert "pytest" not in found["versions"]["extras"]
    assert found["log"] == GOLDEN["figures"]
    assert found["worked_numbers"] == {number.name: pytest.approx(number.value) for number in WORKED_NUMBERS}
    assert list(tmp_path.iterdir()) == []


def test_wrong_figures_fail():
    log, failure = checks._check_log(
        GOLDEN | {"figures": {"tokens_per_second_per_device": 13107.3}, "family": "network"}
    )
    assert (log.wrong, failure.wrong) == (("tokens_per_second_per_device",), ("device_memory",))
    (unread, _) = checks._check_log(GOLDEN | {"log": "no step line\n"})
    assert unread.wrong == tuple(GOLDEN["figures"])


def test_a_wrong_number_fails(monkeypatch):
    off = replace(WORKED_NUMBERS[0], compute=lambda: WORKED_NUMBERS[0].value * (1 + 1e-9))
    unknown = replace(WORKED_NUMBERS[1], compute=lambda: None)
    monkeypatch.setattr(checks, "WORKED_NUMBERS", (off, unknown, WORKED_NUMBERS[2]))
    assert checks._check_worked_numbers().wrong == (off.name, unknown.name)


def test_a_misread_line_fails(monkeypatch):
    right = find_format("torchtitan")
    wrong = replace(right, samples=(replace(right.samples[0], row={"step": 4}),))
    monkeypatch.setattr(checks, "find_format", lambda name: wrong)
    assert checks._check_sample_lines(["torchtitan"]).wrong == ("torchtitan",)


def test_an_old_or_missing_package_fails(monkeypatch):
    required = ["polars>=99", "no-such-package>=1", "rich>=1", 'mcp>=2; extra == "mcp"', "swanlab>=99; extra == 'x'"]
    monkeypatch.setattr(metadata, "requires", lambda name: required)
    assert checks._check_versions().wrong == ("polars>=99", "no-such-package>=1")


def test_a_folder_that_cannot_be_written_fails(tmp_path):
    (tmp_path / "file").write_text("")
    found = checks._check_places({"new": tmp_path / "new" / "folder", "history": tmp_path / "file" / "folder"})
    assert found.wrong == (str(tmp_path / "file" / "folder"),)


def test_a_locale_that_is_missing_fails(monkeypatch):
    monkeypatch.setenv("LC_ALL", "xx_YY.UTF-8")
    assert checks._check_encoding("en").wrong == ("locale",)


def test_each_failed_check_has_a_remedy(tmp_path, monkeypatch):
    failed = [checks.InstallationCheck(code, {}, ("this",)) for code in NAMES]
    monkeypatch.setattr("analysis.commands.self_check.check_installation", lambda *_: failed)
    done = run_logparse("self-check", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert (done.returncode, document["passed"]) == (1, False)
    assert [check["remedy"] for check in document["checks"]] == list(REMEDIES.values())
    rows, _ = self_check_parts(failed)
    assert all(row.clauses == ["wrong: this", REMEDIES[code]] for row, code in zip(rows.rows, NAMES, strict=True))
    assert "7 of 7 checks failed" in run_logparse("self-check", cwd=tmp_path).stdout
