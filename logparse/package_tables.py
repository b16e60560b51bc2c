"""Tables of this project: TOML, and next to it the same as JSON, which is read in a tenth of the time.

A build of the wheel and an editable install write the JSON, see hatch_build.py; nothing does so at run time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

COMPILED = ".compiled.json"


def read_table(path: Path) -> dict[str, Any]:
    """The table in ``path``: the compiled one, where it was made of what the file holds now."""
    text = path.read_bytes()
    with suppress(OSError, ValueError):
        digest, compiled = path.with_suffix(COMPILED).read_bytes().split(b"\n", 1)
        if digest == _digest(text):
            table: dict[str, Any] = json.loads(compiled)
            return table
    return _parse(text)


def fields_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a frozen class that ``entry`` of a table holds: lists as tuples, a single ``sample`` as one too."""
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    return fields | ({"sample": (fields["sample"],)} if isinstance(fields.get("sample"), str) else {})


def compile_table(path: Path) -> None:
    """Write the table in ``path`` as JSON next to it, after the digest of its TOML. Others may read it meanwhile."""
    text, part = path.read_bytes(), path.with_suffix(".part")
    part.write_bytes(_digest(text) + b"\n" + json.dumps(_parse(text)).encode())
    part.replace(path.with_suffix(COMPILED))


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()


def _parse(text: bytes) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(text.decode())
