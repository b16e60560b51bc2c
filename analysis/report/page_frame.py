"""What every page is framed by: its policy, style and scripts, so that it is complete in itself and asks no network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from analysis.charts import DARK, LIGHT
from analysis.present.html import html
from analysis.present.parts import Part
from analysis.present.words import sentences_of
from analysis.report.payload import as_json
from analysis.report.shown_numbers import engineering, number
from logparse import __version__
from logparse.language import current_language, tr

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup


def render(
    template: str,
    title: str,
    data: dict[str, Any],
    script: str = "page.js",
    styles: Sequence[str] = ("page.css",),
    charts: bool = True,
    **values: Any,
) -> str:
    """The page of ``template``, a file of this folder as ``script`` and ``styles`` are, in the language in use.

    ``data`` is what its script works with, where it has one; without ``charts`` there is no Vega on it.
    """
    scripts = [*([vega()] if charts else []), *([_resource(script)] if script else [])]
    return (
        _environment()
        .get_template(template)
        .render(
            title=title,
            language=current_language(),
            charts=charts,
            scripts=scripts,
            style="".join(map(_resource, styles)),
            palette=_palette(),
            colors=len(LIGHT["range"]["category"]),
            hashes=list(map(_hash, scripts)),
            data=as_json(data),
            made_on=f"{_today():%Y-%m-%d}",
            **({"command": "", "sources": ()} | values),
        )
    )


def _today() -> date:
    """The day on which the page is made, or that of SOURCE_DATE_EPOCH, with which builds are reproducible."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(given), UTC).date() if given.isdigit() else datetime.now().astimezone().date()


@cache
def _environment() -> jinja2.Environment:
    """It keeps the templates that it has read."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_resource),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        version=__version__, tr=tr, sentences_of=sentences_of, number=number, engineering=engineering, show=_show
    )
    return environment


def _show(part: Part) -> Markup:
    from markupsafe import Markup

    return Markup(html([part]))


def _palette() -> str:
    """The colours of the runs in the charts, for the page around them."""

    def variables(look: dict[str, Any]) -> str:
        colors = "".join(f"--run{at}:{color};" for at, color in enumerate(look["range"]["category"]))
        return f":root{{{colors}}}"

    return f"{variables(LIGHT)}@media screen and (prefers-color-scheme:dark){{{variables(DARK)}}}"


def _resource(name: str) -> str:
    return (resources.files("analysis.report") / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """What the page's policy knows a script by; a script that a log smuggled in has none."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; vega.LICENSE.txt is theirs."""
    return gzip.decompress((resources.files("analysis.report") / "vega.js.gz").read_bytes()).decode()
