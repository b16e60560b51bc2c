"""The device table: names, peaks, and the command that shows them."""

import json
import math
import re
import tomllib
from importlib import resources

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from analysis.commands.hardware import hardware
from analysis.hardware.devices import (
    Device,
    DevicePeak,
    Peak,
    all_devices,
    choose_peak,
    find_device,
    peak_by_hand,
    read_devices,
)
from analysis.present.words import say
from logparse.errors import UsageError

SPELLINGS = [(device, spelling) for device in all_devices() for spelling in (device.name, *device.aliases)]
FIRST_GENERATION = "Ascend910B (first gen; SoC string has no digit)"
A2 = "Ascend 910B (A2; SKU unknown)"
A3_DIE = "Ascend 910C die (A3; SKU unknown)"


def peak(name: str, dtype: str = "bf16", basis: str = "matrix") -> DevicePeak:
    found = choose_peak(find_device(name), dtype, basis)
    assert found is not None, f"{name} has no {dtype} {basis} peak"
    return found


# names


def test_a_device_is_found_by_each_of_its_names():
    assert [spelling for device, spelling in SPELLINGS if find_device(spelling) is not device] == []


def test_no_name_belongs_to_two_devices():
    owners: dict[str, set[str]] = {}
    for device, spelling in SPELLINGS:
        owners.setdefault(re.sub(r"[\s_-]", "", spelling).lower(), set()).add(device.name)
    shared = {spelling: names for spelling, names in owners.items() if len(names) > 1}
    assert shared == {}


def test_no_device_has_an_alias_twice():
    for device in all_devices():
        spellings = [re.sub(r"[\s_-]", "", s).lower() for s in (device.name, *device.aliases)]
        doubled = {s for s in spellings if spellings.count(s) > 1}
        assert not doubled, f"{device.name}: {doubled}"


@given(st.sampled_from(SPELLINGS), st.randoms(use_true_random=False))
def test_case_and_kind_of_separator_do_not_matter(named, random):
    device, spelling = named
    other = re.sub(r"[\s_-]+", lambda _: random.choice([" ", "-", "_", "  ", " - "]), spelling)
    other = "".join(random.choice([c.lower(), c.upper()]) for c in other)
    assert find_device(f" {other} ") is device


@given(st.sampled_from([s for s in SPELLINGS if not s[1].startswith(("Ascend ", "GeForce "))]))
def test_separators_may_be_left_out_except_after_a_brand(named):
    device, spelling = named
    assert find_device(re.sub(r"[\s_-]+", "", spelling)) is device


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100 SXM4 80GB"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM5"),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA B300 SXM6 AC", "B300 SXM6"),
        ("Tesla T4", "T4"),
        ("AMD Instinct MI250X", "MI250X GCD (what torch sees)"),
        ("Ascend910B2C", "Ascend910B2C"),
        ("Ascend910_9392", "Ascend910_9392 (one die of 910C)"),
        ("Huawei Ascend 910B3", "Ascend910B3"),
        ("H20", "H20"),
    ],
)
def test_names_as_drivers_print_them(name, expected):
    assert find_device(name).name == expected


@pytest.mark.parametrize("name", ["NVIDIA A2", "Huawei H100", "AMD L4"])
def test_a_wrong_brand_is_not_ignored(name):
    with pytest.raises(UsageError, match="unknown device"):
        find_device(name)


@pytest.mark.parametrize("name", ["H1", "H100 SXM5 turbo", "MI300", "Ascend", "910B3 board", "", "  ", "a100x"])
def test_a_part_of_a_name_is_no_match(name):
    with pytest.raises(UsageError, match="unknown device"):
        find_device(name)


def test_an_unknown_name_is_met_with_its_neighbours_and_a_way_out():
    with pytest.raises(UsageError) as error:
        find_device("910b5")
    assert str(error.value) == (
        "unknown device '910b5'\n"
        "  try:   did you mean 910b, 910b4, 910b3, 910b2? `logparse hardware` lists them all; or give --peak-tflops"
    )


# the names of Ascend 910


@pytest.mark.parametrize("name", ["910b", "910B", "ascend 910b", "Ascend 910B", "ascend-910b", "Ascend_910B", "A2"])
def test_910b_as_people_write_it_is_the_a2_family(name):
    assert find_device(name).name == A2


@pytest.mark.parametrize("name", ["Ascend910B", "ascend910b", "ASCEND910B"])
def test_the_soc_string_without_a_digit_is_the_first_generation_and_says_so(name):
    found = peak(name, "fp16")
    assert found.name == FIRST_GENERATION
    assert found.peak_tflops_per_second == 221.18
    text = (
        "Ascend910B without a digit is the SoC string of a first-generation part; "
        "for the A2 family pass 910b, for one of its SKUs 910b1, 910b2, 910b3 or 910b4"
    )
    assert list(map(say, found.notes)) == [text]
    assert choose_peak(find_device(name), "bf16") is None
    assert find_device(name).notes == (text,), "the note is there without a peak, too"


@pytest.mark.parametrize("name", ["Ascend910", "ascend910", "Ascend 910", "910"])
def test_bare_ascend910_is_refused_with_what_to_pass(name):
    with pytest.raises(UsageError) as error:
        find_device(name)
    assert str(error.value) == (
        f"{name!r} can mean several devices: `npu-smi info` prints Ascend910 on A3 (910C), "
        "and the 2019 part is also a 910\n"
        "  try:   pass 910c (A3, SKU unknown), the NPU Name of `npu-smi info -t board -i 0 -c 0` such as "
        "910_9392 (A3), 910a (2019), or --peak-tflops"
    )


# peaks


def test_910b_is_a_family_with_a_range_and_low_confidence():
    found = peak("910b")
    assert (found.peak_tflops_per_second, found.range) == (353.89, (245.76, 363.72))
    assert (found.confidence, found.basis, found.dtype) == ("low", "matrix", "bf16")
    assert "npu-smi info" in say(found.notes[0])
    assert all(sku in say(found.notes[0]) for sku in ("910B1", "910B2", "910B3", "910B4"))


def test_the_range_is_of_the_dtype_asked_for():
    # 910B4: 20 cores x 16384 OP x 1500 MHz = 491.52; 910B1: 24 x 16384 x 1850 MHz = 727.45
    assert peak("910b", "int8").range == (491.52, 727.45)


@pytest.mark.parametrize("name", ["910c", "A3"])
def test_910c_is_one_die_and_a_family(name):
    device = find_device(name)
    found = peak(name)
    assert (device.name, device.dies) == (A3_DIE, 1)
    assert (found.peak_tflops_per_second, found.range) == (353.89, (245.76, 363.72))
    assert len(device.members) == 7
    assert "910_9392" in say(found.notes[0])


def test_the_910c_package_is_two_dies_and_warns():
    found = peak("910c-package")
    assert find_device("910c-package").dies == 2
    assert found.peak_tflops_per_second == pytest.approx(2 * 353.89, abs=0.02)
    assert "pass 910c for one die" in say(found.notes[0])


def test_a_single_sku_has_no_range_and_no_note():
    found = peak("910B3")
    assert (found.peak_tflops_per_second, found.range, found.notes, found.confidence) == (294.91, None, (), "high")


def test_contested_figures_are_told_beside_the_matrix_peak():
    notes = " ".join(map(say, peak("910b1").notes))
    assert "378.88" in notes
    assert "373.88" in notes
    assert "25 cores x 1.85 GHz" in notes


def test_headline_is_another_basis():
    found = peak("910b2", "fp16", "headline")
    assert (found.peak_tflops_per_second, found.basis) == (376, "headline")
    assert peak("910b2", "fp16").peak_tflops_per_second == 353.89


@pytest.mark.parametrize(
    ("name", "dtype", "basis"),
    [
        ("V100", "bf16", "matrix"),
        ("910a", "bf16", "matrix"),
        ("H100", "bf16", "headline"),
        ("H100", "fp4", "matrix"),
        ("mlu590", "bf16", "matrix"),
        ("960", "fp8", "matrix"),
        ("H100", "bf16", "sparse"),
    ],
)
def test_no_peak_in_the_table_is_none(name, dtype, basis):
    assert choose_peak(find_device(name), dtype, basis) is None


# FLOP per cycle of one core: 16 x 16 x 16 multiply-adds = 8192 (Ascend cube, 16 bit), twice that in int8;
# 1024 dense multiply-adds = 2048 for an A100 SM, twice that for an H100 SM. Data sheets round to three digits.
@pytest.mark.parametrize(
    ("name", "dtype", "cores", "flop_per_cycle", "mhz"),
    [
        ("910b1", "bf16", 24, 8192, 1850),  # 363.72
        ("910b2", "bf16", 24, 8192, 1800),  # 353.89
        ("910b2", "int8", 24, 16384, 1800),  # 707.79
        ("910b3", "bf16", 20, 8192, 1800),  # 294.91
        ("910b4", "bf16", 20, 8192, 1500),  # 245.76
        ("910_9381", "bf16", 24, 8192, 1800),  # 353.89
        ("910a", "fp16", 32, 8192, 1000),  # 262.14
        ("Ascend910B", "fp16", 30, 8192, 900),  # 221.18
        ("950dt", "bf16", 32, 8192, 1650),  # 432.5
        ("H100", "bf16", 132, 4096, 1830),  # 989.4, dense; with sparsity it would be 1979
        ("A100", "bf16", 108, 2048, 1410),  # 311.9
    ],
)
def test_a_peak_is_cores_times_width_times_clock(name, dtype, cores, flop_per_cycle, mhz):
    assert peak(name, dtype).peak_tflops_per_second == pytest.approx(cores * flop_per_cycle * mhz / 1e6, rel=5e-4)


# Vector units: two cores of 128 lanes x 2 beside each cube core = 512 FLOP per cycle.
@pytest.mark.parametrize(("name", "cores"), [("910b2", 24), ("910b3", 20)])
def test_ascend_headline_is_matrix_plus_vector(name, cores):
    vector = cores * 512 * 1800 / 1e6  # 22.12 for 24 cores
    headline = peak(name, "fp16", "headline").peak_tflops_per_second
    assert peak(name, "fp16").peak_tflops_per_second + vector == pytest.approx(headline, rel=2e-3)


def test_h100_is_dense():
    assert peak("H100").peak_tflops_per_second == 989.4
    assert peak("H100", "fp8").peak_tflops_per_second == pytest.approx(2 * 989.4, rel=1e-3)


def test_blackwell_superchips_are_rated_above_their_boards():
    assert [peak(n).peak_tflops_per_second for n in ("B200", "GB200", "B300", "GB300")] == [2250, 2500, 2250, 2500]


# a peak given by hand


def test_a_peak_by_hand_says_where_it_is_from():
    assert peak_by_hand(300.5, "bf16") == DevicePeak(
        "given by hand", "bf16", 300.5, "--peak-tflops", "--peak-tflops", "given", None, ()
    )


@pytest.mark.parametrize("tflops", [0.0, -1.0, math.nan, math.inf, -math.inf])
def test_a_peak_by_hand_must_be_a_positive_number(tflops):
    with pytest.raises(UsageError, match=r"--peak-tflops is .*, expected a finite number above 0"):
        peak_by_hand(tflops, "bf16")


# the table as a whole


@pytest.mark.parametrize("device", all_devices(), ids=lambda d: d.name)
def test_every_row_can_be_traced(device: Device):
    assert device.peaks
    for p in device.peaks:
        assert p.source.strip(), f"{p} has no source"
        assert not p.source.startswith("same"), f"{p} must name its source itself"
        assert "://" not in p.source
        assert p.confidence in {"high", "medium", "low"}
        assert math.isfinite(p.tflops_per_second)
        assert p.tflops_per_second > 0
    keys = [(p.dtype, p.basis) for p in device.peaks]
    assert len(keys) == len(set(keys)), "a dtype has two peaks on one basis"


def test_bases_and_dtypes_are_the_known_ones():
    peaks = [p for device in all_devices() for p in device.peaks]
    assert {p.dtype for p in peaks} == {"bf16", "fp16", "fp32", "tf32", "fp8", "fp4", "int8"}
    assert {p.basis.partition("-")[0] for p in peaks} == {
        "matrix",
        "headline",
        "alternative",
        "fp16",  # fp16-accumulate
        "whitepaper",
        "unverified",
    }


def test_every_member_is_a_device_and_every_family_tells_how_to_name_it():
    families = [device for device in all_devices() if device.members]
    assert [family.name for family in families] == [A2, A3_DIE]
    for family in families:
        assert family.notes
        for member in family.members:
            assert find_device(member).members == ()
            assert find_device(member) is not family


def test_unknown_numbers_are_none():
    device = find_device("910proa")
    assert (device.hbm_gb, device.hbm_gbps, device.link_gbps, device.tdp_w, device.year) == (None,) * 5
    assert find_device("gaudi3").dies is None


# the file

FILE = resources.files("analysis.hardware").joinpath("devices.toml").read_text(encoding="utf-8")
X9 = """
[[device]]
name = "X9"
aliases = ["x9 oam"]
vendor = "Xeno"
hbm_gb = 48
peaks = [
    { matrix = { bf16 = 100, fp16 = 100.5 }, headline = { bf16 = 110 }, source = "{tpu}; talk", confidence = "high" },
    { matrix = { int8 = 200 }, source = "talk", confidence = "low" },
]
"""


def test_a_device_is_one_table():
    sheet = ("Google Cloud TPU documentation; talk", "high")
    *others, device = read_devices(tomllib.loads(FILE + X9))
    assert tuple(others) == all_devices()
    assert device == Device(
        name="X9",
        aliases=("x9 oam",),
        vendor="Xeno",
        dies=None,
        peaks=(
            Peak("bf16", "matrix", 100.0, *sheet),
            Peak("fp16", "matrix", 100.5, *sheet),
            Peak("bf16", "headline", 110.0, *sheet),
            Peak("int8", "matrix", 200.0, "talk", "low"),
        ),
        hbm_gb=48.0,
        hbm_gbps=None,
        link_gbps=None,
        tdp_w=None,
        year=None,
        members=(),
        notes=(),
    )


@pytest.mark.parametrize("name", ["b300", "B300", "B-300", "nvidia b300", "b300 sxm6", "hgx_b300"])
@pytest.mark.parametrize("other", ["X9", "x9 oam"])
def test_a_name_of_two_devices_is_refused(name, other):
    device = "X9" if other == "x9 oam" else name
    problem = f"{name} names two devices: B300 SXM6 and {device}"
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        read_devices(tomllib.loads(FILE + X9.replace(other, name)))


def test_a_table_twice_is_refused():
    with pytest.raises(ValueError, match=r"^X9 names two devices: X9 and X9$"):
        read_devices(tomllib.loads(FILE + X9 + X9))


def test_a_misspelt_key_of_a_device_is_refused():
    with pytest.raises(ValueError, match=r"^X9 has unknown keys: hmb_gb$"):
        read_devices(tomllib.loads(FILE + X9.replace("hbm_gb", "hmb_gb")))


@pytest.mark.parametrize("right", ["name", "vendor", "peaks", "source", "confidence", "tpu"])
def test_a_misspelt_key_that_must_be_there_is_refused(right):
    with pytest.raises(KeyError, match=right):
        read_devices(tomllib.loads(FILE + X9.replace(right, right + "s", 1)))


# the command


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    app = typer.Typer()
    app.command()(hardware)
    return lambda *args: CliRunner().invoke(app, list(args))


def test_hardware_lists_every_device(run):
    result = run()
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert all(device.name.split()[0] in result.stdout for device in all_devices())
    row = next(line for line in result.stdout.splitlines() if line.startswith("Ascend910B2 "))
    assert row.split() == ["Ascend910B2", "353.89", "376*", "64", "high", "910b2"]
    assert "245.76-363.72" in result.stdout


def test_hardware_of_one_device_shows_every_peak_and_the_note(run):
    result = run("910b4")
    assert result.exit_code == 0
    rows = [line.split()[:4] for line in result.stdout.splitlines()]
    assert ["bf16", "matrix", "245.76", "medium"] in rows
    assert ["bf16", "alternative-1650mhz", "270", "low"] in rows
    assert ["fp16", "headline", "280", "medium"] in rows
    assert "first-generation" in run("Ascend910B").stdout


def test_hardware_as_json_is_a_list_of_plain_records(run):
    everything = json.loads(run("--json").stdout)
    assert [record["name"] for record in everything] == [device.name for device in all_devices()]
    (record,) = json.loads(run("H100", "--json").stdout)
    assert (record["hbm_gb"], record["members"]) == (80, [])
    assert record["peaks"][0]["tflops_per_second"] == 989.4


def test_hardware_passes_the_error_on(run):
    assert isinstance(run("910b5").exception, UsageError)


def test_hardware_help_is_for_users(run):
    text = run("--help").stdout
    assert "--peak-tflops" in text
    assert "Raises" not in text
