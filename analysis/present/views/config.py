"""The settings in effect: parts for people, a document for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from analysis.present.as_json import origin_text
from analysis.present.parts import Part, Sentence, Table
from analysis.present.words import describe_origin
from analysis.project.choose_language import PROJECT_FILE
from analysis.project.effective_settings import EffectiveSetting
from analysis.project.project_file import VARIABLES
from logparse.language import tr
from logparse.schema import SCHEMA_VERSION


def config_parts(settings: Sequence[EffectiveSetting], file: Path | None) -> list[Part]:
    """A setting a row: value and origin; then the project file in use."""
    rows = tuple((setting.name, *_cells(setting)) for setting in settings)
    text = tr("project file: {path}", path=file) if file else tr("no {name} in this folder or above", name=PROJECT_FILE)
    return [
        Table((tr("setting"), tr("value"), tr("origin")), rows, prose={1, 2}, headed=True),
        Sentence(text),
        Sentence(tr("precedence, highest first: flags, --config file, {names}, project file", names=_names())),
    ]


def _names() -> str:
    return tr(" and ").join(VARIABLES)


def _cells(setting: EffectiveSetting) -> tuple[str, str]:
    if setting.fact is None:
        return "-", tr("not set")
    origin = setting.fact.origin
    return str(setting.fact.value), tr("by default") if origin.kind == "assumed" else describe_origin(origin)


def config_document(settings: Sequence[EffectiveSetting], file: Path | None) -> dict[str, Any]:
    """The JSON document, the same in every language."""
    return {
        "schema_version": SCHEMA_VERSION,
        "project_file": None if file is None else str(file),
        "settings": [_document(setting) for setting in settings],
    }


def _document(setting: EffectiveSetting) -> dict[str, Any]:
    fact = setting.fact
    if fact is None:
        return {"name": setting.name, "value": None, "origin": None, "from": None}
    return {"name": setting.name, "value": fact.value, "origin": origin_text(fact.origin), "from": asdict(fact.origin)}
