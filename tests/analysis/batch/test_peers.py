"""A run is judged by those alike: at least five, far below their median and beyond their spread."""

import polars as pl
import pytest

from analysis.batch.peers import COMPARED, describe_outliers, outliers, with_outliers
from analysis.batch.run_table import RUNS_COLUMNS
from analysis.metrics import BY_COLUMN
from analysis.present.words import say
from logparse.language import use_language

ALIKE = {"model": "llama2-7b", "device": "Ascend910B3", "world_size": 8, "global_batch_size": 32, "seq_length": 4096}
TOKENS = "tokens_per_second_per_device"


def table(goodput, tokens, **others):
    """Runs a, b, ... that are alike but for what ``others`` say of each."""
    columns = ALIKE | {"goodput": goodput, TOKENS: tokens} | others
    n = len(goodput)
    rows = {name: value if isinstance(value, list) else [value] * n for name, value in columns.items()}
    schema = {column.name: column.dtype for column in RUNS_COLUMNS}
    named = pl.DataFrame({"run": [chr(97 + at) for at in range(n)]} | rows, {x: schema[x] for x in ("run", *rows)})
    absent = [pl.lit(None, dtype).alias(name) for name, dtype in schema.items() if name not in named.columns]
    return with_outliers(named.with_columns(absent))


def far(runs):
    return dict(runs.drop_nulls("stands_out").select("run", "stands_out").iter_rows())


def test_far_is_a_tenth_below_the_median_and_beyond_the_spread():
    goodput = [0.78, 0.79, 0.80, 0.78, 0.32, 0.80]
    assert far(table(goodput, [3000.0, 3010.0, 2990.0, 2550.0, 3000.0, 3005.0])) == {"d": TOKENS, "e": "goodput"}
    # A twelfth below is not far, nor is a fifth where the others are as far apart.
    assert far(table([0.8] * 5, [3000.0, 3010.0, 2990.0, 2760.0, 3000.0])) == {}
    assert far(table([0.8] * 5, [3000.0, 3400.0, 2600.0, 2400.0, 3300.0])) == {}


def test_more_is_never_far():
    assert far(table([0.5, 0.5, 0.5, 0.5, 0.99], [1.0, 1.0, 1.0, 1.0, 9.0])) == {}


@pytest.mark.parametrize(
    "others",
    [
        {"world_size": [8, 8, 8, 16, 16]},
        {"model": ["a", "a", "a", "b", "b"]},
        {"device": ["a", "a", "a", "b", "b"]},
        {"seq_length": [1, 1, 1, 2, 2]},
        {"global_batch_size": [1, 1, 1, 2, 2]},
        {"world_size": None},
        {"model": None},
    ],
    ids=str,
)
def test_runs_that_differ_or_of_which_too_little_is_known_are_not_alike(others):
    tokens = [100.0, 100.0, 100.0, 100.0, 50.0]
    assert far(table([0.8] * 5, tokens)) == {"e": TOKENS}
    assert far(table([0.8] * 5, tokens, **others)) == {}


def test_four_alike_tell_nothing():
    assert far(table([0.8] * 4, [100.0, 100.0, 100.0, 50.0])) == {}
    # One that is unknown is none of those that tell.
    assert far(table([0.8] * 5, [100.0, 100.0, None, 100.0, 50.0])) == {}


def test_the_finding_names_the_worst_first_by_what_tells_most():
    runs = table([0.8, 0.8, 0.8, 0.4, 0.8], [100.0] * 4 + [83.0], mfu=[0.5, 0.5, 0.5, 0.25, 0.4])
    assert far(runs) == {"d": "goodput mfu", "e": f"{TOKENS} mfu"}
    assert [(one["run"], one["metric"]) for one in outliers(runs)] == [("d", "goodput"), ("e", TOKENS)]
    found = describe_outliers(runs, runs["run"])
    words = "2 of 5 runs are outliers: d (goodput 40 %, median 80 %), e (17 % fewer tokens/s/p than the median)"
    assert say(found) == words
    assert say(describe_outliers(runs, ["a", "e"])).startswith("1 of 2 runs are outliers: e (")
    assert describe_outliers(runs, ["a"]) is None
    use_language("zh")
    try:
        assert say(found).startswith("5 个任务中有 2 个离群：d（有效时间占比 40%")
    finally:
        use_language("en")


def test_five_are_named_and_the_others_counted():
    runs = table([0.8] * 9 + [0.4] * 6, [100.0] * 15)
    assert say(describe_outliers(runs, runs["run"])).endswith(" and 1 more")


def test_every_figure_compared_is_better_where_it_is_more():
    for name in COMPARED:
        assert BY_COLUMN[name.removeprefix("wall_clock_").removeprefix("with_stalls_")].worse in (-1, None)
