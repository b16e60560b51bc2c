"""What several test files share: logs in the frameworks' own words, lines as the decoder sees them, the command run."""

import math
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from logparse.findings import Note
from logparse.schema import Column

ROOT = Path(__file__).parent.parent
GOLDENS = Path(__file__).parent / "goldens"

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
        {"line_number": range(1, len(lines) + 1), "text": lines, "complete": ended},
        schema={"line_number": pl.Int64, "text": pl.String, "complete": pl.Boolean},
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
    "hfu": "ratio",
}
WORK = {"samples": "samples", "tokens": "tokens", "tflops": "TFLOP"}


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


def run_logparse(
    *arguments: str, cwd: Path, stdin: bytes | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run the installed command in English, whatever the locale; ``env`` is added to the environment."""
    command = [str(Path(sys.executable).with_name("logparse")), *arguments]
    unwanted = ("PYTHONPATH", "FORCE_COLOR", "LC_ALL", "LC_MESSAGES")
    plain = {name: value for name, value in os.environ.items() if name not in unwanted}
    environment = plain | {"COLUMNS": "100", "LANG": "C.UTF-8"} | env
    done = subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, check=False, env=environment)
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())
