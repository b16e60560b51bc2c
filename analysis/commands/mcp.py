"""``logparse mcp``: the answers as tools of the Model Context Protocol, over standard input and output."""

from __future__ import annotations

import functools
import inspect
import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import logparse
from analysis.commands import _options as options
from analysis.commands._readable_root import ReadableRoot
from analysis.present.document_parts import Document
from analysis.present.views.compact import compact_comparisons, compact_runs
from analysis.present.views.fields import parse_fields, select_fields
from analysis.present.views.formats import formats_document
from analysis.present.views.short_ending import compact_endings, endings_document
from logparse.errors import LogparseError, SeveralRunsError, UsageError, unknown_name
from logparse.extras import missing_extra
from logparse.formats import known_formats, packaged
from logparse.inputs.run_discovery import named_runs
from logparse.inputs.run_names import run_names
from logparse.language import msg, tr, use_language
from logparse.masking import mask_text
from logparse.schema import QUANTITY, SCHEMA_VERSION

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

Setting = str | int | float | bool
# Of many runs these fields are given, where none are asked for; so many runs fit into an answer.
OF_MANY = "format,ending.state,ending.family,goodput,rates.steady.step_time_ms,rates.steady.mfu"
MOST_RUNS = 50
LONGEST_ERROR = 300

Root = Annotated[
    Path,
    typer.Option(
        "--root", metavar="DIR", show_default=False, help="Folder with the logs that may be read; default: this folder."
    ),
]


def mcp(root: Root = Path(), lang: options.Language = None) -> None:
    """Serve analyze, diagnose, compare and formats to agents, by the Model Context Protocol.

    An MCP client starts it, and speaks with it over standard input and output.

    It reads files below DIR and writes none. See docs/agents.md.
    """
    server_class = _imported_server()
    readable = ReadableRoot.of(root)
    if sys.stdin.isatty():
        typer.echo(tr("waiting for an MCP client on standard input; Ctrl-C ends it"), err=True)
    # Names of logs are short then, and the settings of the project are those of its folder.
    os.chdir(readable.folder)
    # A thread of the library waits for input, and an exception would wait for that thread.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Programs must find the same words on every machine.
    use_language("en")
    make_server(server_class, readable).run("stdio")


def _imported_server() -> type[MCPServer]:
    """Raises UsageError where the library is missing."""
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError as error:
        raise missing_extra("logparse mcp", "mcp", "mcp") from error
    return MCPServer


def make_server(server_class: type[MCPServer], root: ReadableRoot) -> MCPServer:
    """The server with its tools, all of which only read."""
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations

    tools = Tools(root)
    server = server_class(
        "logparse", version=logparse.__version__, instructions=inspect.getdoc(Tools), log_level="WARNING"
    )
    only_reads = ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    for tool in (tools.analyze, tools.diagnose, tools.compare, tools.formats):
        server.add_tool(
            _refusing(tool, ToolError),
            description=inspect.getdoc(tool),
            annotations=only_reads,
            structured_output=False,
        )
    return server


class Tools:
    """Answers about training runs from their text logs: speed, MFU, goodput, failures, comparisons.

    Start with analyze, or with diagnose where a run failed. Names of logs are relative to the folder of the server.
    Answers are JSON. A figure that is null is unknown; the notes say why, and which flag of the command would give it.
    The flag --hw is the argument hw, and a flag such as --world-size is the key world_size of settings.
    """

    def __init__(self, root: ReadableRoot) -> None:
        self._root = root
        # Warnings are collected for the whole process.
        self._one_at_a_time = threading.Lock()

    def analyze(
        self,
        logs: list[str],
        hw: str | None = None,
        peak_tflops: float | None = None,
        model: str | None = None,
        formula: str | None = None,
        settings: dict[str, Setting] | None = None,
        each: bool = False,
        fields: str | None = None,
    ) -> str:
        """Measure a run: step time, throughput, TFLOP/s, MFU, HFU, goodput, overheads, and how it ended.

        Args:
            logs: Files or folders of one run; with each, every file or entry of a folder is a run.
            hw: Device that MFU is measured against, such as "910b3" or "h100".
            peak_tflops: Peak of one device in TFLOP/s, for a device that is not known.
            model: A known model, such as "llama2-7b", for logs that do not print its shape.
            formula: FLOPs formula of TFLOP/s: ascendspeed (default), megatron, 6n or palm.
            settings: What the log does not print, such as {"world_size": 8, "seq_length": 4096, "precision": "bf16"}.
            each: Measure every run by itself, at most 50; then the answer has a few fields of each.
            fields: Give these fields alone, separated by commas, such as "mfu,goodput,rates.steady.step_time_ms".
        """
        names = self._root.checked(logs)
        wanted = parse_fields(fields or OF_MANY) if fields or each else None
        given: Document = {"hw": hw, "peak_tflops": peak_tflops, "model": model, "formula": formula}
        given |= _quantities(settings or {})
        with self._remarks() as remarks:
            runs = self._runs(names, given) if each else [logparse.analyze(*names, **given)]
            document: Document = {"schema_version": SCHEMA_VERSION, "runs": [run.to_dict() for run in runs]}
        short = compact_runs(document) if wanted is None else select_fields(document, wanted)
        return _answer(short, remarks)

    def _runs(self, names: Sequence[str], given: Document) -> Sequence[Any]:
        runs = named_runs(names, each=True)
        if len(runs) > MOST_RUNS:
            problem = tr("{n} runs are more than an answer holds", n=len(runs))
            raise UsageError(problem, remedy=tr("name at most {n} of them", n=MOST_RUNS))
        return logparse.analyze_many(names, **given)

    def diagnose(self, logs: list[str]) -> str:
        """Show why a run stopped: the cause, its line, the rank, and the code of what to try. Any text log is read.

        Args:
            logs: Files or folders of one run.
        """
        names = self._root.checked(logs)
        with self._remarks() as remarks:
            ending = logparse.diagnose(*names)
        return _answer(compact_endings(endings_document([(run_names([names])[0], ending)])), remarks)

    def compare(
        self,
        baseline: list[str],
        candidate: list[str],
        hw: str | None = None,
        model: str | None = None,
        threshold: str | None = None,
    ) -> str:
        """Compare a candidate with a baseline: a verdict for each metric, and what changed between them.

        Three or more runs a side prove a difference.

        Args:
            baseline: Logs, each a run, or one folder of runs.
            candidate: The same for the side that is judged.
            hw: Device that MFU is measured against, such as "910b3" or "h100".
            model: A known model, such as "llama2-7b", for logs that do not print its shape.
            threshold: The change that matters, such as "1%"; by default what is beyond the noise between runs.
        """
        old, new = (self._side(names) for names in (baseline, candidate))
        with self._remarks() as remarks:
            comparison = logparse.compare(old, new, threshold=threshold, hw=hw, model=model)
        return _answer(compact_comparisons(comparison.to_dict()), remarks)

    def _side(self, names: Sequence[str]) -> str | list[str]:
        checked = self._root.checked(names)
        return checked[0] if len(checked) == 1 else checked

    def formats(self, name: str | None = None) -> str:
        """List the log formats that are read, or show one with its labels and sample lines.

        Args:
            name: A format, such as "torchtitan"; by default all names and titles.
        """
        if name is None:
            listed = formats_document(known_formats(), packaged().packages)
            shown = [{key: one[key] for key in ("name", "title")} for one in listed]
        else:
            known = {fmt.name: fmt for fmt in known_formats()}
            if name not in known:
                raise unknown_name(msg("format"), name, known, tr("leave out the name to list all"))
            shown = formats_document([known[name]], packaged().packages)
        return _answer({"schema_version": SCHEMA_VERSION, "formats": shown}, ())

    @contextmanager
    def _remarks(self) -> Iterator[list[str]]:
        """What Python warns of within the block, such as a run that cannot be read."""
        remarks: list[str] = []
        with self._one_at_a_time, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            yield remarks
            remarks += [str(one.message) for one in caught if issubclass(one.category, UserWarning)]


def _quantities(settings: Document) -> Document:
    """Raises UsageError for another argument of ``logparse.analyze``, such as one that reads a file."""
    for name in settings:
        if name not in QUANTITY:
            raise unknown_name(msg("setting"), name, QUANTITY, tr("give sizes of the job or the model"))
    return settings


def _answer(document: Document, remarks: Sequence[str]) -> str:
    whole = document | ({"remarks": list(remarks)} if remarks else {})
    return json.dumps(whole, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _refusing(tool: Callable[..., str], refusal: type[Exception]) -> Callable[..., str]:
    """``tool`` whose errors are a ``refusal``, which the client reads as text."""

    @functools.wraps(tool)
    def wrapper(**arguments: Any) -> str:
        try:
            return tool(**arguments)
        except LogparseError as error:
            if isinstance(error, SeveralRunsError):
                error.remedy = tr("name the files of one run, or analyze each run by itself: each=true")
            raise refusal(str(error)) from error
        except BaseException as error:
            # polars panics with an error that is no Exception; the server goes on.
            text = f"{type(error).__name__}: {error}"
            raise refusal(mask_text(tr("internal error: {error}", error=text[:LONGEST_ERROR]))) from error

    return wrapper
