"""The address of a recorded run in the CI system, by the key ``run_url`` of the policy.

Comes in: a template such as ``https://ci.example.com/builds/{build}`` and a row of the history. Goes out: a URL. A
field is a column of text, a version or a label.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import regex

from logparse.lazy_regex import lazy_regex

FIELD = lazy_regex(r"\{([\w.-]+)\}")
SCHEMES = ("http://", "https://")


def is_template(text: str) -> bool:
    """Whether ``text`` is an address with at least one field, and nothing that an address cannot have."""
    return text.startswith(SCHEMES) and bool(FIELD.search(text)) and not regex.search(r"[\s<>\"]", text)


def run_url(template: str | None, run: Mapping[str, Any]) -> str | None:
    """The address of ``run``; None without a template, or where the run has no value of one of its fields."""
    if template is None:
        return None
    values = {name: _value(name, run) for name in FIELD.findall(template)}
    if None in values.values():
        return None
    return FIELD.sub(lambda match: quote(str(values[match[1]]), safe=""), template)


def _value(name: str, run: Mapping[str, Any]) -> str | None:
    if isinstance(run.get(name), str):
        return str(run[name])
    pairs = [*(run.get("labels") or ()), *(run.get("versions") or ())]
    return next((pair["value"] for pair in pairs if pair["name"].lower() == name.lower()), None)
