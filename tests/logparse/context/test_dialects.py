"""What the numbers mean: who printed the log, and which printed times are not the time of their row."""

import pytest
from helpers import ROOT, arguments_dump, megatron_line

from analysis.present.words import say
from logparse.context import dialects
from logparse.context.dialects import DIALECTS, Dialect, interpret
from logparse.context.run_context import Fact, RunContext
from logparse.context.step_times import KnownRun
from logparse.decode.read_run import ParsedLog, read_run
from logparse.findings import Origin, info
from logparse.formats import all_formats

CORE = {"pipeline_model_parallel_size": 1, "context_parallel_size": 1}


@pytest.fixture
def parse(tmp_path):
    def read(text: str) -> ParsedLog:
        path = tmp_path / "run.log"
        path.write_text(text)
        return read_run([str(path)])

    return read


def log(settings: dict[str, object] | None = None, **pairs: str | None) -> str:
    """Two step lines behind a dump of ``settings``; pairs are named with _ for a blank."""
    shown = {name.replace("_", " "): text for name, text in pairs.items()}
    dump = arguments_dump(settings) if settings is not None else ""
    return dump + "".join(megatron_line(step, pairs=shown) + "\n" for step in (1, 2))


SECONDS = {"elapsed time per iteration (ms)": None, "elapsed time per iteration (s)": "1.5"}
MINDFORMERS = "2026-05-01 10:00:00,123 - {{ Epoch:[  1/  2], step:[    2/ 6500], loss: 11.905, {} }}\n"
PYNATIVE = "{{ step:[   10/ 1000], {}loss:   9.876543, per_step_time:   1234ms, lr: 1.0e-05 }}\n"


def line(pairs: dict[str, str | None]) -> str:
    return megatron_line(1, pairs=pairs) + "\n"


FRAMEWORKS = {
    "AMD Primus": (log({"use_rocm_mem_info": True, **CORE}), "AMD Primus", None),
    "GPT-NeoX": (
        " samples/sec: 84.2 | iteration     1024/    2048 | elapsed time per iteration (ms): 380.0 | learning rate: "
        "6.0E-04 | approx flops per GPU: 101.5TFLOPS | lm_loss: 5.1E+00 | number of skipped iterations:   0 |\n",
        "GPT-NeoX",
        None,
    ),
    "BigScience": (line(SECONDS), "Megatron-DeepSpeed (BigScience)", "since 2022-01"),
    "AscendSpeed": (log({"auto_recompute_profiling_step": 10}), "AscendSpeed", "2023"),
    "Megatron-DeepSpeed, 2023": (
        line({"tokens per gpu per second (tgs)": "900.0", "TFLOPs": "1.0", "actual seqlen": "2048"}),
        "Megatron-DeepSpeed",
        "since 2023-11",
    ),
    "either": (line({"TFLOPs": "1.0", "actual seqlen": "2048"}), "Megatron-DeepSpeed or AscendSpeed", None),
    "Megatron-DeepSpeed": (line({"consumed tokens": "1", "actual seqlen": "2048"}), "Megatron-DeepSpeed", None),
    "FSDP2": (
        line({"max_memory_allocated(GB)": "31.5"}),
        "MindSpeed-LLM, FSDP2 backend",
        "26.0 or later",
    ),
    "MindSpeed-LLM, new": (
        line({"throughput per GPU (TFLOP/s/GPU)": "180.5", "core attn ratio (%)": "50.0"}),
        "MindSpeed-LLM",
        "2.3 or later",
    ),
    "MindSpeed-LLM": (log({"noop_layers": None, "prompt_type": None, **CORE}), "MindSpeed-LLM", None),
    "ModelLink 1.2": (
        arguments_dump({"noop_layers": None, "prompt_type": None}, title="ModelLink Arguments") + "\n" + line({}),
        "ModelLink",
        "1.2",
    ),
    "ModelLink": (log({"use_fused_rmsnorm": True, "lora_register_forward_hook": [], **CORE}), "ModelLink", None),
    "MindSpeed": (line({"theoretical throughput per NPU (TFLOP/s/NPU)": "180.5"}), "MindSpeed", None),
    "core 0.13": (line({"energy per GPU (J/iter/GPU)": "8000.0"}), "Megatron-LM", "core 0.13 or later"),
    "core 0.16": (log({"inprocess_active_world_size": 8, **CORE}), "Megatron-LM", "later than core 0.12"),
    "core 0.5": (line({"throughput per GPU (TFLOP/s/GPU)": "180.5"}), "Megatron-LM", "core 0.5 or later"),
    "core 0.4": (log(CORE), "Megatron-LM", "core 0.4 or later"),
    "v2": (log({"pipeline_model_parallel_size": 1}), "Megatron-LM", "2.0 to 23.06"),
    "v1": (log({"model_parallel_size": 1}), "Megatron-LM", "1.x"),
    "no settings": (log(), "Megatron-LM family", None),
    "MindFormers 0.6": (
        "Epoch:[  1/  1], step:[  116/  125], loss:[2.220/2.240], time:1951.612 ms, lr:[2.4e-06]\n",
        "MindFormers",
        "0.2 to 0.6",
    ),
    "MindFormers 0.7": (MINDFORMERS.format("per_step_time: 2775ms, lr: 2.5e-08"), "MindFormers", "0.7 or later"),
    "MindFormers 1.3": (
        MINDFORMERS.format("per_step_time: 2775ms, lr: 2.5e-08, global_norm: [45.7]"),
        "MindFormers",
        "1.3 or later",
    ),
    "MindFormers 1.5": (
        MINDFORMERS.format("per_step_time: 2775ms, global_norm: [45.7], train_throughput_per_npu: 171.176T"),
        "MindFormers",
        "1.4 or later",
    ),
    "PyNative 1.9": (PYNATIVE.format(""), "MindFormers", "1.9 or later"),
    "PyNative 2.1": (PYNATIVE.format("consumed_samples: 20, global_batch_size: 2, "), "MindFormers", "2.1 or later"),
    "MindSpore": ("epoch: 1 step: 3, loss is 2.3012\n", "MindSpore", None),
}


def test_frameworks_and_whether_their_times_hold_pauses(parse):
    found = {case: interpret(parse(text)) for case, (text, _, _) in FRAMEWORKS.items()}
    assert {case: (meaning.framework.name, meaning.framework.version) for case, meaning in found.items()} == {
        case: (name, version) for case, (_, name, version) in FRAMEWORKS.items()
    }
    assert [case for case, meaning in found.items() if not meaning.framework.evidence] == []
    held = {case for case, meaning in found.items() if meaning.time_holds_pauses}
    assert held >= {"GPT-NeoX", "BigScience", "AscendSpeed", "v2", "v1", "no settings"}
    assert not [case for case in held if case.startswith(("MindFormers", "PyNative", "MindSpore"))]


def test_evidence_says_what_was_seen(parse):
    text = arguments_dump({"noop_layers": None, "prompt_type": None}) + line({})
    seen = (info("evidence_setting", name="noop_layers"), info("evidence_setting", name="prompt_type"))
    assert interpret(parse(text)).framework.evidence == seen
    framework = interpret(parse(line({"core attn ratio (%)": "50.0"}))).framework
    assert framework.evidence == (info("evidence_label", name="core attn ratio (%)"),)
    assert interpret(parse(log())).framework.evidence == (info("evidence_format", name="megatron"),)


def test_no_dialect_is_hidden_by_a_wider_one_above_it():
    for index, narrow in enumerate(DIALECTS):
        for wide in DIALECTS[:index]:
            same_format = set(narrow.formats) <= set(wide.formats)
            assert not (
                same_format and {*wide.labels} <= {*narrow.labels} and {*wide.settings} <= {*narrow.settings}
            ), f"{wide} hides {narrow}"


def times(parsed: ParsedLog) -> list[float]:
    return [round(t, 6) for t in interpret(parsed).steps["step_time_ms"]]


# MindFormers 0.2 to 0.6 print the time of a whole sink.


def sink_log(size: int | None, label: str = "time:{} ms") -> str:
    runner = f"[INFO] 2023-07-11 10:48:00,000 runner_config epochs:1, sink_size:{size}\n" if size else ""
    lines = (
        f"Epoch:[  1/  1], step:[{step:5d}/  125], loss:[2.2/2.2], {label.format(f'{1900.0 + step:.1f}')}, lr:[2e-06]\n"
        for step in (4, 8)
    )
    return runner + "".join(lines)


def test_sink_time_is_divided_by_the_sink_size(parse):
    meaning = interpret(parse(sink_log(4)))
    assert meaning.steps["step_time_ms"].to_list() == [476.0, 477.0]
    assert meaning.steps["elapsed_time_per_iteration_ms"].to_list() == [1904.0, 1908.0]
    assert meaning.notes == (info("sink_time_divided", n=4),)
    assert say(meaning.notes[0]) == "'time' of this MindFormers version covers a sink of 4 steps; it was divided by 4"


@pytest.mark.parametrize("size", [1, None])
def test_time_of_one_step_is_not_divided(parse, size):
    meaning = interpret(parse(sink_log(size)))
    assert meaning.steps["step_time_ms"].to_list() == [1904.0, 1908.0]
    assert meaning.notes == ()


def test_per_step_time_of_later_versions_is_not_divided(parse):
    assert times(parse(sink_log(4, "per_step_time: {}ms"))) == [1904.0, 1908.0]


# PaddleOCR and MLX-LM divide by the configured interval, ESPnet prints the time of an update.


def test_a_line_that_covers_fewer_steps_than_the_interval_is_divided_by_its_steps(parse):
    costs = ((10, 0.4), (20, 0.4), (25, 0.2), (30, 0.2), (40, 0.4))
    before, after = "ppocr INFO: epoch: [1/2], global_step: ", " s, ips: 80.0 samples/s\n"
    text = "".join(
        f"[2026/03/02 10:00:{n:02}] {before}{n}, loss: 1.0, avg_batch_cost: {cost}{after}" for n, cost in costs
    )
    meaning = interpret(parse(text))
    assert meaning.steps["step_time_ms"].to_list() == [400.0] * 5
    assert info("short_intervals_divided", lines=[3, 4]) in meaning.notes
    assert times(parse("ppocr INFO: print_batch_step : 20\n" + text))[:2] == [400.0, 800.0]


@pytest.mark.parametrize(
    "setting", ["", "ppocr INFO: print_batch_step : 1e400\n", "ppocr INFO: print_batch_step : x\n"]
)
def test_steps_of_an_unknown_interval_are_not_divided(parse, setting):
    line = "ppocr INFO: epoch: [1/2], global_step: 10, loss: 1.0, avg_batch_cost: 0.4 s, ips: 80.0 samples/s\n"
    stamped = [f"[2026/03/02 10:00:{second:02d}] {line}" for second in (1, 2)]
    assert times(parse(setting + "".join(stamped))) == [400.0, 400.0]


def test_the_rate_of_the_last_line_of_mlx_lm_is_of_its_own_steps(parse):
    rates = ((10, 2.0), (20, 2.0), (24, 5.0))
    text = "".join(f"Iter {n}: Train loss 2.1, It/sec {rate}, Tokens/sec 100.0\n" for n, rate in rates)
    assert times(parse(text)) == [500.0, 500.0, 500.0]


@pytest.mark.parametrize(("update", "time"), [(2.4, 0.6), (0.6, 0.6), (1.5, 1.5)])
def test_the_time_of_an_update_is_divided_by_its_batches(parse, update, time):
    """A batch took 0.6 s by the stamps: 2.4 s are four of them, 1.5 s no whole number."""
    text = "".join(
        f"[n] 2026-03-02 10:0{i}:00,000 (trainer:754) INFO: 1epoch:train:{100 * i + 1}-{100 * i + 100}batch: "
        f"loss=1.0, train_time={update}\n"
        for i in range(4)
    )
    assert times(parse(text)) == pytest.approx([1000 * time] * 4)


# LiBai: the mean since the third step, iterations counted from 0.


def libai_log(*printed: tuple[int, float]) -> str:
    return "".join(
        f"[09/10 10:00:00 lb.utils.events]:  eta: 21:00:38  iteration: {step}/10000  consumed_samples: {step}  "
        f"total_loss: 9.0  time: {seconds:.4f} s/iter  total_throughput: 0.53 samples/s lr: 1.50e-04\n"
        for step, seconds in printed
    )


@pytest.mark.parametrize(
    ("first", "times"), [(0, [2000, 3000, 1000]), (40, [2000, 2556, 2000])], ids=["from the start", "from later on"]
)
def test_means_since_the_third_step_are_taken_apart(parse, first, times):
    # 10 steps a line, of which the first has 8 in its mean: 16 s, then 30 s, then 10 s.
    printed = [(9, 16 / 8), (19, 46 / 18), (29, 56 / 28)]
    meaning = interpret(parse(libai_log(*((first + step, seconds) for step, seconds in printed))))
    assert meaning.steps["step_time_ms"].to_list() == pytest.approx(times, rel=1e-3)


def test_a_difference_of_means_that_rounding_hides_is_not_taken(parse):
    meaning = interpret(parse(libai_log(*((step, 0.01) for step in range(9, 4000, 10)))))
    (last,) = meaning.steps["step_time_ms"].to_list()[-1:]
    assert last == pytest.approx(10.0)
    assert meaning.steps["time_resolution_ms"][-1] is None


def test_a_mean_that_lost_a_digit_gives_no_time_below_0(parse):
    line = (
        "iteration {:8d}/      30 | learning rate: 5.000000E-06 | global batch size:    16 | loss: 1.843000E+00 | "
        "grad norm: 1.995186E+00 | elapsed time per iteration: {:.2f} | tokens per sample: 1820.444444\n"
    )
    text = "".join(line.format(step, mean) for step, mean in enumerate((9000.0, 5750.0, 466.0, 4123.0), 1))
    assert interpret(parse(text)).steps["step_time_ms"].to_list()[:3] == [9000.0, pytest.approx(2500.0), None]


# NeMo's timer: the mean of the last steps, and of the fewer ones after a start.


def nemo_log(*printed: float, window: int) -> str:
    lines = (
        f"Training epoch 0, iteration {i}/99 | lr: 1e-06 | global_batch_size: 128 | global_step: {i} | "
        f"reduced_train_loss: 11.9 | train_step_timing in s: {seconds}\n"
        for i, seconds in enumerate(printed)
    )
    return f"|   step_timing_kwargs:\n|     buffer_size: {window}\n" + "".join(lines)


def test_first_windows_of_a_timer_of_several_steps(parse):
    meaning = interpret(parse(nemo_log(50.0, 40.0, 36.0, 30.0, 30.0, window=3)))
    assert meaning.steps["step_time_ms"].to_list() == pytest.approx([50_000, 30_000, 28_000, 30_000, 30_000])
    assert meaning.notes == (info("first_windows_taken_apart", lines=[4, 5]),)


@pytest.mark.parametrize(
    ("printed", "window"), [((50.0, 30.0, 30.5, 30.0, 30.0), 3), ((50.0, 40.0, 36.0, 30.0, 30.0), 1)]
)
def test_a_timer_of_single_steps_is_taken_as_printed(parse, printed, window):
    meaning = interpret(parse(nemo_log(*printed, window=window)))
    assert meaning.steps["step_time_ms"].to_list() == pytest.approx([1000 * seconds for seconds in printed])
    assert meaning.notes == ()


def test_a_buffer_without_a_number_is_no_window(parse):
    meaning = interpret(
        parse(nemo_log(50.0, 40.0, 36.0, 30.0, window=3).replace("buffer_size: 3", "buffer_size: null"))
    )
    assert meaning.steps["step_time_ms"].to_list() == pytest.approx([50_000, 40_000, 36_000, 30_000])


# Megatron core 0.16 to 0.19: the second row holds the first iteration again.


def rows(*printed: tuple[int, float], fraction: str = ".918469") -> str:
    clocks = (f"2026-02-06 20:55:{i:02}{fraction}" for i in range(60))
    return "".join(megatron_line(s, ms, clock) + "\n" for (s, ms), clock in zip(printed, clocks, strict=False))


def test_second_row_of_every_step(parse):
    # 2 x 70745.5 - 121407.0
    meaning = interpret(parse(rows((501, 121407.0), (502, 70745.5), (503, 20100.0), (504, 20050.0))))
    assert meaning.steps["step_time_ms"].to_list() == [121407.0, 20084.0, 20100.0, 20050.0]
    assert meaning.steps["elapsed_time_per_iteration_ms"].to_list() == [121407.0, 70745.5, 20100.0, 20050.0]
    assert meaning.notes == (info("second_row_unmixed", lines=[2]),)


def test_second_row_of_every_tenth_step(parse):
    # Row 10 is the mean of iterations 1 to 10: (10 x 30140.7 - 121407.0) / 9
    text = rows((1, 121407.0), (10, 30140.7), (20, 20010.0), (30, 19990.0))
    assert times(parse(text)) == [121407.0, 20000.0, 20010.0, 19990.0]


def test_each_start_has_its_second_row(parse):
    text = rows((1, 121407.0), (2, 70745.5), (3, 20100.0), (2, 90000.0), (3, 55000.0), (4, 20100.0))
    assert times(parse(text)) == [121407.0, 20084.0, 20100.0, 90000.0, 20000.0, 20100.0]


def test_a_start_that_lost_nothing_has_its_second_row(parse):
    # The steps go on where they were; the settings, printed again, tell that a process began: 2 x 55000 - 90000.
    first = rows((1, 121407.0), (2, 70745.5), (3, 20100.0))
    again = rows((4, 90000.0), (5, 55000.0), (6, 20100.0))
    assert times(parse(first + arguments_dump({"num_layers": 2}) + "\n" + again)) == [
        *(121407.0, 20084.0, 20100.0),
        *(90000.0, 20000.0, 20100.0),
    ]


@pytest.mark.parametrize(
    "text",
    [
        rows((501, 121407.0), (502, 70745.5), (503, 20100.0), fraction=""),
        rows((501, 121407.0), (502, 20050.0), (503, 20100.0)),
        rows((501, 121407.0), (502, 70745.5), (503, 70000.0)),
        rows((501, 121407.0), (502, 60000.0), (503, 20100.0)),
        rows((501, 121407.0), (502, 70745.5)),
        rows((501, 121407.0)),
        rows((10, 20000.0), (20, 20100.0), (30, 20050.0)),
    ],
    ids=["before 0.16", "mended", "third row is slow too", "would be negative", "two rows", "one row", "steady"],
)
def test_second_row_is_left_where_the_correction_does_not_fit(parse, text):
    parsed = parse(text)
    assert times(parsed) == parsed.steps["elapsed_time_per_iteration_ms"].to_list()
    assert interpret(parsed).notes == ()


def stamped(*rows: tuple[str, str]) -> str:
    """A line that training starts at 08:00:00, and step lines with the stamps and losses given."""
    lines = ["[before the start of training step] datetime: 2026-03-01 08:00:00 "]
    for step, (clock, loss) in enumerate(rows, 1):
        text = megatron_line(step, pairs={"lm loss": loss, "elapsed time per iteration (ms)": "5000.0"})
        lines.append(f" [2026-03-01 {clock}]{text}")
    return "\n".join(lines) + "\n"


def test_stamps_in_utc_are_brought_to_local_time(parse):
    """Eight hours behind the lines around them, as on a machine in Shanghai."""
    found = interpret(parse(stamped(("00:00:05", "2.0"), ("00:00:10", "2.0"))))
    assert [t.hour for t in found.steps["timestamp"]] == [8, 8]
    assert found.notes == (info("stamps_in_utc", hours=-8),)


@pytest.mark.parametrize("clock", ["08:00:05", "08:40:05"], ids=["local", "a long first step"])
def test_stamps_in_local_time_are_left_alone(parse, clock):
    found = interpret(parse(stamped((clock, "2.0"), ("08:50:00", "2.0"))))
    assert found.steps["timestamp"][0].strftime("%H:%M:%S") == clock
    assert found.notes == ()


def test_a_loss_that_vanishes_is_told(parse):
    found = interpret(parse(stamped(("08:00:05", "2.0"), ("08:00:10", None), ("08:00:15", "2.0"))))
    assert found.notes == (info("loss_vanished", n=1, line=3),)


def test_a_line_that_is_broken_before_its_loss_lost_none(parse):
    log = stamped(("08:00:05", "2.0"), ("08:00:10", "2.0"), ("08:00:15", "2.0"))
    assert interpret(parse(log[: log.rindex("lm loss")])).notes == ()


def test_a_log_that_prints_every_loss_says_nothing_of_it(parse):
    assert interpret(parse(stamped(("08:00:05", "2.0"), ("08:00:10", "2.0")))).notes == ()


def test_dialect_given_by_hand_wins(parse):
    found = interpret(parse(log()), "megatron-lm-2.0-to-23.06")
    assert found.framework.name == "Megatron-LM"
    assert found.framework.evidence == (info("evidence_flag", name="--dialect"),)
    assert found.time_holds_pauses


@pytest.mark.parametrize("inside", [True, False, None])
@pytest.mark.parametrize(("case", "family"), [("MindFormers 1.5", "mindformers"), ("MindSpore", "mindspore")])
def test_a_dialect_of_any_format_is_believed_that_says_whether_pauses_are_inside(
    parse, monkeypatch, case, family, inside
):
    new = Dialect("a fork", None, formats=(family,), pauses_inside=inside)
    monkeypatch.setattr(dialects, "DIALECTS", (new, *DIALECTS))
    found = interpret(parse(FRAMEWORKS[case][0]))
    assert (found.framework.name, found.time_holds_pauses) == ("a fork", bool(inside))


def test_every_dialect_has_a_key_of_its_own():
    assert len({dialect.key for dialect in DIALECTS}) == len(DIALECTS)


def test_tgs_of_internevo_is_of_that_step_alone_once_the_batch_is_known() -> None:
    read = read_run([str(ROOT / "fixtures/internevo/7b-16gpu/run.log")])
    sizes = {"global_batch_size": 64, "seq_length": 2048, "world_size": 16}
    facts = {name: Fact(value, Origin("flag", rule=name)) for name, value in sizes.items()}
    # 64 x 2048 / 16 = 8192 tokens of one device, 2049.3 a second
    known = KnownRun(RunContext(facts))
    assert interpret(read, known=known).steps["step_time_ms"][1] == pytest.approx(8192e3 / 2049.3)
    assert interpret(read).steps["step_time_ms"][1] == pytest.approx(4018)  # by the stamps


# From tokens per second a time follows only with the sizes of a step.
MEANS = [f for f in all_formats() if f.rate_covers == "recent" and "logged_tokens_per_second" not in f.samples[0].row]


@pytest.mark.parametrize("fmt", MEANS, ids=lambda fmt: fmt.name)
def test_one_line_that_prints_a_moving_mean_has_a_time(parse, fmt):
    found = interpret(parse(fmt.samples[0].text + "\n"))
    assert found.steps["step_time_ms"].is_not_null().all()
    row = fmt.samples[0].row
    # A full bar of an epoch has the mean of the epoch.
    whole = fmt.clock_of_epoch and row["step_in_epoch"] == row.get("steps_per_epoch")
    assert [note.code for note in found.notes] == ["time_by_rate" if whole else "time_by_recent_rate"]
