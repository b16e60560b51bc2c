"""Parts of many runs, each computed by itself, as by the tasks of a job array; `logparse merge` puts them together.

The account of a part says of which whole it is one: parts of one whole were computed from the same logs, with the same
options, by the same logparse.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

import regex

import logparse
from analysis.run.options import RunOptions
from logparse.errors import InputError, UsageError
from logparse.language import tr
from logparse.schema import SCHEMA_VERSION

SHARDS = "shards"

T = TypeVar("T")


@dataclass(frozen=True, order=True)
class Shard:
    """Part ``number``, counted from 1, of ``of``. As text it is what --shard takes."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def folder(self) -> str:
        """Where its results are, in the folder of -o."""
        return f"{SHARDS}/{self.number}-of-{self.of}"

    def part(self, runs: Sequence[T]) -> Sequence[T]:
        """Its part of ``runs``: neighbours, so that all parts in order are all runs. With few runs some are empty."""
        begin, end = (number * len(runs) // self.of for number in (self.number - 1, self.number))
        return runs[begin:end]


def parse_shard(text: str) -> Shard:
    """The shard of a text such as 2/4. Raises UsageError for any other text."""
    match = regex.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    if not match or int(match[1]) > int(match[2]):
        remedy = tr("write --shard i/n with i from 1 to n, such as 2/4; check that the shell variables are set")
        raise UsageError(tr("{name} is {value!r}", name="--shard", value=text), remedy=remedy)
    return Shard(int(match[1]), int(match[2]))


@dataclass(frozen=True)
class Whole:
    """What all shards of one call are parts of: so many ``runs``, whose names and logs have a digest, in ``of`` parts.

    ``options`` are those on which results depend, by their names.
    """

    of: int
    runs: int
    logs: str
    logparse: str
    options: Mapping[str, str]

    def differences(self, other: Whole) -> list[str]:
        """The names of what is not the same in ``other``."""
        mine, theirs = _flat(self), _flat(other)
        return [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]


def _flat(whole: Whole) -> dict[str, Any]:
    values = asdict(whole)
    return {**values.pop("options"), **values}


def whole_of(runs: Sequence[tuple[str, Sequence[str]]], how: RunOptions, drawn: Mapping[str, str], of: int) -> Whole:
    """The whole of ``runs``, computed as ``how`` says; ``drawn`` are options of the pictures."""
    runs_text = json.dumps([(name, list(logs)) for name, logs in runs])
    return Whole(of, len(runs), _digest(runs_text), logparse.__version__, {**_options(how), **drawn})


def _options(how: RunOptions) -> dict[str, str]:
    """The options that the numbers depend on; how many blocks are read at once is not one of them."""
    not_options = ("given", "jobs", "formula", "published", "requirements")
    options = {field.name: getattr(how, field.name) for field in fields(how) if field.name not in not_options}
    rows = json.dumps([asdict(row) for row in how.published], sort_keys=True)
    options |= {"formula": how.formula.name, "baseline_file": _digest(rows)}
    options |= {"require": "; ".join(map(str, how.requirements)) or None}
    layers = {name: repr(fact) for layer in reversed(how.given.layers) for name, fact in layer.items()}
    return {name: str(value) for name, value in {**options, **layers}.items() if value is not None}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Failure:
    """Why a run could not be read, in the words that the user saw."""

    exit_code: int
    text: str
    run: str = ""


@dataclass(frozen=True)
class Account:
    """The result of one shard: the runs that were read, the tables they fill, and the errors of the others."""

    shard: Shard
    whole: Whole
    read: Sequence[str]
    tables: Sequence[str]
    failed: Sequence[Failure]

    def to_json(self) -> bytes:
        """What the file of the account holds."""
        return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(self)}, indent=1).encode()


def account_from(data: bytes, place: str) -> Account:
    """The account in the file at ``place``. Raises InputError if the file holds none."""
    try:
        document = json.loads(data)
        failed = tuple(Failure(**failure) for failure in document["failed"])
        shard, whole = Shard(**document["shard"]), Whole(**document["whole"])
        return Account(shard, whole, document["read"], document["tables"], failed)
    except (ValueError, KeyError, TypeError) as error:
        problem = tr("cannot read {path}: {reason}", path=place, reason=error)
        raise InputError(problem, remedy=tr("run the shard again with --force")) from error
