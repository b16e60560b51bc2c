"""Which rank wrote a file, by its name: launchers number the files of a job by node, rank and attempt.

The spellings are data. Files whose names differ in these numbers only are of one job.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePath

from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class FileName:
    """How one launcher names the files of ranks: groups of ``pattern`` are the numbers of a ``Place``.

    ``source`` is the launcher; ``sample`` a path as it makes them, ``job`` what the job is called by it.
    """

    pattern: str
    source: str
    sample: str
    job: str


FILE_NAMES = (
    # torch/distributed/elastic/multiprocessing/api.py: LOG_DIR/RUN_ID/attempt_N/LOCAL_RANK/stdout.log.
    FileName(
        r"attempt_(?P<attempt>\d+)/(?P<rank>\d+)(?=/std(?:out|err)\.log)",
        "torchrun --log-dir",
        "logs/none_x8k2/attempt_0/3/stdout.log",
        "logs/none_x8k2",
    ),
    # mindspore/python/mindspore/parallel/cluster/process_entity/_api.py.
    FileName(
        r"(?<![^/])worker_(?P<rank>\d+)(?=\.log)",
        "msrun of MindSpore",
        "output/msrun_log/worker_3.log",
        "output/msrun_log",
    ),
    # nemo/utils/exp_manager.py.
    FileName(
        r"nemo_log_globalrank-(?P<rank>\d+)_localrank-\d+",
        "experiment manager of NeMo",
        "results/nemo_log_globalrank-11_localrank-3.txt",
        "results/nemo_log",
    ),
    FileName(r"workerlog\.(?P<rank>\d+)", "paddle.distributed.launch", "log/workerlog.3", "log"),
    FileName(
        r"(?<![A-Za-z])node[-_]?(?P<node>\d+)[-_]rank[-_]?(?P<rank>\d+)(?!\d)",
        "scripts that name node and rank",
        "logs/pretrain_node0_rank7.log",
        "logs/pretrain",
    ),
    # deepspeed/launcher/launch.py with --enable_each_rank_log; mindformers/tools/logger.py: output/log/rank_N/info.log.
    FileName(
        r"(?<![A-Za-z])rank[-_]?(?P<rank>\d+)(?!\d)",
        "DeepSpeed, MindFormers, Primus and scripts",
        "output/log/rank_3/info.log",
        "output/log",
    ),
    FileName(
        r"(?<![A-Za-z])node[-_]?(?P<node>\d+)(?!\d)", "scripts that name the node", "logs/train_node1.log", "logs/train"
    ),
)
# A word with its number, as ranks are numbered, and the characters that join it to the rest of a name.
_NUMBERED, _JOINTS = r"[A-Za-z]*[-_.]?\*", "-_."


@dataclass(frozen=True)
class Place:
    """Whose file it is: a job is a ``folder`` and the ``name`` around the numbers, if any.

    Some launchers count ``rank`` within each node.
    """

    folder: str
    name: str
    node: int | None = None
    rank: int | None = None
    attempt: int | None = None

    @property
    def job(self) -> str:
        """A path to call the job by."""
        return str(PurePath(self.folder, self.name))


def place_of(path: str) -> Place | None:
    """The job, node, rank and attempt in the name of a file; None where it has none."""
    for name in FILE_NAMES:
        # A parent folder may match too, as in rank_2024/rank_3: the last match counts.
        for match in list(re.finditer(name.pattern, path))[-1:]:
            folder, _, front = path[: match.start()].rpartition("/")
            after = path[match.end() :]
            tail = "" if "/" in after else after.partition(".")[0]
            job_name = re.sub(_NUMBERED, "", front + re.sub(r"\d+", "*", match.group()).partition("/")[0])
            tail = re.sub(_NUMBERED, "", re.sub(r"\d+", "*", tail)).strip(_JOINTS)
            job_name = "-".join(filter(None, (job_name.strip(_JOINTS), tail)))
            numbers = {key: int(value) for key, value in match.groupdict().items()}
            return Place(folder if folder or path[0] != "/" else "/", job_name, **numbers)
    return None


def ranks_of_files(paths: Iterable[str]) -> dict[str, int]:
    """The rank of each file whose name has one."""
    places = {path: place_of(path) for path in paths}
    return {path: place.rank for path, place in places.items() if place is not None and place.rank is not None}


def missing_ranks(paths: Iterable[str], world_size: int | None = None) -> list[int]:
    """Ranks from 0 on without a file, by the file names; below ``world_size``, where that is known.

    Empty if more are missing than present, as when only the first and the last rank's files are given. Empty too if
    the names count ranks within a node.
    """
    nodes: dict[int, set[int | None]] = defaultdict(set)
    for place in map(place_of, paths):
        if place is not None and place.rank is not None:
            nodes[place.rank].add(place.node)
    if not nodes or any(len(seen) > 1 for seen in nodes.values()):
        return []
    missing = [rank for rank in range(max(*nodes, (world_size or 0) - 1) + 1) if rank not in nodes]
    return missing if len(missing) < len(nodes) else []
