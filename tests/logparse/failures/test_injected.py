"""200 injected failures: the root is named first, what it brings about never is."""

import regex
from cascades import inject
from helpers import ROOT

from logparse.decode.read_run import diagnose_run

N, LEAST = 200, 0.9
# What the generator puts around a root.
CASCADE = ("nccl.", "store.", "hccl.error", "hccl.notify", "hccl.sockets", "frame.", "crash.abort")


def test_the_root_comes_first(tmp_path):
    right, cascades, wrong = 0, [], []
    for seed in range(N):
        injected = inject(seed)
        path = tmp_path / f"{seed}.log"
        path.write_text(injected.text)
        ending = diagnose_run([str(path)])
        hit = ending.line == injected.line and (injected.rank is None or ending.rank == injected.rank)
        right += hit
        if not hit:
            wrong.append((seed, injected.signature.id, injected.line, ending.signature, ending.line))
        if not hit and (ending.signature or "").startswith(CASCADE):
            cascades.append(seed)
    assert not cascades, wrong
    assert right >= LEAST * N, wrong
    shown = regex.search(
        r"in (\d+) of (\d+) injected failures", (ROOT / "docs/failures.md").read_text(encoding="utf-8")
    )
    assert (int(shown[1]), int(shown[2])) == (right, N)
