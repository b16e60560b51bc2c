"""Estimates: every worked number of the source documents, then what follows from the exact count."""

import math

import pytest

from analysis.devices import find_device
from analysis.estimate.activations import layer_kept, rule_figures
from analysis.estimate.layout import Layout, Training, check_layout, layers_of_stages
from analysis.estimate.parameters import parameter_figures, stage_parameters
from analysis.estimate.stages import estimate_stages, in_flight, rule_of_thumb_stages
from analysis.estimate.state import MEGATRON, MIXED, replica_figure, state_figures
from analysis.estimate.step import bubble_share, link_seconds, network_seconds
from analysis.estimate.work import Work, devices_for, total_flops, training_time
from analysis.models import all_models, find_model
from analysis.parameters import count_parameters
from analysis.peak import resolve_peak
from analysis.shape import ModelShape
from logparse.errors import UsageError

GPT3 = find_model("gpt3-175b").shape
THIRTEEN = ModelShape(num_layers=40, hidden_size=5120)


def value(figures, name):
    return next(f.value for f in figures if f.name == name)


def gb(values):
    return [v / 1e9 for v in values]


# Section 2: size and memory.


@pytest.mark.parametrize(
    ("layers", "hidden", "parameters"),
    [
        (32, 4096, 6_442_450_944),
        (40, 5120, 12_582_912_000),
        (60, 6656, 31_897_681_920),
        (80, 8192, 64_424_509_440),
        (96, 12288, 173_946_175_488),
    ],
)
def test_golden_short_rule(layers, hidden, parameters):
    shape = ModelShape(num_layers=layers, hidden_size=hidden)
    assert value(parameter_figures(shape, None, None), "parameters_short") == parameters


def test_golden_state_of_13b():
    figures = state_figures(13_000_000_000)
    assert value(figures, "weights_on_disk") == 26e9
    assert value(figures, "training_state_20") == 260e9
    assert value(figures, "training_state_18") == 234e9


def test_golden_gpt3():
    figures = state_figures(175_000_000_000)
    assert value(figures, "weights_on_disk") == 350e9
    assert value(figures, "training_state_20") == 3.5e12
    assert value(figures, "inference_memory_fp32") == 840e9
    assert replica_figure(175_000_000_000, 80).value == 44


@pytest.mark.parametrize(("batch", "total"), [(1, 275.414777856e9), (64, 17_626.545782784e9)])
def test_golden_activations_of_gpt3(batch, total):
    assert value(rule_figures(GPT3, Training(2048, batch)), "activations_stack") == total


def test_golden_activations_of_13b_by_the_rule_of_thumb():
    assert value(rule_figures(THIRTEEN, Training(4096)), "activations_rule") == 33.554432e9


# The note rounds 33.55 GB to 34 before it adds.
@pytest.mark.parametrize(
    ("layout", "stages"),
    [
        (Layout(pp=4), {1: 92.5, 4: 67.0}),
        (Layout(pp=4, dp=2, zero=1), {1: 73.0, 2: 64.5, 3: 56.0, 4: 47.5}),
        (Layout(pp=8), {1: 63.25}),
    ],
)
def test_golden_note_on_13b(layout, stages):
    found = gb(rule_of_thumb_stages(13e9, 34e9, layout))
    assert {stage: found[stage - 1] for stage in stages} == pytest.approx(stages, abs=1e-9)


def test_golden_note_on_13b_for_one_micro_batch():
    # 58.5 GB of state and 8.5 GB of activations on a stage that holds one micro-batch: the last.
    assert 13e9 / 4 * MEGATRON.per_parameter(0, 1) == 58.5e9
    assert 34e9 / 4 == 8.5e9


# Section 3: compute, time, devices.


def test_golden_flops_and_years_of_gpt3():
    work = Work(174_600_000_000, 300_000_000_000, 1, 312, 1.0)
    assert total_flops(work).value == pytest.approx(3.1428e23, rel=1e-12)
    assert round(training_time(work).value / 86400 / 365, 2) == 31.94


def test_golden_time_on_1024_a100():
    found = training_time(Work(175_000_000_000, 300_000_000_000, 1024, 312, 0.45, "full"))
    assert found.value == pytest.approx(2_921_340.81, abs=0.005)
    assert round(found.value / 86400, 2) == 33.81


def test_golden_devices_for_thirty_days():
    found = devices_for(Work(175_000_000_000, 300_000_000_000, None, 312, 0.45, "full"), 2_592_000)
    assert found.value == 1155
    assert 8 * 175e9 * 300e9 / (2_592_000 * 312e12 * 0.45) == pytest.approx(1154.11, abs=0.005)


@pytest.mark.parametrize(("device", "quoted"), [("a100", 312), ("h100", 990), ("b100", 2250)])
def test_golden_peaks(device, quoted):
    peak, _ = resolve_peak(device, "bf16")
    assert peak.peak_tflops_per_second == pytest.approx(quoted, rel=0.002 if device != "b100" else 0.25)


def test_golden_traffic():
    assert network_seconds(500e9, 200).value == 20.0
    assert round(link_seconds(500e9, 450).value, 1) == 1.1
    assert find_device("h100").link_gbps == 450
