"""Lines that a collector of logs keeps as records of JSON, such as docker's: ``{"log": "...", "time": "..."}``.

Comes in: the text of a block. Goes out: the lines, each after its time. Records that a trainer prints are left alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from logparse.lazy_regex import lazy_regex

# Lines at the beginning of a text, and bytes of it, in which a record is looked for.
FIRST_LINES, FIRST_BYTES = 5, 4096
# Fields that hold the line and its time, and others that collectors and loggers add. Metrics have more fields.
_LINE, _TIME = ("log", "message", "msg", "textPayload"), ("time", "timestamp", "@timestamp", "ts")
_KNOWN = lazy_regex(
    "|".join((*_LINE, *_TIME))
    + r"|stream|level|levelname|severity|logger|name|docker|kubernetes|labels|resource|host|hostname"
    r"|source|container_name|container_id|tag|pod|namespace|thread|process|pid|file|filename|lineno"
    r"|funcName|insertId|logName|receiveTimestamp|_p|logtag"
)


def lines_of_records(text: bytes) -> bytes:
    """``text`` with the lines that its records hold; several lines of one stay one, with escapes.

    A text without a record among its first lines stays as it is, and so do other lines.
    """
    if b'"' not in text[:FIRST_BYTES]:
        return text
    lines = text.split(b"\n")
    if all(_line_of(line) is None for line in lines[:FIRST_LINES]):
        return text
    held = map(_line_of, lines)
    return b"\n".join(line if of_record is None else of_record for line, of_record in zip(lines, held, strict=True))


def _line_of(text: bytes) -> bytes | None:
    try:
        # Who pastes a log may miss its first character.
        record = json.loads(text if text[:1] == b"{" else b"{" + text) if text[:1] in (b"{", b'"') else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not all(map(_KNOWN.fullmatch, record)):
        return None
    line, stamp = _first_text(record, _LINE), _first_text(record, _TIME)
    if line is None:
        return None
    return ((f"{stamp} " if stamp else "") + line.rstrip("\r\n").replace("\n", r"\n")).encode(errors="replace")


def _first_text(record: Mapping[str, object], names: Sequence[str]) -> str | None:
    return next((value for name in names if isinstance(value := record.get(name), str)), None)
