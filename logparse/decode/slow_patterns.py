"""A pattern of a format that takes too long on one text is stopped, with the name of the format.

Patterns for polars take a time in proportion to the text. The regex module goes back and tries again, so that a pattern
such as ``(a+)+$`` takes twice as long for each further character.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from logparse.errors import InputError
from logparse.language import tr

# The patterns of this package take milliseconds on the longest text they are given.
SECONDS = 2.0


@contextmanager
def stopped_by_name(name: str) -> Iterator[None]:
    """Raise InputError where a pattern of the format ``name`` is stopped."""
    try:
        yield
    except TimeoutError as error:
        problem = tr(
            "a pattern of the format {name!r} takes more than {seconds:g} s on one line", seconds=SECONDS, name=name
        )
        raise InputError(
            problem, remedy=tr("rewrite the pattern without a repeat inside a repeat, such as (a+)+")
        ) from error
