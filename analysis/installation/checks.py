"""What is checked of an installation: versions, encoding, writable places, lines, a log, a failure, worked numbers.

Goes out: a result for each check. Its words are in the view.
"""

from __future__ import annotations

import locale
import os
import platform
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from analysis.installation.worked_numbers import WORKED_NUMBERS
from analysis.metrics import OF_ROWS
from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions
from logparse.decode.read_run import diagnose_run
from logparse.decode.samples import reads_its_samples
from logparse.errors import LogparseError
from logparse.formats import find_format
from logparse.light_dataclass import dataclass
from logparse.package_tables import read_table

_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[^]]*\])?\s*>=\s*([\d.]+)")
DEVELOPMENT = "extra == 'dev'"
# Characters of both languages that screens print.
_PRINTED = {"en": "% · \N{MICRO SIGN}", "zh": "训练：步耗时 % ·"}


@dataclass(frozen=True)
class InstallationCheck:
    """The result of a check. ``fields`` say what was found; ``wrong`` what is not as it should be."""

    code: str
    fields: Mapping[str, Any]
    wrong: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong


def check_installation(language: str, places: Mapping[str, Path]) -> tuple[InstallationCheck, ...]:
    """All checks. ``places`` are folders that must be writable, by their names, next to the temporary one."""
    golden = read_table(Path(__file__).parent / "golden.toml")
    return (
        _check_versions(),
        _check_encoding(language),
        _check_places({"temporary": _temporary(), **places}),
        _check_sample_lines(golden["formats"]),
        *_check_log(golden),
        _check_worked_numbers(),
    )


def _check_versions() -> InstallationCheck:
    """The versions of what is installed; wrong is what is missing or older than required."""
    try:
        required = metadata.requires("logparse") or []
    except metadata.PackageNotFoundError:
        return InstallationCheck("versions", {"packages": {}}, ("logparse",))
    versions: dict[str, str | None] = {"python": platform.python_version()}
    extras: dict[str, str] = {}
    wrong = []
    for text in required:
        match = _REQUIREMENT.match(text)
        if match is None or DEVELOPMENT in text:
            continue
        name, least = match.groups()
        version = _version(name)
        if "extra ==" in text:
            extras |= {name: version} if version else {}
            continue
        versions[name] = version
        if version is None or _numbers(version) < _numbers(least):
            wrong.append(f"{name}>={least}")
    return InstallationCheck("versions", {"packages": versions, "extras": extras}, tuple(wrong))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


def _check_encoding(language: str) -> InstallationCheck:
    """The encodings of output and names, and whether the system has the locale that is set."""
    output = getattr(sys.stdout, "encoding", None) or "utf-8"
    fields = {"output": output, "names": sys.getfilesystemencoding(), "locale": _locale_asked()}
    wrong = []
    try:
        _PRINTED[language].encode(output)
    except (UnicodeEncodeError, LookupError):
        wrong.append("output")
    kept = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, "")
    except locale.Error:
        wrong.append("locale")
    finally:
        locale.setlocale(locale.LC_CTYPE, kept)
    return InstallationCheck("encoding", fields, tuple(wrong))


def _locale_asked() -> str:
    return next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := os.environ.get(name))), "C")


def _check_places(places: Mapping[str, Path]) -> InstallationCheck:
    """Folders that are written to: a file is made in each and deleted. One that is missing is made when it is used."""
    wrong = [str(place) for place in places.values() if not _is_writable(place)]
    return InstallationCheck("places", {name: str(place) for name, place in places.items()}, tuple(wrong))


def _temporary() -> Path:
    """The folder of temporary files, also where none can be written."""
    try:
        return Path(tempfile.gettempdir())
    except OSError:
        return Path(os.environ.get("TMPDIR") or "/tmp")


def _is_writable(place: Path) -> bool:
    existing = next((folder for folder in (place, *place.absolute().parents) if folder.exists()), place)
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"logparse")
    except OSError:
        return False
    return True


def _check_sample_lines(names: Sequence[str]) -> InstallationCheck:
    """Sample lines of some formats, each with the row that it must become."""
    formats = [find_format(name) for name in names]
    lines = sum(len(fmt.samples) for fmt in formats)
    wrong = tuple(fmt.name for fmt in formats if not reads_its_samples(fmt))
    return InstallationCheck("sample_lines", {"formats": len(formats), "lines": lines}, wrong)


def _check_log(golden: Mapping[str, Any]) -> tuple[InstallationCheck, InstallationCheck]:
    """A whole log with its figures, and the text of a failure with its cause."""
    figures: dict[str, float | None] = {}
    family = "unknown"
    # Where nothing can be written, the check of places says so.
    with suppress(OSError, LogparseError), tempfile.TemporaryDirectory() as folder:
        log, failed = Path(folder, "run.log"), Path(folder, "failed.log")
        log.write_text(golden["log"], encoding="utf-8")
        failed.write_text(golden["failed"], encoding="utf-8")
        family = diagnose_run([str(failed)]).family
        run = analyze_logs([str(log)], RunOptions())
        figures = {metric.column: run.value(metric.column) for metric in OF_ROWS}
    wanted = golden["figures"]
    wrong = tuple(name for name, value in wanted.items() if not _is_close(figures.get(name), value))
    cause = () if family == golden["family"] else (family,)
    return (
        InstallationCheck("log", {name: figures.get(name) for name in wanted}, wrong),
        InstallationCheck("failure", {"family": family}, cause),
    )


def _is_close(value: float | None, wanted: float) -> bool:
    return value is not None and abs(value - wanted) <= 1e-12 * abs(wanted)


def _check_worked_numbers() -> InstallationCheck:
    """Numbers that the sources work out by hand."""
    computed = {number.name: number.compute() for number in WORKED_NUMBERS}
    wrong = tuple(number.name for number in WORKED_NUMBERS if not number.agrees(computed[number.name]))
    return InstallationCheck("worked_numbers", computed, wrong)
