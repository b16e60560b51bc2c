"""Settings and the user's values to quantities: who wins, what follows, what contradicts what."""

import polars as pl
import pytest

from analysis.present.words import say
from logparse.context.relations import DERIVATIONS, broken_identities, derive
from logparse.context.run_context import Fact, RunContext, build_context, read_value
from logparse.errors import UsageError
from logparse.findings import Note, Origin, flag, info, warning
from logparse.formats import find_format
from logparse.schema import QUANTITY, SETTING_COLUMNS

MEGATRON = find_format("megatron")
MINDFORMERS = find_format("mindformers")

CHUNKS = "virtual_pipeline_model_parallel_size"
# Where what the user gives is from, strongest first.
GIVEN = (FLAG, MODEL, CONFIG) = (flag("--flag"), Origin("model", rule="m"), Origin("config", "c.toml"))
LAYOUT = {"arguments:tensor_model_parallel_size": 2, "arguments:pipeline_model_parallel_size": 4}


def frame(settings: dict[str, object], source: str = "run.log") -> pl.DataFrame:
    """Settings by ``kind:name``, the first on line 101."""
    rows = [
        (key.partition(":")[2], str(value), key.partition(":")[0], source, 101 + i)
        for i, (key, value) in enumerate(settings.items())
    ]
    return pl.DataFrame(rows, schema={c.name: c.dtype for c in SETTING_COLUMNS}, orient="row")


def context(settings: dict[str, object], *given: dict[str, object], fmt=MEGATRON) -> RunContext:
    """The context of a log and of what the user gave, strongest first: flags, then model, then file."""
    layers = [{n: Fact(v, o) for n, v in layer.items()} for layer, o in zip(given, GIVEN, strict=False)]
    return build_context(frame(settings), fmt, layers)


def at(line: int, **choice: str) -> Origin:
    """The place in a log that is one file."""
    return Origin("log", line=line, **choice)


def known_as(name: str, value: object, origin: Origin) -> Note:
    """One side of an identity."""
    return info("known_quantity", name=name, value=value, origin=origin)


def arguments(**settings: object) -> dict[str, object]:
    return {f"arguments:{name}": value for name, value in settings.items()}


def test_value_of_the_log_and_its_line():
    known = context(arguments(seq_length=4096, num_layers=32))
    assert known.facts["seq_length"] == Fact(4096, at(101))
    assert known.facts["num_layers"] == Fact(32, at(102))
    assert known.notes == ()


def test_origin_names_the_file_where_there_are_several():
    both = pl.concat([frame({"arguments:seq_length": 4096}, "a.log"), frame({"arguments:num_layers": 2}, "b.log")])
    assert build_context(both, MEGATRON, several=True).origin("num_layers") == Origin("log", "b.log", 101)


def test_flag_beats_model_beats_file_beats_log_and_each_is_told():
    known = context(arguments(num_layers=1), {"num_layers": 4}, {"num_layers": 3}, {"num_layers": 2})
    assert known.facts["num_layers"] == Fact(4, FLAG)
    used = {"name": "num_layers", "value": 4, "origin": FLAG}
    assert known.notes == tuple(
        warning("setting_overridden", **used, other_origin=origin, other=value)
        for origin, value in ((MODEL, 3), (CONFIG, 2), (at(101), 1))
    )
    assert [say(note) for note in known.notes] == [
        "num_layers 4 (--flag) overrides 3 (--model m)",
        "num_layers 4 (--flag) overrides 2 (config file c.toml)",
        "num_layers 4 (--flag) overrides 1 (log line 101)",
    ]


def test_weaker_layers_fill_what_stronger_ones_leave_open():
    known = context(arguments(num_layers=1, seq_length=5), {"num_layers": 4}, {"hidden_size": 64}, {"hidden_size": 32})
    assert {n: known.get(n) for n in ("num_layers", "hidden_size", "seq_length")} == {
        "num_layers": 4,
        "hidden_size": 64,
        "seq_length": 5,
    }


def test_same_value_from_two_places_is_no_news():
    assert context(arguments(num_layers=4), {"num_layers": 4}).notes == ()


def test_false_given_by_flag_beats_the_log():
    assert context(arguments(swiglu=True), {"gated_linear_unit": False}).get("gated_linear_unit") is False


@pytest.mark.parametrize("text", ["None", "null", "abc", "[1, 2]", "1e4"])
def test_value_that_is_no_number_leaves_the_quantity_unknown(text):
    assert context(arguments(num_layers=text)).get("num_layers") is None


@pytest.mark.parametrize(
    ("quantity", "text", "value"),
    [
        ("num_layers", "32", 32),
        ("num_experts", "[64]", 64),
        ("num_layers", "None", None),
        ("gated_linear_unit", "True", True),
        ("gated_linear_unit", "false", False),
        ("recompute", "full", "full"),
    ],
)
def test_read_value(quantity, text, value):
    assert read_value(QUANTITY[quantity], text) == value


def test_absurdly_large_number_is_no_crash():
    assert context(arguments(world_size="9" * 400, num_layers=2)).get("num_layers") == 2


def test_changed_setting_of_a_second_start_is_told():
    twice = pl.concat([frame(arguments(global_batch_size=32)), frame(arguments(a=1, global_batch_size=64))])
    known = build_context(twice, MEGATRON)
    assert known.facts["global_batch_size"] == Fact(32, at(101))
    first, other = {"first": "32", "origin": at(101)}, {"other": "64", "place": at(102)}
    assert known.notes == (warning("setting_has_two_values", name="global_batch_size", **first, **other),)


# What follows from what, by numbers worked out by hand.

DERIVED = {
    "world size": (arguments(data_parallel_size=3) | LAYOUT, "world_size", 24),
    "world size with context parallelism": (
        arguments(data_parallel_size=3, context_parallel_size=5) | LAYOUT,
        "world_size",
        120,
    ),
    "data parallel size": (arguments(world_size=48) | LAYOUT, "data_parallel_size", 6),
    "data parallel size with context parallelism": (
        arguments(world_size=48, context_parallel_size=3) | LAYOUT,
        "data_parallel_size",
        2,
    ),
    "world size of nodes": (
        {"launcher:launched_num_nodes": 2, "launcher:launched_devices_per_node": 8},
        "world_size",
        16,
    ),
    "no whole data parallel size": (arguments(world_size=49) | LAYOUT, "data_parallel_size", None),
    "v1.0: no pipeline": (
        arguments(world_size=64, model_parallel_size=4, batch_size=8),
        "pipeline_model_parallel_size",
        1,
    ),
    "v1.0: data parallel size": (
        arguments(world_size=64, model_parallel_size=4, batch_size=8),
        "data_parallel_size",
        16,
    ),
    "v1.0: global batch": (arguments(world_size=64, model_parallel_size=4, batch_size=8), "global_batch_size", 128),
    "global batch": (
        arguments(micro_batch_size=2, data_parallel_size=4) | {"microbatches:num_microbatches": 16},
        "global_batch_size",
        128,
    ),
    "micro-batches": (
        arguments(global_batch_size=96, micro_batch_size=2, data_parallel_size=6),
        "num_microbatches",
        8,
    ),
    "no whole number of micro-batches": (
        arguments(global_batch_size=97, micro_batch_size=2, data_parallel_size=6),
        "num_microbatches",
        None,
    ),
    "head width": (arguments(hidden_size=4096, num_attention_heads=32), "kv_channels", 128),
    "head width as printed": (arguments(hidden_size=4096, num_attention_heads=32, kv_channels=64), "kv_channels", 64),
    # 50257 up to a multiple of 128 x 4 = 512: 99 x 512
    "padded vocabulary": (
        arguments(vocab_size=50257, make_vocab_size_divisible_by=128, tensor_model_parallel_size=4),
        "padded_vocab_size",
        50688,
    ),
    "padded vocabulary that needs no padding": (
        arguments(vocab_size=51200, make_vocab_size_divisible_by=128, tensor_model_parallel_size=4),
        "padded_vocab_size",
        51200,
    ),
    "vocabulary taken as not padded": (arguments(vocab_size=50257), "padded_vocab_size", 50257),
    "expert width": (arguments(num_experts=8, ffn_hidden_size=14336), "moe_ffn_hidden_size", 14336),
    "expert width as printed": (
        arguments(num_experts=8, ffn_hidden_size=14336, moe_ffn_hidden_size=1408),
        "moe_ffn_hidden_size",
        1408,
    ),
    "no expert width in a dense model": (arguments(ffn_hidden_size=14336), "moe_ffn_hidden_size", None),
    "in two steps": (
        arguments(micro_batch_size=2, world_size=48) | LAYOUT | {"microbatches:num_microbatches": 10},
        "global_batch_size",
        120,
    ),
}


@pytest.mark.parametrize("case", DERIVED)
def test_derivation(case):
    settings, quantity, expected = DERIVED[case]
    known = context(settings)
    assert known.get(quantity) == expected
    if f"arguments:{quantity}" not in settings and expected is not None:
        assert known.origin(quantity).kind == "derived"
        assert known.origin(quantity).rule in {rule.code for rule in DERIVATIONS if rule.quantity == quantity}
    assert bool(known.notes) == case.startswith("no whole")


def test_log_line_beats_derivation():
    known = context(arguments(vocab_size=50257, make_vocab_size_divisible_by=128) | {"vocab:padded_vocab_size": 51200})
    assert known.facts["padded_vocab_size"] == Fact(51200, at(103))


@pytest.mark.parametrize(
    ("freq", "moe_layers"),
    [
        ("1", 6),
        ("2", 3),  # layers 0, 2, 4
        ("4", 2),  # layers 0, 4
        ("[0, 1, 1, 1, 1, 1]", 5),
        ("[0,1,0,1,0,1]", 3),
        ("[0]*2+[1]*4", 4),
        ("([0]*1)+([1]*5)", 5),
        ("([0, 1]*3)", 3),
        ("([0]*1+[1]*2)*2", 4),
        ("2*[0, 1, 1]", 4),
        ("[0, 1, 1]", None),
        ("[0, 2, 1, 1, 1, 1]", None),
        ("[1]+1", None),
        ("-1", 6),
        ("-2", 3),
        # Neither expanded nor a crash, whatever it would come to.
        ("([1]*99999999999999999999)", None),
        ("([1]*9999999999)", None),
        ("9" * 5000, None),
        ("(" * 4000, None),
        ("+".join(["1"] * 2000), None),
        ("often", None),
    ],
)
def test_moe_layer_freq(freq, moe_layers):
    known = context(arguments(num_experts=8, num_layers=6, moe_layer_freq=freq))
    assert known.get("num_moe_layers") == moe_layers


@pytest.mark.parametrize(("freq", "moe_layers"), [("([0]*1+[1]*5)*1", 5), ("([0]*1+[1]*2)*2", 4), ("([1]+[0])*3", 3)])
def test_repeated_group_of_layers_is_right_or_unknown(freq, moe_layers):
    known = context(arguments(num_experts=8, num_layers=6, moe_layer_freq=freq))
    assert known.get("num_moe_layers") in (moe_layers, None)


def test_first_dense_layers_come_off():
    known = context(arguments(num_experts=8, num_layers=6, moe_layer_freq=1, first_k_dense_replace=2))
    assert known.get("num_moe_layers") == 4


@pytest.mark.parametrize(("layers", "every", "with_experts"), [(12, 2, 6), (12, 1, 12), (24, 4, 6)])
def test_megatron_deepspeed_says_every_which_layer_has_experts(layers, every, with_experts):
    known = context(arguments(num_experts="[8]", num_layers=layers, expert_interval=every))
    assert known.get("num_moe_layers") == with_experts
    dense = context(arguments(num_experts="[1]", num_layers=layers, expert_interval=every))
    assert dense.get("moe_layer_freq") is None


@pytest.mark.parametrize("experts", [0, 1, "[1]", None])
def test_at_most_one_expert_is_a_dense_model(experts):
    known = context(arguments(num_experts=experts, num_layers=6, moe_layer_freq=1))
    assert (known.get("num_experts"), known.get("num_moe_layers")) == (None, None)


@pytest.mark.parametrize(
    "settings",
    [
        arguments(num_experts=8, num_layers=6, moe_layer_freq=0),
        arguments(vocab_size=50257, make_vocab_size_divisible_by=0, tensor_model_parallel_size=4),
        arguments(vocab_size=50257, make_vocab_size_divisible_by=128, tensor_model_parallel_size=0),
    ],
    ids=["moe_layer_freq", "divisor", "tensor parallel"],
)
def test_zero_in_the_log_is_no_crash(settings):
    assert context(settings).get("num_moe_layers") is None


@pytest.mark.parametrize("name", ["seq_length", "expert_tensor_parallel_size", "log_interval"])
def test_a_negative_size_in_the_log_is_not_set(name):
    assert context(arguments(**{name: 4})).get(name) == 4
    assert context(arguments(**{name: -1})).get(name) is None


# Key/value heads: Megatron prints 1 where grouped attention is off.


@pytest.mark.parametrize(
    ("settings", "groups"),
    [
        (arguments(group_query_attention=True, num_query_groups=8), 8),
        (arguments(group_query_attention=False, num_query_groups=1, context_parallel_size=1), 32),
        (arguments(group_query_attention=False, num_query_groups=None, context_parallel_size=1), 32),
        # Before the core line, grouped heads came under other names: "off" says nothing where one of them is there.
        (arguments(group_query_attention=False, num_query_groups=1), 32),
        (arguments(group_query_attention=False, num_query_groups=1, multi_query_attention=True), None),
        (arguments(num_query_groups=8), None),
    ],
)
def test_num_query_groups(settings, groups):
    assert context(arguments(num_attention_heads=32) | settings).get("num_query_groups") == groups


PRECISIONS = [
    (arguments(fp8="hybrid", bf16=True, fp16=False), "fp8"),
    (arguments(fp8="e4m3", bf16=True), "fp8"),
    (arguments(fp8=None, bf16=True, fp16=False), "bf16"),
    (arguments(bf16=False, fp16=True), "fp16"),
    (arguments(bf16=False, fp16=False), "fp32"),
    (arguments(fp16=False), "fp32"),  # v1.0 knows no bf16
    (arguments(fp16=True), "fp16"),
    (arguments(precision="bfloat16", fp16=None, bf16={"enabled": True}), "bf16"),  # GPT-NeoX
    (arguments(precision="fp16", fp16={"enabled": True}, bf16=None), "fp16"),
    (arguments(fp16={"fp16": True, "enabled": True}), "fp16"),
    (arguments(bf16={"enabled": True, "loss_scale": 0}), "bf16"),
    (arguments(fp16={"enabled": False}), None),
    (arguments(seq_length=1), None),
]


@pytest.mark.parametrize(("settings", "precision"), PRECISIONS)
def test_precision(settings, precision):
    assert context(settings).get("precision") == precision


def test_origin_of_a_choice_names_the_setting():
    assert context(arguments(bf16=True)).origin("precision") == at(101, rule="bf16 True")


RECOMPUTES = [
    (arguments(recompute_granularity="full"), "full"),
    (arguments(recompute_granularity="selective"), "selective"),
    (arguments(recompute_granularity=None), "none"),
    (arguments(recompute_granularity=None, recompute_activations=True), "selective"),
    (arguments(checkpoint_activations=True), "full"),
    (arguments(checkpoint_activations=False), "none"),
    (arguments(checkpoint_activations=True, recompute_granularity=None), "full"),
    (arguments(seq_length=1), None),
]


@pytest.mark.parametrize(("settings", "recompute"), RECOMPUTES)
def test_recompute(settings, recompute):
    assert context(settings).get("recompute") == recompute


@pytest.mark.parametrize(
    ("settings", "recompute"),
    [
        ({"recompute:recompute": "True", "recompute:select_recompute": "False"}, "full"),
        ({"recompute:recompute": "False", "recompute:select_recompute": "False"}, "none"),
        ({"recompute:recompute": "False", "recompute:select_recompute": "True"}, "selective"),
        ({"recompute:recompute": "False", "recompute:select_recompute": "[1, 2]"}, "selective"),
        ({"recompute:recompute": "[3, 2]"}, "full"),
    ],
)
def test_recompute_of_mindformers(settings, recompute):
    assert context(settings, fmt=MINDFORMERS).get("recompute") == recompute


@pytest.mark.parametrize(
    ("printed", "precision"),
    [("mindspore.bfloat16", "bf16"), ("bfloat16", "bf16"), ("float16", "fp16"), ("float32", "fp32"), ("int8", None)],
)
def test_precision_of_mindformers(printed, precision):
    settings = {"config:model.model_config.compute_dtype": printed}
    assert context(settings, fmt=MINDFORMERS).get("precision") == precision


def test_layout_of_mindformers():
    settings = {
        "parallel:data_parallel": 2,
        "parallel:model_parallel": 8,
        "parallel:pipeline_stage": 4,
        "batch:global_batch_size": 128,
        "config:runner_config.global_batch_size": 7,
        "config:model.model_config.num_layers": 32,
        "config:model.model_config.n_kv_heads": 8,
        "task:model_name": "llama2_70b",
    }
    values = context(settings, fmt=MINDFORMERS).values()
    assert values["world_size"] == 64
    assert values["global_batch_size"] == 128
    assert (values["num_layers"], values["num_query_groups"], values["model_name"]) == (32, 8, "llama2_70b")


def test_lora():
    assert context(arguments(lora_target_modules="['qkv']")).get("lora") is True
    assert context(arguments(lora_target_modules="[]")).get("lora") is None


@pytest.mark.parametrize(
    ("settings", "adapters"),
    [
        ({"peft:trainable": "20,185,088", "peft:share": "0.2643"}, 20_185_088),
        ({"peft:trainable": "7,615,616,512", "peft:share": "100.0000"}, None),
        ({"loader:trainable": "20,185,088", "loader:share": "0.2643", "loader:method": "LoRA"}, 20_185_088),
        ({"loader:trainable": "20,185,088", "loader:share": "0.2643", "loader:method": "Freeze"}, None),
    ],
)
def test_adapters_are_what_is_trained_where_that_is_a_part(settings, adapters):
    known = context(settings, fmt=find_format("hf-trainer"))
    assert (known.get("adapter_parameters"), known.get("lora")) == (adapters, adapters and True)


# Identities.


def test_broken_layout_in_the_log_is_told_with_both_sides():
    known = context(arguments(world_size=64, data_parallel_size=3) | LAYOUT)
    parts = [
        known_as("data_parallel_size", 3, at(102)),
        known_as("tensor_model_parallel_size", 2, at(103)),
        known_as("pipeline_model_parallel_size", 4, at(104)),
    ]
    whole = known_as("world_size", 64, at(101))
    assert known.notes == (warning("product_wrong", whole=whole, product=24, parts=parts),)
    assert say(known.notes[0]) == (
        "world_size 64 (log line 101) is not 24 = data_parallel_size 3 (log line 102) x "
        "tensor_model_parallel_size 2 (log line 103) x pipeline_model_parallel_size 4 (log line 104)"
    )


def test_broken_batch_in_the_log_is_told_with_both_sides():
    known = context(
        arguments(global_batch_size=100, micro_batch_size=2, data_parallel_size=4)
        | {"microbatches:num_microbatches": 16}
    )
    parts = [
        known_as("micro_batch_size", 2, at(102)),
        known_as("num_microbatches", 16, at(104)),
        known_as("data_parallel_size", 4, at(103)),
    ]
    whole = known_as("global_batch_size", 100, at(101))
    assert known.notes == (warning("product_wrong", whole=whole, product=128, parts=parts),)


def test_growing_batch_breaks_no_identity():
    known = context(
        arguments(global_batch_size=100, micro_batch_size=2, data_parallel_size=4, rampup_batch_size="['16', '8', '9']")
        | {"microbatches:num_microbatches": 16}
    )
    assert known.notes == ()


def test_flag_that_contradicts_the_log_is_told_not_refused():
    known = context(arguments(data_parallel_size=3, world_size=24) | LAYOUT, {"world_size": 16})
    used = {"name": "world_size", "value": 16, "origin": FLAG}
    overridden, broken = known.notes
    assert overridden == warning("setting_overridden", **used, other_origin=at(102), other=24)
    assert (broken.code, broken.level, broken.fields["product"]) == ("product_wrong", "warning", 24)
    assert broken.fields["whole"] == known_as("world_size", 16, FLAG)
    assert [part.fields["origin"] for part in broken.fields["parts"]] == [at(101), at(103), at(104)]


CONTRADICTION = {
    "world_size": 16,
    "data_parallel_size": 3,
    "tensor_model_parallel_size": 2,
    "pipeline_model_parallel_size": 4,
}


@pytest.mark.parametrize("also", [{}, {"context_parallel_size": 1}], ids=["three factors", "four factors"])
def test_flags_that_contradict_each_other_are_refused(also):
    with pytest.raises(UsageError, match=r"world_size 16 \(--flag\) is not 24 = data_parallel_size 3 \(--flag\) x"):
        context({}, CONTRADICTION | also)


def test_flags_and_file_that_contradict_each_other_are_refused():
    flags = {"world_size": 16}
    with pytest.raises(UsageError, match=r"data_parallel_size 3 \(c\.toml\)"):
        context({}, flags, {}, {n: v for n, v in CONTRADICTION.items() if n not in flags})


def test_flags_that_contradict_each_other_are_refused_whatever_the_log_says():
    with pytest.raises(UsageError, match="is not"):
        context(arguments(context_parallel_size=1), CONTRADICTION)


def test_world_size_that_the_given_layout_does_not_divide_is_refused():
    text = r"world_size 8 \(--flag\) is not a multiple of 3 = tensor_model_parallel_size 3 \(--flag\) x "
    with pytest.raises(UsageError, match=text):
        context({}, {"world_size": 8, "tensor_model_parallel_size": 3, "pipeline_model_parallel_size": 1})


@pytest.mark.parametrize(
    "settings",
    [
        arguments(world_size=49) | LAYOUT,
        arguments(global_batch_size=97, micro_batch_size=2, data_parallel_size=6),
    ],
    ids=["layout", "batch"],
)
def test_quotient_that_is_not_whole_is_told(settings):
    (note,) = context(settings).notes
    assert (note.code, note.level) == ("product_no_multiple", "warning")


# Shapes that no model has.

IMPOSSIBLE = {
    "more layers with experts than layers": (
        {"num_experts": 8, "num_layers": 4, "num_moe_layers": 5},
        "num_moe_layers 5 (--flag) is more than num_layers 4 (--flag)",
    ),
    "more chosen experts than there are": (
        {"num_experts": 8, "moe_router_topk": 9},
        "moe_router_topk 9 (--flag) is more than num_experts 8 (--flag)",
    ),
    "more groups than heads": (
        {"num_attention_heads": 8, "num_query_groups": 16},
        "num_query_groups 16 (--flag) is more than num_attention_heads 8 (--flag)",
    ),
    "uneven groups": (
        {"num_attention_heads": 8, "num_query_groups": 3},
        "num_attention_heads 8 (--flag) is not a multiple of num_query_groups 3 (--flag)",
    ),
    "uneven heads": (
        {"hidden_size": 100, "num_attention_heads": 8},
        "hidden_size 100 (--flag) is not a multiple of num_attention_heads 8 (--flag)",
    ),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_impossible_shape_is_told_and_refused_where_it_is_all_the_users(case):
    sizes, text = IMPOSSIBLE[case]
    with pytest.raises(UsageError) as refused:
        context({}, sizes)
    assert refused.value.args[0] == text
    first = text.partition(" ")[0]
    printed = {n: v for n, v in sizes.items() if n != first} | {"group_query_attention": True}
    (note,) = context(arguments(**printed), {first: sizes[first]}).notes
    code = "size_more_than" if "is more than" in text else "size_no_multiple"
    assert (note.code, note.level) == (code, "warning")
    assert note.fields["first"] == known_as(first, sizes[first], FLAG)
    (second,) = (n for n in sizes if text.endswith(f" {n} {sizes[n]} (--flag)"))
    assert note.fields["second"].fields["name"] == second
    assert note.fields["second"].fields["origin"].kind == "log"


@pytest.mark.parametrize(
    "sizes",
    [
        {"num_experts": 8, "moe_router_topk": 8, "num_layers": 4, "moe_layer_freq": 1},
        {"num_attention_heads": 8, "group_query_attention": True, "num_query_groups": 8},
        {"hidden_size": 100, "num_attention_heads": 8, "kv_channels": 16},
        {"hidden_size": 100, "num_attention_heads": 8, "multi_latent_attention": True},
        {"hidden_size": 0, "num_attention_heads": 0, "group_query_attention": True, "num_query_groups": 0},
    ],
    ids=["experts", "groups", "head width", "latent attention", "zeros"],
)
def test_possible_shape_is_not_told(sizes):
    assert context(arguments(**sizes)).notes == ()


def test_layers_without_bound_are_counted_at_once():
    known = context(arguments(num_experts=8, num_layers=10**15, moe_layer_freq=2, first_k_dense_replace=3))
    assert known.get("num_moe_layers") == (10**15 - 4) // 2


@pytest.mark.parametrize(
    ("values", "name", "expected"),
    [
        ({"global_batch_size": 64, "micro_batch_size": 2, "num_microbatches": 8}, "data_parallel_size", 4),
        ({"global_batch_size": 60, "micro_batch_size": 2, "num_microbatches": 8}, "data_parallel_size", None),
        (
            {"num_layers": 24, "pipeline_model_parallel_size": 4, "pipeline_stages": 8},
            "virtual_pipeline_model_parallel_size",
            2,
        ),
    ],
)
def test_a_product_gives_its_unknown_factor_if_it_is_whole(values, name, expected):
    facts = derive({quantity: Fact(value, flag("--x")) for quantity, value in values.items()})
    assert (facts[name].value if name in facts else None) == expected


def test_nodes_that_contradict_the_number_of_devices_are_noted():
    values = {"world_size": 8, "num_nodes": 2, "devices_per_node": 8}
    facts = {quantity: Fact(value, Origin("log", line=n)) for n, (quantity, value) in enumerate(values.items())}
    assert [note.code for note in broken_identities(facts, ())] == ["product_wrong"]
