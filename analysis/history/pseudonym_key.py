"""The key of the pseudonyms in a history: runs that are recorded with it have the same ones, so they compare.

Whoever has the key can check whether a pseudonym is that of a name. A history that is given away goes without it.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from analysis.history.storage import open_storage
from logparse.inputs.stores import is_url
from logparse.pseudonyms import Pseudonyms

KEY_FILE, BYTES = "pseudonyms.key", 32


def pseudonyms_of_history(place: str) -> Pseudonyms:
    """Those of the history at ``place``, whose key is made where it has none."""
    made = secrets.token_hex(BYTES).encode()
    return Pseudonyms(open_storage(place).put_first(KEY_FILE, made).strip())


def pseudonyms_of_answer(place: str | None, key: bytes | None = None) -> Pseudonyms:
    """Those of a history at ``place`` that has a key, else those of ``key``, else new ones of no other answer."""
    if place and not is_url(place) and Path(place, KEY_FILE).is_file():
        return pseudonyms_of_history(place)
    return Pseudonyms(key or secrets.token_bytes(BYTES))
