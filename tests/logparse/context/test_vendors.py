"""Whose devices a log names, and that a device of another vendor is the first thing to be said of it."""

import pytest
from browser import run_of
from helpers import ROOT, SETTINGS, arguments_dump, megatron_line

from analysis.hardware.devices import all_devices
from analysis.present.words import say
from analysis.project.choose_options import choose
from analysis.run.build import analyze_logs
from logparse.context.dialects import DIALECTS, Framework, interpret
from logparse.context.vendors import FRAMEWORKS, named_vendors
from logparse.context.vendors import SETTINGS as VENDOR_SETTINGS
from logparse.decode.read_run import read_run
from logparse.decode.versions import SPELLINGS
from logparse.findings import info

MINDFORMERS = ROOT / "fixtures/mindformers/family-b-1.5/run.log"
CANN = "ascend_cann version .............. 8.0.RC2\n"
CUDA = "torch cuda version ............... 11.8\n"


@pytest.fixture
def log(tmp_path):
    def written(head="", **settings):
        lines = [head, arguments_dump(SETTINGS | settings), *(megatron_line(step) + "\n" for step in range(1, 9))]
        (tmp_path / "run.log").write_text("".join(lines))
        return tmp_path / "run.log"

    return written


def contradicted(path, hw):
    return [note for note in run_of(path, hw=hw).notes if note.code == "device_contradicts_log"]


def test_a_framework_of_another_vendor_is_told_before_all_else():
    first, *others = run_of(MINDFORMERS, hw="gh-200").notes
    assert (first.code, first.level) == ("device_contradicts_log", "warning")
    assert (first.fields["device"], first.fields["vendor"], first.fields["vendors"]) == ("GH200", "NVIDIA", ["Huawei"])
    assert say(first).startswith("GH200 is from NVIDIA, but the log names MindFormers (label ")
    assert first.code not in [note.code for note in others]
    assert contradicted(MINDFORMERS, "910b") == []
    assert contradicted(MINDFORMERS, None) == []


@pytest.mark.parametrize(
    ("head", "hw", "words"),
    [
        (CANN, "h100", "cann 8.0.RC2 (log line 1), used only on Huawei devices"),
        (CUDA, "910b3", "cuda 11.8 (log line 1), used only on NVIDIA devices"),
        ("NCCL version 2.25.1+cuda12.8\n", "910b3", "nccl 2.25.1+cuda12.8 (log line 1), used only on NVIDIA devices"),
        ("NCCL version 2.25.1+cuda12.8\n", "mi300x", "used only on NVIDIA devices"),
    ],
)
def test_a_version_of_another_vendors_software_is_told_with_its_line(log, head, hw, words):
    (note,) = contradicted(log(head), hw)
    assert words in say(note)


@pytest.mark.parametrize(
    ("head", "hw"),
    [
        ("", "h100"),
        ("", "910b3"),
        (CANN, "910b3"),
        (CUDA, "h100"),
        (CANN + CUDA, "h100"),
        ("NCCL version 2.7.8+hip4.0\n", "mi300x"),
        ("torch cuda version ............... None\n", "910b3"),
    ],
)
def test_what_fits_or_tells_nothing_is_not_told(log, head, hw):
    """On Ascend the settings say nccl, too."""
    assert contradicted(log(head, distributed_backend="nccl"), hw) == []


def test_a_setting_that_only_one_vendor_has(log):
    (note,) = contradicted(log(distributed_backend="hccl"), "h100")
    assert "distributed_backend hccl" in say(note)


def test_a_peak_given_by_hand_is_of_no_vendor(log):
    run = analyze_logs([str(log(CANN))], choose({}, hw="h100", peak_tflops=300.0))
    assert not [note for note in run.notes if note.code == "device_contradicts_log"]


def test_what_the_user_says_of_the_framework_is_not_what_the_log_names(log):
    read = read_run([str(log())])
    said = Framework("MindFormers", None, (info("evidence_flag", name="--dialect"),))
    assert list(named_vendors(read, said)) == []
    assert list(named_vendors(read, interpret(read).framework)) == []


def test_vendors_and_frameworks_are_those_that_there_are():
    vendors = {device.vendor for device in all_devices()}
    assert {*FRAMEWORKS.values(), *VENDOR_SETTINGS.values()} <= vendors
    assert {spelling.vendor for spelling in SPELLINGS} <= {*vendors, None}
    assert {*FRAMEWORKS} <= {dialect.framework for dialect in DIALECTS}
