"""What failed, by words that many libraries use: read where no signature knows the line, see ``rules``."""

from __future__ import annotations

from functools import cache, cached_property, lru_cache
from typing import Any

import regex

from logparse.failures.line_kinds import MOST_KINDS, blurred, kind_of
from logparse.failures.table import rows
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass, replace

# The type of an exception, without its module, and what it says. Ray and others name the type in parentheses.
_EXCEPTION = lazy_regex(
    r"(?:[A-Za-z_]\w*\.)*(?P<type>[A-Z]\w*|[a-z]+error)(?:\((?P<inner>[A-Z]\w*)\))?"
    r"(?:\(RANK \d+\))?(?::\s*(?P<message>.*)|\s*$)"
)
# Where a message quotes an object: the words in it are about anything.
_OBJECT = lazy_regex(r"[\[(]\{|\{['\"]")
# Characters of a message that are read: what comes later is a quotation or a list.
LONGEST_MESSAGE = 600


@dataclass(frozen=True)
class GeneralWords:
    """Words in general use; ``rules/README.md`` explains each field."""

    family: str
    remedy: str
    sample: tuple[str, ...]
    types: str = ""
    words: str = ""
    role: str = "root"
    grade: str = "supported"

    @cached_property
    def _types(self) -> regex.Pattern[str] | None:
        return regex.compile(self.types) if self.types else None

    @cached_property
    def _words(self) -> regex.Pattern[str] | None:
        return regex.compile(self.words, regex.IGNORECASE) if self.words else None

    @cached_property
    def blurred(self) -> GeneralWords:
        """What fits the kind of each message that this entry fits."""
        types, words = blurred(self.types), blurred(self.words)
        return self if (types, words) == (self.types, self.words) else replace(self, types=types, words=words)

    def fits(self, kind: str, message: str) -> bool:
        """Whether an exception of the type ``kind``, or one that says ``message``, is about this."""
        named = self._types is not None and bool(kind) and self._types.fullmatch(kind) is not None
        return named or (self._words is not None and self._words.search(message) is not None)


@cache
def general_words() -> tuple[GeneralWords, ...]:
    """All entries, in the order in which they count."""
    return tuple(GeneralWords(**{name: _joined(name, value) for name, value in row.items()}) for row in rows("general"))


def _joined(name: str, value: Any) -> Any:
    """A field of a row: of several expressions one that fits what any of them fits."""
    return "|".join(value) if name in ("types", "words") and not isinstance(value, str) else value


def words_for(text: str) -> GeneralWords | None:
    """The first entry that fits ``text``, which begins with the type of an exception or is a message alone."""
    match = _EXCEPTION.match(text)
    kind = (match["inner"] or match["type"]) if match else ""
    message = (match["message"] or "") if match else text
    spoken = _OBJECT.split(message[:LONGEST_MESSAGE], maxsplit=1)[0]
    fitting = _of_kind(kind_of(kind), kind_of(spoken))
    return next((entry for entry in fitting if entry.fits(kind, spoken)), None)


@lru_cache(MOST_KINDS)
def _of_kind(kind: str, spoken: str) -> tuple[GeneralWords, ...]:
    """The entries that may fit messages of a kind."""
    return tuple(entry for entry in general_words() if entry.blurred.fits(kind, spoken))
