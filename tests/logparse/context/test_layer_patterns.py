"""Layers by kind, from the patterns that Megatron prints."""

import pytest
from helpers import arguments_dump, megatron_line

from analysis.run.load import load
from analysis.run.options import RunOptions
from logparse.context.relations import derive
from logparse.context.run_context import Fact
from logparse.findings import Origin

NAMES = {
    "*": "num_attention_layers",
    "M": "num_mamba_layers",
    "-": "num_mlp_layers",
    "E": "num_moe_layers",
    "G": "num_linear_attention_layers",
}


def derived(**facts):
    return {name: fact.value for name, fact in derive({n: Fact(v, Origin("log")) for n, v in facts.items()}).items()}


@pytest.mark.parametrize(
    ("pattern", "counts"),
    [
        ("M*M-M*ME", {"M": 4, "*": 2, "-": 1, "E": 1}),
        ("M-M-|M-M*-/MM/MM", {"M": 8, "*": 1, "-": 4}),  # Megatron's own example: stages, and two depths
        ("GGG*", {"G": 3, "*": 1}),
        ("M?", None),
    ],
)
def test_letters_of_a_hybrid_pattern(pattern, counts):
    known = derived(hybrid_layer_pattern=pattern, num_layers=9)
    assert [known.get(name) for name in NAMES.values()] == [
        None if counts is None else counts.get(letter, 0) for letter in NAMES
    ]


def test_ratios_of_older_hybrid_models():
    # 8 % of 50 layers have attention, half of them an MLP, the rest is Mamba.
    known = derived(hybrid_attention_ratio=0.08, hybrid_mlp_ratio=0.5, num_layers=50)
    assert [known[NAMES[letter]] for letter in "*-M"] == [4, 25, 21]


@pytest.mark.parametrize(
    ("freq", "layers"),
    [("4", 6), ("[1, 1, 0, 1, 1, 0, 1, 0]", 5), ("[1]*8", 8), ("[1]*7", None), ("1", 0), ("x", None), ("0", None)],
)
def test_layers_with_linear_attention(freq, layers):
    # Every 4th of 8 layers is plain attention: 6 are not.
    assert derived(linear_attention_freq=freq, num_layers=8).get("num_linear_attention_layers") == layers


@pytest.mark.parametrize(
    ("facts", "window", "layers"),
    [
        ({"window_size": "(127, 0)"}, 128, 8),
        ({"window_size": "(127, 0)", "window_attn_skip_freq": "2"}, 128, 4),
        ({"window_size": "[127, 0]", "window_attn_skip_freq": "[1, 0, 0, 0, 0, 0, 0, 1]"}, 128, 2),
        ({"window_size": "(-1, 0)"}, None, None),  # no window
    ],
)
def test_windows(facts, window, layers):
    known = derived(num_layers=8, **facts)
    assert (known.get("sliding_window"), known.get("num_window_layers")) == (window, layers)


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2])
@pytest.mark.parametrize("dense", [None, -1, 0, 2])
@pytest.mark.parametrize("idle", [set(), {0}, {1, 4}, {5, 6, 7}])
def test_layers_that_do_nothing_are_of_no_kind(step, dense, idle):
    noop = {"noop_layers": str(idle)} if idle else {}
    first = {} if dense is None else {"first_k_dense_replace": dense}
    known = derived(num_layers=8, num_experts=4, moe_layer_freq=str(step), **first, **noop)
    with_experts = [n for n in range(8) if n >= (dense or 0) and n % step == 0 and n not in idle]
    assert known["num_moe_layers"] == len(with_experts)
    windowed = derived(num_layers=8, sliding_window=16, window_attn_skip_freq=str(step), **noop)
    kept = [n for n in range(8) if (step < 0 or (n + 1) % step) and n not in idle]
    assert windowed["num_window_layers"] == len(kept)


def test_layers_of_a_mixed_list_are_unknown_where_some_do_nothing():
    known = derived(num_layers=4, num_experts=4, moe_layer_freq="[0, 1, 1, 1]", noop_layers="{3}")
    assert "num_moe_layers" not in known
    assert derived(num_layers=4, num_experts=4, moe_layer_freq="[1]*4", noop_layers="{3}")["num_moe_layers"] == 3


@pytest.mark.parametrize(
    ("settings", "precision"),
    [
        ({"fp4": "e2m1", "fp8": "None", "bf16": True}, "fp4"),
        ({"fp4": "nvfp4", "bf16": True}, "fp4"),
        ({"fp4": "None", "fp4_recipe": "nvfp4", "bf16": True}, "bf16"),  # a recipe alone is a default
        ({"fp4": "None", "fp8": "hybrid", "bf16": True}, "fp8"),
    ],
)
def test_fp4_is_no_bf16(tmp_path, settings, precision):
    log = tmp_path / "run.log"
    log.write_text(arguments_dump({"num_layers": 2, **settings}) + "".join(megatron_line(n) + "\n" for n in (1, 2, 3)))
    assert load([str(log)], RunOptions()).context.get("precision") == precision
