"""What counts as evidence: one record of each job, with enough rows; and which runs are of one series."""

import json
from datetime import datetime, timedelta

import polars as pl
import pytest
from helpers import run_logparse
from releases import as_steps, record, write_run

from analysis.compare.comparability import REQUIRED
from analysis.compare.comparison import Side, compare
from analysis.compare.independent_records import LeftOut, find_jobs, sample_of
from analysis.compare.verdict import DEFAULT_METRIC
from analysis.history.run_records import run_frame
from analysis.metrics import JUDGED
from analysis.nightly.trend import split_series, unknown_fields
from logparse.errors import UsageError

BEGUN = datetime(2026, 3, 1, 10)


def marks(steps=range(1, 11), late=0.0, loss=0.0, ms=1000.0, clock=True):
    """Landmarks of a run whose step n ends n minutes after BEGUN, ``late`` s later, with loss 5 - n / 10 + ``loss``."""
    clocks = (f"{BEGUN + timedelta(minutes=n, seconds=late):%Y-%m-%dT%H:%M:%S.%f}" if clock else "-" for n in steps)
    pairs = zip(steps, clocks, strict=True)
    return [{"name": str(n), "value": f"{at} {5 - n / 10 + loss!r} {ms + n!r}"} for n, at in pairs]


def runs(**landmarks):
    """A run of each name with its landmarks, 20 rows long, none of which begin alike."""
    rows = [
        {"run_id": name, "begins": name, "name": name, "step_lines": 20, "counted_rows": 19, "landmarks": found}
        for name, found in landmarks.items()
    ]
    return run_frame(rows).with_columns(release=pl.lit("r"))


def jobs(frame):
    """How many jobs the runs are."""
    found = find_jobs(frame)
    return frame.select(found.named()).to_series().n_unique()


SAME = {
    "the file of another rank": {"late": 0.008, "ms": 1001.5},
    "clocks that print whole seconds": {"late": 0.9},
    "a rank of another machine": {"late": -1.9, "ms": 998.5},
    "without its first rows": {"steps": range(6, 14)},
    "without its last rows": {"steps": range(1, 6)},
}
OTHER = {
    "the same seed on another day": {"late": 86400.0},
    "the same seed, begun a minute later": {"late": 60.0},
    "the same seed at the same time on slower machines": {"late": 2.1},
    "the same seed in the same second, 1 % slower": {"late": 0.5, "ms": 1010.0},
    "another seed at the same time": {"loss": 0.001},
    "one that went on from it": {"steps": range(11, 21)},
}


@pytest.mark.parametrize("case", SAME)
def test_records_of_one_job(case):
    frame = runs(a=marks(), b=marks(**SAME[case]), c=marks(late=3600.0, loss=1.0))
    assert jobs(frame) == 2
    assert find_jobs(frame).unclear == ()


@pytest.mark.parametrize("case", OTHER)
def test_jobs_of_their_own(case):
    assert jobs(runs(a=marks(), b=marks(**OTHER[case]))) == 2


def test_a_copy_without_its_clocks_is_known_by_losses_and_times():
    assert jobs(runs(a=marks(), b=marks(clock=False))) == 1
    assert jobs(runs(a=marks(), b=marks(clock=False, ms=1010.0))) == 2


def test_the_record_that_tells_most_counts_and_the_others_fill_in():
    frame = runs(a=marks(), b=marks(late=0.1), c=marks(late=3600.0, loss=1.0))
    sizes = {"hidden_size": [None, 4096, 4096], "global_batch_size": [32, None, 64], "seq_length": [None, 2048, 2048]}
    found = sample_of(frame.with_columns(pl.Series(n, v, pl.Int64) for n, v in sizes.items()), find_jobs(frame)).runs
    assert found.select("name", *sizes).rows() == [("b", 4096, 32, 2048), ("c", 4096, 64, 2048)]


def test_a_loss_that_leaves_the_common_way_early_is_of_another_job():
    """Of ten steps four are alike: begun from one checkpoint, and not the same run."""
    apart = [*marks(range(1, 5)), *marks(range(5, 11), loss=1.0)]
    frame = runs(a=marks(), b=apart).with_columns(begins=pl.lit("alike"))
    assert jobs(frame) == 2
    assert jobs(runs(a=marks(), b=[*marks(range(1, 8)), *marks(range(8, 11), loss=1.0)])) == 1


def test_what_links_two_links_their_parts():
    """The first and the last have no step in common."""
    assert jobs(runs(a=marks(range(1, 6)), b=marks(range(3, 9)), c=marks(range(6, 12)))) == 1


def test_without_clocks_equal_times_tell_and_else_nothing_does():
    frame = runs(a=marks(clock=False), b=marks(clock=False), c=marks(clock=False, ms=1001.5))
    assert jobs(frame) == 2
    assert find_jobs(frame).unclear == (("a", "c"),)
    assert find_jobs(runs(a=marks(clock=False), c=marks(clock=False, ms=900.0))).unclear == ()


def test_records_without_landmarks_are_known_by_their_beginning():
    old = runs(a=None, b=None, c=None, d=None)
    begins = pl.Series("begins", ["x", "x", None, None])
    assert jobs(old.with_columns(begins)) == 3


def test_the_longest_record_with_enough_rows_counts():
    frame = runs(a=marks(), b=marks(), c=marks(late=3600.0), d=marks(late=7200.0)).with_columns(
        pl.Series("step_lines", [20, 30, 20, 20]), pl.Series("counted_rows", [19, 29, 7, 8])
    )
    found = sample_of(frame, find_jobs(frame))
    assert found.runs["name"].to_list() == ["b", "d"]
    assert found.left_out == (LeftOut("a", "a", "same_job"), LeftOut("c", "c", "too_few_rows"))


def cut(path, name, begin=0, end=None):
    """The log at ``path`` without some of its step lines."""
    lines = path.read_text().splitlines(keepends=True)
    at = [i for i, line in enumerate(lines) if "elapsed time" in line]
    kept = set(at[begin:end])
    made = path.with_name(name)
    made.write_text("".join(line for i, line in enumerate(lines) if i in kept or i not in at))
    return made


def test_every_part_of_a_log_is_its_job(tmp_path):
    whole = write_run(tmp_path / "whole.log", 1, steps=40)
    parts = [(0, 12), (0, -1), (3, None), (30, None), (8, 36)]
    cuts = [cut(whole, f"{i}.log", begin, end) for i, (begin, end) in enumerate(parts)]
    other = write_run(tmp_path / "other.log", 2, steps=40)
    frame = pl.concat(record(path).summary for path in (whole, *cuts, other))
    assert sample_of(frame, find_jobs(frame)).runs["name"].to_list() == ["whole", "other"]


def test_a_part_on_the_other_side_is_refused(tmp_path):
    whole = write_run(tmp_path / "whole.log", 1)
    cut(whole, "part.log", 3)
    done = run_logparse("compare", "whole.log", "part.log", cwd=tmp_path)
    assert (done.returncode, "on both sides, fully or partly, for example whole" in done.stderr) == (2, True)


def side(name, frame):
    return Side(name, frame, frame, lambda _: as_steps())


def of(name, values, release="r1", **given):
    """A side of runs with these step times and everything known."""
    row = dict.fromkeys(REQUIRED, 8) | {"step_lines": 20, "counted_rows": 19} | given
    rows = [row | {"run_id": f"{name}{i}", "name": f"{name}{i}", DEFAULT_METRIC: v} for i, v in enumerate(values)]
    return run_frame(rows).with_columns(release=pl.lit(release))


def judged(old, new, *metrics, others=None, allowed=()):
    chosen = [JUDGED[name] for name in metrics or (DEFAULT_METRIC,)]
    return compare(side("a", old), side("b", new), chosen, 0.03, allowed, others, everything=False)


def test_the_noise_is_that_of_releases_and_not_of_sides():
    """A side of two releases that differ by 10 %, each with the logarithms -d, 0, d: the spread is d."""
    d = 0.01
    three = [1000 * 2.718281828**x for x in (-d, 0.0, d)]
    old = pl.concat([of("a", three), of("b", [1.1 * v for v in three], "r2")])
    noise = judged(old, of("c", three, "r3")).noises[DEFAULT_METRIC]
    assert (noise.spread, noise.runs, noise.releases) == (pytest.approx(d), 9, 3)


def test_what_is_no_evidence_is_no_noise():
    old = of("a", [1000.0, 1000.0, 1000.0])
    short = of("x", [500.0, 700.0], counted_rows=7)
    twice = of("y", [900.0, 1000.0]).with_columns(begins=pl.lit("one"))
    others = pl.concat([old, short, twice])
    assert judged(old, of("b", [1000.0, 1000.0, 1000.0], "r2"), others=others).noises[DEFAULT_METRIC].spread == 0


def test_every_metric_has_its_noise():
    old, new = of("a", [1000.0] * 3, goodput=0.9), of("b", [1000.0] * 3, "r2", goodput=0.9)
    goodput = pl.Series("goodput", [0.5, 0.7, 0.9])
    found = judged(old.with_columns(goodput), new, DEFAULT_METRIC, "goodput", "mfu").noises
    assert found[DEFAULT_METRIC].spread == 0 < found["goodput"].spread
    assert found["mfu"] is None


@pytest.mark.parametrize("name", REQUIRED)
def test_without_what_decides_there_is_no_verdict(name):
    old, new = of("a", [1000.0]), of("b", [1000.0], **{name: None})
    assert [field.name for field in judged(old, new).refused] == [name]
    assert judged(old, new, allowed=[name]).verdict == judged(old, new, allowed=["unknown"]).verdict == "no regression"


def test_an_unknown_field_that_does_not_decide_forbids_nothing():
    assert judged(of("a", [1000.0], device="x"), of("b", [1000.0])).verdict == "no regression"


def test_runs_that_are_no_evidence_are_asked_whether_they_may_be_compared():
    new = of("b", [1000.0], counted_rows=4, world_size=64)
    assert [field.name for field in judged(of("a", [1000.0]), new).refused] == ["world_size"]


def test_a_side_without_runs_is_equal_to_nothing():
    from analysis.compare.comparability import check_fields

    full = of("a", [1000.0])
    assert {field.state for field in check_fields(full, full.clear())} == {"unknown"}


def test_a_run_on_both_sides_by_part(tmp_path):
    old, new = (of(name, [1000.0]).with_columns(begins=pl.lit("one")) for name in "ab")
    with pytest.raises(UsageError, match="1 runs are on both sides"):
        judged(old, new)


@pytest.mark.parametrize(("old", "new", "verdict"), [(0, 1, "suspicious"), (1, 1, "no regression")])
def test_a_loss_that_is_lost(old, new, verdict):
    sides = [of(n, [1000.0] * 3, loss_lost_at=10 if lost else None) for n, lost in (("a", old), ("b", new))]
    found = judged(*sides)
    assert found.verdict == verdict
    assert (found.lost[1].lost, found.lost[1].runs, found.lost[1].step) == (3, 3, 10)


def test_where_no_row_counts_that_is_the_reason():
    found = judged(of("a", [1000.0] * 3), of("b", [1000.0] * 3, counted_rows=2))
    assert [(f.verdict, f.reason) for f in found.verdicts] == [("insufficient data", "no_rows")]


@pytest.mark.parametrize(
    ("losses", "lost"), [("5.0 nan 4.0", None), ("5.0 nan nan", 2), ("nan nan inf", 1), ("4.0 4.0 -inf", 3)]
)
def test_the_step_from_which_on_the_loss_is_lost(tmp_path, losses, lost):
    log = write_run(tmp_path / "a.log", 1, steps=3)
    for step, loss in enumerate(losses.split(), start=1):
        log.write_text(log.read_text().replace(f"lm loss: {3 + 1 / step:.6E}", f"lm loss: {loss}"))
    assert record(log).summary["loss_lost_at"].to_list() == [lost]


def of_fields(**given):
    return of("".join(f"{k}{v}" for k, v in given.items()), [1000.0], **given)


def test_a_run_that_does_not_tell_is_of_the_series_that_it_fits():
    known, untold = of_fields(device="x", precision="bf16"), of_fields(precision="bf16")
    (series,) = split_series(pl.concat([untold, known]))
    assert unknown_fields(series) == ("device",)
    less = of_fields(device="x")
    assert len(split_series(pl.concat([known, untold, less]))) == 1


def test_a_run_that_fits_two_series_is_of_none():
    parts = [of_fields(device="x"), of_fields(device="y"), of_fields(precision=None)]
    assert len(split_series(pl.concat(parts))) == 3


@pytest.mark.parametrize("name", REQUIRED)
def test_a_run_that_does_not_tell_what_decides_is_of_no_other_series(name):
    parts = split_series(pl.concat([of_fields(device="x"), of_fields(**{name: None})]))
    assert [unknown_fields(part) for part in parts].count((name,)) == 1
    assert len(parts) == 2


def labelled(frame, **jobs_of):
    """The runs with the label of the job that people say each is of."""
    told = [[{"name": "job", "value": jobs_of[name]}] if name in jobs_of else [] for name in frame["run_id"]]
    return frame.with_columns(labels=pl.Series(told, dtype=frame.schema["labels"]))


def test_what_people_say_of_a_job_decides():
    """Two records that look like ranks of one job, and two that look like other jobs."""
    alike, unlike = runs(a=marks(), b=marks(late=0.5)), runs(a=marks(), b=marks(loss=1.0))
    assert (jobs(alike), jobs(labelled(alike, a="1", b="2")), jobs(labelled(alike, a="1"))) == (1, 2, 1)
    assert (jobs(unlike), jobs(labelled(unlike, a="1", b="1")), jobs(labelled(unlike, a="1", b="2"))) == (2, 2, 2)


@pytest.mark.parametrize(("said", "counted"), [(True, 2), (False, 1)])
def test_repeats_that_look_like_one_job_can_be_told_apart(tmp_path, said, counted):
    """One seed, begun in the same second: recorded with a label each, both count."""
    for name, ms in (("one", 1000.0), ("two", 1000.4)):
        write_run(tmp_path / f"{name}.log", 1, ms)
        label = ["--label", f"job={name}"] if said else []
        done = run_logparse("record", f"{name}.log", "--history", "h", "--release", "r", *label, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    followed = json.loads(run_logparse("trend", "--history", "h", "--json", cwd=tmp_path).stdout)
    assert [len(series["runs"]) for series in followed["series"]] == [counted]
