"""The command as it was typed, for the foot of a page: without secrets, and without where the page was put."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence

from logparse.inputs.stores import is_url, shown

# Options of where a result goes and who computes it: those with a value, and those without one.
PLACED = ("-o", "--out", "--engine", "--shard")
ALONE = ("--force", "-q", "--quiet", "-v", "--verbose", "--json", "--markdown", "--no-color")


def command_as_given() -> str:
    """The command line in use; URLs lose the parts that may hold a secret."""
    return shlex.join(["logparse", *_kept(sys.argv[1:])])


def _kept(words: Sequence[str]) -> Iterator[str]:
    left = iter(words)
    for word in left:
        name, sign, value = word.partition("=")
        if name in PLACED:
            if not sign:
                next(left, None)
        elif word not in ALONE and not (word.startswith("-o") and not word.startswith("--")):
            yield f"{name}={shown(value)}" if is_url(value) else shown(word)
