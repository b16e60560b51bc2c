"""Software versions that a log prints: CANN, torch, torch_npu, MindSpore, driver, framework commit.

Comes in: lines of the log. Goes out: name, value and place of each version. The regexes are data: one row per spelling.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from logparse.decode.values import AS_WRITTEN, holds, printed, there
from logparse.findings import Origin
from logparse.light_dataclass import dataclass

# Words printed in place of an unknown version.
NOTHING = ("unknown", "None", "none", "null", "0.0.0", "-")


@dataclass(frozen=True)
class Spelling:
    """How one program prints one version: a literal that finds the line, group 1 of ``pattern`` the version.

    ``source`` is the program; ``sample`` is a line of a real log or of the program's text. ``vendor`` is that of the
    devices, where the program runs on those of one vendor alone. ``meaning`` is what group 1 shows in other words.
    """

    name: str
    marker: str
    pattern: str
    source: str
    sample: str
    vendor: str | None = None
    meaning: str | None = None


@dataclass(frozen=True)
class Version:
    """One version as printed, and where; ``vendor`` as of its Spelling."""

    value: str
    source: str
    line_number: int
    vendor: str | None = None

    def origin(self, several: bool) -> Origin:
        """The place; with ``several`` files it names the file."""
        return Origin("log", self.source if several else None, self.line_number)


# DeepSpeed's report: deepspeedai/DeepSpeed, deepspeed/env_report.py (0.14, also for NPU).
_REPORT = "DeepSpeed environment report"
# mindformers.run_check(): mindspore-lab/mindformers, mindformers/run_check.py (1.2).
_CHECK = "mindformers.run_check"

SPELLINGS = (
    Spelling(
        "cann",
        "ascend_cann version",
        r"ascend_cann version \.{3,} (\S+)",
        _REPORT,
        "ascend_cann version .............. 8.0.RC2.alpha002",
        "Huawei",
    ),
    Spelling(
        "cann",
        "Ascend-cann-toolkit version",
        r"Ascend-cann-toolkit version: (\S+)",
        _CHECK,
        "- INFO - Ascend-cann-toolkit version: 8.0.RC2",
        "Huawei",
    ),
    Spelling(
        "cann",
        "CANN version:",
        r"CANN version: (\S+)",
        "environment reports such as LLaMA-Factory's",
        "- CANN version: 8.0.RC2.alpha001",
        "Huawei",
    ),
    Spelling(
        "torch",
        "torch version",
        r"(?:^|\s)torch version \.{3,} (\S+)",
        _REPORT,
        "torch version .................... 2.0.1",
    ),
    Spelling(
        "torch",
        "PyTorch version",
        r"PyTorch version:? (\d\S*)",
        "datasets, environment reports",
        " 0: INFO:datasets:PyTorch version 2.11.0a0+eb65b03.nv26.2 available.",
    ),
    Spelling(
        "torch_npu",
        "torch_npu version",
        r"torch_npu version(?: \.{3,}|:) (\S+)",
        _REPORT,
        "torch_npu version ................ 2.2.0",
        "Huawei",
    ),
    Spelling(
        "cuda",
        "torch cuda version",
        r"torch cuda version \.{3,} (\S+)",
        _REPORT,
        "torch cuda version ............... 11.8",
        "NVIDIA",
    ),
    Spelling(
        "nccl",
        "NCCL version",
        r"NCCL version (\d[\d.]*\+cuda\d+\.\d+)",
        "NCCL with NCCL_DEBUG=VERSION",
        "NCCL version 2.25.1+cuda12.8",
        "NVIDIA",
    ),
    Spelling(
        "nccl",
        "NCCL version",
        r"NCCL version (\d[\d.]*)",
        "RCCL, which calls itself so",
        "NCCL version 2.7.8+hip4.0",
    ),
    Spelling(
        "mindspore",
        "MindSpore version",
        r"MindSpore version:? (\d\S*)(?: and Ascend|\s*$)",
        "MindSpore's check, " + _CHECK,
        "MindSpore version 2.3.1 and Ascend AI software package (Ascend Data Center Solution)version 7.5 does",
    ),
    Spelling(
        "mindformers",
        "MindFormers version",
        r"MindFormers version: (\d\S*)",
        _CHECK,
        "- INFO - MindFormers version: 1.2.0",
        "Huawei",
    ),
    Spelling(
        "driver",
        "Ascend driver version",
        r"Ascend driver version: (\S+)",
        _CHECK,
        "- INFO - Ascend driver version: 24.1.rc2",
        "Huawei",
    ),
    Spelling(
        "driver",
        "Driver Version:",
        r"Driver Version: (\d\S*)",
        "nvidia-smi",
        "| NVIDIA-SMI 535.183.01             Driver Version: 535.183.01   CUDA Version: 12.2     |",
        "NVIDIA",
    ),
    Spelling(
        "driver",
        "npu-smi",
        r"\| npu-smi \S+\s+Version: (\S+)",
        "npu-smi info",
        "| npu-smi 23.0.rc2                 Version: 23.0.rc2                                     |",
        "Huawei",
    ),
    Spelling(
        "deepspeed",
        "deepspeed info",
        r"deepspeed info \.{3,} ([^,\s]+)",
        _REPORT,
        "deepspeed info ................... 0.10.0+f5c834a6e, f5c834a6e, HEAD",
    ),
    Spelling(
        "deepspeed",
        "DeepSpeed info: version",
        r"DeepSpeed info: version=([^,\s]+)",
        "DeepSpeed's engine",
        "[Rank 0] DeepSpeed info: version=0.14.0, git-hash=unknown, git-branch=unknown",
    ),
    Spelling(
        "megatron_commit",
        "Git info for Megatron",
        r"Git info for Megatron: git_hash=(\w+)",
        "Megatron-DeepSpeed",
        "**** Git info for Megatron: git_hash=6629a33 git_branch=main ****",
    ),
)

MARKERS = tuple(dict.fromkeys(spelling.marker for spelling in SPELLINGS))


def first_matches(lines: pl.DataFrame, spellings: Sequence[Spelling]) -> dict[str, Version]:
    """Name to the first version that ``lines`` (source, line_number, text) print of it.

    The first row of ``spellings`` that finds one wins.
    """
    markers = there(lines["text"], {spelling.marker for spelling in spellings})
    present = {str(at): spelling for at, spelling in enumerate(spellings) if spelling.marker in markers}
    if not present:
        return {}
    marked = lines.lazy().filter(holds(pl.col("text"), *markers)).with_columns(printed(pl.col("text")))
    values = {at: pl.col("text").str.extract(spelling.pattern) for at, spelling in present.items()}
    read = marked.select("source", "line_number", **values)
    firsts = read.select(
        pl.struct("source", "line_number", value=at).filter(~pl.col(at).is_in(NOTHING)).first().alias(at)
        for at in present
    )
    versions: dict[str, Version] = {}
    for at, first in firsts.collect(optimizations=AS_WRITTEN).row(0, named=True).items():
        if first is not None:
            spelling = present[at]
            version = Version(
                spelling.meaning or first["value"], first["source"], first["line_number"], spelling.vendor
            )
            versions.setdefault(spelling.name, version)
    return versions
