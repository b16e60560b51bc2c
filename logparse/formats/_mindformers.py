"""What both MindFormers trainers (graph mode and PyNative) print about the run's settings."""

from logparse.formats._base import Block, Choice, Name, SettingSentence, event

_PARALLEL = "initial parallel_config from dict"
_RECOMPUTE = "initial recompute_config from dict"
# A list of numbers, or of lists of them.
_LISTED = r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]"
_GOT = "Got parallelism settings"
_MODEL = "config:model.model_config."
_EXPERTS = "initial moe_config from dict"
_SEVERAL, _POSITIVE = r"[2-9]|[1-9]\d+", r"(?!0*\.?0*$)[\d.]+"
# Experts drop the tokens beyond their capacity, where tokens are not grouped by expert.
_CAPACITY = (
    ("experts:capacity_factor", "experts:expert_num"),
    ("config:moe_config.capacity_factor", "config:moe_config.expert_num"),
    ("transformer:moe_expert_capacity_factor", "transformer:num_moe_experts"),
)

BLOCKS = (
    Block(
        kind="config",
        marker="{'a",
        # One entry on the line, as pprint breaks a long dict; the metrics that other trainers print end with a brace.
        start=r"^\{'a\w+': [^,]*,\s*$",
        end=r"^\d{4}-\d\d-\d\d |^\[INFO\]",
        entry=r"'(\w+)': ?(\{|.*?(?=,? ?$|, '\w+': ))",
        nested=True,
        max_lines=800,
    ),
    Block(
        kind="config",
        marker="Current config: {",
        start=r"Current config: \{",
        end=r"^\}",
        entry=r'"(\w+)": ?(\{|[^,]*)',
        nested=True,
        max_lines=2000,
    ),
    Block(
        kind="transformer",
        marker="TransformerConfig is: {",
        start=r"converted (?:MLA)?TransformerConfig is",
        end=r"^\}",
        entry=r"^  '(\w+)': (.*?),?$",
        max_lines=600,
    ),
)

RECORDS = (
    event("process starts", "Now Running Task is", r"Now Running Task is"),
    event("training starts", "Starting Training Model", r"\.Starting Training Model"),
    event("training starts", "Start training loop", r"Start training loop"),
    event("checkpoint loaded", "Start load resume context", r"load resume context from checkpoint"),
    event("save starts", "Saving ckpt", r"\.Saving ckpt\."),
    event(
        "save ends", "Finish saving ckpt", r"Finish saving ckpt of epoch \d+ step \d+ using (?P<seconds>[\d.]+) seconds"
    ),
    event("training ends", "Training Over!", r"Training Over!"),
)

SENTENCES = (
    SettingSentence("parallel", _PARALLEL, r"'data_parallel': (?P<data_parallel>\d+)"),
    SettingSentence("parallel", _PARALLEL, r"'model_parallel': (?P<model_parallel>\d+)"),
    SettingSentence("parallel", _PARALLEL, r"'pipeline_stage': (?P<pipeline_stage>\d+)"),
    SettingSentence("parallel", _PARALLEL, r"'micro_batch_num': (?P<micro_batch_num>\d+)"),
    SettingSentence("parallel", _PARALLEL, r"'context_parallel': (?P<context_parallel>\d+)"),
    SettingSentence("parallel", _PARALLEL, r"'expert_parallel': (?P<expert_parallel>\d+)"),
    SettingSentence("experts", _EXPERTS, r"'expert_num': (?P<expert_num>\d+)"),
    SettingSentence("experts", _EXPERTS, r"^(?!.*'use_gmm': True).*'capacity_factor': (?P<capacity_factor>-?[\d.]+)"),
    # The adapters that the optimizer lists, where the configuration is not printed.
    SettingSentence("adapters", "mindpet_delta_lora", r"(?P<adapter>mindpet_delta_lora)", first=True),
    # Those that are trained, to 1.3 by the number; later in whole millions, too coarse for adapters.
    SettingSentence("network", "Network Parameters: ", r"Network Parameters: (?P<parameters>\d+)\.?\s*$"),
    SettingSentence("recompute", _RECOMPUTE, rf"'recompute': (?P<recompute>True|False|{_LISTED})"),
    SettingSentence(
        "recompute", _RECOMPUTE, rf"'select_recompute': (?P<select_recompute>True|False|{_LISTED}|\{{[^}}]*\}})"
    ),
    SettingSentence("recompute", "initial swap_config from dict", r"'swap': (?P<swap>True|False)"),
    # The result comes first from 1.0 on, last before.
    SettingSentence(
        "batch", "batch_size = ", r"\bbatch_size = [a-z_ *]+= \d+(?: \* \d+)+ = (?P<global_batch_size>\d+)"
    ),
    SettingSentence("batch", "batch_size = ", r"global_batch_size = [a-z_ *]+= (?P<global_batch_size>\d+) = \d+ \*"),
    SettingSentence(
        "batch",
        "batch_size = ",
        r"global_batch_size = (?!per_batch_size \* device_num)[a-z_ *]+= \d+(?: \* \d+)+ = (?P<global_batch_size>\d+)",
    ),
    # To 1.3.2 the product takes every device for data parallel; the batch of one data-parallel rank is right.
    SettingSentence("batch", "* device_num", r"per_batch_size \* device_num = (?P<per_batch_size>\d+) \* \d+ = \d+"),
    SettingSentence("batch", "* device_num", r"\* device_num[a-z_ *]* = \d+ = \d+ \* (?P<device_num>\d+)"),
    SettingSentence("batch", "* device_num", r"\* device_num = \d+ \* (?P<device_num>\d+) = \d+"),
    SettingSentence("batch", "Calculate global_batch_size", r"Calculate global_batch_size=(?P<global_batch_size>\d+)"),
    SettingSentence("world", "Current world size", r"Current world size: (?P<world_size>\d+)"),
    SettingSentence("world", _GOT, r"data_parallel=(?P<data_parallel>\d+)"),
    SettingSentence("world", _GOT, r"tensor_parallel=(?P<model_parallel>\d+)"),
    SettingSentence("world", _GOT, r"pipeline_parallel=(?P<pipeline_stage>\d+)"),
    SettingSentence("world", _GOT, r"context_parallel=(?P<context_parallel>\d+)"),
    SettingSentence("task", "Now Running Task is", r"Model is: (?P<model_name>[\w.+-]+)"),
    SettingSentence("runner", "sink_size:", r"sink_size:(?P<sink_size>\d+)"),
    SettingSentence("runner", "dataset size:", r"dataset size:(?P<steps_per_epoch>\d+)"),
)


def _layout(quantity: str, printed: str) -> tuple[Name, ...]:
    return tuple(Name(quantity, f"{kind}:{printed}") for kind in ("parallel", "world"))


def _shape(quantity: str, transformer: str, *config: str) -> tuple[Name, ...]:
    """The same size under its two names: in the converted TransformerConfig and in the printed config."""
    return (Name(quantity, f"transformer:{transformer}"), *(Name(quantity, _MODEL + name) for name in config))


# The converted TransformerConfig also prints parallel sizes and recompute flags, but as it was before the run's own
# were set; only its shape is read.
NAMES = (
    *_layout("data_parallel_size", "data_parallel"),
    *_layout("tensor_model_parallel_size", "model_parallel"),
    *_layout("pipeline_model_parallel_size", "pipeline_stage"),
    # Without a pipeline it has no effect.
    Name("num_microbatches", "parallel:micro_batch_num", when={"parallel:pipeline_stage": r"(?!1$)\d+"}),
    *_layout("context_parallel_size", "context_parallel"),
    *_layout("expert_model_parallel_size", "expert_parallel"),
    Name("world_size", "world:world_size"),
    Name("world_size", "batch:device_num"),
    Name("world_size", "config:device_num"),
    Name("batch_size_per_model_replica", "batch:per_batch_size"),
    Name("global_batch_size", "batch:global_batch_size"),
    Name("global_batch_size", "config:runner_config.global_batch_size"),
    Name("global_batch_size", "config:training.global_batch_size"),
    Name("micro_batch_size", "config:training.local_batch_size"),
    *_shape("num_layers", "num_layers", "num_layers", "num_hidden_layers"),
    *_shape("hidden_size", "hidden_size", "hidden_size"),
    *_shape("ffn_hidden_size", "ffn_hidden_size", "ffn_hidden_size", "intermediate_size"),
    *_shape("gated_linear_unit", "gated_linear_unit", "gated_linear_unit"),
    *_shape("num_attention_heads", "num_attention_heads", "num_heads", "num_attention_heads"),
    *_shape("num_query_groups", "num_query_groups", "n_kv_heads", "num_key_value_heads"),
    *_shape("kv_channels", "kv_channels", "head_dim"),
    *_shape("vocab_size", "vocab_size", "vocab_size"),
    *_shape("padded_vocab_size", "vocab_size", "vocab_size"),  # not padded
    *_shape("seq_length", "seq_length", "seq_length"),
    *_shape("untie_embeddings_and_output_weights", "untie_embeddings_and_output_weights"),
    *_shape("num_experts", "num_moe_experts", "n_routed_experts"),
    Name("moe_router_topk", "transformer:moe_router_topk", when={"transformer:num_moe_experts": r"\d+"}),
    Name("moe_ffn_hidden_size", "transformer:moe_ffn_hidden_size", when={"transformer:num_moe_experts": r"\d+"}),
    Name("moe_layer_freq", "transformer:moe_layer_freq", when={"transformer:num_moe_experts": r"\d+"}),
    *(
        Name("moe_capacity_factor", factor, when={factor: _POSITIVE, experts: _SEVERAL})
        for factor, experts in _CAPACITY
    ),
    *_shape("moe_shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"),
    *_shape("multi_latent_attention", "multi_latent_attention"),
    *_shape("q_lora_rank", "q_lora_rank"),
    *_shape("kv_lora_rank", "kv_lora_rank"),
    *_shape("qk_head_dim", "qk_head_dim"),
    *_shape("qk_pos_emb_head_dim", "qk_pos_emb_head_dim"),
    *_shape("v_head_dim", "v_head_dim"),
    *_shape("mtp_num_layers", "mtp_num_layers"),
    Name("recompute_by_stage", "recompute:recompute", when={"recompute:recompute": _LISTED}),
    Name("recompute_selected", "recompute:select_recompute", when={"recompute:select_recompute": "(?!False$).+"}),
    # The lists are of layers then, not of stages.
    Name("recompute_scheme", "recompute:swap", when={"recompute:swap": "True", "recompute:recompute": _LISTED}),
    *_shape("pipeline_offset", "offset", "offset"),
    *_shape("virtual_pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size", "pp_interleave_num"),
    Name("model_name", "task:model_name"),
    Name("sink_size", "runner:sink_size"),
    Name("adapter_parameters", "network:parameters", when={_MODEL + "pet_config.lora_rank": r"\d+"}),
    Name("adapter_parameters", "network:parameters", when={"adapters:adapter": ".+"}),
)

CHOICES = (
    *(
        Choice("precision", precision, {setting: f"(?:mindspore\\.)?'?{dtype}'?"})
        for setting in ("transformer:compute_dtype", _MODEL + "compute_dtype")
        for precision, dtype in (("bf16", "bfloat16"), ("fp16", "float16"), ("fp32", "float32"))
    ),
    # mindformers/models/llama/llama_layer.py: w2 (silu(w1 x) w3 x) of every model that is configured as a Llama.
    Choice("gated_linear_unit", "True", {_MODEL + "type": "'?LlamaConfig'?"}),
    Choice("recompute", "full", {"recompute:recompute": "True"}),
    Choice("recompute", "full", {"recompute:recompute": _LISTED}),
    Choice("recompute", "selective", {"recompute:select_recompute": "(?!False$).+"}),
    Choice("recompute", "none", {"recompute:recompute": "False"}),
    Choice("lora", "True", {_MODEL + "pet_config.lora_rank": r"\d+"}),
    Choice("lora", "True", {"adapters:adapter": ".+"}),
)
