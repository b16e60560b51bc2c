"""``logparse formulas``: by which formula a log's TFLOP/s was printed. Reads options, calls, prints."""

from __future__ import annotations

from analysis.commands import _options as options
from analysis.commands._forms import Form
from analysis.commands._run_flags import READING, with_run_flags
from analysis.identify import implied_peak
from analysis.present.views.formulas import formulas_document, formulas_parts
from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions


@with_run_flags(**READING, strict=options.Strict)
def formulas(
    logs: options.Logs,
    how: RunOptions,
    as_json: options.Json = False,
    no_color: options.NoColor = False,
    lang: options.Language = None,
) -> None:
    """Identify the FLOPs formula a log used, and show the result of every other formula.

    Exit code: 0 done, 2 wrong usage or unreadable input, 3 no step line found.
    """
    run = analyze_logs(logs, how)
    arguments = (run.log.name, run.identified, implied_peak(run.steps), (*run.log.notes, *run.context.notes))
    form = Form(as_json, no_color=no_color)
    form.print(lambda: formulas_document(*arguments), lambda: formulas_parts(*arguments))
