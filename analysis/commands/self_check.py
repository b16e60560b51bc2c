"""``logparse self-check``: whether this installation computes what is published. Reads options, calls, prints."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer

from analysis.commands import _options as options
from analysis.commands._forms import Form
from analysis.installation.checks import check_installation
from analysis.present.views.self_check import self_check_document, self_check_parts
from analysis.project.project_file import find_project_settings
from logparse.inputs.stores import is_url
from logparse.language import current_language


def self_check(as_json: options.Json = False, no_color: options.NoColor = False, lang: options.Language = None) -> None:
    """Check the installation: versions, encoding, writable folders, and figures against published numbers.

    Nothing is sent, and nothing is left on the disk.

    Exit code: 0 all checks passed, 1 otherwise.
    """
    history = find_project_settings().get("history")
    places = {} if history is None or is_url(str(history)) else {"history": Path(str(history))}
    checks = check_installation(current_language(), places)
    form = Form(as_json, no_color=no_color)
    form.print(partial(self_check_document, checks), partial(self_check_parts, checks))
    raise typer.Exit(0 if all(check.passed for check in checks) else 1)
