"""The language of a command before anything else of it is read: of its help, its refusals and its answer.

Comes in: the words of the command line, the environment. Goes out: a language, None where nobody gives one. What is
wrong in the project file is reported where its other keys are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from logparse.language import LANGUAGES

PROJECT_FILE = "logparse.toml"
OPTION, VARIABLE = "--lang", "LOGPARSE_LANG"


def choose_language(words: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """The language that ``words``, else the environment, else the project file give, wherever it is among them."""
    candidates = (*_of_words(words), environment.get(VARIABLE, "").strip(), _of_project())
    return next((language for language in candidates if language in LANGUAGES), None)


def project_file() -> Path | None:
    """The nearest project file of the current folder and those above it."""
    try:
        folder = Path.cwd()
    except OSError:
        return None
    candidates = (place / PROJECT_FILE for place in (folder, *folder.parents))
    return next((path for path in candidates if os.path.isfile(path)), None)  # noqa: PTH113


def _of_words(words: Sequence[str]) -> Iterator[str]:
    """The values of the option, the last first, as the last of several applies."""
    options = words[: words.index("--")] if "--" in words else words
    for at in reversed(range(len(options))):
        name, equals, value = options[at].partition("=")
        if name == OPTION and (equals or at + 1 < len(options)):
            yield value if equals else options[at + 1]


def _of_project() -> str | None:
    path = project_file()
    if path is None:
        return None
    # Help of a folder without a project file need not wait for it.
    import tomllib

    with suppress(OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        language = tomllib.loads(path.read_text(encoding="utf-8")).get("lang")
        return language if isinstance(language, str) else None
    return None
