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


@dataclass(frozen=True)
class Form:
    """The form that the flags of a command ask for: a screen, where they ask for none. Raises UsageError for two.

    ``verbose`` asks for all details on the screen, which Markdown always has.
    """

    as_json: bool = False
    as_markdown: bool = False
    no_color: bool = False
    verbose: bool = False

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
            print_json(document())
        elif self.as_markdown:
            typer.echo(markdown(parts()))
        else:
            print_parts(make_console(no_color=self.no_color), parts())


def print_json(document: Any, default: Callable[[Any], str] | None = None) -> None:
    """Print ``document`` as JSON, with its texts as they are; in ASCII where standard output is not UTF-8.

    ``default`` makes text of what JSON has no form for.
    """
    typer.echo(_json(document, default))


def print_long_json(document: dict[str, Any], name: str, elements: Iterable[str]) -> None:
    """``print_json`` with the ``elements``, each a text of JSON, as the list ``name``, one held at a time."""
    before, after = _json(document | {name: []}).split(f'"{name}": []', 1)
    typer.echo(f'{before}"{name}": [', nl=False)
    between = ""
    for element in elements:
        # An element of a list of an object is two columns further in, one for each.
        text = _json(json.loads(element)).replace("\n", "\n  ")
        typer.echo(f"{between}\n  {text}", nl=False)
        between = ","
    end = "\n " if between else ""
    typer.echo(f"{end}]{after}")


def _json(document: Any, default: Callable[[Any], str] | None = None) -> str:
    is_utf8 = sys.stdout.encoding.lower().replace("-", "") == "utf8"
    return json.dumps(document, indent=1, ensure_ascii=not is_utf8, allow_nan=False, default=default)
