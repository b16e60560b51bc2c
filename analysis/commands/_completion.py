"""Completion in the shell: its options, and the values of flags. Heavy modules are imported on demand."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import typer

from logparse.language import tr

SHELLS = ("bash", "zsh", "fish")
# Their value may be left out: then it is the shell that logparse is started from.
OPTIONS = ("--install-completion", "--show-completion")
# What a shell sets when it asks for completions.
ASKED_BY_SHELL = "_LOGPARSE_COMPLETE"


def with_shell(arguments: Sequence[str]) -> list[str]:
    """``arguments`` where an option of OPTIONS has its value, be it empty."""
    completed = list(arguments)
    for at, argument in enumerate(arguments):
        if argument in OPTIONS and (at + 1 == len(arguments) or arguments[at + 1] not in SHELLS):
            completed[at] = f"{argument}="
    return completed


def answer_shell() -> None:
    """Let Typer know its shells, where one of them asks."""
    if ASKED_BY_SHELL in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()


def _install(shell: str | None) -> None:
    if shell is not None:
        from typer.completion import install  # type: ignore[attr-defined]

        named, path = install(shell=_shell(shell), prog_name="logparse")
        typer.echo(tr("wrote completion for {shell} to {path}; open a new shell to use it", shell=named, path=path))
        raise typer.Exit


def _show(shell: str | None) -> None:
    if shell is not None:
        from typer.completion import get_completion_script  # type: ignore[attr-defined]

        typer.echo(get_completion_script(prog_name="logparse", complete_var=ASKED_BY_SHELL, shell=_shell(shell)))
        raise typer.Exit


def _shell(named: str) -> str:
    """The shell that is named, else the one that logparse is started from. Raises BadParameter for any other."""
    shell = named or _detected() or os.path.basename(os.environ.get("SHELL", ""))  # noqa: PTH119
    if shell not in SHELLS:
        raise typer.BadParameter(tr("{name!r} is not one of {names}", name=shell, names=", ".join(SHELLS)))
    return shell


def _detected() -> str | None:
    import shellingham  # type: ignore[import-untyped]

    try:
        name: str = shellingham.detect_shell()[0]
    except shellingham.ShellDetectionFailure:
        return None
    return name if name in SHELLS else None


Install = Annotated[
    str | None,
    typer.Option(
        "--install-completion",
        metavar="[bash|zsh|fish]",
        callback=_install,
        is_eager=True,
        help="Install shell completion.",
    ),
]
Show = Annotated[
    str | None,
    typer.Option(
        "--show-completion",
        metavar="[bash|zsh|fish]",
        callback=_show,
        is_eager=True,
        help="Show the completion script.",
    ),
]


# Values of flags.


def _begins(names: Callable[[], Iterator[str]]) -> Callable[[str], list[str]]:
    """What completes a word to one of ``names``, in whatever case it was begun."""

    def complete(incomplete: str) -> list[str]:
        begun = incomplete.lower()
        # Typer keeps only names that begin with the word as typed.
        return [incomplete + name[len(incomplete) :] for name in dict.fromkeys(names()) if name.startswith(begun)]

    return complete


@_begins
def devices() -> Iterator[str]:
    """Devices by the names that people type: in lower case, a hyphen for a blank."""
    from analysis.hardware.devices import all_devices

    for device in all_devices():
        spelled = (name.lower().replace(" ", "-") for name in (*device.aliases, device.name) if "(" not in name)
        yield from spelled


@_begins
def models() -> Iterator[str]:
    """Models of the catalogue."""
    from analysis.model.catalogue import all_models

    return (name for model in all_models() for name in (model.name, *model.aliases))


@_begins
def codes() -> Iterator[str]:
    """Codes of warnings and failures."""
    from analysis.present.views.explain import every_code

    return iter(every_code())


@_begins
def formulas() -> Iterator[str]:
    """Formulas of FLOPs."""
    from analysis.flops import all_formulas

    return iter(all_formulas())


@_begins
def formats() -> Iterator[str]:
    """Formats of logs."""
    from logparse.formats import known_formats

    return (fmt.name for fmt in known_formats())


@_begins
def dialects() -> Iterator[str]:
    """Frameworks and their versions."""
    from logparse.context.dialects import DIALECTS

    return (dialect.key for dialect in DIALECTS)


@_begins
def baselines() -> Iterator[str]:
    """Published rows."""
    from analysis.published.baselines import published

    return (row.name for row in published())


@_begins
def metrics() -> Iterator[str]:
    """Metrics that releases are judged by."""
    from analysis.metrics import JUDGED

    return iter(JUDGED)


@_begins
def required() -> Iterator[str]:
    """Figures that can be required."""
    from analysis.run.checks.targets import figures

    return iter(figures())


@_begins
def fields() -> Iterator[str]:
    """Fields of the JSON of a run that have a short name."""
    from analysis.present.views.fields import short_names

    return iter(short_names())


@_begins
def tolerances() -> Iterator[str]:
    """Differences of losses that can be limited."""
    from analysis.metrics import DISTANCES

    return iter(DISTANCES)


def one_of(*names: str) -> Any:
    """What completes a word to one of ``names``."""
    return _begins(lambda: iter(names))
