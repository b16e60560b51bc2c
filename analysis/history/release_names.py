"""The folder of a release: its name percent-encoded, as other readers of Hive partitions expect.

A name that is too long for a folder is cut there, with a hash of the whole; its rows have the whole.
"""

from __future__ import annotations

import hashlib
from itertools import accumulate
from urllib.parse import quote

from analysis.history.selection import UNTYPED
from logparse.errors import UsageError
from logparse.language import tr

# Characters of a release's name, and bytes of its folder's: that may have 255, and "release=" is a part of it.
LONGEST_RELEASE, LONGEST_FOLDER = 240, 240
# Digits of the hash after a name that is cut.
HASH = 16


def check_release(release: str) -> None:
    """Raise UsageError for a release that cannot name a folder, or that no selector can name."""
    if not release.strip():
        remedy = tr('name the release: --release "CANN 8.0.RC2"')
        raise UsageError(tr("the release is empty"), remedy=remedy)
    if UNTYPED.search(release):
        problem = tr("{name} is {value!r}", name="--release", value=release)
        raise UsageError(problem, remedy=tr("give text without control characters, in UTF-8"))
    if len(release) > LONGEST_RELEASE:
        remedy = tr("give a shorter one, and the rest as --label")
        raise UsageError(tr("the name of the release is too long"), remedy=remedy)


def folder_name(release: str) -> str:
    """``release`` percent-encoded; a long one cut between two characters, with ``~`` and a hash."""
    quoted = _quoted(release)
    if len(quoted) <= LONGEST_FOLDER:
        return quoted
    lengths = accumulate(len(_quoted(character)) for character in release)
    whole = sum(length < LONGEST_FOLDER - HASH for length in lengths)
    return f"{_quoted(release[:whole])}~{hashlib.sha256(release.encode()).hexdigest()[:HASH]}"


def is_cut(release: str) -> bool:
    """Whether the folder's name has not the whole of it."""
    return len(_quoted(release)) > LONGEST_FOLDER


def _quoted(release: str) -> str:
    """Also of one that ``check_release`` refuses."""
    return quote(release, safe="", errors="surrogatepass")
