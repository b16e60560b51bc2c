"""The batch of runs whose old code prints it only as DeepSpeed's own settings, each answer worked by hand."""

from pathlib import Path

from helpers import arguments_dump, megatron_line

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions
from analysis.run.run import Run

MODEL = {
    "batch_size": 4,
    "fp16": True,
    "hidden_size": 1024,
    "model_parallel_size": 4,
    "num_layers": 64,
    "seq_length": 1024,
}
WORLD = "using world size: 64 and model-parallel size: 4 "
ENGINE = """[2021-05-27 19:49:22,948] [INFO] [config.py:904:print]   gradient_accumulation_steps .. 256
[2021-05-27 19:49:22,949] [INFO] [config.py:904:print]   train_batch_size ............. 1024
[2021-05-27 19:49:22,949] [INFO] [config.py:904:print]   train_micro_batch_size_per_gpu  4"""


def log(*settings: str, samples: float = 7.052, batch: str | None = None) -> str:
    """Steps of 145.207 s, of which DeepSpeed reports ``samples`` per second."""
    lines = [arguments_dump({**MODEL, "pipe_parallel_size": 16}), WORLD, *settings]
    for step in range(1, 5):
        lines.append(f"steps: {step} loss: 12.5 iter time (s): 145.206 samples/sec: {samples:.3f}")
        lines.append(megatron_line(step, 145207.0, pairs={"global batch size": batch, "consumed samples": None}))
    return "\n".join(lines) + "\n"


def analyzed(folder: Path, text: str) -> Run:
    path = folder / "run.log"
    path.write_text(text)
    return analyze_logs([str(path)], RunOptions())


def test_the_batch_is_what_deepspeed_says(tmp_path):
    # 1024 samples of 1024 tokens in 145.207 s on 64 devices.
    found = analyzed(tmp_path, log(ENGINE))
    assert round(found.value("tokens_per_second_per_device"), 1) == 112.8
    assert not [note for note in found.notes if note.code in ("printed_rate_differs", "printed_rate_unexplained")]


def test_micro_batches_make_the_batch(tmp_path):
    # 4 samples x 256 micro-batches x 64 / (4 x 16) replicas.
    accumulation = ENGINE.splitlines()[0]
    micro = ENGINE.splitlines()[2]
    found = analyzed(tmp_path, log(accumulation, micro))
    assert round(found.value("tokens_per_second_per_device"), 1) == 112.8


def test_a_batch_that_the_printed_samples_refute_is_told(tmp_path):
    # batch_size x replicas = 4, of which 145.207 s make 0.0275 samples/s; printed are 7.052, of 1024 samples.
    found = analyzed(tmp_path, log())
    (note,) = (note for note in found.notes if note.code == "printed_rate_unexplained")
    cause = note.fields["cause"]
    assert (note.level, cause.code) == ("warning", "no_known_cause_of_samples")
    assert (cause.fields["ours"], cause.fields["implied"]) == (4, 1024)


def test_what_the_step_line_prints_stays(tmp_path):
    own = log(ENGINE).replace(" lm loss:", " samples per second: 7.100 | lm loss:")
    assert set(analyzed(tmp_path, own).steps["logged_samples_per_second"]) == {7.1}
