"""Words for people, in the language they read.

A message is written in English in the code, and the English text is its key: ``languages/zh.toml`` maps it to
Chinese. A message without an entry is shown in English; a test checks that none is missing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path, PurePath

LANGUAGES = ("en", "zh")

_language: ContextVar[str] = ContextVar("language", default="en")


def tr(message: str, /, **values: object) -> str:
    """``message`` in the language in use, its ``{name}`` fields filled from ``values`` as by str.format."""
    text = _catalogue(_language.get()).get(message, message)
    return text.format(**{name: _shown(value) for name, value in values.items()}) if values else text


def visible(text: str) -> str:
    """``text`` with a code in place of every character that commands a terminal, such as the one that sets a colour.

    Line ends and tabs stay.
    """
    return text if text.isprintable() else text.translate(_CODES)


def _shown(value: object) -> object:
    """A value that may be from a log, a file or a command line, as it may be printed."""
    return visible(str(value)) if isinstance(value, str | PurePath | Exception) else value


# Control characters of ASCII and of Latin-1, and those that reverse the order of what follows.
_COMMANDS = (*range(9), *range(0x0B, 0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CODES = {number: f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" for number in _COMMANDS}


def msg(message: str) -> str:
    """Mark a message that is kept as data in English and goes through ``tr`` where it is shown."""
    return message


def some(names: Sequence[str], most: int = 8) -> str:
    """The first ``most`` of ``names``, and how many more there are."""
    shown = tr(", ").join(names[:most])
    return tr("{names} and {n} more", names=shown, n=len(names) - most) if len(names) > most else shown


def use_language(language: str) -> None:
    """Speak ``language``, one of LANGUAGES, from here on."""
    _language.set(language)


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Speak ``language`` for a while, as documents for programs do."""
    token = _language.set(language)
    try:
        yield
    finally:
        _language.reset(token)


def current_language() -> str:
    """The language in use."""
    return _language.get()


def language_of_locale(environment: Mapping[str, str]) -> str:
    """The language that the locale variables ask for, in POSIX' order; English where it has no catalogue."""
    asked = next((environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), "")
    return next((language for language in LANGUAGES if asked.lower().startswith(language)), "en")


@functools.cache
def _catalogue(language: str) -> dict[str, str]:
    if language == "en":
        return {}
    from logparse.package_tables import read_table

    table = read_table(Path(__file__).parent / "languages" / f"{language}.toml")
    return {key: str(value) for key, value in table.items()}
