"""The glossary as code: every column of every frame and every quantity of a run, with unit and meaning.

Names are defined here once; frames, charts, tables, flags and documents take them from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache, cached_property
from typing import Literal

import polars as pl

from logparse.light_dataclass import dataclass

SCHEMA_VERSION = 2


@dataclass(frozen=True)
class Column:
    """One column of a frame."""

    name: str
    dtype: pl.DataType
    unit: str
    meaning: str

    @cached_property
    def nulls(self) -> pl.Expr:
        """The column with nulls only. Cached, since to build one for every column takes longer than a small log."""
        return pl.lit(None, self.dtype).alias(self.name)


FLOAT, INT, BOOL, TEXT, TIME = pl.Float64(), pl.Int64(), pl.Boolean(), pl.String(), pl.Datetime("us")

# The year of stamps that print none, a leap year before FIRST_YEAR: only their distances count. Before it lies the year
# of those that a log prints before a new year. Stamps without a day are of the first days of NO_DAY.
NO_YEAR, NO_DAY, FIRST_YEAR = 1904, 1908, 1970


def is_dated(time: datetime) -> bool:
    """Whether the log prints the year of ``time``."""
    return time.year >= FIRST_YEAR


def without_yearless(frame: pl.DataFrame) -> pl.DataFrame:
    """``frame`` as users get it: a time whose year the log does not print is null."""
    times = [name for name, dtype in frame.schema.items() if dtype == TIME]
    return frame.with_columns(pl.when(pl.col(name).dt.year() >= FIRST_YEAR).then(name).alias(name) for name in times)


# One row per printed step line, in order of appearance.
DECODED_COLUMNS = (
    Column("run", TEXT, "", "name of the run"),
    Column("source", TEXT, "", "file the line is in"),
    Column("line_number", INT, "", "line of that file, counted from 1"),
    Column(
        "timestamp",
        TIME,
        "",
        "clock printed before the step line, zone unknown; without a year it is of 1904, and null in files",
    ),
    Column("step", INT, "step", "optimizer step, counted from the start of training"),
    Column("train_steps", INT, "step", "steps the run was asked to do"),
    Column("epoch", INT, "", "epoch as printed"),
    Column("epochs", INT, "", "epochs the run was asked to do"),
    Column("planned_epochs", INT, "", "epochs of the training as a line before it prints, which counts them from 1"),
    Column("step_in_epoch", INT, "step", "step within the epoch as printed"),
    Column("steps_per_epoch", INT, "step", "steps of one epoch as printed"),
    Column("validation_batches", INT, "batches", "batches of one validation, which the bar of an epoch counts too"),
    Column("samples_in_epoch", INT, "samples", "samples done within the epoch as printed, one batch at its first line"),
    Column("epochs_done", FLOAT, "", "epochs done as printed, with their fraction"),
    Column("epoch_samples", INT, "samples", "samples of one epoch as printed"),
    Column("elapsed_time_per_iteration_ms", FLOAT, "ms", "time of one optimizer step as printed, or as follows"),
    Column("runtime_seconds", FLOAT, "s", "time since the process began to train, as printed"),
    Column("training_seconds", FLOAT, "s", "time of the whole training, as printed at its end"),
    Column("training_epochs", FLOAT, "", "epochs of the whole training, as printed at its end"),
    Column("global_batch_size", INT, "samples", "samples per optimizer step over all devices"),
    Column("seq_length", INT, "tokens", "sequence length printed on the line"),
    Column("consumed_samples", INT, "samples", "samples since the start of training"),
    Column("consumed_tokens", INT, "tokens", "tokens since the start of training"),
    Column("loss", FLOAT, "", "training loss"),
    Column("load_balancing_loss", FLOAT, "", "router balance loss of a mixture of experts"),
    Column("mtp_loss", FLOAT, "", "loss of multi-token prediction, first depth"),
    Column("learning_rate", FLOAT, "", "learning rate"),
    Column("loss_scale", FLOAT, "", "factor that keeps fp16 gradients in range"),
    Column("grad_norm", FLOAT, "", "norm of the gradients before clipping"),
    Column("params_norm", FLOAT, "", "norm of the parameters"),
    Column("num_zeros", FLOAT, "", "zeros in the gradients"),
    Column("skipped_iterations", INT, "steps", "steps of this row whose update was skipped"),
    Column("nan_iterations", INT, "steps", "steps of this row with a NaN"),
    Column("overflow", BOOL, "", "gradients overflowed and the update was skipped"),
    Column("logged_seconds_per_step", FLOAT, "s/step", "s/step as printed, a mean of recent steps"),
    Column("logged_steps_per_second", FLOAT, "steps/s", "steps/s as printed"),
    Column("logged_samples_per_second", FLOAT, "samples/s", "samples/s of all devices, as printed"),
    Column("logged_samples_per_second_per_device", FLOAT, "samples/s/p", "samples/s/p as printed"),
    Column("logged_tokens_per_second", FLOAT, "tokens/s", "tokens/s of all devices, as printed"),
    Column("logged_tokens_per_second_per_device", FLOAT, "tokens/s/p", "tokens/s/p as printed"),
    Column("logged_tflops_per_second_per_device", FLOAT, "TFLOP/s/p", "TFLOP/s/p as printed, by the log's own formula"),
    Column("logged_measured_tflops_per_second_per_device", FLOAT, "TFLOP/s/p", "counted by operator, no recompute"),
    Column("logged_measured_hardware_tflops_per_second_per_device", FLOAT, "TFLOP/s/p", "counted, with recompute"),
    Column("logged_mfu", FLOAT, "ratio", "MFU as printed, against the peak the framework assumed"),
    Column("logged_hfu", FLOAT, "ratio", "HFU as printed, against the peak the framework assumed"),
    Column("core_attention_ratio", FLOAT, "ratio", "share of the full attention matrix that was computed"),
    Column("energy_per_device_joules", FLOAT, "J", "energy of one step on one device"),
    Column("power_per_device_watts", FLOAT, "W", "mean power of one device"),
    Column("max_memory_allocated_bytes", FLOAT, "bytes", "largest memory allocated on a device"),
    Column("max_memory_reserved_bytes", FLOAT, "bytes", "largest memory reserved on a device"),
)

_PLACE = tuple(c for c in DECODED_COLUMNS if c.name in ("run", "source", "line_number"))
_CLOCK = Column("timestamp", TIME, "", "clock on the line, zone unknown")

# Lines that report what the job does besides steps. ``kind`` is an EventKind.
EVENT_COLUMNS = (
    *_PLACE,
    _CLOCK,
    Column("kind", TEXT, "", "what happened"),
    Column("step", INT, "step", "step it names"),
    Column("seconds", FLOAT, "s", "duration the line prints"),
)

EventKind = Literal[
    "log begins",
    "process starts",
    "initialized",
    "model setup",
    "data setup",
    "training starts",
    "checkpoint loaded",
    "save starts",
    "save ends",
    "training ends",
    "process exits",
]

# Events before the first step of a process.
BEGINNINGS = ("process starts", "training starts", "checkpoint loaded")

EVALUATION_COLUMNS = (
    *_PLACE,
    _CLOCK,
    Column("step", INT, "step", "step after which it was made"),
    Column("dataset", TEXT, "", "what was evaluated, as printed"),
    Column("loss", FLOAT, "", "loss"),
    Column("perplexity", FLOAT, "", "perplexity as printed"),
)

MEMORY_COLUMNS = (
    *_PLACE,
    Column("kind", TEXT, "", "measured, or theoretical (Megatron's own estimate)"),
    Column("step", INT, "step", "steps done when it was printed"),
    Column("rank", INT, "", "rank it was measured on"),
    Column("allocated_bytes", FLOAT, "bytes", "allocated at that moment"),
    Column("max_allocated_bytes", FLOAT, "bytes", "most that was allocated"),
    Column("reserved_bytes", FLOAT, "bytes", "reserved by the allocator at that moment"),
    Column("max_reserved_bytes", FLOAT, "bytes", "most that was reserved"),
    Column("weight_and_optimizer_bytes", FLOAT, "bytes", "weights, gradients and optimizer state, estimated"),
    Column("activation_bytes", FLOAT, "bytes", "activations, estimated"),
    Column("total_bytes", FLOAT, "bytes", "the two together, estimated"),
)

TIMER_COLUMNS = (
    *_PLACE,
    Column("step", INT, "step", "the step line it follows"),
    Column("name", TEXT, "", "timer as printed; timers nest, so they must not be added up"),
    Column("min_ms", FLOAT, "ms", "least over the ranks, per step of the log interval"),
    Column("max_ms", FLOAT, "ms", "most over the ranks; the one rank's own time where only one is printed"),
)

LOSS_COLUMNS = (
    *_PLACE,
    Column("loss", FLOAT, "", "loss of a line that is no step line: its step is not printed"),
)

RECORD_COLUMNS = {
    "events": EVENT_COLUMNS,
    "evaluations": EVALUATION_COLUMNS,
    "memory": MEMORY_COLUMNS,
    "timers": TIMER_COLUMNS,
    "losses": LOSS_COLUMNS,
}

SETTING_COLUMNS = (
    Column("name", TEXT, "", "name as the framework prints it; nested names joined by a dot"),
    Column("value", TEXT, "", "text as printed"),
    Column("kind", TEXT, "", "which block or sentence of the format it is from"),
    Column("source", TEXT, "", "file"),
    Column("line_number", INT, "", "line of that file"),
)

Kind = Literal["int", "float", "bool", "text"]


@dataclass(frozen=True)
class Quantity:
    """One fact of a run: a setting, a shape or a layout. ``flag``: whether the command line can give it.

    ``least`` is the smallest whole number a flag takes; a log that prints less has not set it. ``short`` is another
    name of the flag, which people use.
    """

    name: str
    kind: Kind
    meaning: str
    flag: bool = True
    least: int = 1
    short: str | None = None


QUANTITIES = (
    # layout
    Quantity("world_size", "int", "number of devices (ranks) of the job", short="--devices"),
    Quantity("data_parallel_size", "int", "data parallel size", short="--dp"),
    Quantity("tensor_model_parallel_size", "int", "tensor parallel size", short="--tp"),
    Quantity("pipeline_model_parallel_size", "int", "pipeline parallel size", short="--pp"),
    Quantity("context_parallel_size", "int", "context parallel size", short="--cp"),
    Quantity("expert_model_parallel_size", "int", "expert parallel size", short="--ep"),
    Quantity("expert_tensor_parallel_size", "int", "devices that share each expert", flag=False),
    Quantity("virtual_pipeline_model_parallel_size", "int", "model chunks per pipeline stage", short="--vpp"),
    Quantity("num_layers_per_virtual_pipeline_stage", "int", "layers per model chunk of a pipeline stage", flag=False),
    Quantity("first_stage_layers", "int", "layers of the first pipeline stage, if different", flag=False),
    Quantity("last_stage_layers", "int", "layers of the last pipeline stage, if different", flag=False),
    Quantity("pipeline_layout", "text", "layers of each pipeline stage, as printed", flag=False),
    Quantity("pipeline_offset", "text", "MindFormers: extra layers of each pipeline stage", flag=False),
    Quantity(
        "zero_stage",
        "int",
        "ZeRO: 0 no sharding, 1 optimizer state, 2 also gradients, 3 also weights",
        least=0,
        short="--zero",
    ),
    Quantity(
        "sequence_parallel",
        "bool",
        "sequence parallelism: tensor-parallel ranks also split norms and dropouts",
        flag=False,
    ),
    Quantity("flash_attention", "bool", "FlashAttention: the attention matrix is not stored", flag=False),
    Quantity("dropout", "bool", "the model uses dropout and stores its masks", flag=False),
    Quantity("device_mesh", "text", "dimensions of the device mesh and their sizes, as printed", flag=False),
    Quantity("last_process", "text", "coordinates of the last process, counted from 0, as printed", flag=False),
    Quantity("num_nodes", "int", "machines", flag=False),
    Quantity("devices_per_node", "int", "devices of one machine", flag=False),
    # batch
    Quantity("global_batch_size", "int", "samples per optimizer step over all devices"),
    Quantity("batch_size_per_device", "float", "samples per device and pass", flag=False),
    Quantity("micro_batch_size", "int", "samples per forward pass of one data-parallel rank"),
    Quantity("num_microbatches", "int", "gradient accumulation steps", flag=False),
    Quantity("seq_length", "int", "tokens per sample"),
    Quantity("tokens_per_step", "int", "tokens per optimizer step, from the token counts of step lines", flag=False),
    # shape
    Quantity("num_layers", "int", "transformer layers"),
    Quantity("noop_layers", "text", "layers that do nothing, counted from 0, as printed", flag=False),
    Quantity("num_noop_layers", "int", "layers that do nothing, among the transformer layers", flag=False, least=0),
    Quantity("hidden_size", "int", "hidden size of the model"),
    Quantity("ffn_hidden_size", "int", "intermediate size of the MLP"),
    Quantity(
        "ffn_multiple_of",
        "int",
        "Llama: the intermediate size of the MLP is rounded up to a multiple of this",
        flag=False,
    ),
    Quantity("ffn_of_hidden_size", "int", "intermediate size of the MLP over the hidden size", flag=False),
    Quantity("ffn_dim_multiplier", "float", "Llama: multiplier of the intermediate size of the MLP", flag=False),
    Quantity("gated_linear_unit", "bool", "gated MLP (SwiGLU): three matrices instead of two"),
    Quantity("num_attention_heads", "int", "attention heads"),
    Quantity("num_query_groups", "int", "key/value heads (GQA)"),
    Quantity("kv_channels", "int", "dimension of one attention head"),
    Quantity("vocab_size", "int", "vocabulary size, without padding"),
    Quantity("padded_vocab_size", "int", "vocabulary size, padded for tensor parallelism"),
    Quantity(
        "untie_embeddings_and_output_weights", "bool", "input and output embeddings are separate matrices", flag=False
    ),
    Quantity("group_query_attention", "bool", "grouped-query attention (GQA)", flag=False),
    Quantity(
        "make_vocab_size_divisible_by",
        "int",
        "the vocabulary is padded to a multiple of this times tensor parallel size",
        flag=False,
    ),
    # mixture of experts, multi-head latent attention, multi-token prediction
    Quantity("num_experts", "int", "routed experts per layer; null for a dense model"),
    Quantity("moe_router_topk", "int", "experts per token"),
    Quantity(
        "moe_capacity_factor", "float", "tokens of one expert at most, over the mean; the rest is dropped", flag=False
    ),
    Quantity("moe_ffn_hidden_size", "int", "intermediate size of one expert"),
    Quantity("moe_shared_expert_intermediate_size", "int", "intermediate size of all shared experts together"),
    Quantity("num_moe_layers", "int", "layers with experts"),
    Quantity("moe_layer_freq", "text", "which layers have experts: every n-th, or a list of 0 and 1", flag=False),
    Quantity("pipeline_stages", "int", "model parts over all pipeline ranks", flag=False),
    Quantity("num_shared_experts", "int", "experts that every token meets", flag=False),
    Quantity("first_k_dense_replace", "int", "first layers without experts", flag=False),
    Quantity("multi_latent_attention", "bool", "multi-head latent attention (MLA)", flag=False),
    Quantity("q_lora_rank", "int", "MLA: query rank", flag=False),
    Quantity("kv_lora_rank", "int", "MLA: key/value rank", flag=False),
    Quantity("qk_head_dim", "int", "MLA: head dimension without position encoding", flag=False),
    Quantity("qk_pos_emb_head_dim", "int", "MLA: head dimension with position encoding", flag=False),
    Quantity("v_head_dim", "int", "MLA: value head dimension", flag=False),
    Quantity("mtp_num_layers", "int", "layers for multi-token prediction (MTP)", least=0),
    Quantity("moe_latent_size", "int", "token dimension at the input of the routed experts", flag=False),
    # linear attention, state spaces, windows
    Quantity("attention_output_gate", "bool", "attention output is gated", flag=False),
    Quantity(
        "linear_attention_freq",
        "text",
        "layers that use linear attention: every n-th, or a list of 0 and 1",
        flag=False,
    ),
    Quantity("num_linear_attention_layers", "int", "number of layers with linear attention", flag=False, least=0),
    Quantity("linear_key_head_dim", "int", "linear attention: key head dimension", flag=False),
    Quantity("linear_value_head_dim", "int", "linear attention: value head dimension", flag=False),
    Quantity("linear_num_key_heads", "int", "linear attention: key heads", flag=False),
    Quantity("linear_num_value_heads", "int", "linear attention: value heads", flag=False),
    Quantity("linear_conv_kernel_dim", "int", "linear attention: kernel size of the convolution", flag=False),
    Quantity("hybrid_layer_pattern", "text", "layers of a hybrid model, one letter per layer", flag=False),
    Quantity("hybrid_attention_ratio", "float", "ratio of attention layers in a hybrid model", flag=False),
    Quantity("hybrid_mlp_ratio", "float", "ratio of MLP layers in a hybrid model", flag=False),
    Quantity("num_attention_layers", "int", "attention layers in a hybrid model", flag=False, least=0),
    Quantity("num_mlp_layers", "int", "dense MLP layers in a hybrid model", flag=False, least=0),
    Quantity("num_mamba_layers", "int", "Mamba layers", flag=False, least=0),
    Quantity("mamba_state_dim", "int", "Mamba: state dimension", flag=False),
    Quantity("mamba_head_dim", "int", "Mamba: head dimension", flag=False),
    Quantity("mamba_num_groups", "int", "Mamba: groups of heads", flag=False),
    Quantity("mamba_num_heads", "int", "Mamba: heads", flag=False),
    Quantity("window_size", "text", "attention window: tokens before and after, as printed", flag=False),
    Quantity(
        "window_attn_skip_freq", "text", "layers with full attention in a model with an attention window", flag=False
    ),
    Quantity("sliding_window", "int", "attention window in tokens", flag=False),
    Quantity("num_window_layers", "int", "layers with an attention window", flag=False, least=0),
    Quantity("mixed_step", "text", "work in a step other than training, not counted by any FLOPs formula", flag=False),
    Quantity("uncounted", "text", "part of the layers that no FLOPs formula counts", flag=False),
    # how
    Quantity("precision", "text", "precision of matrix multiplications: bf16, fp16, fp32, fp8, fp4"),
    Quantity("recompute", "text", "activation recomputation: none, selective, full"),
    Quantity("recompute_method", "text", "how layers are selected for recomputation: uniform or block", flag=False),
    Quantity(
        "recompute_num_layers", "int", "layers recomputed per pipeline stage (block) or per group (uniform)", flag=False
    ),
    Quantity("recompute_modules", "text", "modules of a layer that are recomputed", flag=False),
    Quantity("recompute_by_stage", "text", "layers recomputed in each pipeline stage", flag=False),
    Quantity("recompute_selected", "text", "MindFormers: recomputed operators", flag=False),
    Quantity("recompute_scheme", "text", "other recomputation settings, as the framework prints them", flag=False),
    Quantity(
        "recompute_per_stage", "bool", "recompute_num_layers applies to a pipeline stage, not to each chunk", flag=False
    ),
    Quantity("recomputed_layers", "int", "fully recomputed layers over all pipeline stages", least=0),
    Quantity("rounded_step", "text", "last step that is printed rounded; such lines have no exact step", flag=False),
    Quantity("steps_from_zero", "bool", "the number of the first step is 0", flag=False),
    Quantity("log_interval", "int", "log interval in steps", flag=False),
    Quantity("evaluation_interval", "int", "steps from one evaluation to the next; 0 for none", flag=False, least=0),
    Quantity("lora", "bool", "low-rank adapters (LoRA) are trained; base weights are frozen", flag=False),
    Quantity("adapter_parameters", "int", "trainable parameters of low-rank adapters (LoRA)"),
    Quantity("model_parameters", "int", "parameters of the model, as the log counts them", flag=False),
    Quantity("packed_documents", "bool", "attention is masked per packed document", flag=False),
    Quantity("training_data", "text", "what a sample is: text, images or speech", flag=False),
    Quantity("variable_seq_lengths", "bool", "samples have different lengths", flag=False),
    Quantity("iterations_to_skip", "text", "steps that are skipped without training", flag=False),
    Quantity("rampup_batch_size", "text", "batch size ramp-up: start, increment, samples", flag=False),
    Quantity("batch_size_per_model_replica", "int", "samples per data-parallel rank (Megatron-LM v1)", flag=False),
    Quantity("sink_size", "int", "MindFormers: steps per device launch (sink size)", flag=False),
    Quantity("model_name", "text", "model name in the framework", flag=False),
    Quantity("device_name", "text", "name of the device", flag=False),
    Quantity("mfu_peak_device", "text", "device whose peak the log uses for its MFU in place of its own", flag=False),
)

QUANTITY = {q.name: q for q in QUANTITIES}


def flag_of(quantity: str) -> str | None:
    """The flag of the command line that gives a quantity; None where only a config file can."""
    known = QUANTITY[quantity]
    names = {"precision": "--dtype"}
    return names.get(quantity, "--" + quantity.replace("_", "-")) if known.flag else None


UNITS = {c.name: c.unit for c in DECODED_COLUMNS}


@cache
def _no_rows(columns: tuple[tuple[str, pl.DataType], ...]) -> pl.DataFrame:
    """An empty frame. To make one of all columns takes as long as several queries."""
    return pl.DataFrame(schema=dict(columns))


def conform(frame: pl.DataFrame, columns: Sequence[Column], strict: bool = True) -> pl.DataFrame:
    """Give ``frame`` exactly ``columns``: missing ones null, others dropped, types cast.

    A value that its type cannot hold raises PolarsError where ``strict``, and is null otherwise.
    """
    if frame.is_empty():
        return _no_rows(tuple([(c.name, c.dtype) for c in columns])).clone()
    there = frame.schema
    missing = [c.nulls for c in columns if c.name not in there]
    other = [pl.col(c.name).cast(c.dtype, strict=strict) for c in columns if there.get(c.name, c.dtype) != c.dtype]
    changed = frame.with_columns(*missing, *other) if missing or other else frame
    return changed[[c.name for c in columns]]
