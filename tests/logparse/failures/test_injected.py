"""200 injected failures: the root is named first, what it brings about never is."""

import pytest
import regex
from cascades import inject
from helpers import ROOT

from logparse.decode.read_run import diagnose_run

N, LEAST = 200, 0.9
# What the generator puts around a root.
CASCADE = ("nccl.", "store.", "hccl.error", "hccl.notify", "hccl.sockets", "frame.", "crash.abort")


def misses(folder, seeds):
    """The injected failures of which another line is named, or another rank."""
    wrong = []
    for seed in seeds:
        injected = inject(seed)
        path = folder / f"{seed}.log"
        path.write_text(injected.text)
        ending = diagnose_run([str(path)])
        if ending.line != injected.line or (injected.rank is not None and ending.rank != injected.rank):
            wrong.append((seed, injected.signature.id, injected.line, ending.signature, ending.line))
    return wrong


def test_the_root_of_some_failures_comes_first(tmp_path):
    assert misses(tmp_path, range(40)) == []


@pytest.mark.sweep
def test_the_root_comes_first_as_often_as_documented(tmp_path):
    wrong = misses(tmp_path, range(N))
    assert [miss for miss in wrong if (miss[3] or "").startswith(CASCADE)] == []
    assert len(wrong) <= (1 - LEAST) * N
    document = (ROOT / "docs/failures.md").read_text(encoding="utf-8")
    shown = regex.search(r"in (\d+) of (\d+) injected failures", document)
    assert (int(shown[1]), int(shown[2])) == (N - len(wrong), N)
