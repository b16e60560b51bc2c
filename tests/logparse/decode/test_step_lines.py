"""Step lines to rows: what else stands on the line, what is cut off, what cannot be read, and what no one knows."""

import math

import polars as pl
import pytest
from helpers import few, known, lines_of, megatron_line
from hypothesis import given
from hypothesis import strategies as st

from logparse.decode.step_lines import Malformed, StepLines, decode_steps
from logparse.formats import find_format
from logparse.formats._base import LogFormat, Reading

MEGATRON = find_format("megatron")
MINDFORMERS = find_format("mindformers")
PYNATIVE = find_format("mindformers-pynative")
MINDSPORE = find_format("mindspore")

LINE = megatron_line(7, ms=1234.5)


def decode(text: str, fmt=MEGATRON) -> StepLines:
    return decode_steps(lines_of(text), fmt)


def rows(text: str, fmt=MEGATRON) -> list[dict[str, object]]:
    return [known(row) for row in decode(text, fmt).steps.drop("source", "line_number").to_dicts()]


WHOLE = {
    "step": 7,
    "train_steps": 500,
    "consumed_samples": 224,
    "elapsed_time_per_iteration_ms": 1234.5,
    "learning_rate": 1e-4,
    "global_batch_size": 32,
    "loss": 2.345678,
    "loss_scale": 1.0,
    "grad_norm": 0.876,
    "skipped_iterations": 0,
    "nan_iterations": 0,
}


def test_a_plain_line():
    assert rows(LINE + "\n") == [WHOLE]


@pytest.mark.parametrize(
    "text",
    [
        "  5%|▌         | 5/100 [00:10<03:10,  2.00s/it]\r" + LINE,
        "\r 10%|█         | 10/100 [00:20<02:59]\r\r" + LINE + "\r",
        "[default7]:" + LINE,
        "12:" + LINE,
        "i-0abc.finetune/0 " + LINE,
        "> " + LINE.strip(),
        LINE + "[rank3] loading shard 17 of 40",
        LINE + " grad norm: 99.9",
        LINE + "WARNING: lm loss: 9.0",
    ],
    ids=["bar", "bars", "launcher", "rank", "pod", "quote", "text behind", "pair behind", "pair in text behind"],
)
def test_text_around_the_step_line_changes_nothing(text):
    decoded = decode(text + "\n")
    assert [known(row) for row in decoded.steps.drop("source", "line_number").to_dicts()] == [WHOLE]
    assert decoded.unread == {}


def test_pairs_of_another_rank_behind_the_last_bar_are_reported():
    decoded = decode(LINE + " [rank3] shard: 17 |\n")
    assert decoded.unread == {"[rank3] shard": 1}
    assert known(decoded.steps.row(0, named=True))["loss"] == 2.345678


def test_two_step_lines_on_one_physical_line():
    second = megatron_line(8, ms=99.0, clock="2026-02-06 20:55:02.918469")
    decoded = decode("noise\n" + LINE + second + "\n")
    assert decoded.steps["step"].to_list() == [7, 8]
    assert decoded.steps["elapsed_time_per_iteration_ms"].to_list() == [1234.5, 99.0]
    assert decoded.steps["line_number"].to_list() == [2, 2]
    assert decoded.steps["timestamp"].dt.to_string("%F %T%.6f").to_list() == [None, "2026-02-06 20:55:02.918469"]


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("2026-02-06 20:55:02", "2026-02-06 20:55:02.000000"),
        ("2026-02-06 20:55:02.918469", "2026-02-06 20:55:02.918469"),
        ("2026-02-06 20:55:02,918", "2026-02-06 20:55:02.918000"),
        ("2026-02-06T20:55:02", "2026-02-06 20:55:02.000000"),
        ("2026-02-31 20:55:02", None),
    ],
)
def test_clock_before_the_step_line(printed, expected):
    clock = decode(f"[2020-01-01 00:00:00] node 3: {megatron_line(1, clock=printed)}\n").steps["timestamp"]
    assert clock.dt.to_string("%F %T%.6f").to_list() == [expected]


def cut_everywhere(text: str, fmt, end: str = "") -> tuple[dict[str, object], pl.DataFrame]:
    """The row of the whole text, and the rows of the text cut at every place, each as a file of its own."""
    (whole,) = decode_steps(lines_of(text + "\n"), fmt).steps.drop("source", "line_number").to_dicts()
    cuts = [lines_of(text[:length] + end, source=f"{length:04}") for length in range(1, len(text))]
    return whole, decode_steps(pl.concat(cuts), fmt).steps


def wrong_fields(whole: dict[str, object], cut: pl.DataFrame) -> list[tuple[str, str, object]]:
    whole = known(whole)
    return [
        (row["source"], name, value)
        for row in cut.to_dicts()
        for name, value in known(row).items()
        if name not in ("source", "line_number") and whole.get(name) != value
    ]


SAMPLES = [(f.name, i, f, s.text) for f in (MEGATRON, MINDFORMERS, PYNATIVE) for i, s in enumerate(f.samples)]


@pytest.mark.parametrize(("name", "index", "fmt", "text"), SAMPLES, ids=lambda v: str(v)[:20])
def test_line_cut_off_anywhere_never_gives_another_number(name, index, fmt, text):
    whole, cut = cut_everywhere(text, fmt)
    assert wrong_fields(whole, cut) == []
    assert cut.height > 10


def test_lossmonitor_line_cut_off_anywhere_never_gives_another_number():
    whole, cut = cut_everywhere("epoch: 1 step: 3, loss is 2.3012", MINDSPORE)
    assert wrong_fields(whole, cut) == []


@pytest.mark.parametrize("behind", ["\n", LINE + "\n"], ids=["newline", "next step line"])
def test_line_cut_off_by_another_never_gives_another_number(behind):
    """What a killed process leaves when the next one appends to the same file."""
    whole, cut = cut_everywhere(LINE, MEGATRON, behind)
    assert wrong_fields(whole, cut.unique("source", keep="first", maintain_order=True)) == []


def separated_by(sign: str) -> LogFormat:
    """A format whose pairs ``sign`` ends, or the end of the line."""
    labels = {"ms": "elapsed_time_per_iteration_ms", "loss": "loss", "lr": "learning_rate"}
    return LogFormat(
        name="made up",
        title="of nobody",
        marker=("step=",),
        head=rf"step=(?P<step>\d+){sign}",
        pair=rf"(\w+)=(.*?)(?:{sign}|$)",
        separator=sign,
        labels={label: Reading(column) for label, column in labels.items()},
    )


@pytest.mark.parametrize("sign", [";", "  "], ids=["semicolon", "two blanks"])
def test_a_line_cut_off_loses_only_what_stands_behind_the_formats_own_separator(sign):
    fmt, text = separated_by(sign), sign.join(("step=3", "ms=250.5", "loss=2.75", "lr=0.125"))
    whole = {"step": 3, "elapsed_time_per_iteration_ms": 250.5, "loss": 2.75, "learning_rate": 0.125}
    assert rows(text + "\n", fmt) == [whole]
    assert rows(text, fmt) == [{name: value for name, value in whole.items() if name != "learning_rate"}]
    assert wrong_fields(*cut_everywhere(text, fmt)) == []


def test_line_without_its_time_is_torn():
    decoded = decode(megatron_line(1, pairs={"elapsed time per iteration (ms)": None}) + "\n" + LINE + "\n")
    assert decoded.torn == 1
    assert decoded.steps["step"].to_list() == [7]


def test_cut_last_line_is_torn_and_counted():
    decoded = decode(LINE + "\n iteration        8/     500 | consumed samples:          256 | elapsed time per itera")
    assert (decoded.torn, decoded.steps["step"].to_list()) == (1, [7])


def test_label_that_no_one_knows_is_counted():
    odd = megatron_line(1, pairs={"moon phase": "0.5"})
    decoded = decode(f"{odd}\n{odd}\n{LINE}\n")
    assert decoded.unread == {"moon phase": 2}
    assert decoded.labels["moon phase"] == 2
    assert decoded.labels["lm loss"] == 3


def test_label_ignored_by_name_is_not_reported():
    decoded = decode(megatron_line(1, pairs={"skipped samples": "12", "mtp_2 loss": "1.0"}) + "\n")
    assert decoded.unread == {}


def test_label_with_five_spaces():
    assert decode(megatron_line(1, pairs={"generator     loss": "0.5"}) + "\n").unread == {}
    assert rows(megatron_line(1, pairs={"lm loss": None, "lm     loss": "0.5"}) + "\n")[0]["loss"] == 0.5


def test_value_that_is_no_number_is_null_and_named_with_its_line():
    decoded = decode(f"noise\n{megatron_line(1, pairs={'lm loss': '2.3O1'})}\n{LINE}\n")
    assert decoded.malformed == (Malformed("run.log", 2, "lm loss", "2.3O1"),)
    assert decoded.steps["loss"].to_list() == [None, 2.345678]
    assert decoded.torn == 0


def test_time_that_is_no_number_makes_the_line_torn_and_the_value_malformed():
    decoded = decode(megatron_line(1, pairs={"elapsed time per iteration (ms)": "fast"}) + "\n")
    assert (decoded.torn, len(decoded.steps)) == (1, 0)
    assert decoded.malformed[0].text == "fast"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nan", math.nan),
        ("NaN", math.nan),
        ("inf", math.inf),
        ("-inf", -math.inf),
        ("Infinity", math.inf),
        ("2.345678E+00", 2.345678),
        ("2.345678e-03", 2.345678e-3),
        ("+1.5", 1.5),
        ("-1.5", -1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1,234.5", 1234.5),
        ("[45.702465]", 45.702465),
    ],
)
def test_spelling_of_numbers(text, expected):
    (value,) = decode(megatron_line(1, pairs={"grad norm": text}) + "\n").steps["grad_norm"]
    assert value == expected or (math.isnan(value) and math.isnan(expected))


@pytest.mark.parametrize("text", ["nan", "inf", "1E+30"])
@pytest.mark.parametrize("label", ["global batch size", "consumed samples", "number of skipped iterations"])
def test_whole_number_that_is_none_is_malformed(label, text):
    decoded = decode(f"{megatron_line(1, pairs={label: text})}\n{LINE}\n")
    assert decoded.steps["step"].to_list() == [1, 7]
    assert decoded.malformed == (Malformed("run.log", 1, label, text),)


TEN_YEARS_MS = 10 * 365.25 * 24 * 3600 * 1000


@pytest.mark.parametrize(
    "text", ["0", "0.0", "-1.5", "inf", "-inf", "nan", "1e300", "1e-308", "9e-4", str(TEN_YEARS_MS + 1)]
)
def test_a_time_that_cannot_be_is_malformed(text):
    label = "elapsed time per iteration (ms)"
    decoded = decode(f"{megatron_line(1, pairs={label: text})}\n{LINE}\n")
    assert (decoded.torn, decoded.steps["step"].to_list()) == (1, [7])
    assert decoded.malformed == (Malformed("run.log", 1, label, text),)


@pytest.mark.parametrize("text", ["0.001", "1e-3", str(TEN_YEARS_MS)])
def test_a_time_that_can_be(text):
    pairs = {"elapsed time per iteration (ms)": text}
    assert rows(megatron_line(1, pairs=pairs) + "\n")[0]["elapsed_time_per_iteration_ms"] == float(text)


def test_a_time_is_judged_in_milliseconds():
    pairs = {"elapsed time per iteration (ms)": None, "elapsed time per iteration (s)": str(TEN_YEARS_MS)}
    assert len(decode(megatron_line(1, pairs=pairs) + "\n").malformed) == 1


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("global batch size", "0"),
        ("global batch size", "-8"),
        ("global batch size", str(2**53)),
        ("actual seqlen", "0"),
        ("consumed samples", "-1"),
        ("number of skipped iterations", "-1"),
        ("samples per second", "inf"),
        ("TFLOPs", "-1.0"),
        ("throughput per GPU (TFLOP/s/GPU)", "1e300"),
    ],
)
def test_a_measure_that_cannot_be_is_malformed(label, text):
    decoded = decode(megatron_line(1, pairs={label: text}) + "\n")
    assert decoded.malformed == (Malformed("run.log", 1, label, text),)
    assert decoded.torn == 0


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("global batch size", "1"),
        ("global batch size", str(2**53 - 1)),
        ("consumed samples", "0"),
        ("samples per second", "0.0"),
        ("lm loss", "-2.5"),
        ("lm loss", "nan"),
        ("grad norm", "inf"),
        ("learning rate", "-1e-5"),
    ],
)
def test_a_measure_that_can_be(label, text):
    assert decode(megatron_line(1, pairs={label: text}) + "\n").malformed == ()


@pytest.mark.parametrize("text", ["5000,5", "5,00", "0,500", "1,2345", "1234,567", "1,234,56", "1,,234", ",5", "5,"])
def test_a_comma_that_does_not_part_thousands_is_malformed(text):
    """A decimal comma must not make a number ten times as large."""
    decoded = decode(megatron_line(1, pairs={"grad norm": text}) + "\n")
    assert decoded.steps["grad_norm"].to_list() == [None]
    assert decoded.malformed == (Malformed("run.log", 1, "grad norm", text),)


@pytest.mark.parametrize(("text", "number"), [("1,234,567", 1234567.0), ("-12,345.5", -12345.5), ("1,000e3", 1e6)])
def test_commas_that_part_thousands(text, number):
    assert decode(megatron_line(1, pairs={"grad norm": text}) + "\n").steps["grad_norm"].to_list() == [number]


def test_fraction_for_a_whole_number_is_malformed():
    decoded = decode(megatron_line(1, pairs={"global batch size": "31.5"}) + "\n")
    assert decoded.steps["global_batch_size"].to_list() == [None]
    assert len(decoded.malformed) == 1


def test_step_number_too_large_is_torn():
    decoded = decode(LINE.replace("       7/", "9" * 30 + "/") + "\n")
    assert (decoded.torn, len(decoded.steps)) == (1, 0)


def test_seconds_label_becomes_milliseconds():
    seconds = {"elapsed time per iteration (ms)": None, "elapsed time per iteration (s)": "105.22"}
    assert rows(megatron_line(1, pairs=seconds) + "\n")[0]["elapsed_time_per_iteration_ms"] == 105220.0


def test_percent_becomes_a_ratio():
    (row,) = rows(megatron_line(1, pairs={"core attn ratio (%)": "50.0"}) + "\n")
    assert row["core_attention_ratio"] == 0.5


def test_first_of_a_repeated_label_counts():
    text = megatron_line(1).replace("| grad norm", "| lm loss: 9.9 | grad norm") + "\n"
    assert rows(text)[0]["loss"] == 2.345678


def test_line_without_a_marker_is_not_a_step_line():
    assert (
        decode(" iteration 5/ 10 | lm loss: 2.0 |\nvalidation loss at iteration 5 | lm loss value: 2.0 |\n").torn == 0
    )


def test_rows_keep_the_order_of_their_files():
    frames = [lines_of(f"{megatron_line(s)}\n{megatron_line(s + 1)}\n", name) for s, name in ((5, "b"), (1, "a"))]
    steps = decode_steps(pl.concat(frames), MEGATRON).steps
    assert steps.select("source", "step").rows() == [("b", 5), ("b", 6), ("a", 1), ("a", 2)]


PRINTED = {
    "step": st.integers(0, 10**8),
    "train_steps": st.integers(0, 10**8),
    "consumed_samples": st.integers(0, 10**12),
    "elapsed_time_per_iteration_ms": st.floats(0.1, 1e7).map("{:.1f}".format),
    "learning_rate": st.floats(0, 1).map("{:.6E}".format),
    "global_batch_size": st.integers(1, 10**6),
    "loss": st.floats(0, 1e4).map("{:.6E}".format),
    "loss_scale": st.integers(0, 32).map(lambda n: f"{2.0**n:.1f}"),
    "grad_norm": st.one_of(st.floats(0, 1e6).map("{:.3f}".format), st.sampled_from(["nan", "inf"])),
    "skipped_iterations": st.integers(0, 999),
    "nan_iterations": st.integers(0, 999),
}
ROUND_TRIP = (
    " iteration {step:8d}/{train_steps:8d} | consumed samples: {consumed_samples:12d} | "
    "elapsed time per iteration (ms): {elapsed_time_per_iteration_ms} | learning rate: {learning_rate} | "
    "global batch size: {global_batch_size:5d} | lm loss: {loss} | loss scale: {loss_scale} | grad norm: {grad_norm} | "
    "number of skipped iterations: {skipped_iterations:3d} | number of nan iterations: {nan_iterations:3d} |"
)


@few(15)
@given(values=st.lists(st.fixed_dictionaries(PRINTED), min_size=1, max_size=8))
def test_any_values_printed_as_megatron_prints_them_come_back(values):
    text = "".join(ROUND_TRIP.format(**v) + "\n" for v in values)
    expected = [{name: float(v) if isinstance(v, str) else v for name, v in row.items()} for row in values]
    assert rows(text) == [known(row) for row in expected]


# MindFormers, graph mode: a step line, then a line with the bar.

PREFIX = "2026-05-01 10:00:0{} - mindformers./output/log[mindformers/core/callback/callback.py:529] - INFO - "


def mindformers_line(step: int, of: int = 100, epoch: int = 1) -> str:
    return (
        PREFIX.format(step % 10) + f"{{ Epoch:[{epoch:3d}/  2], step:[{step:5d}/{of:5d}], loss: 11.905, "
        f"per_step_time: {2000 + step}ms, lr: 2.5e-08, overflow cond: False, loss_scale: 1.0\n"
    )


def bar(rate: float) -> str:
    return PREFIX.format(9) + f"   0.1% |█         | {rate:.5f} samples/s/p  10:01:16 }}\n"


def rates(text: str) -> list[float | None]:
    return decode(text, MINDFORMERS).steps["logged_samples_per_second_per_device"].to_list()


def test_bar_belongs_to_the_step_line_before_it():
    text = mindformers_line(1) + bar(0.1) + "noise\n" + mindformers_line(2) + "noise\n" + bar(0.2)
    assert rates(text) == [0.1, 0.2]


def test_step_line_without_its_bar_has_no_rate():
    assert rates(mindformers_line(1) + mindformers_line(2) + bar(0.2) + mindformers_line(3)) == [None, 0.2, None]


def test_bar_before_the_first_step_line_belongs_to_none():
    assert rates(bar(0.1) + mindformers_line(2) + bar(0.2)) == [0.2]


def test_each_rank_has_its_own_bars():
    one = lines_of(mindformers_line(1) + bar(0.1) + mindformers_line(2), "rank_0.log")
    two = lines_of(mindformers_line(1) + mindformers_line(2) + bar(0.4), "rank_1.log")
    steps = decode_steps(pl.concat([one, two]), MINDFORMERS).steps
    column = "logged_samples_per_second_per_device"
    assert steps.select("source", "step", column).rows() == [
        ("rank_0.log", 1, 0.1),
        ("rank_0.log", 2, None),
        ("rank_1.log", 1, None),
        ("rank_1.log", 2, 0.4),
    ]


def test_steps_are_counted_from_the_start_of_training():
    text = mindformers_line(99) + mindformers_line(100) + mindformers_line(1, epoch=2)
    steps = decode(text, MINDFORMERS).steps
    assert steps["step"].to_list() == [99, 100, 101]
    assert steps["step_in_epoch"].to_list() == [99, 100, 1]


def test_training_state_monitor_is_not_a_step_line():
    text = PREFIX.format(1) + "Epoch:[  1/  2], step:[   60/  200] throughput_linearity: 0.8823\n"
    decoded = decode(text, MINDFORMERS)
    assert (len(decoded.steps), decoded.torn) == (0, 0)


@pytest.mark.parametrize("word", ["None", "unavailable"])
def test_word_for_an_absent_value_is_no_fault(word):
    decoded = decode(mindformers_line(1).replace("loss_scale: 1.0", f"loss_scale: {word}"), MINDFORMERS)
    assert decoded.steps["loss_scale"].to_list() == [None]
    assert decoded.malformed == ()


def test_loss_of_a_stage_that_is_not_the_last_is_absent_though_its_text_holds_a_comma():
    line = "{ step:[   11/ 1000], loss: N/A (non-last PP stage, refer to last stage), per_step_time:   1240ms }\n"
    decoded = decode(line, PYNATIVE)
    assert known(decoded.steps.row(0, named=True))["elapsed_time_per_iteration_ms"] == 1240.0
    assert decoded.steps["loss"].to_list() == [None]
    assert (decoded.malformed, decoded.unread) == ((), {})


def test_decimal_comma_in_a_line_whose_pairs_end_with_a_comma():
    line = mindformers_line(1).replace("2001ms", "2001,5ms")
    decoded = decode(line, MINDFORMERS)
    assert [(bad.label, bad.text) for bad in decoded.malformed] == [("per_step_time", "2001,5ms")]
    assert decoded.torn == 1


def test_counts_too_large_for_a_step_number_are_torn():
    huge = str(2**53 - 1)
    line = mindformers_line(1).replace("[  1/", f"[{huge}/").replace("  100]", f"{huge}]")
    decoded = decode(line + mindformers_line(2), MINDFORMERS)
    assert (decoded.torn, decoded.steps["step"].to_list()) == (1, [2])


# MindSpore: LossMonitor per step, TimeMonitor per epoch.


def test_epoch_time_stands_for_every_step_of_the_epoch():
    text = "".join(
        f"epoch: {epoch} step: {step}, loss is {step}.5\n"
        + (f"Train epoch time: 900.0 ms, per step time: {epoch}00.5 ms\n" if step == 3 else "")
        for epoch in (1, 2)
        for step in (1, 2, 3)
    )
    steps = decode(text, MINDSPORE).steps
    assert steps["elapsed_time_per_iteration_ms"].to_list() == [100.5] * 3 + [200.5] * 3
    assert steps["step"].to_list() == [1, 2, 3, 4, 5, 6]
    assert steps["loss"].to_list() == [1.5, 2.5, 3.5] * 2


def test_steps_behind_the_last_epoch_time_have_no_time():
    text = "epoch: 1 step: 1, loss is 2.0\nepoch time: 9.0 ms, per step time: 4.5 ms\nepoch: 2 step: 1, loss is 1.0\n"
    assert decode(text, MINDSPORE).steps["elapsed_time_per_iteration_ms"].to_list() == [4.5, None]


@pytest.mark.parametrize("text", ["inf", "nan", "1e300", "0.0", "-4.5", "4,5"])
def test_epoch_time_that_cannot_be_is_malformed_and_no_other_epoch_stands_in(text):
    lines = "epoch: {0} step: 1, loss is 2.0\nepoch time: 9.0 ms, per step time: {1} ms\n"
    decoded = decode(lines.format(1, text) + lines.format(2, "4.5"), MINDSPORE)
    assert decoded.steps["elapsed_time_per_iteration_ms"].to_list() == [None, 4.5]
    assert decoded.malformed == (Malformed("run.log", 2, "elapsed_time_per_iteration_ms", text),)


def test_loss_in_the_head_may_be_nan_and_parts_no_decimals_by_a_comma():
    text = "".join(f"epoch: 1 step: {i}, loss is {v}\n" for i, v in enumerate(("nan", "-2.5", "2,3", "1,234.5"), 1))
    assert [str(v) for v in decode(text, MINDSPORE).steps["loss"]] == ["nan", "-2.5", "None", "1234.5"]
