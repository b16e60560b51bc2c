"""The smallest layout that fits: nothing smaller does, what is given stays, and the search goes on where it must."""

from dataclasses import replace

import pytest

from analysis.estimate.device_layout import Layout, Training
from analysis.estimate.job import Job, estimate
from analysis.estimate.layout_search import Fixed, Search, all_fits, smallest_fit
from analysis.flops import find_formula
from analysis.hardware.devices import resolve_peak
from analysis.model.catalogue import find_model
from analysis.model.parameters import count_parameters
from logparse.findings import warning

ZEROS = (0, 1, 2, 3)


def search(name, training, memory_bytes=80e9):
    model = find_model(name)
    counted = count_parameters(model.shape, model.vocab_size, details=model.details)
    return Search(model.shape, counted, model.vocab_size, training, memory_bytes)


def job(name="llama2-13b", fixed=None, training=None, **more):
    model = find_model(name)
    common = {"details": model.details, "memory_gb": 80, "peak": resolve_peak("a100", "bf16")[0], "link_gbps": 300}
    training = training or Training(4096, 1, 64)
    return Job(model.shape, model.vocab_size, find_formula("megatron"), fixed or Fixed(), training, **(common | more))


@pytest.mark.parametrize(
    ("name", "training", "fixed"),
    [
        ("llama2-13b", Training(4096, 1, 64), Fixed()),
        ("llama2-13b", Training(4096, 1, 60), Fixed(zero=1)),
        ("llama2-13b", Training(4096), Fixed(tp=1, zero=0)),
        ("mixtral-8x7b", Training(4096, 1, 64), Fixed()),
        ("mixtral-8x7b", Training(4096, 1, 96), Fixed(tp=2, ep=4)),
    ],
)
def test_no_smaller_layout_fits(name, training, fixed):
    asked = search(name, training)
    found = smallest_fit(asked, fixed)
    assert found.fits
    smaller = [fit for n in range(1, found.layout.devices) for fit in all_fits(asked, fixed, n, ZEROS)]
    assert smaller
    assert not any(fit.fits for fit in smaller)
    as_small = [fit for fit in all_fits(asked, fixed, found.layout.devices, ZEROS) if fit.fits]
    assert found.layout.tp * found.layout.pp <= min(fit.layout.tp * fit.layout.pp for fit in as_small)


@pytest.mark.parametrize(
    ("fixed", "devices"),
    [
        (Fixed(pp=5), 5),
        (Fixed(tp=5), 5),
        (Fixed(pp=3, tp=2), 6),
        (Fixed(pp=5, tp=4, devices=40), 20),
        (Fixed(cp=3, tp=4), 12),
    ],
)
def test_what_fits_is_never_said_not_to(fixed, devices):
    result = estimate(job(fixed=fixed, training=Training(4098 if fixed.cp > 1 else 4096)))
    assert result.fit.fits
    assert result.smallest.layout.devices == devices


def test_as_laid_out_and_at_all():
    """Four stages of one replica overflow until two micro-batches are left for each of 32 copies."""
    result = estimate(job(fixed=Fixed(tp=1, pp=4, zero=0)))
    laid_out, at_all = result.fewest.laid_out, result.fewest.at_all
    assert (laid_out.layout.dp, laid_out.layout.devices, laid_out.stages[0].in_flight) == (32, 128, 2)
    assert at_all.layout.devices < laid_out.layout.devices
    assert at_all.fits
    assert result.fewest.recomputed is None


def test_a_size_that_the_free_search_does_not_try_counts_at_all():
    fewest = estimate(job(fixed=Fixed(tp=20), training=Training(4096), memory_gb=20)).fewest
    assert fewest.at_all == fewest.laid_out
    assert fewest.at_all.layout.devices == 20
    assert smallest_fit(search("llama2-13b", Training(4096), 20e9), Fixed()).layout.devices > 20


def test_where_nothing_fits_recomputation_is_tried():
    # 16 samples keep 65,536 x (8 h + (4 a d + 4 g d + 6 f)/8) = 2.96 GB in each of 32 layers, and so much in flight
    crowded = Training(4096, 16)
    result = estimate(job("llama2-7b", training=crowded))
    assert (result.fewest.laid_out, result.fewest.at_all) == (None, None)
    assert result.fewest.recomputed.fits
    full = estimate(job("llama2-7b", training=replace(crowded, recompute="full")))
    assert full.fewest.at_all.layout == result.fewest.recomputed.layout


def test_higher_zero_is_tried_on_the_devices_given_only_where_nothing_fits_without():
    roomy = estimate(job(fixed=Fixed(devices=8)))
    assert {fit.layout.zero for fit in roomy.layouts} == {0, 1}
    full = estimate(job("llama2-70b", fixed=Fixed(devices=8), training=Training(4096, 1, 64)))
    assert {fit.layout.zero for fit in full.layouts} == {0, 1, 2, 3}


def test_the_search_goes_as_far_as_the_devices_given():
    """With ZeRO-1 each more copy leaves a little less, so this memory is just enough for 32,768 of them."""
    enough = search("llama2-7b", Training(4096)).fit(Layout(dp=2**15, zero=1)).worst.total_bytes
    asked = search("llama2-7b", Training(4096), enough)
    plain = Fixed(tp=1, pp=1, zero=1)
    assert smallest_fit(asked, replace(plain, devices=2**15)).layout.devices == 2**15
    assert smallest_fit(asked, plain) is None


def test_utilisation_above_what_the_bubble_leaves_is_said():
    # one micro-batch in 8 stages: 7 of 8 parts of the step are bubble
    starved = job(fixed=Fixed(devices=8, tp=1, pp=8), training=Training(4096, 1, 1), utilisation=0.95)

    def unreachable(job):
        return [note.fields for note in estimate(job).notes if note.code == "utilisation_above_ceiling"]

    assert unreachable(starved) == [{"share": 0.95, "ceiling": 0.125}]
    assert unreachable(replace(starved, utilisation=0.12)) == []
    # without a utilisation times are given up to 50 %
    assert unreachable(replace(starved, utilisation=None, tokens=10**9)) == [{"share": 0.5, "ceiling": 0.125}]
    assert unreachable(replace(starved, utilisation=None)) == []


def test_traffic_that_takes_longer_than_the_step_is_said():
    wide = job(fixed=Fixed(devices=8, tp=8, pp=1), utilisation=0.5)
    result = estimate(wide)
    assert result.value("network_share") > 1 > result.value("link_share")
    assert warning("network_slower_than_step", share=result.value("network_share")) in result.notes
    assert "link_slower_than_step" not in {note.code for note in result.notes}


def test_tensor_parallelism_wider_than_a_node_is_said():
    wide = estimate(job(fixed=Fixed(devices=20, tp=20, pp=1), training=Training(4096)))
    assert warning("tensor_parallel_beyond_node", tp=20) in wide.notes


def test_the_rule_names_the_source_that_has_it():
    """6 P n is the cheat sheet's; the article's 8 P n holds with full recomputation."""
    given = {"tokens": 10**12, "utilisation": 0.4, "deadline_days": 30.0}
    figures = {f.name: f for s in estimate(job(**given)).sections for f in s.figures}
    again = {
        f.name: f for s in estimate(job(training=Training(4096, 1, 64, "full"), **given)).sections for f in s.figures
    }
    for name in ("training_time_rule", "devices_for_deadline"):
        assert figures[name].source.startswith("6 P n of the cheat sheet")
        assert again[name].source.startswith("article")
    assert again["training_time_rule"].value == pytest.approx(figures["training_time_rule"].value * 8 / 6)


def test_devices_for_a_deadline_by_formula():
    """They finish in time, and one less does not: time and devices are counted by the same formula."""
    given = {"tokens": 10**12, "utilisation": 0.4, "deadline_days": 30.0}
    needed = estimate(job(**given)).value("devices_for_deadline_by_formula")
    seconds = estimate(job(fixed=Fixed(devices=1, tp=1, pp=1), **given)).value("training_time")
    assert seconds / needed <= 30 * 86400 < seconds / (needed - 1)
