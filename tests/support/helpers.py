"""What several test files share: logs in the frameworks' own words, lines as the decoder sees them, the command run."""

import contextlib
import contextvars
import functools
import glob
import itertools
import math
import os
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO
from unittest.mock import patch

import cores
import hypothesis
import polars as pl
import pytest

from analysis import cli
from logparse.__main__ import main
from logparse.findings import Note
from logparse.schema import Column

ROOT = Path(__file__).parents[2]
GOLDENS = ROOT / "tests" / "goldens"
PROGRAM = str(Path(sys.executable).with_name("logparse"))

PAIRS = {
    "consumed samples": "{consumed:12d}",
    "elapsed time per iteration (ms)": "{ms:.1f}",
    "learning rate": "1.000000E-04",
    "global batch size": "   32",
    "lm loss": "2.345678E+00",
    "loss scale": "1.0",
    "grad norm": "0.876",
    "number of skipped iterations": "  0",
    "number of nan iterations": "  0",
}

# A LLaMA2-7B on eight devices, as its argument dump says it.
SETTINGS = {
    "bf16": True,
    "context_parallel_size": 1,
    "data_parallel_size": 4,
    "ffn_hidden_size": 11008,
    "fp16": False,
    "global_batch_size": 32,
    "group_query_attention": False,
    "hidden_size": 4096,
    "micro_batch_size": 1,
    "num_attention_heads": 32,
    "num_layers": 32,
    "num_query_groups": 1,
    "padded_vocab_size": 32000,
    "pipeline_model_parallel_size": 1,
    "recompute_granularity": "full",
    "seq_length": 4096,
    "swiglu": True,
    "tensor_model_parallel_size": 2,
    "untie_embeddings_and_output_weights": True,
    "world_size": 8,
}


def megatron_line(step: int, ms: float = 1000.0, clock: str = "", pairs: dict[str, str | None] | None = None) -> str:
    """One iteration line without its newline; ``pairs`` replace, add (at the end) or, with None, remove values."""
    filled = {label: text.format(consumed=32 * step, ms=ms) for label, text in PAIRS.items()} | (pairs or {})
    middle = "".join(f" {label}: {text} |" for label, text in filled.items() if text is not None)
    return f"{f' [{clock}]' if clock else ''} iteration {step:8d}/{500:8d} |{middle}"


def arguments_dump(
    settings: dict[str, object], title: str = "arguments", dashes: int = 24, width: int = 48, prefix: str = ""
) -> str:
    """Megatron's argument dump, every line behind ``prefix``."""
    lines = [f"{'-' * dashes} {title} {'-' * dashes}"]
    for name, value in settings.items():
        dots = "." * (width - len(name))
        lines.append(f"  {name} {dots} {value}" if dots else f"  {name}  {value}")
    lines.append(f"{'-' * 20} end of {title} {'-' * 21}")
    return "".join(f"{prefix}{line}\n" for line in lines)


def megatron_log(steps: int = 6, **settings: object) -> str:
    """A whole small run: arguments, then step lines of 1001 ms, 1002 ms, ..."""
    lines = [megatron_line(step, ms=1000.0 + step) for step in range(1, steps + 1)]
    return arguments_dump(SETTINGS | settings) + "".join(f"{line}\n" for line in lines)


def lines_of(text: str, source: str = "run.log") -> pl.DataFrame:
    """Text as the decoder sees it; a last line without a newline is not complete."""
    lines = text.split("\n")
    ended = [True] * (len(lines) - 1) + [False]
    if lines[-1] == "":
        lines, ended = lines[:-1], ended[:-1]
    return pl.DataFrame(
        {"line_number": range(1, len(lines) + 1), "text": lines, "complete": ended, "clock": None},
        schema={"line_number": pl.Int64, "text": pl.String, "complete": pl.Boolean, "clock": pl.Datetime("us")},
    ).with_columns(source=pl.lit(source))


def known(row: dict[str, object]) -> dict[str, object]:
    """The fields of a row that are not null, NaN written as a word so that it equals itself."""
    words = {k: "nan" if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}
    return {name: value for name, value in words.items() if value is not None}


# A unit that a name ends with, and the unit of the column.
NAMED_UNITS = {
    "_ms": "ms",
    "_joules": "J",
    "_watts": "W",
    "_bytes": "bytes",
    "_tokens": "tokens",
    "_samples": "samples",
    "_ratio": "ratio",
    "mfu": "ratio",
    "peak_utilization": "ratio",
    "hfu": "ratio",
}
WORK = {"steps": "steps", "samples": "samples", "tokens": "tokens", "tflops": "TFLOP"}


def named_unit(name: str, otherwise: str) -> str:
    """The unit that the name of a column says; ``otherwise`` where it says none."""
    if "_per_second" in name:
        work = next(unit for word, unit in WORK.items() if word in name)
        return f"{work}/s" + ("/p" if name.endswith("_per_device") else "")
    return next((unit for ending, unit in NAMED_UNITS.items() if name.endswith(ending)), otherwise)


def unit_endings(columns: Iterable[Column], unit: str) -> tuple[list[str], str]:
    """The columns of ``unit``, and what their names must end with; /s is any rate, /s/p any rate of one device."""
    endings = {"s": "seconds", "/s": "_per_second", "/s/p": "_per_second_per_device"}
    mine = [c.name for c in columns if c.unit == unit or (unit[0] == "/" and c.unit.endswith(unit))]
    return mine, endings.get(unit, f"_{unit}")


def of_code(notes: Iterable[Note], *codes: str) -> list[Note]:
    """Those of ``notes`` that have one of ``codes``."""
    return [note for note in notes if note.code in codes]


def documented_formulas() -> dict[str, str]:
    """Name and text of every formula that has a section in docs/formulas.md."""
    document = (ROOT / "docs" / "formulas.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^## (\S+)\n\n {4}(.+)$", document, re.MULTILINE))


def few(cases: int, **more: Any) -> hypothesis.settings:
    """Settings of a property whose cases take long: so many in `make test`, as many as any other in `make explore`."""
    exploring = hypothesis.settings.get_current_profile_name() == "explore"
    return hypothesis.settings(**more) if exploring else hypothesis.settings(max_examples=cases, **more)


def sweep_after(kept: int, cases: Iterable[Any]) -> list[Any]:
    """Cases of a test: `make test` runs the first ``kept`` of them, `make explore` the others too."""
    values = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*value, marks=[pytest.mark.sweep] * (at >= kept)) for at, value in enumerate(values)]


def run_logparse(
    *arguments: str, cwd: Path, stdin: bytes = b"", unread: bool = False, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run the console script's entry in this process, a second sooner than a process of its own.

    In English, whatever the locale; ``env`` is added to the environment. Working folder, environment, language, streams
    and what else a process has of its own are as before when it returns. If ``unread``, nobody reads stdout.
    """
    if odd := [name for name in env if name.startswith("PYTHON")]:
        raise ValueError(f"{odd} are read where Python starts: use run_process")
    with (
        contextlib.chdir(cwd),
        patch.dict(os.environ, _environment(env), clear=True),
        patch.object(sys, "argv", [PROGRAM, *arguments]),
        patch.object(sys, "excepthook", sys.excepthook),
        # Typer names a command after the module that Python was started with, such as ``python -m pytest``.
        patch.object(sys.modules["__main__"], "__package__", None),
        patch.object(cli, "_imported", _command),
        # A fault must not pass for an error that was expected.
        patch.object(cli, "unforeseen", _raise),
        warnings.catch_warnings(),
        _unread_pipe() if unread else TemporaryFile() as out,
        TemporaryFile() as err,
    ):
        with _streams(stdin, out, err):
            code = contextvars.copy_context().run(_exit_code)
        said = ("" if unread else _content(out), _content(err))
    return subprocess.CompletedProcess([PROGRAM, *arguments], code, *said)


def run_process(
    *arguments: str, cwd: Path, stdin: bytes = b"", command: Sequence[str] = (PROGRAM,), **env: str
) -> subprocess.CompletedProcess[str]:
    """``run_logparse`` in a process of its own, for what only a process shows; ``command`` is what to start."""
    words = [*command, *arguments]
    with cores.on_all():
        done = subprocess.run(words, cwd=cwd, input=stdin, capture_output=True, check=False, env=_environment(env))
    said = done.stderr.decode()
    assert "logparse: internal error" not in said, said
    return subprocess.CompletedProcess(words, done.returncode, done.stdout.decode(), said)


def run_shown(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of a page as it stands, in ``folder`` with the fixtures at hand.

    As a shell would, give the names that match for a pattern that stands without quotes.
    """
    if not (folder / "fixtures").exists():
        (folder / "fixtures").symlink_to(ROOT / "fixtures")
    program, *words = shlex.split(command)
    assert program in ("logparse", ".venv/bin/logparse")
    bare = command.split()
    names = [(word in bare and sorted(glob.glob(word, root_dir=folder))) or [word] for word in words]  # noqa: PTH207
    return run_logparse(*itertools.chain(*names), cwd=folder, NO_COLOR="1")


def _environment(env: dict[str, str]) -> dict[str, str]:
    unwanted = ("PYTHONPATH", "FORCE_COLOR", "LC_ALL", "LC_MESSAGES", "POLARS_MAX_THREADS")
    plain = {name: value for name, value in os.environ.items() if name not in unwanted}
    return plain | {"COLUMNS": "100", "LANG": "C.UTF-8", "LOGPARSE_DEBUG": "1"} | env


@contextlib.contextmanager
def _streams(stdin: bytes, out: BinaryIO, err: BinaryIO) -> Iterator[None]:
    """The three streams as a shell lays them, in the encodings that Python has for C.UTF-8.

    Down to their numbers, because standard input is read by its own, and libraries in Rust write to theirs.
    """
    with TemporaryFile() as given, contextlib.ExitStack() as stack:
        given.write(stdin)
        given.seek(0)
        for number, file in enumerate((given, out, err)):
            kept = os.dup(number)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, number)
            os.dup2(file.fileno(), number)
        for name, number, how in (
            ("stdin", 0, {"errors": "surrogateescape"}),
            ("stdout", 1, {"mode": "w", "errors": "surrogateescape"}),
            ("stderr", 2, {"mode": "w", "errors": "backslashreplace", "buffering": 1}),
        ):
            stream = stack.enter_context(open(number, encoding="utf-8", closefd=False, **how))
            stack.enter_context(patch.object(sys, name, stream))
        yield


def _unread_pipe() -> BinaryIO:
    """The writing end of a pipe whose reader is gone, as with ``| true``."""
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "wb")


def _command(name: str) -> object:
    """The command of that name; Typer puts it together only once. Help is written into it in the language in use."""
    with_help = len(sys.argv) < 3 or not {"--help", "-h"}.isdisjoint(sys.argv)
    return _make_command(name) if with_help else _command_once(name)


_make_command = cli._imported
_command_once = functools.cache(_make_command)


def _exit_code() -> int:
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _raise(error: BaseException) -> int:
    raise error


def _content(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()
