"""The command line: finds the commands and turns an expected error into a message and an exit code."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import os
import resource
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main

import analysis
import logparse
from analysis.commands._completion import Install, Show, answer_shell, with_shell
from analysis.commands._help import Command, Group, Refusal, default_group, show_refusal
from analysis.project.choose_language import choose_language
from logparse.errors import InputError, LogparseError, NoStepLineError, reason_of
from logparse.language import LANGUAGES, msg, tr, use_language

# Each is a module of analysis.commands and, in it, a function of that name, with an underscore for a hyphen; help lists
# them in this order, a line each.
COMMANDS = {
    "analyze": msg("Analyze a run: step time, throughput, MFU, goodput."),
    "watch": msg("Watch a running job and raise alarms."),
    "diagnose": msg("Show why a run stopped, and which rank."),
    "explain": msg("Explain the code of a warning or a failure."),
    "export": msg("Export a run to TensorBoard, MLflow, SwanLab or tables."),
    "merge": msg("Merge the results of `analyze --each` shards."),
    "baselines": msg("List published training rates, or show one with its source."),
    "estimate": msg("Estimate what a job should reach."),
    "formulas": msg("Identify the FLOPs formula a log used."),
    "formats": msg("List, show, test or generate log formats."),
    "hardware": msg("List devices with their peaks, or show one with its sources."),
    "models": msg("List the models that --model accepts, or show one."),
    "record": msg("Record a run for later comparisons."),
    "compare": msg("Compare runs and list what changed."),
    "gate": msg("Check in CI whether training became slower."),
    "bisect": msg("Find the change that caused a slowdown."),
    "trend": msg("Show the trend of a metric over recorded runs."),
    "history": msg("Manage recorded runs."),
    "config": msg("Show the effective settings and their source."),
    "self-check": msg("Check this installation."),
    "mcp": msg("Serve answers to agents (MCP)."),
}

# With this variable an internal error shows its traceback.
DEBUG = "LOGPARSE_DEBUG"
# The exit code of a command that Ctrl-C ended; the most characters of an unforeseen error that are printed.
INTERRUPTED, LONGEST_ERROR = 130, 300
# Columns of an error on a terminal, and those of the names of its parts, such as "  try:   ".
MOST_COLUMNS, ERROR_INDENT = 80, 9
# Bytes of address space that polars and numpy take before they read anything.
LEAST_MEMORY = 1.5e9
# The variable that sets how many threads polars starts, and the most that start without minutes of waiting.
THREADS, MOST_THREADS = "POLARS_MAX_THREADS", max(128, 4 * (os.cpu_count() or 1))


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
    python_name = name.replace("-", "_")
    module = import_module(f"analysis.commands.{python_name}")
    default = getattr(module, "DEFAULT", None)
    app = _typer(Group if default is None else default_group(default), name)
    commands = getattr(module, "COMMANDS", None)
    if commands is not None:
        app.callback()(getattr(module, python_name))
    for command in commands or (getattr(module, python_name),):
        app.command(cls=Command)(_to_the_end(command))
    return typer.main.get_command(app)


def _version(asked: bool) -> None:
    if asked:
        import logparse

        typer.echo(f"logparse {logparse.__version__}")
        raise typer.Exit


def _speak(language: str | None) -> None:
    if language is not None and language not in LANGUAGES:
        raise typer.BadParameter(tr("{name!r} is not one of {names}", name=language, names=", ".join(LANGUAGES)))


def build_app() -> typer.Typer:
    """The Typer app of all commands."""
    app = _typer(Commands)

    @app.callback()
    def logparse(
        version: Annotated[
            bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
        ] = False,
        lang: Annotated[
            str | None,
            typer.Option(
                "--lang",
                metavar="|".join(LANGUAGES),
                callback=_speak,
                help="Language of the output; default: the locale.",
            ),
        ] = None,
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
            _check_memory_limit()
            _check_threads()
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


def _check_memory_limit() -> None:
    """Raise InputError where a library would end the process, with an exit code of its own choice."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if 0 <= limit < LEAST_MEMORY:
        problem = tr("the memory limit is {gb} GB", gb=f"{limit / 1e9:.1f}")
        raise InputError(problem, remedy=tr("raise it to {gb} GB or more (ulimit -v)", gb=f"{LEAST_MEMORY / 1e9:.1f}"))


def _check_threads() -> None:
    """Raise InputError for a number of threads that polars panics at, warns of in its own words, or hangs at."""
    given = os.environ.get(THREADS)
    if given is not None and not (given.isdecimal() and 0 < int(given[:9]) <= MOST_THREADS):
        problem = tr(
            "{name} is {value!r}, which is no number of threads from 1 to {most}",
            name=THREADS,
            value=given,
            most=MOST_THREADS,
        )
        raise InputError(problem, remedy=tr("unset {name}, or set it to the number of cores", name=THREADS))


def _discard_output() -> None:
    """What is left in the buffer must not be tried again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unusable(error: OSError) -> InputError:
    if error.filename is not None:
        problem = tr("cannot use {path}: {reason}", path=error.filename, reason=reason_of(error))
        return InputError(problem, remedy=tr("check the path and its permissions"))
    problem = tr("cannot write the output: {reason}", reason=reason_of(error))
    return InputError(problem, remedy=tr("free some disk space, or write the output elsewhere"))


def run() -> None:
    """Run the command line, in the language in use; the only place that catches LogparseError.

    Exit code 1 is a verdict, and nothing else ends with it.
    """
    answer_shell()
    if language := choose_language(sys.argv[1:], os.environ):
        use_language(language)
    # A command ends soon and leaves few circles of objects: to look for them as often as Python does takes a tenth of
    # its time.
    gc.set_threshold(200_000, 20, 50)
    # As Python ends it looks for them several times more, which takes as long as to import polars.
    atexit.register(gc.freeze)
    with _ended_by_sigterm():
        code = _exit_code()
    # What could not be printed, as on a full disk, must not pass for success.
    sys.exit(code or (InputError.exit_code if getattr(sys.stderr, "lost", False) else 0))


def _exit_code() -> int:
    try:
        code = _finished(build_app()(standalone_mode=False))
    except Refusal as error:
        show_refusal(error)
        return int(getattr(error, "exit_code", 2))
    except LogparseError as error:
        if isinstance(error, NoStepLineError) and error.ending is not None:
            from analysis.present.views.ending import headline

            error.detail = headline(error.ending)
        _say(f"logparse: {error}")
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        stop_drawing()
        return INTERRUPTED
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        # Typer ends so where a reader closes the pipe of help.
        _discard_output()
        return 0
    except OSError as error:
        _discard_output()
        return 0 if isinstance(error, BrokenPipeError) else _reported(_unusable(error))
    except BaseException as error:
        # polars panics with an error that is no Exception.
        return unforeseen(error)
    return code


def _finished(code: object) -> int:
    """``code`` of a command, once everything it printed is written."""
    sys.stdout.flush()
    if "analysis.files.pictures" in sys.modules:
        _report_missing_pictures()
    return code if isinstance(code, int) else 0


def _report_missing_pictures() -> None:
    from analysis.files.pictures import is_installed, take_missing
    from logparse.extras import missing_extra

    if not take_missing():
        return
    if not is_installed():
        _say(f"logparse: {missing_extra(tr('a chart as PNG or SVG'), 'vl-convert', 'pictures')}")
        return
    problem = tr("charts are missing: the process that draws them could not run")
    remedy = tr("raise the limits of memory and open files (ulimit -v, -n), and repeat with --force")
    _say(f"logparse: {InputError(problem, remedy=remedy)}")


def unforeseen(error: BaseException) -> int:
    """Print an error that nobody expected, and return its exit code. The tests raise it instead."""
    if os.environ.get(DEBUG):
        from logparse.masking import mask_text

        _say(mask_text("".join(traceback.format_exception(error)).rstrip()))
    return _reported(_defect(error))


def _defect(error: BaseException) -> LogparseError:
    if isinstance(error, MemoryError):
        return InputError(tr("out of memory"), remedy=tr("free some memory, or raise the limit (ulimit -v)"))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_ours(frame.filename)]
    text = " ".join(str(error).split())[:LONGEST_ERROR]
    return LogparseError(
        tr("internal error: {error}", error=f"{type(error).__name__}: {text}".removesuffix(": ")),
        where=f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else None,
        remedy=tr("set {name}=1, run it again, and report the traceback", name=DEBUG),
    )


def _is_ours(file: str) -> bool:
    return any(Path(file).is_relative_to(Path(str(package.__file__)).parent) for package in (analysis, logparse))


def _reported(error: LogparseError) -> int:
    _say(f"logparse: {error}")
    return error.exit_code


def _say(text: str) -> None:
    """Print on stderr; where that is full or gone, the exit code must not change."""
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr.isatty():
            # What a program reads has each part of an error on a line.
            text = wrapped(text, min(shutil.get_terminal_size().columns or MOST_COLUMNS, MOST_COLUMNS))
        print(text, file=sys.stderr)  # noqa: T201


def wrapped(text: str, width: int) -> str:
    """``text`` with its lines wrapped at words; what goes on from a line is as far in as its first part."""
    from analysis.present.console import wrap

    lines = []
    for line in text.split("\n"):
        head = line[:ERROR_INDENT] if line.startswith(" ") else ""
        indent = len(head) or 2
        first, *more = wrap(line[len(head) :], width - indent)
        lines += [head + first, *(" " * indent + part for part in more)]
    return "\n".join(lines)


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Remove temporary files before SIGTERM ends the process.

    The handler does it itself: an error that it raised could be lost, as in a finalizer.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: object) -> None:
        stop_drawing()
        if "analysis.files.own_files" in sys.modules:
            from analysis.files.own_files import remove_temporary

            remove_temporary()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def stop_drawing() -> None:
    """End the processes that draw, where there are some."""
    if "analysis.files.pictures" in sys.modules:
        from analysis.files.pictures import stop

        stop()
