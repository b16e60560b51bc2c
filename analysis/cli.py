"""The command line: finds the commands and turns an expected error into a message and an exit code."""

from __future__ import annotations

import functools
import gc
import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.main

from analysis.commands._completion import Install, Show, answer_shell, with_shell
from analysis.commands._help import Command, Group, Refusal, default_group, show_refusal
from logparse.errors import InputError, LogparseError, reason_of
from logparse.language import msg, tr

# Each is a module of analysis.commands and, in it, a function of that name; help lists them in this order, a line each.
COMMANDS = {
    "analyze": msg("Analyze a run: step time, throughput, MFU, goodput."),
    "merge": msg("Merge the results of `analyze --each` shards."),
    "baselines": msg("List published training rates, or show one with its source."),
    "estimate": msg("Estimate what a job should reach."),
    "formulas": msg("Identify the FLOPs formula a log used."),
    "formats": msg("List, show, test or generate log formats."),
    "hardware": msg("List devices with their peaks, or show one with its sources."),
    "models": msg("List the models whose shape --model knows, or show one."),
    "record": msg("Record a run, to compare later releases with it."),
    "compare": msg("Compare runs and list what changed."),
    "gate": msg("Judge whether training became slower, for use in CI."),
    "bisect": msg("Find the change that caused a slowdown."),
    "trend": msg("Show the trend of a metric over recorded runs."),
    "history": msg("Manage recorded runs."),
    "config": msg("Show the effective settings and their source."),
}


class Commands(Group):
    """The commands by name. One is imported when it is asked for: help that lists them need not wait for polars."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands.update({name: Command(name) for name in COMMANDS})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the shell of a completion for its value, which may be left out."""
        return super().parse_args(ctx, with_shell(args))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command called ``cmd_name``; None where there is none."""
        return _imported(cmd_name) if super().get_command(ctx, cmd_name) else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """List them, each with its line."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, tr(summary)) for name, summary in COMMANDS.items()])


def _imported(name: str) -> Any:
    """The command, or the group of those that its module lists."""
    module = import_module(f"analysis.commands.{name}")
    default = getattr(module, "DEFAULT", None)
    app = _typer(Group if default is None else default_group(default), name)
    commands = getattr(module, "COMMANDS", None)
    if commands is not None:
        app.callback()(getattr(module, name))
    for command in commands or (getattr(module, name),):
        app.command(cls=Command)(_to_the_end(command))
    return typer.main.get_command(app)


def _version(asked: bool) -> None:
    if asked:
        import logparse

        typer.echo(f"logparse {logparse.__version__}")
        raise typer.Exit


def build_app() -> typer.Typer:
    """The Typer app of all commands."""
    app = _typer(Commands)

    @app.callback()
    def logparse(
        version: Annotated[
            bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
        ] = False,
        install_completion: Install = None,
        show_completion: Show = None,
    ) -> None:
        """Measure the real speed of an LLM training run from its log."""

    return app


def _typer(cls: type[Group], name: str | None = None) -> typer.Typer:
    return typer.Typer(
        name=name,
        cls=cls,
        no_args_is_help=cls.no_args_is_help,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["--help", "-h"]},
    )


def _to_the_end(command: Callable[..., None]) -> Callable[..., None]:
    """Run ``command`` and hand over what it printed.

    A reader that has closed its pipe, such as head, has what it wanted; an exit code that was decided stays. Raises
    InputError where a file cannot be used, or output cannot be written, as on a full disk.
    """

    @functools.wraps(command)
    def wrapper(*positional: Any, **named: Any) -> None:
        try:
            command(*positional, **named)
            sys.stdout.flush()
        except OSError as error:
            _discard_output()
            if not isinstance(error, BrokenPipeError):
                raise _unusable(error) from error
        except (typer.Exit, LogparseError):
            try:
                sys.stdout.flush()
            except OSError:
                _discard_output()
            raise

    return wrapper


def _discard_output() -> None:
    """What is left in the buffer must not be tried again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unusable(error: OSError) -> InputError:
    if error.filename is not None:
        problem = tr("cannot use {path}: {reason}", path=error.filename, reason=reason_of(error))
        return InputError(problem, remedy=tr("check the path and its permissions"))
    problem = tr("cannot write the output: {reason}", reason=reason_of(error))
    return InputError(problem, remedy=tr("free some space, or send the output elsewhere"))


def run() -> None:
    """Run the command line, in the language in use; the only place that catches LogparseError."""
    answer_shell()
    # A command ends soon and leaves few circles of objects: to look for them as often as Python does takes a tenth of
    # its time.
    gc.set_threshold(50_000, 20, 50)
    try:
        sys.exit(build_app()(standalone_mode=False))
    except Refusal as error:
        show_refusal(error)
        sys.exit(getattr(error, "exit_code", 2))
    except LogparseError as error:
        print(f"logparse: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_code)
    except Exception:
        # Python would exit with 1, which means a regression.
        traceback.print_exc()
        print(f"logparse: {_defect()}", file=sys.stderr)  # noqa: T201
        sys.exit(InputError.exit_code)


def _defect() -> LogparseError:
    return LogparseError(tr("a defect of logparse"), remedy=tr("report it with the lines above"))
