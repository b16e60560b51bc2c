"""The iteration line of Megatron-LM and its descendants.

v1.0 to core 0.19, Megatron-DeepSpeed (Microsoft, BigScience, Argonne), AscendSpeed, ModelLink, MindSpeed-LLM,
MindSpeed-MM, Megatron-Bridge, GPT-NeoX: ``iteration N/ M | label: value | label: value |``.
"""

from logparse.formats._base import (
    ABSENT,
    NUMBER,
    PRESENT,
    Block,
    Choice,
    Companion,
    LogFormat,
    Name,
    Reading,
    Record,
    Sample,
    SettingSentence,
    evaluation,
    event,
)
from logparse.formats._deepspeed import SKIPPED_UPDATE, SKIPPED_UPDATES
from logparse.formats._preference import algorithm_choices
from logparse.formats._yaml import NEMO_CHOICES, NEMO_SENTENCES, yaml_names

GIB, MIB = float(2**30), float(2**20)

# The text after the name of an evaluated set.
EVALUATED = rf" \| lm loss value[:=]\s*(?P<loss>{NUMBER})(?:[ |]*lm loss PPL[:=]\s*(?P<perplexity>{NUMBER}))?"


def _arguments(names: str, pattern: str) -> dict[str, str]:
    """The same pattern for each of the arguments."""
    return {f"arguments:{name}": pattern for name in names.split()}


def _memory(*columns: str) -> str:
    return r" \| ".join(rf"{c.removesuffix('_bytes').replace('_', ' ')}: (?P<{c}>[\d.]+)" for c in columns)


def _set_up(kind: str, timer: str) -> Record:
    """A timer of the start-up: a line of its own, or in older releases one of several on a line."""
    seconds = rf"{timer}[ .]*: \(?(?:[\d.]+, )?(?P<seconds>[\d.]+)"
    return Record("events", timer, seconds, {"kind": kind}, scale=0.001)


ARGUMENTS = (
    "world_size data_parallel_size tensor_model_parallel_size pipeline_model_parallel_size context_parallel_size "
    "expert_model_parallel_size expert_tensor_parallel_size "
    "global_batch_size micro_batch_size seq_length num_layers hidden_size ffn_hidden_size "
    "num_attention_heads kv_channels padded_vocab_size vocab_size untie_embeddings_and_output_weights num_experts "
    "moe_router_topk moe_ffn_hidden_size moe_shared_expert_intermediate_size moe_layer_freq first_k_dense_replace "
    "multi_latent_attention q_lora_rank kv_lora_rank qk_head_dim qk_pos_emb_head_dim v_head_dim mtp_num_layers "
    "log_interval variable_seq_lengths make_vocab_size_divisible_by"
).split()

# A command line that starts training, such as ``set -x`` echoes; commands of other tools have no --train-iters. The first
# launcher or script on the line is the one: (?>...) keeps a line of many from being read again for each. Scripts also
# echo its parts by their names: ``MODEL_ARGS: --seq-length 2048``.
LAUNCHER = (
    r"^(?:(?>.{0,200}?\b(?:torchrun|torch\.distributed\.(?:launch|run)|\w*(?:train|tune|sft)\w*\.py)(?=\s))"
    r"(?=.*\s--train-(?:iters|samples)[= ]\d)|[A-Z]\w*_ARGS ?[:=](?= *--))"
)
UNTIED = "untie_embeddings_and_output_weights"
# A setting of a number type or format that is on.
SET = "(?!None$|null$|False$).+"
# Sizes of layers without attention between all tokens, and the setting without which they mean nothing.
LINEAR = {"arguments:experimental_attention_variant": "gated_delta_net"}
HYBRID = {"arguments:is_hybrid_model": "True"}
LINEAR_SIZES = (
    "linear_attention_freq linear_key_head_dim linear_value_head_dim linear_num_key_heads linear_num_value_heads "
    "linear_conv_kernel_dim"
).split()
HYBRID_SIZES = (
    "hybrid_attention_ratio hybrid_mlp_ratio mamba_state_dim mamba_head_dim mamba_num_groups mamba_num_heads".split()
)
# Settings that change the work of a step and that no formula here counts, with the values that switch them on: layers in
# place of the attention or next to it, other models than a decoder, frozen parts.
COUNT = r"[1-9]\d*"
# MindSpeed prints the layers that do nothing as a set, or as its argument has them.
NOOP_LAYERS = r"\{?\d+(?:, ?\d+)*\}?"
NOT_COUNTED = {
    "experimental_attention_variant": "(?!None$|gated_delta_net$).+",
    "compress_ratios": r"\[.*[1-9].*\]",
    "hybrid_layer_pattern": r".*[D+].*",
    "spec": ".*(gdp|gated_delta_product)_stack_spec.*",
    "noop_layers": rf"(?!None$|{NOOP_LAYERS}$).+",
    "sliding_window_width": COUNT,
    "full_attention_interval": COUNT,
    "enable_dsa_indexer": "True",
    "enable_mhc": "True",
    "enable_mhc_connections": "True",
    "enable_hyper_connections": "True",
    "hybrid_attention_enabled": "True",  # Primus
    "lfm_layer_types": "(?!None$).+",
    "sink_sliding_window": COUNT,
    "sparse_mode": "[456]",  # MindSpeed: bands and prefixes
    "mamba_expand": r"[3-9]|\d\d+",
    "mtp_hybrid_override_pattern": "(?!None$).+",
    "kv_compress": "True",
    "share_kvstates": "True",
    "cla_share_factor": r"[2-9]|\d\d+",
    "num_zero_experts": COUNT,
    "mamba_d_ssm": COUNT,
    "heterogeneous_layers_config_path": "(?!None$).+",
    "heterogeneous_layers_config_encoded_json": "(?!None$).+",
    "retro_add_retriever": "True",
    "ict_head_size": COUNT,
    "vision_pretraining": "True",
    "mlp_type": "residual",  # Megatron-DeepSpeed: an MLP next to the experts
    "intermediate_size": COUNT,  # GPT-NeoX: two thirds of it with a gate
    "num_experts_switch": COUNT,
    "moe_num_experts": r"[2-9]|[1-9]\d+",  # GPT-NeoX
    "random_ltd": "True",
    "kd": "True",
    "mos": "True",
    "export_kd_teacher_load": "(?!None$).+",
    "perform_rl_step": "True",
    "soft_prompt_tuning": r"\{.*'enabled': True.*\}",
    "train_impl": "(?!None$|normal$).+",
    "sparse_attention": "(?!None$).+",
    "sparsity_config": r"\{.*:.*\}",
    "attention_config": r".*'(?!global|flash)\w+'.*",  # GPT-NeoX: what each layer has
    "vision_model_type": SET,
    "decoder_num_layers": COUNT,  # T5
    "decoder_seq_length": COUNT,
    "tokenizer_type": "Bert.*",
    "freeze_all_layers": "True",
    "freeze_LM": "True",
    "freeze_ViT": "True",
    "stage": "(?!None$|sft$|pt$|pretrain$).+",
}
# What those settings mean whose names do not say it.
WORDS = {"tokenizer_type": "encoder models", "vision_model_type": "vision encoders"}
# GPT-NeoX: a gate is an activation, before 2024 also a type of MLP. Without sizes of its own, the MLP is four times as
# wide as the model, and each head has its own keys. Source: EleutherAI/gpt-neox, megatron/model/transformer.py.
NO_GATE = {"arguments:activation": "gelu|relu|silu|swish|mish|softsign"}
NEOX = tuple(
    Choice(quantity, value, {**NO_GATE, **when})
    for when in (
        {"arguments:mlp_type": "regular", "arguments:intermediate_size": ABSENT},
        {"arguments:mlp_type": ABSENT, "arguments:intermediate_size": "None"},
        {"arguments:mlp_type": "regular", "arguments:intermediate_size": "None"},
    )
    for quantity, value in (("gated_linear_unit", "False"), ("ffn_of_hidden_size", "4"))
) + tuple(
    Choice("group_query_attention", "False", {"arguments:gpt_j_residual": ".+", "arguments:num_kv_heads": value})
    for value in ("None", ABSENT)
)
# Megatron-LM before core: no argument for a gate until 2022, none for key/value heads until 2023, and an MLP four times as
# wide as the model. Only a whole dump says so, and none of a fork with names of its own for these; nor one that lost the
# line of the gate, which came with others. The names are those of the dumps of 1.0, 2.0, 2.5 and 23.04.
BEFORE_CORE = _arguments(
    "world_size adlr_autoresume clip_grad eod_mask_loss finetune hysteresis init_method_std layernorm_epsilon "
    "lr_decay_style make_vocab_size_divisible_by num_workers openai_gelu reset_position_ids seed split weight_decay",
    PRESENT,
) | _arguments(
    "num_query_groups group_query_attention num_key_value_heads num_kv_heads num_attention_heads_kv n_head_kv "
    "attention_head_type deepspeed gpt_j_residual glu_activation activation mlp_type add_gate intermediate_size "
    "normalization fmoefy",
    ABSENT,
)
BEFORE_GATES = {
    **BEFORE_CORE,
    "arguments:tokenizer_type": "GPT2BPETokenizer",
    **_arguments(
        "swiglu squared_relu add_bias_linear untie_embeddings_and_output_weights use_rotary_position_embeddings "
        "rotary_percent position_embedding_type num_experts",
        ABSENT,
    ),
}
UNGATED = {**BEFORE_CORE, "arguments:swiglu": "False", "arguments:num_experts": "None"}
MEGATRON_BEFORE_CORE = (
    Choice("gated_linear_unit", "False", BEFORE_GATES, without="swiglu"),
    Choice("group_query_attention", "False", BEFORE_GATES, without="num_query_groups"),
    Choice("group_query_attention", "False", UNGATED, without="num_query_groups"),
    Choice("ffn_of_hidden_size", "4", {**BEFORE_GATES, "arguments:ffn_hidden_size": ABSENT}, without="ffn_hidden_size"),
    Choice("ffn_of_hidden_size", "4", {**BEFORE_GATES, "arguments:ffn_hidden_size": "None"}, without="ffn_hidden_size"),
)
# Experts that drop the tokens beyond their capacity. Megatron-LM drops where the factor is set; Megatron-DeepSpeed prints
# a factor for dense models too, and whether it drops.
POSITIVE = r"(?!0*\.?0*$)[\d.]+"
LISTED_EXPERTS = r"\[(?!1\]).*\]"
EXPERTS = {"arguments:num_experts": rf"[2-9]|[1-9]\d+|{LISTED_EXPERTS}"}
CAPACITY = (
    ("moe_expert_capacity_factor", POSITIVE, EXPERTS),
    ("moe_train_capacity_factor", r"0*\.\d*[1-9]\d*", EXPERTS),
    (
        "moe_train_capacity_factor",
        POSITIVE,
        {"arguments:num_experts": LISTED_EXPERTS, "arguments:moe_token_dropping": "True"},
    ),
)
# Settings that mask the attention by document and skip the rest. Megatron-LM's own reset_attention_mask computes the
# whole matrix; MindSpeed, which alone prints its algorithm of context parallelism, passes the lengths to the kernel.
PACKED = {
    name: {f"arguments:{name}": "True"}
    for name in ("use_packed_seq_params", "sft", "dataloader_inter_document_masking", "neat_pack")
} | {"reset_attention_mask": {"arguments:reset_attention_mask": "True", "arguments:context_parallel_algo": ".+"}}
# An MLP of three matrices, by the names of its activation.
GATED = {
    **dict.fromkeys(("swiglu", "geglu", "quick_geglu", "add_gate"), "True"),  # add_gate: AscendSpeed
    "glu_activation": "geglu|liglu|reglu|swiglu",  # BigScience
    "activation": "geglu|swiglu|reglu|glu",  # GPT-NeoX
    "mlp_type": "llama",
}
# Megatron's FSDP shares out what ZeRO does.
SHARDED = {"optim_grads_params": "3", "optim_grads": "2", "optim": "1"}
# Settings that leave to the framework what is recomputed, or choose otherwise than by a number of layers.
SCHEMES = {
    "adaptive_recompute_device_size": r"\d+",
    "auto_recompute_device_size": r"\d+",
    "recompute_layer_ids": "(?!None$).+",
    "reduce_recompute_for_last_chunk": "True",
    "checkpoint_policy": "(?!full$|None$).+",
}
LAUNCHED = (
    "tensor_model_parallel_size pipeline_model_parallel_size context_parallel_size expert_model_parallel_size "
    "global_batch_size micro_batch_size seq_length num_layers hidden_size ffn_hidden_size num_attention_heads kv_channels "
    "vocab_size num_experts moe_router_topk moe_ffn_hidden_size moe_shared_expert_intermediate_size log_interval "
    "make_vocab_size_divisible_by recompute_num_layers num_layers_per_virtual_pipeline_stage"
).split()


def _launched(name: str, before: str, value: str) -> SettingSentence:
    """The last such argument of the command line, as argparse takes it; a shell variable in its place gives nothing.

    The name is one of its own, because dialects are known by the names in the argument dump.
    """
    marker = (before or value).partition("[")[0]
    return SettingSentence("launcher", marker, rf"{LAUNCHER}.*\s{before}(?P<launched_{name}>{value})(?=\s|$)")


FORMAT = LogFormat(
    name="megatron",
    title="Megatron-LM and its descendants (ModelLink, MindSpeed-LLM, AscendSpeed, Megatron-DeepSpeed)",
    marker=("elapsed time per iteration", "elapsed_time_per_iteration_ms", "| consumed samples", "| iteration time: "),
    head=(
        r"(?:samples/sec:\s*(?P<logged_samples_per_second>[\d.]+)\s*\|\s*)?"
        r"\biteration(?:\s+(?:=\s*)?|=\s*|:\s+)(?P<step>\d+)(?:/\s*(?P<train_steps>\d+))?\s*\|"
    ),
    pair=r"([^|:=]*[^|:=\s])\s*(?:[:=]\s*([^|]*?))?\s*\|",
    labels={
        "elapsed time per iteration (ms)": Reading(
            "elapsed_time_per_iteration_ms", suffix=r"/[\d.]+"
        ),  # Primus: now/mean
        "elapsed time per iteration (s)": Reading("elapsed_time_per_iteration_ms", scale=1000),  # BigScience, JSC
        "elapsed_time_per_iteration_ms": Reading("elapsed_time_per_iteration_ms"),  # Argonne
        "iteration time": Reading(
            "elapsed_time_per_iteration_ms", scale=1000, suffix=r" s(?: samples/sec: [\d.]+)?"
        ),  # llm-jp's Megatron-DeepSpeed: two pairs in one
        "global batch size": Reading("global_batch_size"),
        "gloabl batch size": Reading("global_batch_size"),  # printed so in the AscendSpeed README
        "global_batch_size": Reading("global_batch_size"),
        "actual seqlen": Reading("seq_length"),
        "actual_seqlen": Reading("seq_length"),
        # With "actual seqlen" on the line, random-LTD may have shortened it further: the label that comes first counts.
        "curriculum seqlen": Reading("seq_length"),
        "consumed samples": Reading("consumed_samples"),
        "consumed_samples": Reading("consumed_samples"),
        "consumed tokens": Reading("consumed_tokens", multiples=True),  # swiss-ai: 1.258B
        "consumed_tokens": Reading("consumed_tokens"),
        "lm loss": Reading("loss"),
        "lm-loss": Reading("loss"),  # Megatron-DeepSpeed
        "lm_loss": Reading("loss"),  # GPT-NeoX
        "loss": Reading("loss"),  # MindSpeed-MM
        "load_balancing_loss": Reading("load_balancing_loss"),
        "seq_load_balancing_loss": Reading("load_balancing_loss"),
        "global_load_balancing_loss": Reading("load_balancing_loss"),
        "moe loss": Reading("load_balancing_loss"),  # Megatron-DeepSpeed
        "aux loss": Reading("load_balancing_loss"),  # MindSpeed-LLM FSDP2
        "mtp_1 loss": Reading("mtp_loss"),
        "mtp loss": Reading("mtp_loss"),
        "learning rate": Reading("learning_rate"),
        "learning_rate": Reading("learning_rate"),
        "loss scale": Reading("loss_scale"),
        "loss_scale": Reading("loss_scale"),
        "grad norm": Reading("grad_norm"),
        "grad_norm": Reading("grad_norm"),
        "params norm": Reading("params_norm"),
        "num zeros": Reading("num_zeros"),
        "number of skipped iterations": Reading("skipped_iterations"),
        "number_of_skipped_iterations": Reading("skipped_iterations"),
        "number of nan iterations": Reading("nan_iterations"),
        "number_of_nan_iterations": Reading("nan_iterations"),
        "samples per second": Reading("logged_samples_per_second"),
        "samples_per_second": Reading("logged_samples_per_second"),
        "throughput(samples/s)": Reading("logged_samples_per_second"),  # MindSpeed-LLM FSDP2 trainer
        "tokens/s": Reading("logged_tokens_per_second"),  # MindSpeed-LLM FSDP2: all devices
        "tokens per second": Reading("logged_tokens_per_second"),
        "rate (tokens/sec)": Reading("logged_tokens_per_second"),  # epfLLM: all devices
        "tokens per gpu per second (tgs)": Reading("logged_tokens_per_second_per_device"),
        "tokens_per_gpu_per_second_tgs": Reading("logged_tokens_per_second_per_device"),
        "tokens per second per device": Reading("logged_tokens_per_second_per_device"),
        "tokens/sec/gpu": Reading("logged_tokens_per_second_per_device"),  # swiss-ai
        "tokens-per-second-per-gpu": Reading("logged_tokens_per_second_per_device"),  # bigcode
        "tokens per GPU (tokens/s/GPU)": Reading("logged_tokens_per_second_per_device", suffix=r"/[\d.]+"),
        "tokens/s/GPU inst/harmonic mean": Reading("logged_tokens_per_second_per_device", suffix=r"/[\d.]+"),
        "tokens/GPU/s": Reading("logged_tokens_per_second_per_device"),  # ROCm
        "toks/s": Reading("logged_tokens_per_second"),
        "toks/s/gpu": Reading("logged_tokens_per_second_per_device"),
        "throughput per GPU (TFLOP/s/GPU)": Reading("logged_tflops_per_second_per_device", suffix=r"/[\d.]+"),
        "theoretical throughput per NPU (TFLOP/s/NPU)": Reading("logged_tflops_per_second_per_device"),
        "TFLOPs": Reading("logged_tflops_per_second_per_device"),
        "approx flops per GPU": Reading(
            "logged_tflops_per_second_per_device", scale=1e-12, suffix="FLOPS", multiples=True
        ),  # GPT-NeoX
        "compute per GPU (TFLOP/s/GPU)": Reading(
            "logged_tflops_per_second_per_device", suffix=r" \(avg [\d.]+\)"
        ),  # Primus 26.5
        "[LM]TFLOPs": Reading("logged_tflops_per_second_per_device"),  # Argonne; [DS] is another count of the same
        "actual throughput per NPU (TFLOP/s/NPU)": Reading("logged_measured_tflops_per_second_per_device"),
        "actual throughput per NPU with recompute (TFLOP/s/NPU)": Reading(
            "logged_measured_hardware_tflops_per_second_per_device"
        ),
        "mfu": Reading("logged_mfu", scale=0.01, suffix="%"),  # MindSpeed-LLM FSDP2: percent
        "MFU": Reading("logged_mfu", scale=0.01, suffix="%"),
        "HFU": Reading("logged_hfu", scale=0.01, suffix="%"),
        "core attn ratio (%)": Reading("core_attention_ratio", scale=0.01),
        "energy per GPU (J/iter/GPU)": Reading("energy_per_device_joules"),
        "power per GPU (W/GPU)": Reading("power_per_device_watts"),
        "max_memory_allocated(GB)": Reading("max_memory_allocated_bytes", scale=GIB),
        "max_memory_reserved(GB)": Reading("max_memory_reserved_bytes", scale=GIB),
        "mem-reserved (GB)": Reading("max_memory_reserved_bytes", scale=1e9),  # bigcode
        "memory(GiB)": Reading("max_memory_reserved_bytes", scale=GIB),  # Megatron-SWIFT
        "elapsed time": Reading("runtime_seconds"),  # Megatron-SWIFT: 1h 2m 3s
    },
    ignored=frozenset(
        {
            "decoupled learning rate",
            "consumed bins",
            "skipped samples",
            "random ltd reserved length",
            "reserve_length",
            "max attention logit",
            "sop loss",
            "nsp loss",
            "z_loss",
            "indexer loss",
            "tokens per sample",
            "generator loss",
            "discriminator loss",
            "eta",
            "remaining time",
            # Of the generation and of the update in reinforcement learning; toks/s is that of the whole step.
            "compute_toks/s",
            "compute_toks/s/gpu",
            "actual_toks/s",
            "actual_toks/s/gpu",
            "packing_eff",
            "[DS]TFLOPs",
            "cpu_used_memory(GB)",
            "cpu_available_memory(GB)",
            "cpu_memory_usage(%)",
            "mem usages",
            "fix-router or fix-sub-seq-length is set, current loss is not reliable, only for test",
        }
    ),
    ignored_patterns=(
        r"mtp_\d+ loss",
        r"(?:rank-\d+ )?(?:hip|rocm)(?: max)? mem usage.*",  # Primus
    ),
    foreign=r"\[Rank \d+\] \(|\(min, max\) time|\btime \(ms\)",
    # DeepSpeed's pipeline engine reports the step before Megatron does.
    companions=(
        Companion(
            "iter time (s): ",
            rf"steps: \d+ loss: .*iter time \(s\): .*samples/sec: (?P<logged_samples_per_second>{NUMBER})",
            belongs_to="next",
        ),
        # BigScience, 2021, after the timers of the step.
        Companion(
            "Effective Tera Flops per GPU: ",
            rf"Effective Tera Flops per GPU: (?P<logged_tflops_per_second_per_device>{NUMBER}) and total",
        ),
        # Megatron-Bridge: its first rank prints the rate of the interval that the last rank prints next.
        Companion(
            "Step Time : ",
            r"\bStep Time : \S+ GPU utilization: (?P<logged_tflops_per_second_per_device>[\d.]+)(?:MODEL_)?TFLOP/s/GPU",
            belongs_to="next",
        ),
        # Megatron-DeepSpeed leaves the update to DeepSpeed and prints 0 skipped iterations whatever it does.
        SKIPPED_UPDATES,
    ),
    records=(
        # DeepSpeed's launcher, on the host that starts the job.
        event("process starts", "] [runner.py:", r"\[runner\.py:\d+:main\] cmd = "),
        event("process starts", "is initialized", r"\[after (?:megatron|ascendspeed) is initialized\.?\]"),
        # The parts of the start-up, each after it is done: of Megatron's timers the most over the ranks.
        event("initialized", "time to initialize", r"time to initialize megatron \(seconds\): (?P<seconds>[\d.]+)"),
        _set_up("model setup", "model-and-optimizer-setup"),
        _set_up("data setup", "train/valid/test-data-iterators-setup"),
        event("training starts", "before the start of training step", r"\[before the start of training step\]"),
        event("training ends", "after training is done", r"\[after training is done\]"),
        event("process exits", "[exiting program", r"\[exiting program(?:[^\]]* at iteration (?P<step>\d+))?"),
        event(
            "checkpoint loaded",
            "successfully loaded checkpoint",
            r"loaded checkpoint from .* at iteration (?P<step>\d+)",
        ),
        event("save starts", "saving checkpoint at iteration", r"saving checkpoint at iteration\s+(?P<step>\d+)"),
        event("save ends", "successfully saved checkpoint", r"saved checkpoint (?:at|from) iteration\s+(?P<step>\d+)"),
        # BigScience names the set as its loader does: ``valid loss at iteration``.
        evaluation("loss at iteration", rf"(?P<dataset>valid(?:ation)?\S*) loss at iteration (?P<step>\d+){EVALUATED}"),
        evaluation(
            "loss at iteration", rf"loss at iteration (?P<step>\d+) on (?:.* from )?(?P<dataset>\w+ set){EVALUATED}"
        ),
        # GPT-NeoX
        evaluation(
            "results at iteration",
            rf"(?P<dataset>validation|test) results at iteration (?P<step>\d+) \| lm_loss value: (?P<loss>{NUMBER})",
        ),
        evaluation("loss at the end of training", rf"at the end of training for (?P<dataset>\w+ data){EVALUATED}"),
        # MindSpeed-MM, FSDP2
        evaluation(
            "** validation after",
            rf"\*\* validation after iteration (?P<step>\d+) \*\* .*\bvalidation loss: (?P<loss>{NUMBER})",
            "validation",
        ),
        Record(
            "memory",
            "memory (MB) |",
            r"(?:\[Rank (?P<rank>\d+)\] \()?after (?P<step>\d+) iterations\)? memory \(MB\) \| "
            + _memory("allocated_bytes", "max_allocated_bytes", "reserved_bytes", "max_reserved_bytes"),
            fixed={"kind": "measured"},
            scale=MIB,
            every=True,
        ),
        Record(
            "memory",
            "Theoretical memory footprints",
            r"weight and optimizer=(?P<weight_and_optimizer_bytes>[\d.]+) MB"
            r"(?:, activation=(?P<activation_bytes>[\d.]+) MB, total=(?P<total_bytes>[\d.]+) MB)?",
            fixed={"kind": "theoretical"},
            scale=MIB,
        ),
        Record("timers", "..: (", r"(?P<name>[\w/-]+(?: [\w/-]+)*) \.+: \((?P<min_ms>[\d.]+), (?P<max_ms>[\d.]+)\)"),
        Record("timers", "time (ms) |", r"\| (?P<name>[a-z][\w/ -]*): (?P<max_ms>[\d.]+)", every=True),
    ),
    blocks=(
        Block(
            kind="arguments",
            marker="rguments ----------",
            start=r"-{10,} (?:[A-Z][\w.-]* )?[Aa]rguments -{10,}",
            end=r"-{10,} end of (?:[A-Z][\w.-]* )?[Aa]rguments -{10,}",
            # 48 letters leave no room for dots. A run of dots is searched once.
            entry=r"^\s{2,3}(\w+) (?:\.+ | )(.*?)(?:(?<!\.)\.{5,}+(?:updated|default))?$",
        ),
        Block(
            kind="deepspeed",
            marker="json = {",
            start=r"\bjson = \{",
            end=r"(?:^|: )\}\s*$",
            entry=r'"(\w+)": (\{|[^,]*)',
            nested=True,
            max_lines=300,
        ),
    ),
    sentences=(
        # Printed where tokens skip layers (random-LTD): so many of a sequence stay.
        *(
            SettingSentence("dropping", label, rf"{label}:\s*(?P<reserved>\d+)", first=True)
            for label in ("reserve_length", "random ltd reserved length")
        ),
        SettingSentence(
            "parameters",
            "number of parameters on",
            r"number of parameters on .*model parallel rank \(0, 0\)(?:: |=)(?P<of_rank>\d+)",
        ),
        SettingSentence("world", "using world size", r"(?<!\(\) )using world size: (?P<world_size>\d+)"),
        # GPT-NeoX prints it for the launcher first, which is alone.
        SettingSentence("world", "NeoXArgs", r"\(\) using world size: (?P<world_size>\d+)", last=True),
        SettingSentence("world", "using world size", r"data-parallel[- ]size: (?P<data_parallel_size>\d+)"),
        SettingSentence("world", "using world size", r" context-parallel size: (?P<context_parallel_size>\d+)"),
        SettingSentence(
            "world", "using world size", r"(?:None|[ ,])tensor-model-parallel size: (?P<tensor_model_parallel_size>\d+)"
        ),
        SettingSentence(
            "world",
            "using world size",
            r"and (?:intra-layer-)?model-parallel size: (?P<tensor_model_parallel_size>\d+)",
        ),
        SettingSentence(
            "world", "using world size", r"[ ,]pipeline-model-parallel size: (?P<pipeline_model_parallel_size>\d+)"
        ),
        *(
            SettingSentence(
                "world",
                f"initialized {kind} model",
                rf"> initialized {kind} model parallel with size (?P<{kind}_model_parallel_size>\d+)",
            )
            for kind in ("tensor", "pipeline")
        ),
        SettingSentence("dtype", " for parameters ...", r"using (?P<params_dtype>torch\.\w+) for parameters \.\.\."),
        # Primus: on every line of its logger.
        SettingSentence("logger", "[rank-", r"\[rank-\d+/(?P<world_size>\d+)\]", first=True),
        # Whose dump of arguments it is.
        SettingSentence("title", "rguments ----------", r"-{10,} (?P<modellink_arguments>ModelLink) Arguments -{10,}"),
        SettingSentence(
            "title", "rguments ----------", r"-{10,} (?P<mindspeed_llm_arguments>MindSpeed-LLM) Arguments -"
        ),
        SettingSentence(
            "vocab",
            "padded vocab",
            r"padded vocab \(size: (?P<vocab_size>\d+)\) with \d+ dummy tokens \(new size: (?P<padded_vocab_size>\d+)\)",
        ),
        *(
            SettingSentence("engine", "print]", rf":print\]\s+{name} (?:\.+ )?\s?(?P<{name}>\d+)\s*$")
            for name in ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
        ),
        SettingSentence("microbatches", "setting number of micro", r"to constant (?P<num_microbatches>\d+)"),
        SettingSentence(
            "init", "to initialize ", r"time (?:took )?to initialize (?P<framework>megatron|ascendspeed|mindspeed)"
        ),
        *(_launched(name, f"--{name.replace('_', '-')}[= ]", r"\d+") for name in LAUNCHED),
        *(
            _launched(name, "", f"--{name.replace('_', '-')}")
            for name in ("bf16", "fp16", "swiglu", "geglu", "quick_geglu", UNTIED)
        ),
        *NEMO_SENTENCES,
        _launched("recompute_granularity", "--recompute-granularity[= ]", r"\w+"),
        _launched("recompute_activations", "", "--recompute-activations"),
        _launched("recompute_method", "--recompute-method[= ]", r"\w+"),
        _launched("recompute_modules", "--recompute-modules[= ]", r"\w+(?: \w+)*"),
        _launched("fp8_format", "--fp8-format[= ]", r"\w+"),
        _launched("fp4_format", "--fp4-format[= ]", r"\w+"),
        _launched("num_nodes", "--nnodes[= ]", r"\d+"),
        _launched("devices_per_node", "--nproc[-_]per[-_]node[= ]", r"\d+"),
    ),
    names=(
        # Of a model with images ``seq_length`` is that of the image, as its encoder sees it.
        Name("seq_length", "arguments:decoder_seq_length", when={"arguments:vision_model_type": SET}),
        *(Name(name, f"arguments:{name}") for name in ARGUMENTS),
        # Without a batch for it there is no evaluation.
        Name("evaluation_interval", "arguments:eval_interval", when={"arguments:eval_iters": "(?!0$).+"}),
        Name("evaluation_interval", "arguments:eval_interval", when={"arguments:eval_iters": ABSENT}),
        Name(
            "model_parameters",
            "parameters:of_rank",
            when={"arguments:tensor_model_parallel_size": "1", "arguments:pipeline_model_parallel_size": "1"},
        ),
        # Megatron prints 1 where grouped attention is off; only its core line (with context parallelism) then means
        # that every head has its own keys.
        Name("num_query_groups", "arguments:num_query_groups", when={"arguments:group_query_attention": "True"}),
        Name(
            "group_query_attention", "arguments:group_query_attention", when={"arguments:context_parallel_size": r"\d+"}
        ),
        Name("num_query_groups", "arguments:num_key_value_heads"),  # Megatron-DeepSpeed
        Name("num_query_groups", "arguments:num_kv_heads"),  # GPT-NeoX
        Name("tensor_model_parallel_size", "arguments:model_parallel_size"),  # v1.0
        Name("batch_size_per_model_replica", "arguments:batch_size"),  # v1.0
        Name(
            "pipeline_model_parallel_size",
            "arguments:pipe_parallel_size",
            when={"arguments:pipe_parallel_size": r"[1-9]\d*"},
        ),
        Name("global_batch_size", "arguments:train_batch_size"),  # GPT-NeoX
        Name("micro_batch_size", "arguments:train_micro_batch_size_per_gpu"),
        Name("moe_router_topk", "arguments:topk", when={"arguments:num_experts": LISTED_EXPERTS}),  # Megatron-DeepSpeed
        # Megatron-DeepSpeed. It counts layers from 1: one fewer where the interval does not divide them.
        Name("moe_layer_freq", "arguments:expert_interval", when={"arguments:num_experts": LISTED_EXPERTS}),
        Name("rampup_batch_size", "arguments:rampup_batch_size"),
        Name("iterations_to_skip", "arguments:iterations_to_skip"),
        Name("virtual_pipeline_model_parallel_size", "arguments:virtual_pipeline_model_parallel_size"),
        Name("zero_stage", "arguments:zero_stage", when={"arguments:deepspeed": "True"}),  # Megatron-DeepSpeed
        Name("sequence_parallel", "arguments:sequence_parallel"),
        Name("gated_linear_unit", "arguments:swiglu", when={"arguments:swiglu": "True"}),
        Name("multi_latent_attention", "arguments:multi_head_latent_attention"),  # MindSpeed-LLM
        Name("num_shared_experts", "arguments:n_shared_experts"),
        Name(
            "mtp_num_layers", "arguments:num_nextn_predict_layers", when={"arguments:num_nextn_predict_layers": COUNT}
        ),
        Name("qk_head_dim", "arguments:qk_nope_head_dim"),
        Name("qk_pos_emb_head_dim", "arguments:qk_rope_head_dim"),
        Name("moe_ffn_hidden_size", "arguments:moe_intermediate_size"),
        Name("recompute_method", "arguments:recompute_method"),
        Name("recompute_num_layers", "arguments:recompute_num_layers"),
        Name("recompute_method", "arguments:activations_checkpoint_method"),  # 2021 to 2022
        Name("recompute_num_layers", "arguments:activations_checkpoint_num_layers"),
        Name("recompute_modules", "arguments:recompute_modules"),
        Name("recompute_per_stage", "arguments:enable_recompute_layers_per_pp_rank"),  # MindSpeed
        *(
            Name("recompute_scheme", f"arguments:{name}", when={f"arguments:{name}": value})
            for name, value in SCHEMES.items()
        ),
        Name("first_stage_layers", "arguments:decoder_first_pipeline_num_layers"),
        Name("last_stage_layers", "arguments:decoder_last_pipeline_num_layers"),
        Name("pipeline_layout", "arguments:pipeline_model_parallel_layout"),
        *(Name(name, f"arguments:{name}", when=LINEAR) for name in LINEAR_SIZES),
        *(Name("hybrid_layer_pattern", f"arguments:hybrid_{name}_pattern") for name in ("layer", "override")),
        *(Name(name, f"arguments:{name}", when=HYBRID) for name in HYBRID_SIZES),
        Name(
            "attention_output_gate", "arguments:attention_output_gate", when={"arguments:attention_output_gate": "True"}
        ),
        Name("moe_latent_size", "arguments:moe_latent_size"),
        *(Name("packed_documents", f"arguments:{name}", when=when) for name, when in PACKED.items()),
        Name("noop_layers", "arguments:noop_layers", when={"arguments:noop_layers": NOOP_LAYERS}),
        *(
            Name("moe_capacity_factor", f"arguments:{name}", when={f"arguments:{name}": value, **when})
            for name, value, when in CAPACITY
        ),
        Name("window_size", "arguments:window_size"),
        # MindSpeed-LLM: a window in each layer, or in every other one from the first.
        *(
            Name("sliding_window", f"arguments:{name}", when={f"arguments:{name}": COUNT})
            for name in ("sliding_window", "interleave_sliding_window")
        ),
        Name("window_attn_skip_freq", "arguments:window_attn_skip_freq"),
        *(
            Name(name, f"world:{name}")
            for name in (
                "world_size",
                "data_parallel_size",
                "context_parallel_size",
                "tensor_model_parallel_size",
                "pipeline_model_parallel_size",
            )
        ),
        Name("world_size", "logger:world_size"),
        *yaml_names(),
        Name("padded_vocab_size", "vocab:padded_vocab_size"),
        Name("vocab_size", "vocab:vocab_size"),
        Name("num_microbatches", "microbatches:num_microbatches"),
        Name("global_batch_size", "deepspeed:train_batch_size"),
        Name("micro_batch_size", "deepspeed:train_micro_batch_size_per_gpu"),
        Name("global_batch_size", "engine:train_batch_size"),
        Name("micro_batch_size", "engine:train_micro_batch_size_per_gpu"),
        Name("num_microbatches", "engine:gradient_accumulation_steps"),
        *(
            Name(name, f"launcher:launched_{name}")
            for name in (*LAUNCHED, "num_nodes", "devices_per_node", "recompute_method", "recompute_modules")
        ),
    ),
    choices=(
        # MindSpeed-LLM, and ms-swift's own.
        *algorithm_choices("arguments:stage"),
        *algorithm_choices("arguments:rlhf_type"),
        Choice("precision", "fp4", {"arguments:fp4": SET}),
        Choice("precision", "fp8", {"arguments:fp8": "hybrid|e4m3"}),
        Choice("precision", "bf16", {"arguments:precision": "bfloat16"}),  # GPT-NeoX
        Choice("precision", "fp16", {"arguments:precision": "fp16"}),
        Choice("precision", "fp32", {"arguments:precision": "fp32"}),
        Choice("precision", "bf16", {"arguments:bf16": "True"}),
        Choice("precision", "fp16", {"arguments:fp16": "True"}),
        Choice("precision", "fp32", {"arguments:bf16": "False", "arguments:fp16": "False"}),
        Choice("precision", "fp32", {"arguments:fp16": "False"}),
        Choice("precision", "bf16", {"arguments:bf16": r"\{.*'enabled': True.*\}"}),  # GPT-NeoX before it had a name
        Choice("precision", "fp16", {"arguments:fp16": r"\{.*'enabled': True.*\}"}),
        # Where the arguments are not in the log.
        *(
            Choice("precision", name, {"dtype:params_dtype": rf"torch\.(?:{dtype})"})
            for name, dtype in (("bf16", "bfloat16"), ("fp16", "float16|half"), ("fp32", "float32|float"))
        ),
        *(
            Choice("zero_stage", stage, {f"arguments:{name}": "True", "arguments:data_parallel_sharding_strategy": how})
            for name in ("use_megatron_fsdp", "use_custom_fsdp")
            for how, stage in SHARDED.items()
        ),
        Choice("zero_stage", "3", {"arguments:use_torch_fsdp2": "True"}),
        # Megatron-LM's distributed optimizer shares out the optimizer state alone: ZeRO-1.
        Choice("zero_stage", "1", {"arguments:use_distributed_optimizer": "True"}),
        Choice("zero_stage", "0", {"arguments:use_distributed_optimizer": "False"}),
        *(Choice("gated_linear_unit", "True", {f"arguments:{name}": value}) for name, value in GATED.items()),
        # AscendSpeed, which has the fusion, gates by an argument of its own, or by the script of a model.
        Choice("gated_linear_unit", "False", {"arguments:swiglu": "False", "arguments:mlp_layer_fusion": ABSENT}),
        Choice("gated_linear_unit", "False", {"arguments:swiglu": "False", "arguments:add_gate": "False"}),
        *NEOX,
        # BigScience, before Megatron-DeepSpeed had grouped attention.
        Choice("gated_linear_unit", "False", {"arguments:glu_activation": "None"}),
        Choice(
            "group_query_attention",
            "False",
            {"arguments:glu_activation": ".+", "arguments:num_key_value_heads": ABSENT},
        ),
        # Where no other argument of a fork groups them, every head has its own keys.
        Choice(
            "group_query_attention",
            "False",
            {
                "arguments:group_query_attention": "False",
                **_arguments("num_key_value_heads num_kv_heads multi_query_attention multi_query_group_num", ABSENT),
            },
        ),
        *MEGATRON_BEFORE_CORE,
        Choice("flash_attention", "True", {"arguments:use_flash_attn": "True"}),
        # Transformer Engine chooses by itself; Megatron's own attention keeps the matrix.
        Choice(
            "flash_attention", "False", {"arguments:use_flash_attn": "False", "arguments:transformer_impl": "local"}
        ),
        Choice("dropout", "True", {"arguments:hidden_dropout": r"0*\.0*[1-9]\d*"}),
        Choice("dropout", "True", {"arguments:attention_dropout": r"0*\.0*[1-9]\d*"}),
        Choice(
            "dropout", "False", {"arguments:hidden_dropout": r"0(\.0*)?", "arguments:attention_dropout": r"0(\.0*)?"}
        ),
        Choice("recompute", "full", {"arguments:checkpoint_activations": "True"}),
        Choice("recompute", "full", {"arguments:recompute_granularity": "full"}),
        Choice("recompute", "selective", {"arguments:recompute_granularity": "selective"}),
        Choice("recompute", "selective", {"arguments:recompute_activations": "True"}),
        Choice("recompute", "full", {"arguments:activations_checkpoint_method": "uniform|block"}),
        Choice("recompute", "none", {"arguments:activations_checkpoint_method": "None"}),
        # Older than the list of modules; it sets both.
        Choice("recompute_modules", "core_attn moe", {"arguments:moe_layer_recompute": "True"}),
        Choice("recompute", "selective", {"arguments:moe_layer_recompute": "True"}),
        Choice("recompute", "none", {"arguments:recompute_granularity": "None"}),
        Choice(
            "pipeline_layout", "embedding as a layer", {"arguments:account_for_embedding_in_pipeline_split": "True"}
        ),
        Choice("pipeline_layout", "loss as a layer", {"arguments:account_for_loss_in_pipeline_split": "True"}),
        Choice("recompute", "none", {"arguments:checkpoint_activations": "False"}),
        *(
            Choice("uncounted", WORDS.get(name, name), {f"arguments:{name}": value})
            for name, value in NOT_COUNTED.items()
        ),
        Choice("window_attn_skip_freq", "2", {"arguments:interleave_sliding_window": COUNT}),
        Choice("uncounted", "random_ltd", {"dropping:reserved": COUNT}),
        # Core 0.8 and 0.9 do not print the sizes of state spaces; later versions do, and no embedding stage.
        Choice("uncounted", "spec", {"arguments:spec": ".*mamba.*", "arguments:standalone_embedding_stage": ".+"}),
        Choice("lora", "True", {"arguments:lora_target_modules": r"\[.+\]"}),
        *NEMO_CHOICES,
        Choice("precision", "fp4", {"launcher:launched_fp4_format": SET}),
        Choice("precision", "fp8", {"launcher:launched_fp8_format": SET}),
        Choice("precision", "bf16", {"launcher:launched_bf16": "--bf16"}),
        Choice("precision", "fp16", {"launcher:launched_fp16": "--fp16"}),
        *(
            Choice("gated_linear_unit", "True", {f"launcher:launched_{name}": ".+"})
            for name in ("swiglu", "geglu", "quick_geglu")
        ),
        Choice(UNTIED, "True", {f"launcher:launched_{UNTIED}": ".+"}),
        Choice("recompute", "full", {"launcher:launched_recompute_granularity": "full"}),
        Choice("recompute", "selective", {"launcher:launched_recompute_granularity": "selective"}),
        Choice("recompute", "selective", {"launcher:launched_recompute_activations": ".+"}),
    ),
    samples=(
        Sample(
            " iteration        1/    1000 | elapsed time per iteration (ms): 121899.8 | lm loss: 1.252221E+01 |\n"
            "Effective Tera Flops per GPU: 41.94 and total parameters 52.005 B",
            {
                "step": 1,
                "train_steps": 1000,
                "elapsed_time_per_iteration_ms": 121899.8,
                "loss": 12.52221,
                "logged_tflops_per_second_per_device": 41.94,
            },
        ),
        Sample(
            "Step Time : 7.04s GPU utilization: 24.7MODEL_TFLOP/s/GPU\n"
            " iteration        1/      10 | elapsed time per iteration (ms): 7037.3 | lm loss: 6.7 | mfu: 45.75%",
            {
                "step": 1,
                "train_steps": 10,
                "elapsed_time_per_iteration_ms": 7037.3,
                "loss": 6.7,
                "logged_tflops_per_second_per_device": 24.7,
                "logged_mfu": 0.4575,
            },
        ),
        Sample(
            " iteration      120/    5000 | consumed samples:        30720 | elapsed time per iteration (ms): 10000.0 | "
            "learning rate: 1.235E-04 | global batch size:   256 | lm loss: 2.345678E+00 | loss scale: 1.0 | grad norm: 0.876 | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |",
            {
                "step": 120,
                "train_steps": 5000,
                "consumed_samples": 30720,
                "elapsed_time_per_iteration_ms": 10000.0,
                "learning_rate": 1.235e-4,
                "global_batch_size": 256,
                "loss": 2.345678,
                "loss_scale": 1.0,
                "grad_norm": 0.876,
                "skipped_iterations": 0,
                "nan_iterations": 0,
            },
        ),
        Sample(
            "steps: 2 loss: 12.5004 iter time (s): 145.206 samples/sec: 7.052\n"
            + SKIPPED_UPDATE
            + " iteration        2/    1000 | elapsed time per iteration (ms): 145207.0 | learning rate: 3.750E-05 | "
            "lm loss: 1.250041E+01 | loss scale: 1024.0 | number of skipped iterations:   0 | number of nan iterations:   0 |",
            {
                "step": 2,
                "train_steps": 1000,
                "elapsed_time_per_iteration_ms": 145207.0,
                "learning_rate": 3.75e-5,
                "loss": 12.50041,
                "loss_scale": 1024.0,
                "skipped_iterations": 1,
                "nan_iterations": 0,
                "logged_samples_per_second": 7.052,
            },
        ),
        Sample(
            "[default7]: iteration    85376/  115311 | consumed samples:    158692272 | consumed tokens: 325001773056 | "
            "elapsed time per iteration (s): 105.22 | learning rate: 4.1E-05 | global batch size:  2048 | lm loss: 2.1E+00 | "
            "grad norm: nan | num zeros: 0.0 | number of skipped iterations:   0 | number of nan iterations:   1 | "
            "samples per second: 19.463 | TFLOPs: 149.02 |",
            {
                "step": 85376,
                "train_steps": 115311,
                "consumed_samples": 158692272,
                "consumed_tokens": 325001773056,
                "elapsed_time_per_iteration_ms": 105220.0,
                "learning_rate": 4.1e-5,
                "global_batch_size": 2048,
                "loss": 2.1,
                "grad_norm": float("nan"),
                "num_zeros": 0.0,
                "skipped_iterations": 0,
                "nan_iterations": 1,
                "logged_samples_per_second": 19.463,
                "logged_tflops_per_second_per_device": 149.02,
            },
        ),
        Sample(
            " [2026-02-06 20:55:02.918469] iteration        7/     300 | consumed samples:         1792 | "
            "elapsed time per iteration (ms): 9000.5 | theoretical throughput per NPU (TFLOP/s/NPU): 180.5 | "
            "actual throughput per NPU (TFLOP/s/NPU): 171.0 | actual throughput per NPU with recompute (TFLOP/s/NPU): 220.1 | "
            "core attn ratio (%): 50.0 | learning rate: 1.000000E-05 | global batch size:   256 | loss scale: 1.0 | "
            "number of skipped iterations:   1 | number of nan iterations:   0 |",
            {
                "timestamp": "2026-02-06T20:55:02.918469",
                "step": 7,
                "train_steps": 300,
                "consumed_samples": 1792,
                "elapsed_time_per_iteration_ms": 9000.5,
                "logged_tflops_per_second_per_device": 180.5,
                "logged_measured_tflops_per_second_per_device": 171.0,
                "logged_measured_hardware_tflops_per_second_per_device": 220.1,
                "core_attention_ratio": 0.5,
                "learning_rate": 1e-5,
                "global_batch_size": 256,
                "loss_scale": 1.0,
                "skipped_iterations": 1,
                "nan_iterations": 0,
            },
        ),
    ),
)
