"""Help and refusals of the command line in the language in use. Typer's own words are English only.

Comes in: commands with English help, a refused command line. Goes out: what is shown of them. In English that is what
Typer shows, to the letter.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
import typer.core

from analysis.commands._help_pages import (
    ADVANCED,
    EXAMPLES,
    GROUP_OF,
    GROUPS,
    MISSING,
    OUTPUT,
    is_detailed,
    listed_names,
)
from analysis.commands._values import taking_text
from logparse.language import current_language, msg, tr

# What Typer raises where a command line cannot be used; it knows its ``exit_code`` and how to ``show`` itself.
Refusal: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

NO_COMMAND = msg("No such command '{name}'.")
# Typer's words, narrower ones above wider ones. A field may hold another of them.
NO_OPTION = msg("Missing option '{name}'.")
# A whole command for each option that must be given.
COMMANDS_WITH = {"--release": "logparse record LOG --release NAME --history DIR"}
TEMPLATES = (
    msg("Try '{command}' for help."),
    msg("Error: {problem}"),
    msg("Invalid value for {name}: {problem}"),
    msg("No such option: {option} (Possible options: {names})"),
    msg("No such option: {option}"),
    msg("No such command '{name}'. Did you mean {names}?"),
    NO_COMMAND,
    msg("Missing argument '{name}'."),
    NO_OPTION,
    msg("Missing command."),
    msg("Option '{option}' requires an argument."),
    msg("Option '{option}' does not take a value."),
    msg("Got unexpected extra argument(s) ({names})"),
    msg("Input should be a valid integer, unable to parse string as an integer"),
    msg("Input should be a valid number, unable to parse string as a number"),
    msg("Input should be greater than or equal to {least}"),
)
HEADINGS = (msg("Arguments"), msg("Options"), msg("Commands"), *GROUPS)
REMARKS = (msg("[required]"), msg("[default: "))
# The template and the fields of help that was filled, by what it is in English.
FILLED: dict[str, tuple[str, Mapping[str, str]]] = {}
# What the option of the device is taken to be called.
DEVICE_OPTIONS = ("--hardware", "--device", "--gpu", "--npu", "--accelerator")
TYPERS_HELP = msg("Show this message and exit.")
HELP_ALL = "--help-all"
# Values in words, by the type of an option.
METAVARS = {int: "NUMBER", float: "NUMBER", Path: "FILE", str: "NAME"}
# The range that Typer adds to the help of a number.
_RANGE = re.compile(r"\s*\[(?:[\d.]+<=?)?x[<>]=?[^\]]*\]|; (?:[\d.]+<=?)?x[<>]=?[\d.]+(?=\])")

_TypersFormatter: Any = typer.Context.formatter_class


class Formatter(_TypersFormatter):  # type: ignore[misc]
    """Lays help out as Typer does, by columns of the terminal where characters are wide."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """The first line."""
        super().write_usage(prog, args, prefix or tr("Usage: "))

    def write_heading(self, heading: str) -> None:
        """The name of a section."""
        if current_language() == "en":
            super().write_heading(heading)
        else:
            self.write("".join(self._indented([f"{tr(heading)}：\n"])))

    def write_text(self, text: str) -> None:
        """Paragraphs."""
        if current_language() == "en":
            super().write_text(text)
            return
        from analysis.present.console import wrap

        room = self.width - self.current_indent
        paragraphs = ("\n".join(self._indented(wrap(part, room))) for part in text.split("\n\n"))
        self.write("\n\n".join(paragraphs) + "\n")

    def write_dl(self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Names and what they mean."""
        if current_language() == "en":
            super().write_dl(rows, col_max, col_spacing)
            return
        from analysis.present.console import wrap

        column = min(max(len(name) for name, _ in rows), col_max) + col_spacing
        for name, meaning in rows:
            first, *others = wrap(_remarks(meaning), max(self.width - column - 2, 10))
            head = name.ljust(column) if len(name) <= column - col_spacing else f"{name}\n{' ' * column}"
            lines = (head + first, *(" " * column + line for line in others))
            self.write("\n".join(self._indented("\n".join(lines).split("\n"))) + "\n")

    def _indented(self, lines: Iterable[str]) -> Iterator[str]:
        return (" " * self.current_indent + line for line in lines)


def _remarks(meaning: str) -> str:
    for remark in REMARKS:
        meaning = meaning.replace(remark, tr(remark))
    return meaning


class Context(typer.Context):
    """A context whose help is laid out by ``Formatter``."""

    formatter_class = Formatter


class Command(typer.core.TyperCommand):
    """A command whose help is in the language in use."""

    context_class = Context

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, of which only numbers and paths are checked."""
        return taking_text(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Answer --help-all, which lists every option. An error of an option names the command, too."""
        _answer_help_all(self, ctx, args)
        try:
            return super().parse_args(ctx, args)
        except Refusal as error:
            error.ctx = getattr(error, "ctx", None) or ctx  # type: ignore[attr-defined]
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Examples first. Translate what is known only now, when the options have been read."""
        _translate(self, ctx)
        _write_examples(ctx, formatter)
        super().format_help(ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The options, and each argument by its name."""
        return [self.options_metavar or "", *map(_argument, _arguments(self, ctx))]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The arguments, then the options by groups."""
        _write_arguments(self, ctx, formatter)
        _write_groups(self, ctx, formatter)
        if ctx.meta.get(HELP_ALL):
            _write_names(ctx, formatter)

    def get_short_help_str(self, limit: int = 45) -> str:  # noqa: ARG002
        """The first sentence, whole."""
        text = tr(shown_help(self)).replace("\n", " ")
        end = "." if current_language() == "en" else "。"
        return text.partition(f"{end} ")[0].partition("。")[0].removesuffix(end) + ("." if end == "." else "")


class Group(typer.core.TyperGroup):
    """A command above commands."""

    context_class = Context
    no_args_is_help = True

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, of which only numbers and paths are checked."""
        return taking_text(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Answer --help-all, which is for a group what --help is."""
        if args[:1] == [HELP_ALL]:
            _answer_help_all(self, ctx, args)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Examples first. Translate what is known only now, when the options have been read."""
        _translate(self, ctx)
        _write_examples(ctx, formatter)
        super().format_help(ctx, formatter)


def default_group(name: str) -> type[Group]:
    """A command above commands where what is none of them goes to the command ``name``."""

    class WithDefault(Group):
        no_args_is_help = False

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            """Put the command in front, unless help is asked for or one is named."""
            first = args[0] if args else ""
            asks_help = first in (*ctx.help_option_names, HELP_ALL)
            if first not in self.commands and not asks_help and not ctx.resilient_parsing:
                args = [name, *args]
            return super().parse_args(ctx, args)

    return WithDefault


def shown_help(command: Any) -> str:
    """The help of a command as far as it is shown, in English."""
    return str(command.help).partition("\f")[0].rstrip()


def filled(template: str, **fields: str) -> str:
    """Help with ``fields`` in it, such as names of a table; only the template is translated."""
    text = template.format(**fields)
    FILLED[text] = (template, fields)
    return text


def _answer_help_all(command: Any, ctx: Any, args: Sequence[str]) -> None:
    """Print the help of all options and exit, if ``args`` ask for it."""
    before = args[: args.index("--")] if "--" in args else args
    if HELP_ALL in before and not ctx.resilient_parsing:
        ctx.meta[HELP_ALL] = True
        typer.echo(command.get_help(ctx))
        raise typer.Exit


def _write_examples(ctx: Any, formatter: Any) -> None:
    name = ctx.command_path.partition(" ")[2]
    if name in EXAMPLES:
        formatter.write(tr("Examples:") + "\n")
        formatter.write("".join(f"  {' '.join((ctx.command_path, words)).rstrip()}\n" for words in EXAMPLES[name]))
        formatter.write("\n")


def _arguments(command: Any, ctx: Any) -> list[Any]:
    return [parameter for parameter in command.get_params(ctx) if parameter.param_type_name == "argument"]


def _argument(parameter: Any) -> str:
    name = parameter.metavar or str(parameter.name).upper()
    return name if parameter.required or name.startswith("[") else f"[{name}]"


def _write_arguments(command: Any, ctx: Any, formatter: Any) -> None:
    rows = [(_argument(parameter), parameter.help or "") for parameter in _arguments(command, ctx)]
    if any(meaning for _, meaning in rows):
        with formatter.section("Arguments"):
            formatter.write_dl(rows)


def _write_groups(command: Any, ctx: Any, formatter: Any) -> None:
    """The options by groups, in their order; those that only --help-all lists are counted."""
    everything = bool(ctx.meta.get(HELP_ALL))
    rows: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
    hidden = 0
    for parameter in command.get_params(ctx):
        record = _option(parameter, ctx) if parameter.param_type_name == "option" else None
        if record is None:
            continue
        panel = parameter.rich_help_panel
        if not everything and is_detailed(parameter.name, panel == MISSING):
            hidden += 1
        else:
            rows[panel or GROUP_OF.get(parameter.name, ADVANCED)].append(record)
    more = tr("Show every option ({n} more).", n=hidden) if hidden else tr("Show every option.")
    rows[OUTPUT].append((HELP_ALL, more))
    for group in GROUPS:
        if rows[group]:
            with formatter.section(group):
                formatter.write_dl(rows[group], 26)


def _write_names(ctx: Any, formatter: Any) -> None:
    for title, names in listed_names(ctx.command_path.partition(" ")[2]):
        # A name that is broken at a hyphen cannot be copied.
        lines = textwrap.wrap(", ".join(names), formatter.width - 2, break_on_hyphens=False, break_long_words=False)
        with formatter.section(title):
            formatter.write("".join(f"  {line}\n" for line in lines))


def _option(parameter: Any, ctx: Any) -> tuple[str, str] | None:
    """The names of an option with what it takes in words, and its help without a range of numbers."""
    if parameter.metavar is None and not parameter.is_flag:
        parameter.metavar = METAVARS.get(parameter.type_descriptor.annotation)
    record = parameter.get_help_record(ctx)
    return record and (record[0], _RANGE.sub("", record[1]))


def _translate(command: Any, context: Any) -> None:
    command.help = tr(shown_help(command))
    for parameter in command.get_params(context):
        if parameter.help:
            template, fields = FILLED.get(parameter.help) or (parameter.help, _fields_of(parameter.help))
            parameter.help = tr(template, **fields)


def _fields_of(template: str) -> Mapping[str, str]:
    """Only help that has fields needs the formulas."""
    if "{" not in template:
        return {}
    from analysis.commands._options import help_fields

    return help_fields()


def show_refusal(error: Any) -> None:
    """Print on stderr why a command line cannot be used, and how to give a quantity that has no flag."""
    from logparse.masking import mask_text

    stream = io.StringIO()
    with contextlib.redirect_stderr(stream):
        error.show()
    message = mask_text(stream.getvalue())
    sys.stderr.write("".join(f"{translate_refusal(line)}\n" for line in message.splitlines()))
    option = str(getattr(error, "option_name", None) or "")
    if hint := _form_of(option, getattr(error, "ctx", None)) or _meant(option, message):
        sys.stderr.write(hint + "\n")


def _form_of(option: str, ctx: Any) -> str:
    """What an option that the command has takes, as its help says; empty for one that it has not."""
    parameters = [parameter for parameter in ctx.command.get_params(ctx) if option in parameter.opts] if ctx else []
    if not parameters:
        return ""
    _translate(ctx.command, ctx)
    record = _option(parameters[0], ctx)
    return tr("  try:   {remedy}", remedy="  ".join(record)) if record else ""


def _meant(option: str, message: str) -> str:
    """A hint for an option or command that does not exist; empty where none is known."""
    if option in DEVICE_OPTIONS:
        return tr("use --hw to set the device, such as --hw {name}", name="910b")
    if (missing := re.search(_pattern(NO_OPTION), message)) and missing["name"] in COMMANDS_WITH:
        return tr("  try:   {remedy}", remedy=COMMANDS_WITH[missing["name"]])
    unknown = re.search(_pattern(NO_COMMAND), message)
    if unknown and Path(unknown["name"]).exists():
        return tr("to read a log: {command}", command=shlex.join(["logparse", "analyze", unknown["name"]]))
    return _without_flag(option)


def _without_flag(option: str) -> str:
    """How to give a quantity that has no flag; empty where ``option`` names none."""
    from logparse.schema import QUANTITY

    name = option.lstrip("-").replace("-", "_")
    return tr("{name} has no option: set it in a --config file", name=name) if name in QUANTITY else ""


def _pattern(template: str) -> str:
    return re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.*)", re.escape(template))


def translate_refusal(text: str) -> str:
    """``text`` in the language in use where it is one of TEMPLATES."""
    for template in TEMPLATES:
        if match := re.fullmatch(_pattern(template), text):
            values = {name: translate_refusal(value) for name, value in match.groupdict().items()}
            return tr(template, **values)
    return text
