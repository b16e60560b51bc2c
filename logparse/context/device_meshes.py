"""Parallel sizes from the mesh or the topology of devices that a trainer prints.

torchtitan: ``Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]`` (0.1), ``pp=1, dp_replicate=1, dp_shard=8``
(0.2). DeepSpeed: the coordinates of every process, ``pipe=1, data=0``, of which the last counts from 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import regex

MESH, LAST_PROCESS = "device_mesh", "last_process"
# The dimensions whose product is each size. What is not in a mesh is not split; ep and etp share out the others.
DIMENSIONS = {
    "data_parallel_size": ("dp_replicate", "dp_shard", "dp", "data"),
    "tensor_model_parallel_size": ("tp", "model"),
    "pipeline_model_parallel_size": ("pp", "pipe"),
    "context_parallel_size": ("cp",),
    "expert_model_parallel_size": ("ep",),
}
OF_EXPERTS = ("ep", "etp")
# DeepSpeed splits experts and sequences over groups of their own, which are in no topology.
NOT_IN_TOPOLOGY = ("context_parallel_size", "expert_model_parallel_size")


def mesh_size(quantity: str) -> Callable[[Mapping[str, Any]], int | None]:
    """The rule that reads ``quantity`` from what is printed; None of it where the text is of another form."""

    def rule(known: Mapping[str, Any]) -> int | None:
        sizes = _sizes(known)
        if sizes is None or (LAST_PROCESS in known and quantity in NOT_IN_TOPOLOGY):
            return None
        if quantity == "world_size":
            return math.prod(size for name, size in sizes.items() if name not in OF_EXPERTS)
        return math.prod(sizes.get(name, 1) for name in DIMENSIONS[quantity])

    return rule


def _sizes(known: Mapping[str, Any]) -> dict[str, int] | None:
    if LAST_PROCESS in known:
        return {name: int(last) + 1 for name, last in regex.findall(r"(\w+)=(\d+)", known[LAST_PROCESS])} or None
    text = known[MESH]
    if lists := regex.fullmatch(r"\[(.*)\], \[(.*)\]", text):
        names, sizes = regex.findall(r"'(\w+)'", lists[1]), regex.findall(r"\d+", lists[2])
        return dict(zip(names, map(int, sizes), strict=True)) if len(names) == len(sizes) else None
    return {name: int(size) for name, size in regex.findall(r"(\w+)=(\d+)", text)} or None
