"""The command line: mounts the commands and turns an expected error into a message and an exit code."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, Any

import typer

from analysis.commands._help import Command, Group, Refusal, show_refusal
from logparse.errors import InputError, LogparseError, reason_of
from logparse.language import tr


def _version(asked: bool) -> None:
    if asked:
        import logparse

        typer.echo(f"logparse {logparse.__version__}")
        raise typer.Exit


def build_app() -> typer.Typer:
    """The Typer app with every command mounted."""
    from analysis.commands.analyze import analyze
    from analysis.commands.baselines import baselines
    from analysis.commands.compare import compare
    from analysis.commands.estimate import estimate
    from analysis.commands.formulas import formulas
    from analysis.commands.gate import gate
    from analysis.commands.hardware import hardware
    from analysis.commands.history import COMMANDS
    from analysis.commands.models import models
    from analysis.commands.record import record
    from analysis.commands.trend import trend

    app = typer.Typer(
        cls=Group, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
    )

    @app.callback()
    def logparse(
        version: Annotated[
            bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
        ] = False,
    ) -> None:
        """Read the text log of a large-model training run and say what the run really achieved."""

    mounted: tuple[Callable[..., None], ...] = (analyze, baselines, estimate, formulas, hardware, models)
    for command in (*mounted, record, compare, gate, trend):
        app.command(cls=Command)(_to_the_end(command))
    history = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode=None)
    for command in COMMANDS:
        history.command(cls=Command)(_to_the_end(command))
    app.add_typer(history, name="history", help="Look after recorded runs: list, show, remove, compact, export.")
    return app


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
