"""Settings that apply without a flag or --config: variables of the environment, then the project file.

Comes in: the environment and the current folder. Goes out: options with their origins, and facts that a log may not
print. The project file is ``logparse.toml`` in the current folder or the nearest folder above it. It takes the keys of
a --config file, and the folder of the history.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from analysis.project.choose_language import VARIABLE, project_file
from analysis.project.given_facts import FILE_OPTIONS, facts_of_model, read_config
from logparse.context.run_context import Fact
from logparse.errors import UsageError
from logparse.findings import Origin
from logparse.inputs.stores import is_url
from logparse.language import LANGUAGES, tr
from logparse.light_dataclass import dataclass, field

if TYPE_CHECKING:
    from analysis.nightly.policy import Policy
    from analysis.watch.alarm_limits import Limits

Read = TypeVar("Read")
# The option that each variable gives.
VARIABLES = {"LOGPARSE_HW": "hw", "LOGPARSE_HISTORY": "history", VARIABLE: "lang"}
PROJECT_OPTIONS = {**FILE_OPTIONS, "history": str, "lang": str}
# What only the project file holds, each a table.
PROJECT_TABLES = {"gate": dict, "watch": dict}


@dataclass(frozen=True)
class ProjectSettings:
    """Options by who gives them; ``facts`` are those of the project file, which say what a log does not.

    ``gate`` is its table of what holds of the jobs, ``watch`` that of when alarms begin.
    """

    environment: Mapping[str, Fact] = field(default_factory=dict)
    project: Mapping[str, Fact] = field(default_factory=dict)
    facts: Mapping[str, Fact] = field(default_factory=dict)
    gate: Mapping[str, Any] = field(default_factory=dict)
    watch: Mapping[str, Any] = field(default_factory=dict)

    @property
    def layers(self) -> tuple[Mapping[str, Fact], ...]:
        """Options, the strongest first."""
        return (self.environment, self.project)

    def get(self, name: str) -> str | None:
        """The value of an option that is text; None where nobody gives it."""
        return next((layer[name].value for layer in self.layers if name in layer), None)


def find_project_settings() -> ProjectSettings:
    """What holds here. Raises InputError and UsageError for a project file that cannot be used."""
    variables = {name: os.environ.get(variable, "").strip() for variable, name in VARIABLES.items()}
    origins = {name: Origin("environment", rule=variable) for variable, name in VARIABLES.items()}
    environment = {name: Fact(value, origins[name]) for name, value in variables.items() if value}
    _check_language(environment)
    path = project_file()
    if path is None:
        return ProjectSettings(environment)
    facts, options = read_config(path, {**PROJECT_OPTIONS, **PROJECT_TABLES})
    gate, watch = options.pop("gate", {}), options.pop("watch", {})
    if "history" in options and not is_url(options["history"]):
        options["history"] = str(path.parent / options["history"])
    project = {name: Fact(value, Origin("config", str(path))) for name, value in options.items()}
    _check_language(project)
    return ProjectSettings(environment, project, {**_facts_of_model(project), **facts}, gate, watch)


def _check_language(options: Mapping[str, Fact]) -> None:
    """Raise UsageError for a language that does not exist, with the variable or the file that gives it."""
    fact = options.get("lang")
    if fact is not None and fact.value not in LANGUAGES:
        remedy = tr("use one of {names}", names=", ".join(LANGUAGES))
        raise UsageError(tr("unknown language {name!r}", name=fact.value), where=_where(fact.origin), remedy=remedy)


def _where(origin: Origin) -> str | None:
    return origin.file or origin.rule


def history_place(given: str | None) -> str | None:
    """The place of the history: as given, else from the environment or the project file.

    Raises as ``find_project_settings``.
    """
    return find_project_settings().get("history") if given is None else given


def _facts_of_model(project: Mapping[str, Fact]) -> dict[str, Fact]:
    """What the model of the project file says. Raises UsageError, with the file, for one that is not known."""
    if "model" not in project:
        return {}
    try:
        return facts_of_model(project["model"].value)
    except UsageError as error:
        raise UsageError(error.problem, where=project["model"].origin.file, remedy=error.remedy) from error


def project_policy() -> Policy:
    """The policy of the project file for the jobs; without a table ``gate`` the default policy.

    Raises UsageError, with the file, for a table that cannot be used.
    """
    from analysis.nightly.policy import read_policy

    return _of_project_file(read_policy, find_project_settings().gate)


def project_limits() -> Limits:
    """The limits of alarms that the project file gives; the others are the defaults.

    Raises UsageError, with the file, for a table that cannot be used.
    """
    from analysis.watch.alarm_limits import read_limits

    return _of_project_file(read_limits, find_project_settings().watch)


def _of_project_file(read: Callable[[Mapping[str, Any]], Read], table: Mapping[str, Any]) -> Read:
    """What ``read`` makes of a ``table`` of the project file. Raises UsageError, with the file."""
    try:
        return read(table)
    except UsageError as error:
        raise UsageError(error.problem, where=str(project_file()), remedy=error.remedy) from error
