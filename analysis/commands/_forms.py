"""The forms of an output: JSON, Markdown, or a screen."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import typer

from analysis.present.console import make_console
from analysis.present.markdown import markdown
from analysis.present.parts import Part
from analysis.present.terminal import print_parts
from logparse.errors import UsageError
from logparse.language import tr
from logparse.light_dataclass import dataclass

# A document made short.
Shortened = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Form:
    """The form that the flags of a command ask for: a screen, where they ask for none. Raises UsageError for two.

    ``verbose`` asks for all details on the screen, which Markdown always has. ``compact`` makes a document short.
    """

    as_json: bool = False
    as_markdown: bool = False
    no_color: bool = False
    verbose: bool = False
    compact: Shortened | None = None

    @property
    def details(self) -> bool:
        """Whether all details are shown."""
        return self.verbose or self.as_markdown

    def __post_init__(self) -> None:
        if self.as_json and self.as_markdown:
            raise UsageError(tr("--json and --markdown exclude each other"), remedy=tr("give one of them"))

    def print(self, document: Callable[[], Any], parts: Callable[[], Sequence[Part]]) -> None:
        """Print ``document`` as JSON, or ``parts``; only what is printed is composed."""
        if self.as_json:
            print_json(document(), compact=self.compact)
        elif self.as_markdown:
            typer.echo(markdown(parts()))
        else:
            print_parts(make_console(no_color=self.no_color), parts())


def print_json(document: Any, default: Callable[[Any], str] | None = None, compact: Shortened | None = None) -> None:
    """Print ``document`` as JSON, with its texts as they are; in ASCII where standard output is not UTF-8.

    ``default`` makes text of what JSON has no form for. A document that ``compact`` makes short is one line.
    """
    typer.echo(_json(document if compact is None else compact(document), compact is not None, default))


def print_long_json(document: dict[str, Any], runs: Iterable[str], compact: Shortened | None = None) -> None:
    """``print_json`` with the ``runs``, each a text of JSON, as its list of that name, one held at a time."""
    empty = document | {"runs": []}
    if compact is None:
        frame, opening, end = _json(empty), '"runs": [', "\n "
        # A run is two columns further in: one for the object, one for its list.
        texts = ("\n  " + _json(json.loads(run)).replace("\n", "\n  ") for run in runs)
    else:
        frame, opening, end = _json(compact(empty), short=True), '"runs":[', ""
        texts = (_json(compact({"runs": [json.loads(run)]})["runs"][0], short=True) for run in runs)
    before, after = frame.split(f"{opening}]", 1)
    typer.echo(before + opening, nl=False)
    between = ""
    for text in texts:
        typer.echo(between + text, nl=False)
        between = ","
    typer.echo(f"{end if between else ''}]{after}")


def _json(document: Any, short: bool = False, default: Callable[[Any], str] | None = None) -> str:
    is_utf8 = sys.stdout.encoding.lower().replace("-", "") == "utf8"
    layout: dict[str, Any] = {"separators": (",", ":")} if short else {"indent": 1}
    return json.dumps(document, ensure_ascii=not is_utf8, allow_nan=False, default=default, **layout)
