"""The device that a log names: every spelling finds the name in its sample."""

import polars as pl
import pytest

from analysis.hardware.devices import is_cpu, known_name
from logparse.decode.versions import DEVICE_SPELLINGS, first_matches


def device_of(*texts):
    rows = [("run.log", number, text) for number, text in enumerate(texts, 1)]
    lines = pl.DataFrame(rows, {"source": pl.String, "line_number": pl.Int64, "text": pl.String}, orient="row")
    return first_matches(lines, DEVICE_SPELLINGS).get("device")


@pytest.mark.parametrize("spelling", DEVICE_SPELLINGS, ids=lambda spelling: spelling.marker)
def test_a_sample_names_a_device(spelling):
    found = device_of("noise", spelling.sample)
    assert found is not None
    assert found.line_number == 2
    assert known_name(found.value) or is_cpu(found.value) or found.value.startswith("TPU v5 lite")


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM5"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM4 80GB"),
        ("Ascend910B2", "Ascend910B2"),
        ("910B3", "Ascend910B3"),
        ("AMD Instinct MI300X OAM", "MI300X"),
        ("v5p", "TPU v5p"),
        ("Tesla V100-SXM2", "V100 SXM2"),
        ("GB200", "GB200 (per GPU)"),
        ("MI350X", "MI350X"),
        ("NVIDIA Imaginary 9000", None),
    ],
)
def test_a_printed_name_is_a_device_of_the_table(printed, name):
    assert known_name(printed) == name


def test_a_table_that_cuts_the_name_names_no_device():
    assert device_of("|   0  NVIDIA A100-SXM...  On   | 00000000:1A:00.0 Off |                    0 |") is None


def test_a_submitters_own_name_of_its_system_names_no_device():
    assert device_of(':::MLLOG {"key": "submission_platform", "value": "1xG593-SD1", "metadata": {}}') is None


@pytest.mark.parametrize(
    ("platform", "name"),
    [
        ("4xGB200", "GB200 (per GPU)"),
        ("1x8xB200_SXM_180GB", "B200 SXM6"),
        ("1xHOST-8xB200_SXM_180GB", "B200 SXM6"),
        ("1xHOST-8xMI350X-OAM-288GB", "MI350X"),
        ("1xHOST-8xH200-NVL-141GB", "H200 NVL"),
    ],
)
def test_a_device_at_the_end_of_a_platform_is_named(platform, name):
    found = device_of(f':::MLLOG {{"key": "submission_platform", "value": "{platform}", "metadata": {{}}}}')
    assert found is not None
    assert known_name(found.value) == name


def test_the_index_of_a_device_is_no_part_of_its_name():
    found = device_of("1: INFO - GPU capacity: NVIDIA A100-SXM4-80GB (1) with 79.25GiB memory")
    assert found is not None
    assert found.value == "NVIDIA A100-SXM4-80GB"
