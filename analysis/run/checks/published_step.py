"""The step time of a planned job at the rate that somebody published for its model on its device."""

from __future__ import annotations

import math
from collections.abc import Sequence

from analysis.estimate.job import Job
from analysis.flops import NOTHING, real_model_formula
from analysis.model.catalogue import same_model
from analysis.published.baselines import Baseline, contradicts_itself
from analysis.published.match import Achieved, differences
from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class PublishedStep:
    """The published ``row``, and at its tokens/s/p the ``seconds`` of a step, and ``mfu``, None without a peak."""

    row: Baseline
    seconds: float
    mfu: float | None


def step_at_published_rate(
    job: Job, devices: int, device: str | None, rows: Sequence[Baseline]
) -> PublishedStep | None:
    """The step of ``job`` by the row for a number of devices near its own; None without a batch, or where none fits.

    Step time = global batch x sequence length / (tokens/s/p x devices). MFU = tokens/s/p x FLOPs of a token / peak.
    """
    training = job.training
    if training is None or training.global_batch_size is None or device is None:
        return None
    planned = Achieved(None, job.shape, devices, training.dtype, device, training.seq_length)
    near = [row for row in rows if _is_of(row, planned)]
    if not near:
        return None
    row = min(near, key=lambda row: (abs(math.log((row.devices or 1) / devices)), contradicts_itself(row)))
    rate = row.tokens_per_second_per_device or 0.0
    flops = real_model_formula().hardware_flops_per_token(job.shape, training.seq_length, NOTHING)
    mfu = rate * flops / (job.peak.peak_tflops_per_second * 1e12) if job.peak and flops else None
    return PublishedStep(row, training.global_batch_size * training.seq_length / (rate * devices), mfu)


def _is_of(row: Baseline, planned: Achieved) -> bool:
    """Whether the rate of ``row`` is one of the model, device and precision that are planned."""
    rated = row.tokens_per_second_per_device is not None and row.devices is not None and row.device is not None
    return rated and same_model(row.shape, planned.shape) and not differences(row, planned)
