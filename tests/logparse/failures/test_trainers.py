"""A log without step lines names its trainer and its error lines; one with steps says that it failed."""

import gzip
from dataclasses import replace

import pytest
import regex
from helpers import SETTINGS, arguments_dump, megatron_line, megatron_log, run_logparse

from analysis.present.words import say
from logparse.decode.read_run import diagnose_run, read_run
from logparse.errors import NoStepLineError
from logparse.failures.trainers import FileEnds, find_trainer
from logparse.formats import find_format
from logparse.inputs.blocks import TextBlock

TRACEBACK = """\
[rank3]: Traceback (most recent call last):
[rank3]:   File "pretrain_gpt.py", line 80, in <module>
[rank3]:     loss = model(batch)
[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB
"""
TEARDOWN = """\
W0617 09:30:11 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 4242 closing signal SIGTERM
E0617 09:30:12 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 3 (pid: 4245)
"""
CLOCKED = "".join(f"{megatron_line(step)}\n" for step in range(1, 7))


def block(text, source="run.log", first=1):
    return TextBlock(source, first, text.count("\n"), True, text.encode())


def refused(tmp_path, text, name="run.log"):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    with pytest.raises(NoStepLineError) as caught:
        read_run([str(path)])
    return caught.value


def told(tmp_path, text):
    """The sentences on error lines that a reading of ``text`` gives."""
    (tmp_path / "run.log").write_text(text)
    notes = read_run([str(tmp_path / "run.log")]).notes
    return [(note.level, say(note)) for note in notes if "with_errors" in note.code]


# A log without step lines.


def test_the_error_names_the_trainer_and_the_lines(tmp_path):
    error = refused(tmp_path, arguments_dump(SETTINGS) + TRACEBACK + TEARDOWN)
    number = len(SETTINGS) + 2 + 4
    assert error.problem.splitlines()[0] == (
        "no step line found; this looks like Megatron-LM (line 1). The run failed:"
    )
    assert error.problem.splitlines()[1].startswith(f"    line {number}: [rank3]: torch.OutOfMemoryError: CUDA out of")
    assert "Looked for" not in error.problem
    assert "`logparse diagnose`" in error.remedy
    device = "[titan] INFO - CUDA capacity: NVIDIA H100 80GB HBM3 with 79.11GiB memory\n"
    named = refused(tmp_path, arguments_dump(SETTINGS) + device + TRACEBACK + TEARDOWN).problem.splitlines()[0]
    assert f"; the device is NVIDIA H100 80GB HBM3 (line {len(SETTINGS) + 2 + 1}). The run failed:" in named


def test_attempts_that_failed_alike_are_counted(tmp_path):
    ranks = "".join(f"{n}: [rank{n}]:     assert warm_up < steps\n{n}: [rank{n}]: AssertionError\n" for n in range(5))
    ended = "srun: error: n1: tasks 0-2: Exited with exit code 1\nsrun: error: n2: task 4: Terminated\n"
    child = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
    attempt = arguments_dump(SETTINGS) + ranks + child + ended
    # Far more than is kept of its end.
    text = (attempt + "waiting\n" * 30_000) * 2 + attempt
    first, *lines = refused(tmp_path, text).problem.splitlines()[1:]
    assert first.endswith("0: [rank0]: AssertionError: assert warm_up < steps (15 times, in 3 starts)")
    assert lines == []
    once = refused(tmp_path, attempt).problem.splitlines()[1]
    assert once.endswith("AssertionError: assert warm_up < steps (5 times)")
    assert "times" not in refused(tmp_path, arguments_dump(SETTINGS) + "ValueError: no\n").problem


def test_lines_of_several_files_name_their_file(tmp_path):
    (tmp_path / "a.log").write_text(arguments_dump(SETTINGS))
    (tmp_path / "b.log").write_text(TRACEBACK)
    with pytest.raises(NoStepLineError) as caught:
        read_run([str(tmp_path / "a.log"), str(tmp_path / "b.log")])
    assert regex.search(r"this looks like Megatron-LM \(\S*a\.log, line 1\)", caught.value.problem)
    assert regex.search(r"\S*b\.log, line 4: \[rank3\]", caught.value.problem)


def test_compressed_and_long_logs_tell_the_same(tmp_path):
    long = arguments_dump(SETTINGS) + "nothing of interest here\n" * 500_000 + TRACEBACK
    plain, packed = refused(tmp_path, long), refused(tmp_path, long, "run.log.gz")
    assert plain.problem == packed.problem
    assert f"line {len(SETTINGS) + 2 + 500_000 + 4}: " in plain.problem


def test_standard_input_tells_the_same(tmp_path):
    done = run_logparse("analyze", "-", cwd=tmp_path, stdin=TRACEBACK.encode())
    assert (done.returncode, "line 4: [rank3]: torch.OutOfMemoryError" in done.stderr) == (3, True)
    assert "\n  failed: rank 3, out of device memory\n" in done.stderr


def test_no_format_is_near_without_a_trainer_and_the_draft_is_named(tmp_path):
    lines = "".join(f"{n} global_step: {n} reduced_train_loss: 2.5 lr=0.1\n" for n in range(5))
    error = refused(tmp_path, lines)
    assert "closest format" not in error.problem
    assert "`logparse formats suggest " in error.remedy


@pytest.mark.parametrize(
    ("trainer", "line"),
    [
        (
            "LLaMA-Factory",
            '{"current_steps": 5, "total_steps": 512, "percentage": 0.98, "elapsed_time": "0:00:05", '
            '"remaining_time": "0:08:29"}',
        ),
        ("MindFormers", "[INFO] [mindformers/core/build_context.py:188] set_predict_context_config: infer_boost: on"),
    ],
)
def test_a_log_of_inference_is_said_to_train_nothing(tmp_path, trainer, line):
    (tmp_path / "run.log").write_text(f"{line}\n" * 3)
    done = run_logparse("analyze", "run.log", cwd=tmp_path)
    assert f"this looks like {trainer} (line 1); this is an inference log (line 1)" in done.stderr
    assert (done.returncode, "pass the log of a training" in done.stderr) == (3, True)
    (tmp_path / "run.log").write_text(f"{line}\n" * 3 + CLOCKED)
    assert run_logparse("analyze", "run.log", cwd=tmp_path).returncode == 0


def test_a_trainer_that_stopped_within_its_first_epoch_is_named(tmp_path):
    error = refused(tmp_path, "  4/411 [..............................] - ETA: 14:06:50 - loss: 11.1\n" + TRACEBACK)
    assert "this looks like Keras (line 1); it is read once an epoch is done, and none is" in error.problem
    assert "OutOfMemory" in error.problem


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("  File /w/MindSpeed-LLM/pretrain_gpt.py, in mindspeed_llm/training/training.py\n", "MindSpeed-LLM"),
        ("2025 - mindformers[mindformers/trainer/base.py:70] - INFO - start\n", "MindFormers"),
        ("  File /w/Megatron-DeepSpeed/megatron/training/x.py\n", "Megatron-DeepSpeed"),
        ("[before the start of training step] datetime: 2025\n", "Megatron-LM"),
        ("  File site-packages/deepspeed/runtime/engine.py\n", "DeepSpeed"),
        ("300/500 [======>....] - ETA: 0:20 - loss: 2.0\n", "Keras"),
        ("500/500 ━━━━━━━━━━━━━━━━━━━━ 250s 500ms/step - loss: 2.3\n", "Keras"),
        ("epoch     train_loss  valid_loss  accuracy  time\n", "fastai"),
    ],
)
def test_who_printed_it(text, name):
    assert find_trainer(FileEnds([block("nothing\n" + text)], [])).name == name


def test_a_format_tells_of_its_own_framework():
    """Above what else the line names, unless it is of a library beneath."""
    ends = FileEnds([block("  File site-packages/ours/deepspeed/runtime/engine.py, mindformers\n")], [])
    ours = replace(find_format("litgpt"), framework="Ours", traces=(r"\bours/",))
    named = [find_trainer(ends, [replace(ours, beneath=deep)]) for deep in (0, 1)]
    assert [(trainer.name, trainer.is_read) for trainer in named] == [("Ours", True), ("MindFormers", True)]


def test_nobody_is_named_where_nothing_tells():
    assert find_trainer(FileEnds([block("all is well\n")], [])) is None
    assert find_trainer(FileEnds()) is None


@pytest.mark.parametrize(
    "text",
    [
        "| ModelLink 1.0 to 1.2, MindSpeed-LLM | all | `megatron` |\n",
        "| mindformers[mindformers/trainer] | 2.0 |\n",
        "logparse analyze fixtures/megatron/core-v0.12-llama2-7b/run.log fixtures/mindspore/x.log\n",
    ],
)
def test_a_text_that_only_speaks_of_trainers_is_not_named_after_one(tmp_path, text):
    assert find_trainer(FileEnds([block("# Readme\n" + text)], [])) is None
    assert refused(tmp_path, text).problem == "no step line found; no known training framework in the log"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.0}\n" * 3, "3 lines of Hugging Face Trainer have no step"),
        ("    optim/LR (group 0)=0.0005\n    train/CE loss=6.4\n", "OLMo, OLMo-core: records without"),
    ],
    ids=["dicts without a bar", "a record without its first line"],
)
def test_step_lines_without_a_step_are_said_to_have_none(tmp_path, text, said):
    assert said in refused(tmp_path, text).problem


# A run that ended before its last step.


def test_error_lines_behind_the_last_step_are_quoted_with_their_numbers(tmp_path):
    text = megatron_log() + TRACEBACK + TEARDOWN
    number = text[: text.index("torch.OutOfMemoryError")].count("\n") + 1
    ((level, said),) = told(tmp_path, text)
    assert level == "warning"
    assert said.startswith("the run ended at step 6 of 500, followed by error lines (3): out of device memory")
    assert f"(line {number}: [rank3]: torch.OutOfMemoryError: CUDA out of memory" in said


def test_errors_before_the_last_step_were_outlived(tmp_path):
    assert told(tmp_path, TRACEBACK + megatron_log()) == []


def test_errors_behind_the_last_planned_step_are_tear_down(tmp_path):
    last = megatron_line(500) + "\n"
    assert told(tmp_path, megatron_log() + last + TRACEBACK) == []


def test_a_log_that_merely_ends_says_nothing(tmp_path):
    assert told(tmp_path, megatron_log()) == []


def test_the_words_of_a_log_are_no_markup(tmp_path):
    hostile = "ValueError: [bold]<script>alert(1)</script>[/bold] {x}\n"
    (tmp_path / "run.log").write_text(megatron_log() + hostile)
    done = run_logparse("analyze", "run.log", "-o", "out", "--chart-format", "json", cwd=tmp_path, COLUMNS="400")
    assert hostile.strip() in " ".join(done.stdout.split())
    assert "<script>alert(1)" not in (tmp_path / "out/report.html").read_text()


def test_the_file_in_which_a_scheduler_keeps_the_errors_is_named(tmp_path):
    text = arguments_dump(SETTINGS) + "Read file <out/job.77.e> for stderr output of this job.\n"
    assert refused(tmp_path, text).remedy == "the errors of this job are in out/job.77.e: run `logparse diagnose` on it"
    (tmp_path / "run.log").write_text(text)
    ending = diagnose_run([str(tmp_path / "run.log")])
    assert (ending.state, ending.remedy, ending.figures) == ("unknown", "other_log", {"file": "out/job.77.e"})
