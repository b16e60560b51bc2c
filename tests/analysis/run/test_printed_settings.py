"""Settings that a trainer prints in a list of its own are facts of the run, with their line."""

import pytest
from helpers import arguments_dump, megatron_line

from analysis.present.words import describe_origin
from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions
from logparse.language import speaking

DICTS = "".join(
    f"{{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': {step / 100}, 'train_runtime': {2.0 * step:.1f}}}\n"
    f" {step}%|█         | {step}/100 [00:{2 * step:02}<03:00,  2.00s/it]\n"
    for step in range(1, 21)
)
SWIFT = "".join(
    f"{{'loss': '2.5', 'grad_norm': '1', 'learning_rate': '1e-05', 'global_step/max_steps': '{step}/100', "
    f"'elapsed_time': '{2 * step}s'}}\n"
    for step in range(1, 21)
)


def facts(tmp_path, text):
    path = tmp_path / "run.log"
    path.write_text(text, encoding="utf-8")
    return analyze_logs([str(path)], RunOptions()).context


def dump(name="TrainingArguments", **settings):
    """The arguments of the Trainer, a line each."""
    return "\n".join([f"parameters {name}(", "_n_gpu=1,", *(f"{k}={v}," for k, v in settings.items()), ")"]) + "\n"


@pytest.mark.parametrize(
    ("settings", "precision", "recompute"),
    [
        ({"bf16": True, "fp16": False, "gradient_checkpointing": True}, "bf16", "full"),
        ({"bf16": False, "fp16": True, "gradient_checkpointing": False}, "fp16", "none"),
        ({"bf16": False, "fp16": False}, None, None),
        (
            {"fsdp_config": "{'activation_checkpointing': True, 'x': 1}", "gradient_checkpointing": False},
            None,
            "full",
        ),
    ],
)
@pytest.mark.parametrize(("name", "steps"), [("TrainingArguments", DICTS), ("SftArguments", SWIFT)])
def test_the_arguments_of_the_trainer_are_read(tmp_path, name, steps, settings, precision, recompute):
    context = facts(tmp_path, dump(name, per_device_train_batch_size=4, **settings) + steps)
    assert context.get("precision") == precision
    assert context.get("recompute") == recompute
    assert context.get("micro_batch_size") == 4


def test_what_llama_factory_prints_beats_the_arguments(tmp_path):
    loader = (
        ">> Process rank: 0, world size: 2, device: cuda:0, distributed training: True, compute dtype: torch.bfloat16\n"
    )
    text = dump("Seq2SeqTrainingArguments", gradient_checkpointing=False) + loader
    context = facts(tmp_path, text + ">> Gradient checkpointing enabled.\n" + DICTS)
    assert (context.get("precision"), context.get("recompute"), context.get("world_size")) == ("bf16", "full", 2)


NEMO = "".join(
    f"Training epoch 0, iteration {step}/99 | lr: 1e-05 | global_batch_size: 64 | global_step: {step} | "
    f"reduced_train_loss: 2.5 | train_step_timing in s: 2.5\n"
    for step in range(20)
)
PADDED = "[NeMo I 2026-01-01] Padded vocab_size: 50304, original vocab_size: 50257, dummy tokens: 47.\n"


@pytest.mark.parametrize(("line", "size"), [("", 50304), ("  override_vocab_size: 151936\n", 151936)])
def test_nemo_prints_its_vocabulary(tmp_path, line, size):
    assert facts(tmp_path, "model:\n" + line + PADDED + NEMO).get("padded_vocab_size") == size


@pytest.mark.parametrize(("value", "recompute"), [("null", "none"), ("full", "full"), ("selective", "selective")])
@pytest.mark.parametrize("name", ["activations_checkpoint", "recompute"])
def test_nemo_prints_its_recomputation(tmp_path, name, value, recompute):
    text = f"model:\n  {name}_granularity: {value}\n  {name}_method: block\n  {name}_num_layers: 3\n" + NEMO
    context = facts(tmp_path, text)
    assert (context.get("recompute"), context.get("recompute_num_layers")) == (recompute, 3)


NEOX = {"num_layers": "4", "hidden_size": "256", "num_attention_heads": "8", "gpt_j_residual": "False"}


@pytest.mark.parametrize(
    ("settings", "gated", "heads", "width"),
    [
        ({"activation": "gelu", "mlp_type": "regular"}, False, 8, 1024),
        ({"activation": "gelu", "intermediate_size": "None", "num_kv_heads": "None"}, False, 8, 1024),
        ({"activation": "gelu", "intermediate_size": "512", "num_kv_heads": "2"}, None, 2, None),
        ({"activation": "geglu", "mlp_type": "regular"}, True, 8, None),
        ({"activation": "silu", "mlp_type": "llama"}, True, 8, None),
    ],
)
def test_gpt_neox_says_its_mlp_and_heads_by_what_it_does_not_set(tmp_path, settings, gated, heads, width):
    step = " samples/sec: 2.0 | iteration {n}/ 9 | elapsed time per iteration (ms): 500.0 | lm_loss: 2.5E+00 |\n"
    dump = "".join(
        f"  {name} {'.' * (24 - len(name))} {value}{'.' * 20}default\n" for name, value in (NEOX | settings).items()
    )
    heading = "-------------------- arguments --------------------\n"
    context = facts(
        tmp_path, heading + dump + heading.replace(" arg", " end of arg") + "".join(step.format(n=n) for n in (1, 2))
    )
    found = (context.get("gated_linear_unit"), context.get("num_query_groups"), context.get("ffn_hidden_size"))
    assert found == (gated, heads, width)


# Arguments that every Megatron-LM before core prints, and the sizes of a small model.
ALWAYS = """
    world_size adlr_autoresume clip_grad eod_mask_loss finetune hysteresis init_method_std layernorm_epsilon
    lr_decay_style make_vocab_size_divisible_by num_workers openai_gelu reset_position_ids seed split weight_decay
"""
BEFORE_CORE = dict.fromkeys(ALWAYS.split(), "1") | {
    "num_layers": "4",
    "hidden_size": "256",
    "num_attention_heads": "8",
    "tokenizer_type": "GPT2BPETokenizer",
}
WITH_GATES = {"swiglu": "False", "squared_relu": "False", "num_experts": "None", "ffn_hidden_size": "1024"}


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        (BEFORE_CORE, (False, 8, 1024)),
        (BEFORE_CORE | {"ffn_hidden_size": "None"}, (False, 8, 1024)),
        (BEFORE_CORE | {"ffn_hidden_size": "512"}, (False, 8, 512)),
        (BEFORE_CORE | WITH_GATES, (False, 8, 1024)),
        # A gate, of which forks have other heads; a fork's own name; an excerpt; a line that was lost.
        (BEFORE_CORE | WITH_GATES | {"swiglu": "True"}, (True, None, 1024)),
        (BEFORE_CORE | {"attention_head_type": "multiquery"}, (None, None, None)),
        (BEFORE_CORE | {"deepspeed": "True"}, (None, None, None)),
        ({name: value for name, value in BEFORE_CORE.items() if name != "split"}, (None, None, None)),
        (BEFORE_CORE | WITH_GATES | {"num_query_groups": "2", "group_query_attention": "True"}, (False, 2, 1024)),
        (BEFORE_CORE | {"squared_relu": "False"}, (None, None, None)),
    ],
)
def test_megatron_before_core_says_its_mlp_and_heads_by_what_it_does_not_print(tmp_path, settings, found):
    context = facts(tmp_path, arguments_dump(settings) + "".join(f"{megatron_line(n)}\n" for n in (1, 2)))
    quantities = ("gated_linear_unit", "num_query_groups", "ffn_hidden_size")
    assert tuple(context.get(name) for name in quantities) == found


def test_the_origin_names_the_argument_that_is_not_printed(tmp_path):
    context = facts(tmp_path, arguments_dump(BEFORE_CORE) + "".join(f"{megatron_line(n)}\n" for n in (1, 2)))
    assert describe_origin(context.origin("gated_linear_unit")) == "log line 2: arguments without swiglu"
    with speaking("zh"):
        assert describe_origin(context.origin("gated_linear_unit")) == "日志第 2 行：参数中没有 swiglu"
