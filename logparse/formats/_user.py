"""A format of the user's own, from a TOML file: the same fields as in this folder, and no code.

Comes in: a file. Goes out: a LogFormat. polars matches its patterns, in time proportional to the text for every
pattern. Settings are given by flags or ``--config``.

    title = "Our trainer"
    marker = ["| time "]
    head = 'step (?P<step>\\d+)/(?P<train_steps>\\d+) \\|'
    pair = '(\\w+) ([^|]*?)\\s*\\|'
    ignored = ["colour"]

    [labels]
    loss = "loss"
    time = { column = "elapsed_time_per_iteration_ms", scale = 1000, suffix = " s" }
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import Any, get_args

import polars as pl

from logparse.errors import InputError, reason_of, unknown_name
from logparse.formats._base import UNIT_GROUPS, Covers, Data, LogFormat, PairLines, Reading
from logparse.language import msg, tr
from logparse.schema import DECODED_COLUMNS

NEEDED = ("marker", "head")
# To build a regex of ten thousand alternatives takes seconds for each block of a log.
LONGEST_PATTERN = 10_000
# Sets of columns that give the step.
STEP = (frozenset({"step"}), frozenset({"epochs_done"}), frozenset({"epoch", "step_in_epoch"}))
TEXTS = ("title", "head", "pair", "separator", "foreign")
LISTS = ("marker", "ignored", "ignored_patterns", "required")
FLAGS = ("redrawn", "pauses_inside")
COVERS: tuple[str, ...] = get_args(Covers)
DATA: tuple[str, ...] = get_args(Data)
_Reader = Callable[[str, str, Any], Any]
COLUMNS = tuple(column.name for column in DECODED_COLUMNS)
# The fields of a Reading, and their types.
OF_LABEL: Mapping[str, tuple[type, ...]] = {
    "column": (str,),
    "scale": (int, float),
    "suffix": (str,),
    "absent": (str,),
    "multiples": (bool,),
}


def read_format(path: str) -> LogFormat:
    """The format that the file ``path`` describes, called as the file.

    Raises InputError for a file that cannot be read or is incomplete, UsageError for a column or a word
    that does not exist.
    """
    return make_format(_table(path), path)


def make_format(table: Mapping[str, Any], path: str) -> LogFormat:
    """The format that ``table`` describes, called as the file ``path``. Raises as ``read_format`` does."""
    for name in table:
        if name not in (known := (*_WORDS, *_CHOICES, "labels")):
            raise unknown_name(msg("setting"), name, known, tr("in {path}", path=path))
    if missing := [name for name in _needed(table) if not table.get(name)]:
        raise _wrong(path, tr("{names} is missing", names=", ".join(missing)))
    words = _settings(path, table, _WORDS)
    labels = dict(_readings(path, table.get("labels", {})))
    _check_patterns(path, words, {reading.column for reading in labels.values()})
    fields = {"title": Path(path).stem, "pair": "", "required": ("step",), **words}
    fields |= _settings(path, table, _CHOICES)
    return LogFormat(name=Path(path).stem, framework=fields["title"], labels=labels, **fields)


def _settings(path: str, table: Mapping[str, Any], readers: Mapping[str, _Reader]) -> dict[str, Any]:
    return {name: read(path, name, table[name]) for name, read in readers.items() if name in table}


def _needed(table: Mapping[str, Any]) -> tuple[str, ...]:
    """The required fields. A head with all values needs no pair; pair and labels need each other."""
    if "pair_lines" in table:
        return (*NEEDED, "labels")
    return (*NEEDED, "pair") if table.get("labels") else (*NEEDED, "labels") if table.get("pair") else NEEDED


def _table(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        problem = tr("cannot read {path}: {reason}", path=path, reason=reason_of(error))
        raise InputError(problem, remedy=tr("check the path given with --format")) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _wrong(path, tr("not a TOML file: {reason}", reason=error)) from error


def _wrong(path: str, problem: str) -> InputError:
    remedy = tr("see docs/formats.md; put regular expressions in single quotes")
    return InputError(problem, where=path, remedy=remedy)


def _text(path: str, name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(path, tr("{name} is {value!r}, not a string", name=name, value=value))
    return value


def _one_of(known: tuple[str, ...], path: str, name: str, value: Any) -> str:
    if value not in known:
        problem = tr("{name} is {value!r}, not one of {known}", name=name, value=value, known=", ".join(known))
        raise _wrong(path, problem)
    return str(value)


def _texts(path: str, name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) and text for text in value):
        raise _wrong(path, tr("{name} is {value!r}, not a list of strings", name=name, value=value))
    return tuple(value)


def _set(path: str, name: str, value: Any) -> frozenset[str]:
    return frozenset(_texts(path, name, value))


def _flag(path: str, name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(path, tr("{name} is {value!r}, not true or false", name=name, value=value))
    return value


def _pair_lines(path: str, name: str, value: Any) -> PairLines:
    """The lines after a step line that hold more of its pairs."""
    if not isinstance(value, dict):
        raise _wrong(path, tr("{name} is {value!r}, not a table", name=name, value=value))
    for setting in value:
        if setting not in ("marker", "pair"):
            raise unknown_name(msg("setting"), setting, ("marker", "pair"), tr("in {path}", path=path))
    marker, pair = _texts(path, "marker", value.get("marker", [])), _text(path, "pair", value.get("pair", ""))
    if not (marker and pair):
        raise _wrong(path, tr("{names} is missing", names=name))
    _check_patterns(path, {"pair": pair}, set())
    return PairLines(marker, pair)


def _readings(path: str, labels: Any) -> Iterable[tuple[str, Reading]]:
    if not isinstance(labels, dict):
        raise _wrong(path, tr("{name} is {value!r}, not a table", name="labels", value=labels))
    for label, entry in labels.items():
        fields = {"column": entry} if isinstance(entry, str) else entry
        if not isinstance(fields, dict) or "column" not in fields:
            raise _wrong(path, tr("label {label!r} has no column", label=label))
        for name, value in fields.items():
            if name not in OF_LABEL:
                raise unknown_name(msg("setting"), name, OF_LABEL, tr("in {path}", path=path))
            if not isinstance(value, OF_LABEL[name]):
                raise _wrong(
                    path, tr("{name} of label {label!r} is invalid: {value!r}", name=name, label=label, value=value)
                )
        column = fields["column"]
        if column not in COLUMNS:
            raise unknown_name(
                msg("column"), column, COLUMNS, tr("`logparse formats megatron` shows columns and units")
            )
        yield label, Reading(**fields)


def _check_patterns(path: str, words: Mapping[str, Any], of_labels: AbstractSet[str]) -> None:
    """Check that every pattern compiles and has its groups. The step is a group of the head or in ``of_labels``."""
    patterns = [(name, words[name]) for name in ("head", "pair", "separator", "foreign") if name in words]
    patterns += [("ignored_patterns", pattern) for pattern in words.get("ignored_patterns", ())]
    for name, pattern in patterns:
        groups = _groups(path, name, pattern)
        if name == "head" and not any(columns <= {*of_labels, *groups} for columns in STEP):
            raise _wrong(path, tr("{name} has no group {group}", name="head", group="(?P<step>...)"))
        if name == "pair" and len(groups) != 2 and sorted(groups) != sorted(UNIT_GROUPS):
            raise _wrong(path, tr("pair has {n} groups instead of two: label and value", n=len(groups)))


def _groups(path: str, name: str, pattern: str) -> list[str]:
    if len(pattern) > LONGEST_PATTERN:
        raise _wrong(path, tr("{name} is longer than {n} characters", name=name, n=LONGEST_PATTERN))
    try:
        return pl.select(pl.lit("").str.extract_groups(pattern).struct.unnest()).columns
    except pl.exceptions.PolarsError as error:
        reason = str(error).partition("\n\n")[0].strip()
        raise _wrong(path, tr("{name} is not a valid regex: {reason}", name=name, reason=reason)) from error


# What reads each setting, from the path, its name and its value; the labels need all of them.
_WORDS: Mapping[str, _Reader] = {
    **dict.fromkeys(TEXTS, _text),
    **dict.fromkeys(LISTS, _texts),
    **dict.fromkeys(("ignored",), _set),
}
_CHOICES: Mapping[str, _Reader] = {
    **dict.fromkeys(FLAGS, _flag),
    "rate_covers": partial(_one_of, COVERS),
    "trains_on": partial(_one_of, DATA),
    "pair_lines": _pair_lines,
}
