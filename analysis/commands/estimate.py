"""``logparse estimate``: what a training job should need and give, before it runs. Reads options, calls, prints."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from analysis.commands import _completion
from analysis.commands import _options as options
from analysis.commands._forms import Form
from analysis.commands._input_files import input_files
from analysis.commands._run_flags import with_quantity_flags
from analysis.estimate.layout_search import Fit
from analysis.files.outputs import write_charts
from analysis.files.result_folder import ResultFolder
from analysis.present.console import make_console
from analysis.present.views.estimate import estimate_document, estimate_parts, short_parts
from analysis.project.estimate_job import estimate_job
from logparse.language import msg, tr


def _size(flag: str, text: str) -> Any:
    return typer.Option(flag, min=1, help=text)


def _amount(flag: str, text: str) -> Any:
    return typer.Option(flag, help=text)


def _switch(name: str, text: str) -> Any:
    return typer.Option(f"--{name}/--no-{name}", help=text)


Size = int | None
Amount = float | None
Devices = Annotated[Size, _size("--devices", msg("Number of devices; without other sizes every layout is tried."))]
Tp = Annotated[Size, _size("--tp", msg("Tensor parallel size: devices that share each matrix."))]
Pp = Annotated[Size, _size("--pp", msg("Pipeline parallel size: number of pipeline stages."))]
Dp = Annotated[Size, _size("--dp", msg("Data parallel size: number of model replicas."))]
Cp = Annotated[Size, _size("--cp", msg("Context parallel size: devices that share each sequence."))]
Ep = Annotated[Size, _size("--ep", msg("Expert parallel size: devices that share the experts."))]
Vpp = Annotated[
    Size, _size("--vpp", msg("Virtual pipeline size: model chunks per pipeline stage; 1 means no interleaving."))
]
Zero = Annotated[
    int | None,
    typer.Option(
        "--zero",
        metavar="0|1|2|3",
        help=msg("ZeRO: shard nothing (0), optimizer state (1), also gradients (2), also weights (3)."),
    ),
]
SequenceParallel = Annotated[
    bool | None,
    _switch("sequence-parallel", msg("Sequence parallelism: tensor-parallel ranks also split norms and dropouts.")),
]
Flash = Annotated[bool | None, _switch("flash-attention", msg("FlashAttention: the attention matrix is not stored."))]
Dropout = Annotated[
    bool | None,
    _switch("dropout", msg("The model uses dropout and stores its masks; LLaMA and later models do not.")),
]
Tokens = Annotated[Amount, _amount("--tokens", msg("Tokens to train on, such as 2e12."))]
Utilisation = Annotated[Amount, _amount("--utilisation", msg("Utilization of the peak, such as 0.4."))]
Days = Annotated[Amount, _amount("--days", msg("Deadline in days; computes the number of devices needed."))]
MemoryGb = Annotated[Amount, _amount("--memory-gb", msg("Memory per device in GB; overrides --hw."))]
Network = Annotated[Amount, _amount("--network-gbits", msg("Network bandwidth per device in Gbit/s; default: 200."))]
Out = Annotated[ResultFolder | None, options.result_folder(help=msg("Folder for the chart of memory by stage."))]
FromLog = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="LOG",
        help=msg("Read model, layout, batch size and utilization from a log."),
    ),
]

Verbose = Annotated[bool, typer.Option("-v", "--verbose", help=msg("Show every layout, stage and formula."))]
FormulaName = Annotated[
    str | None,
    typer.Option(
        "--formula",
        autocompletion=_completion.formulas,
        help=msg("FLOPs formula: {real_model} (default; real model), {default}, {others}."),
    ),
]
Config = Annotated[
    Path | None,
    typer.Option("--config", help=msg("TOML file with any options of `logparse analyze`.")),
]


@partial(with_quantity_flags, named=("--devices", "--tp", "--pp", "--dp", "--cp", "--ep", "--vpp", "--zero"))
def estimate(
    given: dict[str, Any],
    model: options.Model = None,
    hw: options.Hardware = None,
    peak_tflops: options.PeakTflops = None,
    memory_gb: MemoryGb = None,
    formula: FormulaName = None,
    config: Config = None,
    devices: Devices = None,
    tp: Tp = None,
    pp: Pp = None,
    dp: Dp = None,
    cp: Cp = None,
    ep: Ep = None,
    vpp: Vpp = None,
    zero: Zero = None,
    sequence_parallel: SequenceParallel = None,
    flash_attention: Flash = None,
    dropout: Dropout = None,
    network_gbits: Network = None,
    tokens: Tokens = None,
    utilisation: Utilisation = None,
    days: Days = None,
    from_log: FromLog = None,
    out: Out = None,
    as_json: options.Json = False,
    as_markdown: options.Markdown = False,
    verbose: Verbose = False,
    no_color: options.NoColor = False,
    force: options.Force = False,
    lang: options.Language = None,
) -> None:
    """Estimate what a job should reach: parameters, memory per stage, time, devices.

    1 GB is 1e9 bytes. Memory excludes the driver, the communication library and fragmentation.

    Exit code: 0 done, 2 wrong usage or unreadable input.
    """
    form = Form(as_json, as_markdown, no_color)
    if out is not None:
        out.check(force, inputs=input_files([from_log]))
    short: dict[str, Any] = {
        "devices": devices,
        "tp": tp,
        "pp": pp,
        "dp": dp,
        "cp": cp,
        "ep": ep,
        "vpp": vpp,
        "zero": zero,
    }
    short |= {"sequence_parallel": sequence_parallel, "flash_attention": flash_attention, "dropout": dropout}
    short |= {"network_gbits": network_gbits}
    machine, how_long = (model, hw, peak_tflops, memory_gb), (tokens, utilisation, days)
    planned = estimate_job(given, short, *machine, formula, config, *how_long, from_log)
    written = _write(planned.result.fit, out, force) if out is not None else None
    shown_parts = estimate_parts if verbose or as_markdown else short_parts
    form.print(lambda: estimate_document(planned), lambda: shown_parts(planned))
    if written is not None and (not as_json or planned.result.fit is None):
        make_console(stderr=True, no_color=no_color).print(written)


def _write(fit: Fit | None, out: ResultFolder, force: bool) -> str:
    """The chart of memory by stage, and what became of it."""
    from analysis.charts.device_memory import memory_chart

    if fit is None:
        return tr("nothing written to {folder}/: memory by stage is unknown, see above", folder=out)
    with out.opened("estimate", force) as folder:
        write_charts({"memory": memory_chart(fit)}, folder / "charts")
    return tr("wrote {folder}/", folder=out)
