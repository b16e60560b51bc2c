"""A setting that changes the work of a step is read, or MFU is null, or it is harmless for a reason."""

import itertools

import pytest
from helpers import ROOT, megatron_log
from work_settings import HARMLESS, KINDS, TOPICS, VERSIONS, null_names, read_names, unhandled

from analysis.run.build import analyze_logs
from analysis.run.load import load
from analysis.run.options import RunOptions
from logparse.formats import find_format

NAMED = list(itertools.chain(*TOPICS.values()))
PRINTED = {name for version in VERSIONS for name in version["arguments"]}
NULL = {name: null_names(find_format(name), kind) for name, kind in KINDS.items()}


def test_every_name_of_a_version_is_handled():
    for version in VERSIONS:
        title = f"{version['framework']} {version['version']}"
        assert (title, unhandled(version)) == (title, [])
        assert set(version["arguments"]) <= set(NAMED), title
        assert len(version["arguments"]) == len(set(version["arguments"])), title


def test_an_unknown_name_would_be_found():
    version = {"format": "megatron", "kind": "arguments", "arguments": ["swiglu", "a_new_kind_of_layer"]}
    assert unhandled(version) == ["a_new_kind_of_layer"]


def test_every_name_has_one_topic():
    assert len(NAMED) == len(set(NAMED))
    known = set.union(*NULL.values(), *(read_names(find_format(name), kind) for name, kind in KINDS.items()))
    assert [name for name in NAMED if name not in PRINTED | known] == []


@pytest.mark.parametrize("name", NULL)
def test_every_name_that_makes_mfu_null_has_a_topic(name):
    assert sorted(NULL[name] - set(NAMED)) == []


def test_what_is_harmless_is_printed_and_has_a_reason():
    assert [name for name in HARMLESS if name not in PRINTED] == []
    assert all(len(reason.split()) >= 3 for reason in HARMLESS.values())


# Settings of one version, and the one that makes MFU null.
SWITCHED_ON = {
    "enable_mhc_connections": "True",
    "hybrid_attention_enabled": "True",
    "lfm_layer_types": "['conv', 'full_attention']",
    "sink_sliding_window": "128",
    "sparse_mode": "4",
    "mamba_expand": "4",
    "mtp_hybrid_override_pattern": "*E",
    "ict_head_size": "128",
    "vision_pretraining": "True",
    "mlp_type": "residual",
    "intermediate_size": "11008",
    "num_experts_switch": "8",
    "moe_num_experts": "8",
    "random_ltd": "True",
    "kd": "True",
    "mos": "True",
    "export_kd_teacher_load": "teacher",
    "perform_rl_step": "True",
    "soft_prompt_tuning": "{'enabled': True, 'num_tokens': 10}",
    "train_impl": "dpo",
}
# What they are if they are off, as dumps print it.
OFF = ("None", "False", "0", "1", "regular", "standard", "normal", "{'enabled': False}")


def analyzed(tmp_path, **settings):
    (tmp_path / "run.log").write_text(megatron_log(**settings))
    return analyze_logs([str(tmp_path / "run.log")], RunOptions(hw="910b3"))


def context_of(tmp_path, text):
    (tmp_path / "run.log").write_text(text, encoding="utf-8")
    return load([str(tmp_path / "run.log")], RunOptions()).context


def uncounted(tmp_path, **settings):
    return context_of(tmp_path, megatron_log(**settings)).get("uncounted")


def test_what_is_on_is_not_counted(tmp_path):
    assert {name: uncounted(tmp_path, **{name: value}) for name, value in SWITCHED_ON.items()} == {
        name: name for name in SWITCHED_ON
    }


def test_mfu_is_null_where_something_is_not_counted(tmp_path):
    run = analyzed(tmp_path, mlp_type="residual")
    assert (run.mfu, run.hfu) == (None, None)
    assert [note.fields["layers"] for note in run.notes if note.code == "mfu_not_counted"] == ["mlp_type"]


# Of these another value, or the name alone, says that they are on.
NEVER_OFF = {
    *("intermediate_size", "sink_sliding_window", "ict_head_size", "num_experts_switch", "export_kd_teacher_load"),
    *("lfm_layer_types", "mtp_hybrid_override_pattern", "train_impl"),
}


def test_all_is_counted_where_all_are_off(tmp_path):
    names = set(SWITCHED_ON) - NEVER_OFF
    assert {value: uncounted(tmp_path, **dict.fromkeys(names, value)) for value in OFF} == dict.fromkeys(OFF)


def test_mfu_is_known_of_the_values_that_dumps_print(tmp_path):
    off = dict.fromkeys(SWITCHED_ON, "None") | {"sink_sliding_window": "0", "sparse_mode": "0", "train_impl": "normal"}
    assert analyzed(tmp_path, **off).mfu is not None


@pytest.mark.parametrize(
    "settings",
    [
        {"sft": "True"},
        {"neat_pack": "True"},
        {"dataloader_inter_document_masking": "True", "use_packed_seq_params": "False"},
        {"reset_attention_mask": "True", "context_parallel_algo": "ulysses_cp_algo"},
    ],
)
def test_packing_is_read(settings, tmp_path):
    assert context_of(tmp_path, megatron_log(**settings)).get("packed_documents") is True


@pytest.mark.parametrize(("text", "length"), [("2048", 2048), ("None", 576)])
def test_a_model_with_images_has_the_length_of_its_text(text, length, tmp_path):
    """The image is as long as the encoder sees it, and the encoder is more work."""
    sizes = {"seq_length": "576", "encoder_seq_length": "576", "decoder_seq_length": text}
    context = context_of(tmp_path, megatron_log(**sizes, vision_model_type="clip"))
    assert (context.get("seq_length"), context.get("uncounted")) == (length, "vision encoders")
    other = context_of(tmp_path, megatron_log(**sizes))
    assert other.get("seq_length") == 576


def test_a_reset_mask_of_megatron_is_no_packing(tmp_path):
    assert context_of(tmp_path, megatron_log(reset_attention_mask="True")).get("packed_documents") is None


def test_state_spaces_without_their_sizes_are_not_counted(tmp_path):
    spec = "['megatron.core.models.mamba.mamba_layer_specs', 'mamba_stack_spec']"
    old = {"spec": spec, "standalone_embedding_stage": "False", "hybrid_attention_ratio": "0.0"}
    assert uncounted(tmp_path, **old) == "spec"
    assert uncounted(tmp_path, **old | {"spec": "None"}) is None


def test_key_value_heads_of_gpt_neox_are_read(tmp_path):
    log = megatron_log(num_query_groups="None", group_query_attention="None", num_kv_heads="8")
    assert context_of(tmp_path, log).get("num_query_groups") == 8


EXPERTS = {"num_experts": "8", "moe_router_topk": "2", "moe_token_drop_policy": "probs"}
OF_DEEPSPEED = {"num_experts": "[8]", "topk": "1", "moe_train_capacity_factor": "1.0", "moe_token_dropping": "True"}


@pytest.mark.parametrize(
    ("settings", "factor"),
    [
        (EXPERTS | {"moe_expert_capacity_factor": "0.5"}, 0.5),
        (EXPERTS | {"moe_expert_capacity_factor": "1.25"}, 1.25),
        (EXPERTS | {"moe_train_capacity_factor": "0.5"}, 0.5),
        (OF_DEEPSPEED, 1.0),
        (EXPERTS | {"moe_expert_capacity_factor": "None", "moe_train_capacity_factor": "1.0"}, None),
        (OF_DEEPSPEED | {"moe_token_dropping": "False"}, None),
        (OF_DEEPSPEED | {"num_experts": "[1]"}, None),
        ({"moe_expert_capacity_factor": "0.5", "num_experts": "None"}, None),
    ],
)
def test_the_capacity_of_experts_is_read(settings, factor, tmp_path):
    assert context_of(tmp_path, megatron_log(**settings)).get("moe_capacity_factor") == factor


def test_experts_that_drop_tokens_are_in_a_warning(tmp_path):
    run = analyzed(tmp_path, **EXPERTS | {"moe_ffn_hidden_size": "11008", "moe_expert_capacity_factor": "1.25"})
    assert run.mfu is not None
    assert [note.fields for note in run.notes if note.code == "experts_drop_tokens"] == [{"factor": 1.25}]


MAXTEXT = {
    "use_audio": "True",
    "moba": "True",
    "chunk_attn_window_size": "8192",
    "inhomogeneous_layer_cycle_interval": "4",
    "engram_layers": "[1, 14]",
    "lora": "{'enable_lora': True, 'rank': 16}",
    "trainable_parameters_mask": "['.*lora.*']",
    "mhc_expansion_rate": "4",
}
MAXTEXT_OFF = {
    "use_audio": "False",
    "moba": "False",
    "chunk_attn_window_size": "0",
    "inhomogeneous_layer_cycle_interval": "1",
    "engram_layers": "[]",
    "compress_ratios": "[]",
    "lora": "{'enable_lora': False, 'rank': 0}",
    "trainable_parameters_mask": "[]",
    "mhc_expansion_rate": "1",
    "global_head_dim": "0",
    "moe_expert_input_dim": "-1",
}


def context_of_maxtext(tmp_path, settings):
    lines = [f"Config param {name}: {value}" for name, value in settings.items()]
    lines += [
        f"completed step: {n}, seconds: 2.1, TFLOP/s/device: 80.1, Tokens/s/device: 970, loss: 2" for n in range(4)
    ]
    return context_of(tmp_path, "\n".join(lines) + "\n")


def uncounted_of_maxtext(tmp_path, settings):
    return context_of_maxtext(tmp_path, settings).get("uncounted")


def test_a_setting_of_maxtext_is_not_counted_where_it_is_on(tmp_path):
    assert {n: uncounted_of_maxtext(tmp_path, MAXTEXT_OFF | {n: value}) for n, value in MAXTEXT.items()} == {
        name: name for name in MAXTEXT
    }


@pytest.mark.parametrize(
    ("factor", "experts", "capacity"),
    [("1.25", "8", 1.25), ("-1.0", "8", None), ("1.25", "1", None)],
)
def test_the_capacity_of_experts_of_maxtext_is_read(factor, experts, capacity, tmp_path):
    settings = MAXTEXT_OFF | {"capacity_factor": factor, "num_experts": experts}
    assert context_of_maxtext(tmp_path, settings).get("moe_capacity_factor") == capacity


def test_no_setting_of_maxtext_is_on_by_default(tmp_path):
    assert uncounted_of_maxtext(tmp_path, MAXTEXT_OFF) is None


def test_a_rule_counts_only_where_the_version_prints_all_of_it():
    fmt = find_format("megatron")
    assert "reset_attention_mask" not in read_names(fmt, "arguments", ["reset_attention_mask"])
    assert "reset_attention_mask" in read_names(fmt, "arguments", ["reset_attention_mask", "context_parallel_algo"])


def config_of(layers):
    rows = "".join(f'    "{layer}",\n' for layer in layers[:-1]) + f'    "{layers[-1]}"\n'
    return (
        'Model config GptOssConfig {\n  "head_dim": 64,\n  "hidden_size": 2880,\n  "layer_types": [\n'
        f'{rows}  ],\n  "model_type": "gpt_oss",\n  "num_hidden_layers": 24,\n  "vocab_size": 201088\n}}\n'
    )


@pytest.mark.parametrize("layer", ["sliding_attention", "linear_attention", "chunked_attention"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_kind_of_layer_of_transformers_is_not_counted(layer, place, tmp_path):
    assert (
        uncounted_of_layers(tmp_path, [layer, "full_attention"] if place else ["full_attention", layer])
        == "layer_types"
    )


def test_full_attention_of_transformers_is_counted(tmp_path):
    assert uncounted_of_layers(tmp_path, ["full_attention", "full_attention"]) is None


def uncounted_of_layers(tmp_path, layers):
    steps = (ROOT / "fixtures/hf-trainer/v5-no-bar/run.log").read_text(encoding="utf-8")
    context = context_of(tmp_path, config_of(layers) + steps)
    assert context.get("num_layers") == 24
    assert context.get("vocab_size") == 201088
    return context.get("uncounted")
