"""Logs that grow, and what is answered of them: at each time as of the same bytes at once."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from analysis.present.views.analyze_json import document
from analysis.run.anonymous import shown_error
from analysis.run.build import analyze_parts
from analysis.run.options import RunOptions
from analysis.run.run import Run
from analysis.watch.moment import Moment
from analysis.watch.refresh import Follower
from logparse.errors import LogparseError

HOW = RunOptions(hw="910b2")


def answer_of(runs: Sequence[Run]) -> Any:
    return document(list(runs))


def answer_at(moment: Moment) -> Any:
    """What is answered at a moment: the runs as JSON, or the refusal."""
    return answer_of(moment.runs) if moment.runs else str(moment.refusal)


def answer_at_once(*logs: Path | str, how: RunOptions = HOW, split: bool = False) -> Any:
    """What ``analyze`` answers of the same bytes."""
    try:
        return answer_of(analyze_parts([str(log) for log in logs], how, mixed_too=split))
    except LogparseError as error:
        return str(shown_error(error, [str(log) for log in logs], how))


def hold_growth(
    folder: Path,
    texts: Mapping[str, bytes],
    seed: int,
    cuts: int = 3,
    how: RunOptions = HOW,
    split: bool = False,
    one_block: bool = False,
) -> Any:
    """The answer of files that grow to ``texts`` in ``cuts`` steps, which end anywhere; the blocks are small and many.

    A log that was cut by a terminal is ``one_block``. The answer must be that of ``analyze``.
    """
    chance, size = random.Random(seed), max(map(len, texts.values())) * (20 if one_block else 1)
    paths = [folder / name for name in texts]
    with patch("logparse.inputs.blocks.FIRST_BYTES", max(300, size // 20)):
        follower = Follower([*map(str, paths)], how, split=split, block_bytes=max(700, size // 8))
        for at, part in enumerate([*sorted(chance.random() for _ in range(cuts)), 1.0]):
            for path, text in zip(paths, texts.values(), strict=True):
                path.write_bytes(text[: int(len(text) * part)])
            follower.refresh(float(at))
        # The rest of a line comes when the file has not grown since.
        answer = answer_at(follower.refresh(cuts + 1.0))
    assert answer == answer_at_once(*paths, how=how, split=split)
    return answer
