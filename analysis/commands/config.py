"""``logparse config``: which settings hold here. Reads options, calls, prints."""

from __future__ import annotations

from functools import partial
from typing import Any

from analysis.commands import _options as options
from analysis.commands._forms import Form
from analysis.commands._release_options import HistoryDir
from analysis.commands._run_flags import with_quantity_flags
from analysis.present.views.config import config_document, config_parts
from analysis.project.choose_language import project_file
from analysis.project.effective_settings import settings_in_force
from analysis.project.given_facts import gather
from analysis.project.project_file import find_project_settings


@with_quantity_flags
def config(
    given: dict[str, Any],
    hw: options.Hardware = None,
    peak_tflops: options.PeakTflops = None,
    formula: options.FormulaName = None,
    model: options.Model = None,
    baseline: options.Baseline = None,
    utilisation: options.PlannedUtilisation = None,
    require: options.Require = None,
    history: HistoryDir = None,
    config: options.Config = None,
    as_json: options.Json = False,
    no_color: options.NoColor = False,
    lang: options.Language = None,
) -> None:
    """Show the effective settings and their source.

    Precedence: command line, --config, environment (LOGPARSE_HW, LOGPARSE_HISTORY, LOGPARSE_LANG), logparse.toml.

    Exit code: 0 done, 2 wrong usage or unreadable file.
    """
    flags: dict[str, Any] = {"hw": hw, "peak_tflops": peak_tflops, "formula": formula, "model": model}
    flags |= {"baseline": baseline, "utilisation": utilisation, "require": require, "history": history, "lang": lang}
    settings = settings_in_force(flags, gather(given, model, config), find_project_settings())
    form = Form(as_json, no_color=no_color)
    form.print(partial(config_document, settings, project_file()), partial(config_parts, settings, project_file()))
