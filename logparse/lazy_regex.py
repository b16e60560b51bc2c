"""A regex that is compiled where it is first used: a log of a run that completed needs few of them."""

from __future__ import annotations

from typing import Any, cast

import regex


def lazy_regex(pattern: str, flags: int = 0) -> regex.Pattern[str]:
    """What ``regex.compile`` returns, as far as its methods and its ``pattern`` are concerned."""
    return cast("regex.Pattern[str]", _LazyRegex(pattern, flags))


class _LazyRegex:
    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(regex.compile(self.pattern, self._flags), name)
        setattr(self, name, method)
        return method
