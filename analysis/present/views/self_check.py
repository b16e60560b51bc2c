"""The checks of an installation: a row each for people, a document for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import logparse
from analysis.installation.checks import InstallationCheck
from analysis.present.as_json import plain
from analysis.present.parts import Part, ScreenRow, ScreenRows, Sentence
from logparse.language import msg, speaking, tr
from logparse.schema import SCHEMA_VERSION

# What is checked, what was found where it is well, and what to do where it is not. Fields fill the last two.
NAMES = {
    "versions": msg("versions"),
    "encoding": msg("encoding and locale"),
    "places": msg("writable folders"),
    "sample_lines": msg("sample lines"),
    "log": msg("log of a worked example"),
    "failure": msg("cause of a failure"),
    "worked_numbers": msg("numbers of the sources"),
}
REMEDIES = {
    "versions": msg("install again: pip install --upgrade logparse"),
    "encoding": msg("set LANG=C.UTF-8, or install the locale"),
    "places": msg("free some disk space, or check the permissions; TMPDIR sets the temporary folder"),
    "sample_lines": msg("install again: pip install --force-reinstall logparse"),
    "log": msg("install again; then report the output of logparse self-check --json"),
    "failure": msg("install again; then report the output of logparse self-check --json"),
    "worked_numbers": msg("install again; then report the output of logparse self-check --json"),
}


def self_check_parts(checks: Sequence[InstallationCheck]) -> list[Part]:
    """A row for each check, then the verdict."""
    rows = [ScreenRow(tr(NAMES[check.code]), _result(check), _clauses(check)) for check in checks]
    failed = sum(not check.passed for check in checks)
    last = tr("{n} of {of} checks failed", n=failed, of=len(checks)) if failed else tr("all checks passed")
    return [
        ScreenRows(rows),
        Sentence(tr("logparse {version}: {verdict}", version=logparse.__version__, verdict=last)),
    ]


def _result(check: InstallationCheck) -> str:
    return tr("ok") if check.passed else tr("failed")


def _clauses(check: InstallationCheck) -> list[str]:
    """What was found, or what is wrong and what to do."""
    fields, remedy = check.fields, _remedy(check)
    if remedy is not None:
        return [tr("wrong: {names}", names=", ".join(check.wrong)), remedy]
    if check.code == "versions":
        return [f"{name} {version}" for name, version in {**fields["packages"], **fields["extras"]}.items()]
    if check.code == "sample_lines":
        return [tr("{lines} lines of {formats} formats", **fields)]
    if check.code == "worked_numbers":
        return [tr("{n} numbers agree", n=len(fields))]
    if check.code == "log":
        return [tr("{n} figures agree", n=len(fields))]
    return [str(value) for value in fields.values()]


def _remedy(check: InstallationCheck) -> str | None:
    return None if check.passed else tr(REMEDIES[check.code])


def self_check_document(checks: Sequence[InstallationCheck]) -> dict[str, Any]:
    """The JSON document, the same in every language."""
    with speaking("en"):
        return {
            "schema_version": SCHEMA_VERSION,
            "version": logparse.__version__,
            "passed": all(check.passed for check in checks),
            "checks": [
                {
                    "code": check.code,
                    "passed": check.passed,
                    "fields": plain(check.fields),
                    "wrong": list(check.wrong),
                    "remedy": _remedy(check),
                }
                for check in checks
            ],
        }
