"""The sample lines of a format, read as the lines of a log are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import polars as pl

from logparse.decode.step_lines import StepLines, decode_steps
from logparse.formats._base import LogFormat, Sample

# Where a line is, not what it says.
PLACE = ("run", "source", "line_number")


def decode_sample(sample: Sample, fmt: LogFormat) -> StepLines:
    """What ``fmt`` reads in the lines of ``sample``."""
    texts = sample.text.split("\n")
    lines = pl.DataFrame({"source": "sample", "line_number": range(1, len(texts) + 1), "text": texts, "complete": True})
    return decode_steps(lines.cast({"line_number": pl.Int64}), fmt)


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The cells that have a value, so that NaN equals NaN; a time is text."""
    cells = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
    return {k: "NaN" if isinstance(v, float) and math.isnan(v) else v for k, v in cells.items() if v is not None}


def reads_its_samples(fmt: LogFormat) -> bool:
    """Whether every sample line becomes the row that is written next to it."""
    return all(
        [plain_row(row) for row in decode_sample(sample, fmt).steps.drop(PLACE).to_dicts()] == [plain_row(sample.row)]
        for sample in fmt.samples
    )
