"""Which settings apply to a command that is started here, and where each is from.

Comes in: flags, the file of --config, the settings of the project. Goes out: a value with its origin for each setting,
None if no source gives one. The order of the sources is that of ``choose_options``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import regex

from analysis.flops import default_formula
from analysis.project.choose_language import project_file
from analysis.project.choose_options import choose_device, options_of
from analysis.project.project_file import PROJECT_OPTIONS, ProjectSettings, project_limits
from analysis.run.checks.targets import gather_requirements
from analysis.watch.alarm_limits import TABLE
from logparse.context.run_context import Fact, Given
from logparse.findings import Origin, flag
from logparse.light_dataclass import dataclass, fields, replace


@dataclass(frozen=True)
class EffectiveSetting:
    """One setting and its value; ``fact`` is None if no source gives it."""

    name: str
    fact: Fact | None


def settings_in_force(flags: Mapping[str, Any], given: Given, standing: ProjectSettings) -> list[EffectiveSetting]:
    """Every option that files can set, then the quantities that are given. Raises as ``choose_device``."""
    of_flags = {name: Fact(value, _flag(name)) for name, value in flags.items() if value is not None}
    layers = (of_flags, options_of(given), *standing.layers)
    merged: dict[str, Fact | None] = {"formula": Fact(default_formula().name, Origin("assumed"))}
    merged |= {name: fact for layer in reversed(layers) for name, fact in layer.items()}
    merged["hw"], merged["peak_tflops"] = choose_device(flags.get("hw"), flags.get("peak_tflops"), layers)
    options = [EffectiveSetting(name, merged.get(name)) for name in PROJECT_OPTIONS if name != "require"]
    facts = {name: fact for layer in (standing.facts, *reversed(given.layers)) for name, fact in layer.items()}
    # `logparse models` shows what follows from the name of a model.
    quantities = [EffectiveSetting(name, fact) for name, fact in facts.items() if fact.origin.kind != "model"]
    return [_with_line(setting) for setting in (*options, *_required(layers), *quantities, *_limits(standing))]


def _flag(name: str) -> Origin:
    return flag(f"--{name.replace('_', '-')}")


def _required(layers: tuple[Mapping[str, Fact], ...]) -> Iterator[EffectiveSetting]:
    """Each requirement that holds, by who gives it."""
    given = [layer["require"] for layer in layers if "require" in layer]
    for requirement in gather_requirements([(fact.value, fact.origin.file) for fact in given]):
        origin = next(fact.origin for fact in given if requirement.text in map(str.strip, fact.value))
        yield EffectiveSetting("require", Fact(requirement.text, origin))


def _limits(standing: ProjectSettings) -> Iterator[EffectiveSetting]:
    """Each limit of the alarms of ``watch``. Raises as ``project_limits``."""
    limits, path = project_limits(), project_file()
    for one in fields(limits):
        origin = Origin("config", str(path)) if one.name in standing.watch else Origin("assumed")
        yield EffectiveSetting(f"{TABLE}.{one.name}", Fact(getattr(limits, one.name), origin))


def _with_line(setting: EffectiveSetting) -> EffectiveSetting:
    """The setting with the line of its file, where it is simply written there."""
    fact = setting.fact
    if fact is None or fact.origin.kind != "config" or fact.origin.file is None:
        return setting
    name = setting.name.removeprefix(f"{TABLE}.")
    names = "(?:precision|dtype)" if name == "precision" else regex.escape(name)
    lines = Path(fact.origin.file).read_text(encoding="utf-8").splitlines()
    at = (number for number, line in enumerate(lines, 1) if regex.match(rf"\s*{names}\s*=", line))
    return EffectiveSetting(setting.name, Fact(fact.value, replace(fact.origin, line=next(at, None))))
