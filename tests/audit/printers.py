"""How frameworks print a history: the words of each, its rounding, and what its timer holds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from audit.histories import History, Pause, Process
from audit.truth import Habits, Line, Truth, lines_of
from helpers import arguments_dump


@dataclass(frozen=True)
class Printed:
    """A log and the truth of it. ``clock_rounding`` is that of a line's stamp, in seconds, ``ms_rounding`` of its time.

    What a process prints at its start is stamped to the second. ``shape_is_known``: the settings tell every size.
    """

    text: str
    truth: Truth
    ms_rounding: float
    clock_rounding: float
    shape_is_known: bool = True


def _print(
    history: History, habits: Habits, of_process: Callable[[History, Process, list[Line]], Iterator[str]]
) -> tuple[str, Truth]:
    """What all processes print, one after the other, and the truth of it."""
    lines = lines_of(history, habits)
    text = [
        entry
        for index, process in enumerate(history.processes)
        if process.printed
        for entry in of_process(history, process, [line for line in lines if line.process == index])
    ]
    truth = Truth(history, habits, history.processes[0].begins, lines[-1].end)
    return "\n".join(text) + "\n", truth


@dataclass(frozen=True)
class Megatron:
    """An age of the Megatron family."""

    habits: Habits
    stamp: str | None = None
    unit: str = "ms"
    evaluated: str = " validation loss at iteration {step} | lm loss value: 2.1E+00 | lm loss PPL: 8.1E+00 | "
    is_core: bool = True
    also: str = ""

    def print(self, history: History) -> Printed:
        """The whole log."""
        text, truth = _print(history, self.habits, self._process)
        rounding = 0.05 if self.unit == "ms" else 5.0
        clock_rounding = 1.0 if self.stamp != MICROSECONDS else 1e-6
        return Printed(text, truth, rounding, clock_rounding, self.is_core)

    def _process(self, history: History, process: Process, lines: list[Line]) -> Iterator[str]:
        if not process.events_only:
            yield from self._settings(history, process)
        if process.resumes:
            yield f"  successfully loaded checkpoint from ckpt [ t 0, p 0 ] at iteration {process.resumes}"
        training = process.begins + timedelta(seconds=process.start_up)
        yield f"[before the start of training step] datetime: {training:%Y-%m-%d %H:%M:%S} "
        printed = {line.steps[-1].number: line for line in lines}
        for step in process.steps:
            if step.number in printed:
                yield self._line(history, process, printed[step.number], lines)
            for pause in process.paused_after(step.number):
                if pause.kind == "save" or history.evaluates_every is None:
                    yield from self._pause(pause)

    def _settings(self, history: History, process: Process) -> Iterator[str]:
        yield from arguments_dump(self._arguments(history, process)).splitlines()
        tensor, pipeline = history.layout.tensor, history.layout.pipeline
        replicas = process.devices // (tensor * pipeline)
        yield (
            f"using world size: {process.devices}, data-parallel size: {replicas}, "
            f"tensor-model-parallel size: {tensor}, pipeline-model-parallel size: {pipeline} "
        )
        yield f"[after megatron is initialized] datetime: {process.begins:%Y-%m-%d %H:%M:%S} "

    def _pause(self, pause: Pause) -> Iterator[str]:
        if pause.kind == "evaluation":
            yield "-" * 80
            yield self.evaluated.format(step=pause.after)
            yield "-" * 80
        else:
            yield f"saving checkpoint at iteration {pause.after:7d} to ckpt"
            yield f"  successfully saved checkpoint at iteration {pause.after:7d} to ckpt"

    def _line(self, history: History, process: Process, line: Line, lines: list[Line]) -> str:
        last = line.steps[-1]
        stamp = f" [{process.shown(line.end, last.number).strftime(self.stamp)}]" if self.stamp else ""
        ms = self._timed(line, lines)
        time = f"{ms:.1f}" if self.unit == "ms" else f"{ms / 1000:.2f}"
        kinds = [s.kind for s in line.steps]
        skipped, nans = sum(kind in ("skipped", "nan") for kind in kinds), kinds.count("nan")
        # The mean is over the steps that made an update; of none there is none.
        printed = skipped < len(line.steps) and not {"gradient", "vanished"} & set(kinds)
        loss = f" lm loss: {'NAN' if 'loss' in kinds else f'{_loss(line):.6E}'} |" if printed else ""
        norm = "nan" if "gradient" in kinds else "0.876"
        return (
            f"{stamp} iteration {last.number:8d}/{history.train_steps:8d} |"
            f" consumed samples: {history.consumed[last.number]:12d} |"
            f" elapsed time per iteration ({self.unit}): {time} |"
            f" learning rate: 1.000E-04 | global batch size: {last.samples:5d} |{self.also}{loss} loss scale: 1.0 |"
            f" grad norm: {norm} | number of skipped iterations: {skipped:3d} | number of nan iterations: {nans:3d} |"
        )

    def _timed(self, line: Line, lines: list[Line]) -> float:
        """The mean that is printed: where the first step is printed alone, the second line holds it too."""
        if self.habits.first_step_alone and len(lines) > 1 and line is lines[1]:
            both = (*lines[0].steps, *line.steps)
            return 1000 * sum(s.seconds for s in both) / len(both)
        return line.ms

    def _arguments(self, history: History, process: Process) -> dict[str, object]:
        m, layout, again = history.model, history.layout, history.recompute
        partial = again.granularity == "full" and again.layers is not None
        known: dict[str, object] = {
            "bf16": True,
            "context_parallel_size": 1,
            "data_parallel_size": process.devices // (layout.tensor * layout.pipeline),
            "eval_interval": history.evaluates_every or 1000,
            "eval_iters": 10,
            "ffn_hidden_size": m.ffn,
            "fp16": False,
            "global_batch_size": history.full_batch,
            "group_query_attention": m.groups != m.heads,
            "hidden_size": m.hidden,
            "log_interval": history.log_interval,
            "micro_batch_size": history.micro_batch,
            "num_attention_heads": m.heads,
            "num_experts": m.experts or None,
            "num_layers": m.layers,
            "num_query_groups": m.groups if m.groups != m.heads else 1,
            "moe_router_topk": m.topk or 2,
            "padded_vocab_size": m.vocab,
            "pipeline_model_parallel_size": layout.pipeline,
            "recompute_granularity": None if again.granularity == "none" else again.granularity,
            "recompute_method": "block" if partial else "uniform" if again.granularity == "full" else None,
            "recompute_num_layers": again.layers if partial else 1 if again.granularity == "full" else None,
            "seq_length": history.seq_length,
            "swiglu": m.gated,
            "tensor_model_parallel_size": layout.tensor,
            "world_size": process.devices,
        }
        return {name: value for name, value in known.items() if self.is_core or name not in SINCE_CORE}


@dataclass(frozen=True)
class MindFormers:
    """MindFormers in graph mode, without sinks: every step on a line, in whole ms, saves between the lines."""

    habits: Habits = field(default_factory=Habits)
    steps_per_epoch: int = 40

    def print(self, history: History) -> Printed:
        """The whole log. Training is asked for in whole epochs."""
        asked = -(-history.train_steps // self.steps_per_epoch) * self.steps_per_epoch
        return Printed(*_print(replace(history, train_steps=asked), self.habits, self._process), 0.5, 1e-3)

    def _process(self, history: History, process: Process, lines: list[Line]) -> Iterator[str]:
        now = process.begins
        yield from (self._said(now, sentence) for sentence in self._settings(history, process))
        yield from self._config(history)
        training = now + timedelta(seconds=process.start_up)
        yield self._said(training, ".........Model Compiling, Please Wait a Moment...........")
        for line in lines:
            end = process.shown(line.end, line.steps[-1].number)
            yield self._said(end, self._line(history, line))
            yield from (self._said(end, "......Saving ckpt......") for _ in process.paused_after(line.steps[-1].number))

    def _said(self, when: datetime, text: str) -> str:
        stamp = f"{when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03d}"
        return f"{stamp} - mindformers./output/log[mindformers/core/callback/callback.py:534] - INFO - {text}"

    def _settings(self, history: History, process: Process) -> Iterator[str]:
        layout, again = history.layout, history.recompute
        replicas = process.devices // (layout.tensor * layout.pipeline)
        micro_batches = history.full_batch // (history.micro_batch * replicas)
        per_stage = [again.layers] * layout.pipeline if again.layers is not None else again.granularity == "full"
        yield f"initial recompute_config from dict: {{'recompute': {per_stage}, 'select_recompute': False}}"
        yield (
            f"initial parallel_config from dict: {{'data_parallel': {replicas}, 'model_parallel': {layout.tensor}, "
            f"'context_parallel': 1, 'pipeline_stage': {layout.pipeline}, 'micro_batch_num': {micro_batches}}}"
        )
        yield "Now Running Task is: text_generation, Model is: llama2_7b"
        yield (
            "global_batch_size = batch_size * data_parallel * micro_batch_num * micro_batch_interleave_num = "
            f"{history.full_batch} = {history.micro_batch} * {replicas} * {micro_batches} * 1)."
        )
        yield f"Create train dataset finish, dataset size:{self.steps_per_epoch}"
        if process.resumes:
            yield "Start load resume context from checkpoint"

    def _config(self, history: History) -> Iterator[str]:
        m = history.model
        sizes = {
            "compute_dtype": "'bfloat16'",
            "hidden_size": m.hidden,
            "intermediate_size": m.ffn,
            "n_kv_heads": m.groups,
            "num_heads": m.heads,
            "num_layers": m.layers,
            "seq_length": history.seq_length,
            "type": "'LlamaConfig'",
            "vocab_size": m.vocab,
        }
        yield "{'auto_trans_ckpt': False,"
        entries = [f"'{name}': {value}" for name, value in sizes.items()]
        indent = " " * len(" 'model': {'model_config': {")
        yield f" 'model': {{'model_config': {{{entries[0]},"
        yield from (f"{indent}{entry}," for entry in entries[1:-1])
        yield f"{indent}{entries[-1]}}}}},"
        yield " 'use_parallel': True}"

    def _line(self, history: History, line: Line) -> str:
        (step,) = line.steps
        epochs = -(-history.train_steps // self.steps_per_epoch)
        epoch, place = divmod(step.number - 1, self.steps_per_epoch)
        loss = "nan" if step.kind in ("nan", "loss") else f"{_loss(line):.6f}"
        return (
            f"{{ Epoch:[{epoch + 1:3d}/{epochs:3d}], step:[{place + 1:5d}/{self.steps_per_epoch:5d}], loss: {loss}, "
            f"per_step_time: {line.ms:.0f}ms, lr: 1e-05, overflow cond: {step.kind == 'skipped'}, loss_scale: 65536.0, "
            f"global_norm: [1.5], train_throughput_per_npu: 148.330T"
        )


def _loss(line: Line) -> float:
    """A step that is done again ends a little elsewhere."""
    return 10 / (1 + line.steps[-1].number) ** 0.1 + 0.001 * line.process


# Settings that Megatron 2 does not have: every head has keys of its own, and no MLP is gated.
SINCE_CORE = {"context_parallel_size", "group_query_attention", "num_query_groups", "swiglu"}
SECONDS, MICROSECONDS = "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f"

CORE_0_8 = Megatron(Habits(), SECONDS)
CORE_0_18 = Megatron(Habits(first_step_alone=True), MICROSECONDS)
MEGATRON_2_5 = Megatron(Habits(pauses_inside=True, stamped=False), is_core=False)
BIGSCIENCE = Megatron(
    Habits(pauses_inside=True, stamped=False),
    unit="s",
    evaluated=" valid loss at iteration {step} | lm loss value: 2.1E+00 | lm loss PPL: 8.1E+00 | ",
    is_core=False,
)
NEOX = Megatron(
    Habits(pauses_inside=True, stamped=False),
    evaluated=" validation results at iteration {step} | lm_loss value: 2.1E+00 | lm_loss_ppl value: 8.1E+00 | ",
    is_core=False,
    also=" approx flops per GPU: 55.0TFLOPS |",
)
MINDFORMERS_1_5 = MindFormers()
