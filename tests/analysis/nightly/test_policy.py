"""The table [gate] of logparse.toml."""

import tomllib
from datetime import date

import pytest
import regex
from helpers import ROOT

from analysis.metrics import GUARDED
from analysis.nightly.policy import JobRule, parse_baseline, read_policy
from analysis.stats.prediction import LEAST_CHANGE
from logparse.errors import LogparseError

FULL = """
baseline = "last 10"
confirm = 3
threshold = "2%"
fail_on = "suspicious"
block_by = "node"

[metrics]
goodput = "off"
max_memory_allocated_bytes = "5%"
final_loss = "noise"

[jobs.small]
select = "world_size=8"
owners = ["ann", "bob"]

[jobs.large]
baseline = "release=CANN 8.0.RC1"
confirm = 1
metrics = { steady_step_time_ms = "1%" }
"""


def test_the_policy_of_the_docs_can_be_used():
    (text,) = regex.findall(r"```toml\n(.*?)```", (ROOT / "docs/nightly.md").read_text(encoding="utf-8"), regex.DOTALL)
    table = tomllib.loads(text)
    found = read_policy(table["gate"])
    assert [rule.name for rule in found.jobs] == list(table["gate"]["jobs"])


def policy(text):
    return read_policy(tomllib.loads(text))


def test_without_a_table_what_is_usual_holds():
    found = policy("")
    assert (found.jobs, found.rest) == ((), JobRule())
    assert (found.rest.baseline.text, found.rest.confirm) == ("last 30", 2)
    assert tuple(found.rest.metrics) == GUARDED


def test_a_job_has_what_all_have_but_for_what_it_says_itself():
    found = policy(FULL)
    small, large = found.jobs
    assert (small.name, small.select, small.owners, small.confirm) == ("small", "world_size=8", ("ann", "bob"), 3)
    assert (large.name, large.baseline.kind, large.confirm, large.owners) == ("large", "selected", 1, ())
    assert small.block_by == large.block_by == "node"
    assert found.failing == {"crashed", "regression", "less work", "suspicious"}
    assert small.metrics == {
        **dict.fromkeys([name for name in GUARDED if name not in ("goodput", "final_loss")], 0.02),
        "max_memory_allocated_bytes": 0.05,
        "final_loss": LEAST_CHANGE,
    }
    assert large.metrics == small.metrics | {"steady_step_time_ms": 0.01}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("last 5", "last"),
        ("since 2026-03-01", "since"),
        ("same release", "same release"),
        ("best", "best"),
        ("release=CANN 8.0.RC1,device=910b3", "selected"),
    ],
)
def test_baselines(text, kind):
    found = parse_baseline(text)
    assert (found.kind, found.text) == (kind, text)
    assert found.day == (date(2026, 3, 1) if kind == "since" else None)


WRONG = {
    'baselin = "last 5"': ("unknown key 'baselin'", "did you mean baseline?"),
    'baseline = "last 2"': ("gate.baseline is 'last 2'", "at least 5 runs are needed to estimate the noise"),
    'baseline = "since May"': ("gate.baseline is 'since May'", "since 2026-03-01"),
    'baseline = "the best"': ("gate.baseline is 'the best'", "give last 30, since 2026-03-01"),
    "baseline = 5": ("gate.baseline is 5", "give text"),
    "confirm = 0": ("gate.confirm is 0", "1 or more"),
    "confirm = true": ("gate.confirm is True", "1 or more"),
    "threshold = 2": ("gate.threshold is 2", '"2%"'),
    'threshold = "2"': ("gate.threshold is '2'", '"2%", or "noise"'),
    'fail_on = "doubt"': ("gate.fail_on is 'doubt'", "regression, less work, suspicious, new"),
    '[metrics]\nmfu2 = "1%"': ("unknown metric 'mfu2'", "did you mean mfu?"),
    'jobs = ["a"]': ("gate.jobs is ['a']", "[gate.jobs]"),
    'metrics = "mfu"': ("gate.metrics is 'mfu'", "[gate.metrics]"),
    '[jobs.a]\nselect = "eight"': ("is not a selector", "key=value"),
    '[jobs.a]\nowners = "ann"': ("gate.jobs.a.owners is 'ann'", "give a list"),
    '[jobs.a]\nfail_on = "regression"': ("unknown key 'fail_on'", "keys of [gate.jobs.a]: "),
    '[metrics]\nsteady_step_time_ms = "off"\nwith_stalls_step_time_ms = "off"\ngoodput = "off"\nfinal_loss = "off"\n'
    'skipped_share = "off"\nnan_share = "off"\nstep_time_p95_ms = "off"\nmax_memory_allocated_bytes = "off"': (
        "gate.metrics is",
        "keep at least one metric",
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_named_with_its_key(text):
    with pytest.raises(LogparseError) as error:
        policy(text)
    problem, remedy = WRONG[text]
    assert problem in error.value.problem
    assert remedy in error.value.remedy
