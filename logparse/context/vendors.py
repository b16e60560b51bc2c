"""Whose devices a run was on, by what its log names: software that runs on the devices of one vendor alone.

Comes in: a ParsedLog and who printed it. Goes out: vendors, as the table of devices spells them, with the evidence.
"""

from __future__ import annotations

from collections.abc import Iterator

from logparse.context.dialects import Framework
from logparse.decode.read_run import ParsedLog
from logparse.findings import Note, info

# The backend of torch.distributed is no evidence where it is nccl: on Ascend the settings keep that name.
FRAMEWORKS = dict.fromkeys(
    ("AscendSpeed", "ModelLink", "MindSpeed", "MindSpeed-LLM", "MindSpeed-LLM, FSDP2 backend", "MindFormers"), "Huawei"
)
FRAMEWORKS |= {"AMD Primus": "AMD"}
SETTINGS = {
    ("distributed_backend", "hccl"): "Huawei",
    ("device_target", "Ascend"): "Huawei",
    ("device_target", "GPU"): "NVIDIA",
}


def named_vendors(log: ParsedLog, framework: Framework) -> Iterator[tuple[str, Note]]:
    """Each vendor that ``log`` names, with the evidence; a framework that the user gave is no evidence."""
    by_flag = any(note.code == "evidence_flag" for note in framework.evidence)
    if framework.name in FRAMEWORKS and not by_flag:
        yield FRAMEWORKS[framework.name], info("names_framework", name=framework.name, evidence=framework.evidence)
    several = len(log.sources) > 1
    for name, version in log.versions.items():
        if version.vendor is not None:
            fields = {"name": name, "value": version.value, "origin": version.origin(several)}
            yield version.vendor, info("names_version", **fields)
    for name, value in dict.fromkeys(log.settings["name", "value"].iter_rows()):
        if (name, value) in SETTINGS:
            yield SETTINGS[name, value], info("names_setting", name=name, value=value)
