"""The screen of a night: news first, an open change in a line, no more than forty lines at 80 columns."""

from collections import Counter
from datetime import timedelta

import numpy as np
import pytest
from helpers import sweep_after
from rich.cells import cell_len
from test_gate_jobs import BEGIN, FAILURES, judge, rows

from analysis.present.console import make_console
from analysis.present.terminal import print_parts
from analysis.present.views.job_news import MOST_JOBS
from analysis.present.views.jobs import compose_jobs
from logparse.language import speaking

JOBS, BEFORE, LAST = 8, 20, 8
FEWEST_CHANGED, MOST_CHANGED = 3, 6
MOST_LINES, WIDTH = 40, 80
CHANGES = [{"name": "overlap_grad_reduce", "value": "True"}], [{"name": "overlap_grad_reduce", "value": "False"}]
KINDS = ("slower", "memory", "tail", "NaN", "less work", "crash")
# A name that a user gave, one that tells what the job does, and none.
NAMES = ("pretrain-70b-{n}", "pretrain-llama-70b-long-context-128k-cluster-east-{n}", None)


def simulate(seed: int, name: str | None):
    """Nights of eight jobs, of which three to six become worse in the last week."""
    rng = np.random.default_rng(seed)
    changed = rng.permutation(JOBS)[: rng.integers(FEWEST_CHANGED, MOST_CHANGED + 1)]
    made = []
    for job in range(JOBS):
        kind = str(rng.choice(KINDS)) if job in changed else None
        first = int(rng.integers(0, LAST - 1))
        made += _job(job, kind, first, name, rng)
    return made


def _job(job, kind, first, name, rng):
    bad = [night >= BEFORE + first for night in range(BEFORE + LAST)]
    size = rng.uniform(0.02, 0.2)
    off = [{"slower": size, "less work": -size}.get(kind, 0.0) * is_bad for is_bad in bad[BEFORE:]]
    memory = 5e10 * np.exp(rng.normal(0, 0.001, len(bad))) * (1 + (kind == "memory") * size * np.array(bad))
    settings = [
        [*CHANGES[is_bad], {"name": "reset_attention_mask", "value": str(is_bad and kind == "less work")}]
        for is_bad in bad
    ]
    nights = rows(
        *off,
        job=f"job{job}",
        seed=int(rng.integers(1000)),
        tail=dict.fromkeys(range(first, LAST), size) if kind == "tail" else None,
        hidden_size=4096 + 128 * job,
        world_size=8 * (1 + job % 2),
        device="Ascend910B3",
        max_memory_allocated_bytes=memory.tolist(),
        step_time_p95_ms=(
            1050 * np.exp(rng.normal(0, 0.004, len(bad))) * (1 + (kind == "tail") * size * np.array(bad))
        ).tolist(),
        nan_share=[0.02 * (kind == "NaN" and is_bad) for is_bad in bad],
        settings=settings,
        labels=[[{"name": "job", "value": name.format(n=job)}] if name else []] * len(bad),
    )
    if kind == "crash":
        nights[-1] |= FAILURES["crashed"]
    if kind is None and rng.random() < 0.3:
        nights = nights[:-1]
    return nights


def screen(capsys, jobs, details=False):
    console = make_console(no_color=True)
    console.width = WIDTH
    print_parts(console, compose_jobs(jobs, "https://ci.example.com/{name}", "s3://bucket/runs", details))
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("seed", sweep_after(4, range(30)))
def test_no_screen_of_a_night_is_longer_than_forty_lines(capsys, seed):
    made = simulate(seed, NAMES[seed % len(NAMES)])
    for night in (BEFORE + 5, BEFORE + LAST):
        jobs = judge([row for row in made if row["begun_at"] < BEGIN + timedelta(days=night)])
        news = Counter(job.news for job in jobs)
        lines = screen(capsys, jobs)
        with speaking("zh"):
            chinese = screen(capsys, jobs)
        assert max(len(lines), len(chinese)) <= MOST_LINES
        assert max(map(cell_len, [*lines, *chinese])) <= WIDTH
        # News come first, and what is open has a line each, with the size of its change.
        starts = [line.partition(" ")[2].partition(" ")[0] for line in lines if line.startswith("! ")]
        assert starts == sorted(starts, key=lambda word: word == "open")
        assert (starts.count("new:"), starts.count("open")) == (min(news["new"], MOST_JOBS), news["still_open"])
        opened = [line for line in lines if line.startswith("! open since ")]
        assert all(" %" in line or "crashed" in line for line in opened)
        whole = screen(capsys, jobs, details=True)
        assert len(whole) > len(lines)
    assert news["new"] + news["still_open"] >= FEWEST_CHANGED - 1
