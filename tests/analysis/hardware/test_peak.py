"""The denominator of MFU: which peak is taken, and what is said where there is none."""

import pytest

from analysis.hardware.devices import resolve_peak
from analysis.present.words import say
from logparse.errors import UsageError


def test_a_named_device_and_a_known_dtype_need_no_remark():
    peak, said = resolve_peak("910b3", "bf16")
    assert (peak.name, peak.dtype, peak.basis, peak.range) == ("Ascend910B3", "bf16", "matrix", None)
    assert peak.peak_tflops_per_second == 294.91
    assert said == peak.notes


def test_peak_tflops_wins_over_the_device():
    peak, said = resolve_peak("910b3", "bf16", 400.0)
    assert (peak.peak_tflops_per_second, peak.source, peak.range) == (400.0, "--peak-tflops", None)
    assert said == ()


def test_peak_tflops_needs_neither_device_nor_dtype():
    peak, said = resolve_peak(None, None, 400.0)
    assert (peak.peak_tflops_per_second, peak.dtype) == (400.0, "unknown")
    assert said == ()


@pytest.mark.parametrize("tflops", [0.0, -1.0, float("nan"), float("inf")])
def test_peak_tflops_that_is_no_peak_is_refused(tflops):
    with pytest.raises(UsageError, match="--peak-tflops"):
        resolve_peak("910b3", "bf16", tflops)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("v100", ['v100 is taken as V100 SXM2 (125 TFLOP/s); name another with --hw "V100 PCIe" (112)']),
        ("Tesla V100-SXM2", []),
        ("a100", []),  # all its parts have one peak
    ],
)
def test_a_name_of_several_parts_tells_which_was_taken(name, told):
    _, said = resolve_peak(name, "fp16")
    assert [say(note) for note in said if note.code == "device_taken"] == told


def test_no_device_is_no_peak_with_the_flags_that_give_one():
    peak, said = resolve_peak(None, "bf16")
    assert peak is None
    assert list(map(say, said)) == ["MFU and HFU not computed: the device is unknown; pass --hw NAME or --peak-tflops"]


def test_an_unknown_dtype_takes_bf16_and_says_so():
    peak, said = resolve_peak("910b3", None)
    assert peak.dtype == "bf16"
    assert say(said[0]) == "precision is not in the log; the bf16 peak is assumed; pass --dtype"


def test_no_type_is_assumed_where_the_log_leaves_it_open():
    peak, said = resolve_peak("b200", None, assumes_type=False)
    assert peak is None
    assert said[0].code == "number_type_unknown"
    assert resolve_peak("b200", "fp8", assumes_type=False)[0].dtype == "fp8"


def test_a_dtype_the_device_has_no_peak_for_is_no_peak_with_a_remedy():
    peak, said = resolve_peak("910b3", "fp4")
    assert peak is None
    expected = "no fp4 matrix peak is known for Ascend910B3; pass --peak-tflops or another --dtype"
    assert say(said[0]) == f"MFU and HFU not computed: {expected}"


def test_the_basis_decides_which_figure():
    matrix, _ = resolve_peak("910b2", "fp16")
    headline, _ = resolve_peak("910b2", "fp16", basis="headline")
    assert (matrix.peak_tflops_per_second, headline.peak_tflops_per_second) == (353.89, 376.0)


def test_a_family_comes_with_the_span_of_its_members_and_a_remark():
    peak, said = resolve_peak("910b", "bf16")
    assert peak.range == (245.76, 363.72)
    assert peak.range[0] < peak.peak_tflops_per_second < peak.range[1]
    assert any("npu-smi info" in say(note) for note in said)


def test_a_name_no_device_has_is_refused():
    with pytest.raises(UsageError, match="unknown device 'h1000'"):
        resolve_peak("h1000", "bf16")
