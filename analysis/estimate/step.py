"""What one step loses: the pipeline's bubble, and the traffic of tensor parallelism against the links.

Comes in: a layout and how a step is done. Goes out: figures.
"""

from __future__ import annotations

from analysis.estimate.assumptions import NARAYANAN, NOTE_13B, SEQUENCE, SHOEYBI
from analysis.estimate.device_layout import Layout, Training
from analysis.estimate.worked_figure import Figure, Number, work_out
from analysis.model.shape import ModelShape

# Per device between nodes, the article's case.
NETWORK_GBITS = 200.0


def bubble_share(pp: int, micro_batches: int, vpp: int = 1) -> float:
    """Share of the step in which a device waits for the pipeline to fill and to drain.

    The bubble is (pp - 1)/(m vpp) of the work; of the whole step it is (pp - 1)/(m vpp + pp - 1). Source: NARAYANAN.
    """
    return (pp - 1) / (micro_batches * vpp + pp - 1)


def bubble_figures(layout: Layout, micro_batches: int | None) -> tuple[Figure, ...]:
    """Bubble as a share of the step, and what of the peak it leaves at best."""
    values: dict[str, Number | None] = {"pp": layout.pp, "m": micro_batches, "vpp": layout.vpp}
    share = "(pp - 1) / (m * vpp + pp - 1)"
    return (
        work_out("bubble", "ratio", share, NARAYANAN, **values),
        work_out("bubble_ceiling", "ratio", f"1 - {share}", NARAYANAN, **values),
    )


def traffic_bytes(shape: ModelShape, layout: Layout, training: Training, micro_batches: int | None) -> Figure:
    """Bytes one device sends in a step for tensor parallelism, on the stage with most layers.

    Two all-reduces forward and two backward per layer; sequence parallelism makes each a gather and a scatter of the
    same bytes and gathers the input of both blocks again; full recomputation does the forward ones twice.
    """
    reduces = 4 + (2 if training.recompute == "full" else 0) + (1 if layout.sequence_parallel else 0)
    formula = "2 * (t - 1) / t * reduces * layers * m * b * s / cp * h * bytes"
    layers = None if shape.num_layers is None else -(-shape.num_layers // layout.pp)
    return work_out(
        "tensor_parallel_traffic",
        "bytes",
        formula,
        SEQUENCE if layout.sequence_parallel else SHOEYBI,
        t=layout.tp,
        reduces=reduces,
        layers=layers,
        m=micro_batches,
        b=training.micro_batch_size,
        s=training.seq_length,
        cp=layout.cp,
        h=shape.hidden_size,
        bytes=training.element_bytes,
    )


def link_seconds(traffic: Number | Figure, link_gbps: float | None) -> Figure:
    """Seconds over the link inside a node, GB/s per direction."""
    return work_out("link_time", "s", "traffic / (link * 1e9)", NOTE_13B, traffic=traffic, link=link_gbps)


def network_seconds(traffic: Number | Figure, network_gbits: float) -> Figure:
    """Seconds over the network between nodes, Gbit/s of one device."""
    formula = "traffic / (network * 1e9 / 8)"
    return work_out("network_time", "s", formula, NOTE_13B, traffic=traffic, network=network_gbits)


def step_time(
    per_token: Figure,
    training: Training,
    devices: int | None,
    peak_tflops: float | None,
    utilisation: float | None,
) -> Figure:
    """Seconds of one step at the given utilisation."""
    formula = "F * B * s / (devices * peak * 1e12 * utilisation)"
    batch, length = training.global_batch_size, training.seq_length
    sizes = {"B": batch, "s": length, "devices": devices}
    rates = {"peak": peak_tflops, "utilisation": utilisation}
    return work_out("step_time", "s", formula, per_token.source, F=per_token, **sizes, **rates)


def share_of_step(name: str, seconds: Figure, step: Figure | Number) -> Figure:
    """A time as a share of the step."""
    return work_out(name, "ratio", "time / step", NOTE_13B, time=seconds, step=step)
