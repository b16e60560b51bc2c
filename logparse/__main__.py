"""The door of the command line: sees to the streams and to the right ``analysis``, then opens ``analysis.cli``.

One of the two places of this package that name ``analysis``; the other is ``logparse.analyze``.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import Any

from logparse.errors import InputError
from logparse.language import language_of_locale, use_language
from logparse.shadowed import check_analysis_package

# The level of ``sys.flags.optimize`` from which on there are none.
DROPS_DOCSTRINGS = 2
# The option of Python that says in which encoding to print, where that is not the one of names.
OUTPUT = "logparse-output"


def main() -> None:
    """Run the command line. Exits with 2 where another ``analysis`` shadows ours."""
    _keep_docstrings()
    _keep_names()
    # As numpy is imported it begins a thread for every core, to multiply matrices larger than any command has.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _drop_impossible_sizes()
    _open_closed_streams()
    _print_what_can_be_shown()
    sys.stderr = Diagnostics(sys.stderr)
    use_language(language_of_locale(os.environ))
    try:
        check_analysis_package()
    except InputError as error:
        print(f"logparse: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_code)
    from analysis.cli import run

    run()


def _keep_docstrings() -> None:
    """Start again where Python is to drop docstrings (``-OO``): altair and the help are made of them."""
    if sys.flags.optimize < DROPS_DOCSTRINGS:
        return
    words = ["-O" if word == "-OO" else word for word in sys.orig_argv[1:]]
    if words != sys.orig_argv[1:] or os.environ.get("PYTHONOPTIMIZE", "1") != "1":
        os.environ["PYTHONOPTIMIZE"] = "1"
        os.execv(sys.executable, [sys.executable, *words])


def _keep_names() -> None:
    """Start again with names in UTF-8, as most file systems have them, where the locale has others.

    Not where a word of the command is in the encoding of the locale: then the names are too. What is printed always is.
    """
    if sys.getfilesystemencoding() != "utf-8" and OUTPUT not in sys._xoptions and all(map(_is_utf8, sys.argv[1:])):
        encoding = sys.stdout.encoding if sys.stdout else "utf-8"
        options = ["-X", "utf8", "-X", f"{OUTPUT}={encoding}"]
        os.execv(sys.executable, [sys.executable, *options, *sys.orig_argv[1:]])


def _is_utf8(word: str) -> bool:
    try:
        os.fsencode(word).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _drop_impossible_sizes() -> None:
    """Leave out a size of the terminal that is no size: Rich would print nothing in 0 columns."""
    for name in ("COLUMNS", "LINES"):
        if os.environ.get(name, "").strip().isdecimal() and int(os.environ[name]) == 0:
            del os.environ[name]


def _open_closed_streams() -> None:
    """A shell may start a command with a stream closed (``>&-``); what goes there goes nowhere.

    Its number must be taken, or the next file that is opened gets what libraries print.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123


class Diagnostics:
    """Standard error that never fails: what cannot be written is lost, and ``lost`` says so."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.lost = False

    def write(self, text: str) -> int:
        """Write ``text``."""
        try:
            return int(self._stream.write(text))
        except OSError as error:
            self._note(error)
            return len(text)

    def flush(self) -> None:
        """Hand over what was written."""
        try:
            self._stream.flush()
        except OSError as error:
            self._note(error)

    def _note(self, error: OSError) -> None:
        # A reader that has closed its pipe wants no more.
        self.lost = self.lost or not isinstance(error, BrokenPipeError)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _print_what_can_be_shown() -> None:
    """Put a question mark for a character that is not in the terminal's encoding, where that is not UTF-8.

    The bytes of a name that is not UTF-8 are printed as they are.
    """
    codecs.register_error(OUTPUT, _bytes_or_mark)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = str(sys._xoptions.get(OUTPUT, stream.encoding))
            if not encoding.lower().startswith("utf"):
                stream.reconfigure(encoding=encoding, errors=OUTPUT)


def _bytes_or_mark(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    try:
        return text.encode("ascii", "surrogateescape"), error.end
    except UnicodeEncodeError:
        return "?" * len(text), error.end


if __name__ == "__main__":
    main()
