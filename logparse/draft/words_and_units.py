"""What labels and units mean in most logs: the words from which a format is drafted, and by which a near one is named.

The words are data, in ``words_and_units.toml``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import regex

from logparse.formats._base import NUMBER
from logparse.lazy_regex import lazy_regex
from logparse.package_tables import read_table

# A number, and the unit after it.
VALUE = lazy_regex(rf"({NUMBER})\s*([%A-Za-z][%A-Za-z/_]*)?")
# Units as they are printed, in a label or after a number, and the factor to the unit of the column.
_TIME = {"ms": 1.0, "msec": 1.0, "milliseconds": 1.0, "us": 0.001, "s": 1000.0, "sec": 1000.0, "secs": 1000.0}
_TIME |= {"seconds": 1000.0, "second": 1000.0, "min": 60_000.0}
_STEPS = ("it", "step", "iter", "iteration", "batch")
_BYTES = {"gib": 2.0**30, "gb": 1e9, "mib": 2.0**20, "mb": 1e6}
TIME, RUNTIME, PACE = "elapsed_time_per_iteration_ms", "runtime_seconds", "logged_seconds_per_step"
UNITS_OF: Mapping[str, Mapping[str, float]] = {
    TIME: {**_TIME, **{f"{unit}/{of}": scale for unit, scale in _TIME.items() for of in _STEPS}},
    RUNTIME: {**{unit: scale / 1000 for unit, scale in _TIME.items()}, "m": 60.0, "h": 3600.0},
    "logged_mfu": {"%": 0.01},
    "logged_hfu": {"%": 0.01},
    "max_memory_allocated_bytes": _BYTES,
    "max_memory_reserved_bytes": _BYTES,
}
# Values that have a unit and no label, by the spelling of the unit: their column.
BARE_UNITS: Mapping[str, str] = {
    **{unit: TIME for unit in UNITS_OF[TIME] if "/" in unit},
    **dict.fromkeys(("it/s", "step/s", "steps/s", "iter/s", "iters/s"), "logged_steps_per_second"),
    **dict.fromkeys(("samples/s", "samples/sec", "seq/s", "seqs/s"), "logged_samples_per_second"),
    **dict.fromkeys(
        ("tokens/s/gpu", "tok/s/gpu", "tokens/s/p", "tokens/s/device"), "logged_tokens_per_second_per_device"
    ),
}


# Words after a bare time that leave it the time of a step: ``4.36 s run``.
_OF_STEP = frozenset({"run", "step", "iter", "iteration", "total", "elapsed", "train", "per", "a"})
# Longer labels are prose.
LONGEST_LABEL = 80


def plain(label: str) -> str:
    """``label`` in lower case, one blank for whatever is no letter or digit."""
    return " ".join(regex.findall(r"[a-z0-9]+", label.lower()))


@cache
def _columns() -> dict[str, tuple[str, ...]]:
    sure = {word: (column,) for column, words in _table()["sure"].items() for word in words}
    return sure | {word: tuple(doubt["columns"]) for doubt in _table()["doubtful"] for word in doubt["words"]}


@cache
def _table() -> dict[str, Any]:
    return read_table(Path(__file__).parent / "words_and_units.toml")


def step_words() -> frozenset[str]:
    """Words that precede a step."""
    return frozenset(word.split()[-1] for word in _table()["sure"]["step"]) | {"steps", "batch"}


def _is_time(label: str) -> bool:
    """Whether ``label`` is a unit of the time of a step, as in ``ms/batch 12.3`` and ``seconds: 9.1``."""
    unit = label.strip().lower()
    return unit in UNITS_OF[TIME] and ("/" in unit or len(unit) > 1)


def unit_of(label: str) -> tuple[str, str]:
    """``label`` without the unit in it, and the unit; "" where there is none."""
    if _is_time(label):
        return label, label.strip().lower()
    match = regex.fullmatch(r"(.+?)(?:\s*[(\[]([\w/%]+)[)\]]|(?:_| in | )(ms|msec|s|sec|secs|seconds))", label.strip())
    return (match[1], (match[2] or match[3]).lower()) if match else (label, "")


def columns_of(label: str) -> tuple[str, ...]:
    """The column of the spelling of ``label``, several where it is ambiguous; none for other words."""
    if len(label) > LONGEST_LABEL:
        return ()
    if _is_time(label):
        return (TIME,)
    whole, bare = plain(label), plain(unit_of(label)[0])
    last = plain(label.rpartition("/")[2])
    return next((_columns()[word] for word in (whole, bare, last) if word in _columns()), _of_formats().get(whole, ()))


@cache
def _of_formats() -> dict[str, tuple[str, ...]]:
    """The column of labels of several words in the known formats, where all formats agree."""
    from logparse.formats import all_formats

    columns_by_label: dict[str, set[str]] = {}
    for label, reading in (each for fmt in all_formats() for each in fmt.labels.items()):
        columns_by_label.setdefault(plain(label), set()).add(reading.column)
    return {word: tuple(columns) for word, columns in columns_by_label.items() if len(columns) == 1 and " " in word}


def is_doubtful(label: str) -> bool:
    """Whether the spelling of ``label`` alone leaves its column open."""
    words = {word for doubt in _table()["doubtful"] for word in doubt["words"]}
    return plain(label) in words or plain(unit_of(label)[0]) in words


def unit_columns(unit: str, before: str = "") -> tuple[str, ...]:
    """The column of a number that has a unit and no label; ``/gpu`` goes on with the label ``before`` it."""
    if unit.startswith("/"):
        return columns_of(before + unit)
    first, *others = unit.lower().split(" ")
    if not others and first in BARE_UNITS:
        return (BARE_UNITS[first],)
    if first in _TIME and _OF_STEP.issuperset(others):
        return (TIME,)
    words = unit.lstrip("% ")
    return columns_of(words) or columns_of(words.rpartition(" ")[2])


def unit_scale(unit: str, column: str) -> float:
    """The factor of a number with ``unit`` and no label to the unit of ``column``."""
    first = "%" if unit.startswith("%") else unit.lower().partition(" ")[0]
    return UNITS_OF.get(column, {}).get(first, 1.0)
