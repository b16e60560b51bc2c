"""Options that several commands take, each written once: name and help."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Annotated, Any

import typer

from analysis.commands import _completion
from analysis.files.outputs import CHART_FORMATS, DEFAULT_FORMATS, TABLE_FORMATS, check_table_formats
from analysis.files.result_folder import ResultFolder
from analysis.hardware import BASES
from analysis.project import LEAST_UTILISATION
from logparse.errors import UsageError
from logparse.language import LANGUAGES, msg, tr, use_language
from logparse.pseudonyms import Pseudonyms


def _speak(language: str | None) -> str | None:
    if language is not None:
        if language not in LANGUAGES:
            raise typer.BadParameter(tr("{name!r} is not one of {names}", name=language, names=", ".join(LANGUAGES)))
        use_language(language)
    return language


def help_fields() -> dict[str, str]:
    """What fills the fields of a help: names of formulas and of formats."""
    from analysis.flops import all_formulas
    from logparse.formats import all_formats

    default, real_model, *others = all_formulas()
    listed = reduce(lambda first, other: tr("{first}, {other}", first=first, other=other), others)
    formats = ", ".join(fmt.name for fmt in all_formats())
    return {"default": default, "real_model": real_model, "others": listed, "formats": formats}


Logs = Annotated[
    list[str],
    typer.Argument(
        metavar="LOG...",
        help="Files of one run: logs, folders, globs, URLs, or - for stdin.",
    ),
]


def words(complete: Callable[[str], list[str]]) -> Any:
    """The argument for a name, or parts of names, that ``complete`` knows."""
    meaning = msg("Name, or parts of a name; default: list all.")
    return typer.Argument(metavar="[WORDS]...", autocompletion=complete, help=meaning)


def result_folder(help: str, metavar: str = "DIR") -> Any:  # noqa: A002
    """The option for the folder of results."""
    return typer.Option("-o", "--out", parser=folder_of, metavar=metavar, help=help)


Hardware = Annotated[
    str | None,
    typer.Option(
        "--hw",
        autocompletion=_completion.devices,
        help="Device; `logparse hardware` lists them.",
    ),
]
PeakTflops = Annotated[
    float | None,
    typer.Option("--peak-tflops", help="Peak of one device in TFLOP/s; overrides --hw."),
]
PeakBasis = Annotated[
    str | None,
    typer.Option(
        "--peak-basis",
        autocompletion=_completion.one_of(*BASES),
        metavar="|".join(BASES),
        help="Peak to use: matrix (default) or headline (data sheet).",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        autocompletion=_completion.models,
        help="Known model, such as llama2-7b; see `logparse models`.",
    ),
]
FormulaName = Annotated[
    str | None,
    typer.Option(
        "--formula",
        autocompletion=_completion.formulas,
        help="FLOPs formula: {default} (default), {real_model} (real model), {others}.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option("--config", help="TOML file with any of these options."),
]
LogFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        "--format-file",
        autocompletion=_completion.formats,
        help="Log format: a name from `logparse formats`, or your file.",
    ),
]
Dialect = Annotated[
    str | None,
    typer.Option("--dialect", autocompletion=_completion.dialects, help="Framework and version that printed the log."),
]


def project_pseudonyms(key: bytes | None = None) -> Pseudonyms:
    """Those of the project's history, else those of ``key``, else new ones."""
    from analysis.history.pseudonym_key import pseudonyms_of_answer
    from analysis.project.project_file import find_project_settings

    place = find_project_settings().get("history")
    return pseudonyms_of_answer(None if place is None else str(place), key)


def check_named(out: str) -> None:
    """Raises UsageError where ``-o`` has an empty name, which would be the current folder."""
    if not out.strip():
        raise UsageError(
            tr("-o has an empty folder name"), remedy=tr("give a folder name; check for an unset shell variable")
        )


def folder_of(text: str) -> ResultFolder:
    """The folder that -o names. Raises UsageError for an empty name."""
    check_named(text)
    folder = ResultFolder(text)
    folder.check_name()
    return folder


def table_formats(text: str) -> tuple[str, ...]:
    """What --tables asks for. Raises UsageError for a form that does not exist."""
    formats = tuple(dict.fromkeys(text.split(",")))
    check_table_formats(formats)
    return formats


Out = Annotated[ResultFolder | None, result_folder(help="Folder for report.html, tables and charts/.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Compact = Annotated[bool, typer.Option("--compact", help="Print short JSON, below 6 kB a run.")]
Fields = Annotated[
    str | None,
    typer.Option(
        "--fields",
        metavar="NAMES",
        autocompletion=_completion.fields,
        help="Print these fields of a run as JSON, such as mfu.",
    ),
]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")]
Quiet = Annotated[
    bool,
    typer.Option("-q", "--quiet", help="Print one line per run."),
]
Verbose = Annotated[
    bool,
    typer.Option("-v", "--verbose", help="Show all rates, inputs and notes."),
]


def price_of(text: str) -> float:
    """The price of a device-hour. Raises UsageError for what is none."""
    number = text.removesuffix("/h")
    try:
        price = float(number)
    except ValueError:
        price = -1.0
    if not 0 <= price < float("inf"):
        problem = tr("{text!r} is not a valid price per device-hour", text=text)
        raise UsageError(problem, where="--price", remedy=tr("give a number, in any currency: --price 2.5/h"))
    return price


Price = Annotated[
    float | None,
    typer.Option(
        "--price",
        parser=price_of,
        metavar="NUMBER[/h]",
        help="Price of a device-hour, such as 2.5/h.",
    ),
]
NoColor = Annotated[bool, typer.Option("--no-color", help="Print without colors.")]
# Runs of which charts and pages are written where nobody asks for them; each takes 2 s and 2 MB.
MOST_DRAWN = 24
Charts = Annotated[
    bool | None,
    typer.Option(
        "--charts/--no-charts",
        help=f"Write charts and report.html to the -o folder; default: for up to {MOST_DRAWN} runs.",
    ),
]
ChartFormats = Annotated[
    str | None,
    typer.Option(
        "--chart-format",
        metavar="FORMAT[,FORMAT...]",
        help=f"Chart formats: {', '.join(CHART_FORMATS)}; default: {', '.join(DEFAULT_FORMATS)}. "
        "All but json need logparse[pictures].",
    ),
]
Tables = Annotated[
    str,
    typer.Option(
        "--tables",
        metavar="FORMAT[,FORMAT...]",
        help=f"Table formats: {', '.join(TABLE_FORMATS)}.",
    ),
]
Theme = Annotated[
    str | None,
    typer.Option("--theme", help="Vega theme for charts, such as dark."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files in the -o folder.")]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        autocompletion=_completion.baselines,
        help="Published result to compare with; see `logparse baselines`.",
    ),
]
PlannedUtilisation = Annotated[
    float | None,
    typer.Option(
        "--utilisation",
        min=LEAST_UTILISATION,
        max=1,
        help="Planned utilization of the peak, such as 0.4.",
    ),
]
Require = Annotated[
    list[str] | None,
    typer.Option(
        "--require",
        autocompletion=_completion.required,
        metavar="'FIGURE>=NUMBER'",
        help="Target, such as 'mfu>=0.45'; repeatable.",
    ),
]
BaselineFile = Annotated[
    Path | None,
    typer.Option("--baseline-file", help="CSV file with your own published results."),
]
Warmup = Annotated[
    int | None,
    typer.Option("--warmup", min=0, help="Warm-up rows to skip after each start."),
]
AllFiles = Annotated[
    bool,
    typer.Option("--all-files", help="Read every file to its end."),
]
NoDraft = Annotated[
    bool,
    typer.Option("--no-draft", help="Do not read an unknown format by a draft."),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", metavar="N", min=1, help="Number of parallel readers; default: one per core."),
]
Anonymise = Annotated[
    bool,
    typer.Option("--anonymise", help="Show pseudonyms for hosts, users, paths, runs and jobs."),
]
Each = Annotated[
    bool,
    typer.Option("--each", help="Treat each LOG or folder entry as a run."),
]
Split = Annotated[
    bool,
    typer.Option("--split", help="Analyze each run by itself where several write to one file."),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="EXPR",
        help="Show only runs that match, such as 'mfu<0.3'.",
    ),
]
Sort = Annotated[
    str | None,
    typer.Option(
        "--sort",
        metavar="[-]COLUMN",
        help="Sort runs by a column, such as mfu; -mfu: descending.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Fail on a truncated or invalid step line."),
]
Language = Annotated[
    str | None,
    typer.Option(
        "--lang",
        autocompletion=_completion.one_of(*LANGUAGES),
        metavar="|".join(LANGUAGES),
        callback=_speak,
        is_eager=True,
        help="Language of the output; default: the locale.",
    ),
]
