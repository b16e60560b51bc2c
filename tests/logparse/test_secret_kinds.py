"""Every kind of secret is masked in every place of a text, and nothing that only looks like one."""

import json
from pathlib import Path

import pytest
from helpers import megatron_line, run_logparse
from secret_kinds import CONTEXTS, HARMLESS, MORE, PRINTED, SHAPES, VALUES

from analysis.cli import DEBUG, unforeseen
from analysis.present.as_json import plain
from logparse.decode.read_run import diagnose_run
from logparse.errors import InputError, LogparseError
from logparse.masking import mask_setting, mask_text, shapes


def printed(context: str, line: str) -> str:
    return context.replace("{json}", json.dumps(line, ensure_ascii=False)).replace("{}", line).replace("{{", "{")


@pytest.mark.parametrize("line", [*PRINTED, *MORE])
def test_each_kind_is_masked_in_each_context(line):
    value = "Leak1Zq8kd0"
    for context in CONTEXTS:
        text = printed(context, line.format(*3 * [value]))
        shown = mask_text(text)
        assert value not in shown, text
        assert "***" in shown, text
        assert mask_text(shown) == shown, text


# Values that a URL or a list cannot hold as they are.
@pytest.mark.parametrize(
    "line", ["password={}", "密码：{}", "token: {}", "--api-key {}", 'password="{}"', "PGPASSWORD={}"]
)
def test_a_value_is_masked_to_its_end(line):
    for value in (*VALUES, *(['Le\\"ak1Zq'] if '"' in line else [])):
        shown = mask_text(f"RuntimeError: {line.format(value)} here")
        assert not [part for part in ("Le", "ak1Zq", "1Zq") if part in shown], shown
        assert shown.endswith(" here")


@pytest.mark.parametrize("sample", SHAPES)
def test_each_shape_is_masked_wherever_it_is(sample):
    for context in CONTEXTS:
        shown = mask_text(printed(context, sample))
        assert "HIDDEN" not in shown
        assert "***" in shown


def test_what_only_looks_like_a_secret_stays():
    assert len(set(HARMLESS)) >= 60
    assert {text: mask_text(text) for text in HARMLESS} == {text: text for text in HARMLESS}
    pairs = [text.partition("=") for text in HARMLESS if "=" in text]
    assert [(name, value) for name, _, value in pairs if mask_setting(name, value) != value] == []


def ending_log(path: Path, line: str, code: str) -> Path:
    """A log whose run fails with ``line``, and prints it in other ways too."""
    steps = [megatron_line(step) for step in range(1, 6)]
    traceback = ["Traceback (most recent call last):", '  File "/job/train.py", line 7, in main', f"    {code}"]
    path.write_text("\n".join([*steps, line, f"ERROR: {line}", *traceback, f"RuntimeError: {line}", line, ""]))
    return path


# One line of each kind: a whole run is read for each.
@pytest.mark.parametrize("line", [*PRINTED, *(shape.sample[0] for shape in shapes())])
def test_no_kind_comes_through_a_failure(line, tmp_path):
    planted = line.format(*3 * ["Leak1Zq8kd0"]) if "{}" in line else line
    for text, code in ((planted, "run(job)"), ("failed", planted)):
        ending = diagnose_run([str(ending_log(tmp_path / "run.log", text, code))])
        shown = json.dumps(plain(ending), ensure_ascii=False)
        assert ending.failed
        assert "Leak1Zq8kd0" not in shown
        assert "HIDDEN" not in shown


def test_no_error_of_the_command_shows_a_secret(tmp_path, capsys):
    for error in (ValueError("password=Leak1Zq8kd0"), InputError("no", where="https://x/?sig=Leak1Zq8kd0")):
        assert unforeseen(error) == LogparseError.exit_code
    shown = "".join(capsys.readouterr())
    for variable in ("", "1"):
        done = run_logparse("analyze", "--api-key=Leak1Zq8kd0", cwd=tmp_path, **{DEBUG: variable})
        assert done.returncode == LogparseError.exit_code
        shown += done.stderr
    assert "***" in shown
    assert "Leak1Zq8kd0" not in shown
