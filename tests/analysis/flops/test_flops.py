"""The formulas against published numbers, numbers worked by hand, and each other."""

import re
from dataclasses import fields, replace
from typing import get_args

import pytest
from helpers import ROOT, documented_formulas
from hypothesis import given
from hypothesis import strategies as st
from shapes import LLAMA2_7B, LLAMA2_70B, MIXTRAL

from analysis.flops import Ignorable, Recompute, all_formulas, default_formula, find_formula, real_model_formula
from analysis.flops._formula import sizes
from analysis.flops.printed import PRINTED_FORMULAS
from analysis.model.shape import ModelShape
from logparse.errors import UsageError

# Small and odd, so that every term differs: MLA, experts on two of three layers, one depth of multi-token prediction.
SMALL_LATENT = ModelShape(
    num_layers=3,
    hidden_size=8,
    ffn_hidden_size=10,
    gated_linear_unit=True,
    num_attention_heads=2,
    padded_vocab_size=20,
    num_experts=4,
    moe_router_topk=2,
    moe_ffn_hidden_size=5,
    moe_shared_expert_intermediate_size=6,
    num_moe_layers=2,
    multi_latent_attention=True,
    q_lora_rank=4,
    kv_lora_rank=3,
    qk_head_dim=2,
    qk_pos_emb_head_dim=1,
    v_head_dim=2,
    mtp_num_layers=1,
)
FORMULAS = all_formulas()
DOCUMENT = ROOT / "docs" / "formulas.md"


def gflops(name, shape, recompute="none", seq_length=4096):
    """GFLOP per token."""
    return find_formula(name).hardware_flops_per_token(shape, seq_length, recompute) / 1e9


def tflops(name, shape, recompute="none", *, seq_length=4096, samples, seconds, devices):
    """TFLOP/s per device = FLOPs per token x tokens / seconds / devices / 1e12."""
    per_token = find_formula(name).hardware_flops_per_token(shape, seq_length, recompute)
    return per_token * samples * seq_length / seconds / devices / 1e12


# ---- published and printed numbers


@pytest.mark.parametrize(("recompute", "expected"), [("none", 598.8283922251776), ("full", 798.4378563002368)])
def test_llama2_7b_by_the_ascendspeed_formula(recompute, expected):
    got = tflops("ascendspeed", LLAMA2_7B, recompute, samples=256, seconds=10, devices=8)
    assert got == pytest.approx(expected, rel=1e-12)


def test_flops_of_one_step_of_llama2_7b():
    tokens = 256 * 4096
    assert FORMULAS["ascendspeed"].model_flops_per_token(LLAMA2_7B, 4096) * tokens == pytest.approx(
        4.790627137801421e16, rel=1e-12
    )
    assert FORMULAS["megatron"].model_flops_per_token(LLAMA2_7B, 4096) * tokens == pytest.approx(4.4946e16, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "shape", "recompute", "expected", "digits"),
    [
        ("megatron", LLAMA2_7B, "none", 42.864, 3),
        ("megatron", replace(LLAMA2_7B, padded_vocab_size=32768), "none", 42.883, 3),
        ("6n", LLAMA2_7B, "none", 40.430, 3),
        ("palm", LLAMA2_7B, "none", 46.873, 3),
        ("ascendspeed", LLAMA2_7B, "none", 45.687, 3),
        ("ascendspeed", LLAMA2_7B, "full", 60.916, 3),
        ("megatron", LLAMA2_70B, "none", 428.39, 2),
        ("ascendspeed", LLAMA2_70B, "none", 419.94, 2),
        ("ascendspeed", LLAMA2_70B, "full", 559.92, 2),
        ("6n", LLAMA2_70B, "none", 413.9, 1),
    ],
)
def test_gflops_per_token_of_llama2(name, shape, recompute, expected, digits):
    assert round(gflops(name, shape, recompute), digits) == expected


def test_megatron_tflops_of_llama2_7b():
    assert round(tflops("megatron", LLAMA2_7B, samples=256, seconds=10, devices=8), 2) == 561.82


@pytest.mark.parametrize(
    ("shape", "samples", "milliseconds", "devices", "printed"),
    [
        (replace(LLAMA2_70B, padded_vocab_size=32768), 1024, 19852.346441866313, 512, 176.787218655647),
        (MIXTRAL, 256, 13789.808278942026, 64, 94.70487856928564),
        (LLAMA2_7B, 256, 121407.0, 8, 46.27599345200379),
    ],
    ids=["llama2-70b, core 0.15", "mixtral-8x7b, core 0.12", "llama2-7b, main"],
)
def test_megatron_equals_what_megatron_printed(shape, samples, milliseconds, devices, printed):
    got = tflops("megatron", shape, samples=samples, seconds=milliseconds / 1e3, devices=devices)
    assert got == pytest.approx(printed, rel=1e-8)


@pytest.mark.parametrize(
    ("layers", "hidden", "vocab", "samples", "seconds", "devices", "printed"),
    [(70, 14336, 250880, 2048, 105.22, 384, 149.02), (60, 6656, 32000, 512, 52.7281, 32, 167.51)],
    ids=["bloom-176b", "llama-33b"],
)
def test_logs_of_runs_with_full_recompute(layers, hidden, vocab, samples, seconds, devices, printed):
    shape = ModelShape(num_layers=layers, hidden_size=hidden, padded_vocab_size=vocab)
    got = tflops("ascendspeed", shape, "full", seq_length=2048, samples=samples, seconds=seconds, devices=devices)
    assert round(got, 2) == printed


# ---- worked by hand


def test_megatron_terms_with_latent_attention_experts_and_token_prediction():
    # Per layer: query 4 (8 + 2x3 + 1) = 60, key and value 3 (8 + 2x4 + 1) + 8x1 = 59, output 2x2x8 = 32: 151.
    # Core: 2 heads x (2 + 1 + 2) x 10/2 = 50. 3 + 1 layers, 6 operations: 6x4x151 = 3624 and 6x4x50 = 1200.
    # MLP widths: one dense layer 10, 2 + 1 layers of 2x5 + 6 = 16: 58. 6 x 8 x 3 x 58 = 8352.
    # Prediction: 6 (3x8 + 2x8x8) = 912. Logits: 6 x 8 x 20 x 2 = 1920.
    assert FORMULAS["megatron"].terms_per_token(SMALL_LATENT, 10) == {
        "attention projections": 3624,
        "attention core": 1200,
        "linear attention": 0,
        "mlp": 8352,
        "multi-token prediction": 912,
        "logits": 1920,
    }


@pytest.mark.parametrize("rank", [None, 0])
def test_megatron_query_without_compression(rank):
    # 8 x 2x3 = 48 weights instead of 60: 6 x 4 x (151 - 12) = 3336.
    terms = FORMULAS["megatron"].terms_per_token(replace(SMALL_LATENT, q_lora_rank=rank), 10)
    assert terms["attention projections"] == 3336


def test_megatron_prediction_layer_is_dense_in_a_dense_model():
    # 3 + 1 layers of width 10: 6 x 8 x 3 x 40 = 5760.
    assert FORMULAS["megatron"].terms_per_token(replace(SMALL_LATENT, num_experts=None), 10)["mlp"] == 5760
    assert FORMULAS["megatron"].terms_per_token(replace(SMALL_LATENT, num_moe_layers=0), 10)["mlp"] == 5760


def test_megatron_without_gate_counts_two_matrices():
    # 2/3 of 32 x 3 x 4096 x 11008 x 6.
    terms = FORMULAS["megatron"].terms_per_token(replace(LLAMA2_7B, gated_linear_unit=False), 4096)
    assert terms["mlp"] == 6 * 32 * 2 * 4096 * 11008


def test_recompute_repeats_the_forward_pass():
    # One third of 3624 + 1200 + 8352 + 912 = 14088, the logits not: 4696. Core only: 400. Model: 16008.
    megatron = FORMULAS["megatron"]
    assert megatron.model_flops_per_token(SMALL_LATENT, 10) == 16008
    assert megatron.hardware_flops_per_token(SMALL_LATENT, 10, "selective") == pytest.approx(16408, rel=1e-15)
    assert megatron.hardware_flops_per_token(SMALL_LATENT, 10, "full") == pytest.approx(20704, rel=1e-15)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ascendspeed", 4 * 4096 * 4096 * 32),  # 4 s h l
        ("megatron", 2 * 4096 * 4096 * 32),  # the causal half of it
        ("palm", 4 * 4096 * 4096 * 32),
        ("6n", 0),  # attention between tokens is not counted at all
    ],
)
def test_selective_recompute_of_llama2_7b(name, expected):
    extra = (gflops(name, LLAMA2_7B, "selective") - gflops(name, LLAMA2_7B)) * 1e9
    assert extra == pytest.approx(expected, rel=1e-6)


def test_6n_counts_no_attention_between_tokens():
    assert gflops("6n", LLAMA2_7B, seq_length=8192) == gflops("6n", LLAMA2_7B)


def test_full_recompute_of_6n_is_8n():
    # N of LLaMA2-7B with both embeddings is 6 738 415 616.
    assert gflops("6n", LLAMA2_7B, "full") * 1e9 == pytest.approx(8 * 6_738_415_616, rel=1e-12)


def test_6n_counts_the_experts_that_a_token_meets():
    mixtral = replace(MIXTRAL, moe_ffn_hidden_size=14336, padded_vocab_size=32000)
    # 12.9e9 active of 46.7e9.
    assert round(gflops("6n", mixtral) / 6, 1) == 12.9


# ---- unknown sizes


@pytest.mark.parametrize(
    ("name", "shape", "missing"),
    [
        ("ascendspeed", ModelShape(num_layers=32), ("hidden_size", "padded_vocab_size")),
        ("ascendspeed", LLAMA2_7B, ()),
        ("megatron", replace(LLAMA2_7B, gated_linear_unit=None), ("gated_linear_unit",)),
        ("megatron", replace(LLAMA2_7B, kv_channels=None, num_query_groups=None), ("num_query_groups", "kv_channels")),
        ("megatron", replace(LLAMA2_7B, ffn_hidden_size=None), ("ffn_hidden_size",)),
        ("megatron", replace(MIXTRAL, num_moe_layers=None), ("num_moe_layers",)),
        ("megatron", replace(MIXTRAL, moe_router_topk=None), ("moe_router_topk",)),
        ("megatron", replace(MIXTRAL, ffn_hidden_size=None), ("ffn_hidden_size",)),
        ("megatron", replace(MIXTRAL, ffn_hidden_size=None, moe_ffn_hidden_size=14336), ()),
        ("megatron", SMALL_LATENT, ()),
        ("megatron", replace(SMALL_LATENT, ffn_hidden_size=None), ("ffn_hidden_size",)),  # of the dense layer
        ("megatron", replace(SMALL_LATENT, v_head_dim=None), ("v_head_dim",)),
        ("6n", replace(LLAMA2_7B, untie_embeddings_and_output_weights=None), ("untie_embeddings_and_output_weights",)),
        ("palm", replace(LLAMA2_7B, hidden_size=None), ("hidden_size",)),
    ],
)
def test_missing_names_what_is_unknown_and_needed(name, shape, missing):
    formula = find_formula(name)
    assert formula.missing(shape) == missing
    assert (formula.terms_per_token(shape, 4096) is None) == bool(missing)
    assert (formula.hardware_flops_per_token(shape, 4096, "full") is None) == bool(missing)


def test_expert_width_falls_back_to_ffn_hidden_size():
    assert gflops("megatron", MIXTRAL) == gflops("megatron", replace(MIXTRAL, moe_ffn_hidden_size=14336))


def test_terms_refuse_an_unknown_size():
    with pytest.raises(ValueError, match="unknown sizes: hidden_size"):
        sizes(ModelShape(num_layers=1), "num_layers", "hidden_size")
    with pytest.raises(ValueError, match="cannot be counted"):
        FORMULAS["6n"].terms(ModelShape(), 4096)


# ---- adapters beside frozen weights

# LLaMA2-7B has 6,738,415,616 parameters; rank 8 on queries and values is 32 layers x 2 x 2 x 8 x 4096.
ADAPTED = replace(LLAMA2_7B, lora=True, adapter_parameters=4_194_304)
CORE = 12 * 32 * 4096 * 4096


def test_a_frozen_weight_counts_four_and_an_adapter_six():
    assert FORMULAS["6n"].model_flops_per_token(ADAPTED, 4096) == pytest.approx(4 * 6_738_415_616 + 6 * 4_194_304)
    assert FORMULAS["palm"].model_flops_per_token(ADAPTED, 4096) == pytest.approx(
        4 * 6_738_415_616 + 6 * 4_194_304 + CORE
    )


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_adapters_of_unknown_size_are_left_out(name, recompute):
    """Each adapter parameter is 6 FLOPs, 8 where its forward pass is done again."""
    unknown = replace(ADAPTED, adapter_parameters=None)
    known, without = (FORMULAS[name].hardware_flops_per_token(s, 4096, recompute) for s in (ADAPTED, unknown))
    assert FORMULAS[name].missing(unknown) == ()
    assert known - without == pytest.approx((8 if recompute == "full" else 6) * 4_194_304, rel=1e-6)


@pytest.mark.parametrize("name", FORMULAS)
def test_frozen_weights_leave_out_one_pass_and_nothing_of_what_is_recomputed(name):
    """Dense less the gradients of the weights, a third of every term but the attention core; adapters on top."""
    formula, added = FORMULAS[name], 6 * 4_194_304
    dense = formula.terms_per_token(LLAMA2_7B, 4096)
    core = dense.get("attention core", 0.0)
    model = formula.model_flops_per_token(ADAPTED, 4096)
    assert model == pytest.approx((sum(dense.values()) - core) * 2 / 3 + core + added, rel=1e-12)
    again = [formula.hardware_flops_per_token(shape, 4096, "full") for shape in (ADAPTED, LLAMA2_7B)]
    extra = again[0] - model, again[1] - sum(dense.values())
    assert extra[0] == pytest.approx(extra[1] + added / 3, rel=1e-9)


# ---- properties

SIZE = st.integers(1, 2**14)
# What only models with other layers than attention and MLP have, or with frozen weights.
SPECIAL = {
    *("num_attention_layers", "num_mlp_layers", "num_mamba_layers", "num_linear_attention_layers", "uncounted"),
    *("attention_output_gate", "moe_latent_size", "num_window_layers", "mixed_step", "lora", "adapter_parameters"),
}
SEQ_LENGTHS = st.integers(1, 2**20)


@st.composite
def shapes(draw, unknown=False):
    """Shapes of dense, expert and latent-attention models; with ``unknown``, some sizes are None."""
    values = {f.name: draw(SIZE) for f in fields(ModelShape) if f.name not in SPECIAL}
    flags = ("gated_linear_unit", "untie_embeddings_and_output_weights", "multi_latent_attention")
    values |= {name: draw(st.booleans()) for name in flags}
    values["num_moe_layers"] = draw(st.integers(0, values["num_layers"]))
    optional = ("num_experts", "q_lora_rank", "mtp_num_layers", "moe_shared_expert_intermediate_size")
    absent = draw(st.sets(st.sampled_from(sorted(values) if unknown else optional), max_size=4))
    return ModelShape(**(values | dict.fromkeys(absent)))


@given(shapes(), SEQ_LENGTHS)
def test_ascendspeed_equals_its_product_form(shape, s):
    layers, h, v = shape.num_layers, shape.hidden_size, shape.padded_vocab_size
    for c, recompute in ((3, "none"), (4, "full")):
        expected = 24 * c * layers * h**2 * (1 + s / (6 * h) + v / (16 * layers * h))
        got = FORMULAS["ascendspeed"].hardware_flops_per_token(shape, s, recompute)
        assert got == pytest.approx(expected, rel=1e-12)


@given(shapes(), SEQ_LENGTHS)
def test_full_recompute_is_four_thirds_where_everything_is_repeated(shape, s):
    for name in ("ascendspeed", "6n", "palm"):
        model = FORMULAS[name].model_flops_per_token(shape, s)
        assert FORMULAS[name].hardware_flops_per_token(shape, s, "full") == pytest.approx(model * 4 / 3, rel=1e-12)


@given(shapes(), SEQ_LENGTHS)
def test_more_recompute_is_never_less_work(shape, s):
    for formula in FORMULAS.values():
        model = formula.model_flops_per_token(shape, s)
        none, selective, full = (
            formula.hardware_flops_per_token(shape, s, recompute) for recompute in ("none", "selective", "full")
        )
        assert 0 < model == none <= selective < full <= model * 4 / 3 * (1 + 1e-12)


@given(shapes(), SEQ_LENGTHS)
def test_more_layers_more_width_and_longer_samples_are_more_work(shape, s):
    deeper = replace(shape, num_layers=shape.num_layers + 1)
    wider = replace(shape, hidden_size=shape.hidden_size + 1)
    for formula in FORMULAS.values():
        model = formula.model_flops_per_token(shape, s)
        assert formula.model_flops_per_token(deeper, s) > model
        assert formula.model_flops_per_token(wider, s) > model
        longer = formula.model_flops_per_token(shape, s + 1)
        assert longer >= model
        if formula.name in ("ascendspeed", "megatron", "palm"):
            assert longer > model


@given(shapes(unknown=True), SEQ_LENGTHS)
def test_a_number_exactly_when_nothing_is_missing(shape, s):
    for formula in FORMULAS.values():
        flops = formula.model_flops_per_token(shape, s)
        assert (flops is None) == bool(formula.missing(shape))


@given(shapes())
def test_recomputed_terms_and_those_with_symbols_exist(shape):
    for formula in FORMULAS.values():
        assert set(formula.terms_per_token(shape, 16)) >= {*formula.selective, *formula.full, *formula.symbols}


# ---- what a formula says of itself

# The same model with heads of its own where it has no latent attention.
SMALL = replace(
    SMALL_LATENT,
    num_query_groups=1,
    kv_channels=4,
    untie_embeddings_and_output_weights=True,
    qk_head_dim=3,
    num_window_layers=2,
    sliding_window=4,
)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("size", get_args(Ignorable))
def test_what_a_formula_ignores_makes_no_difference_and_all_else_does(name, size):
    formula = find_formula(name)
    without = formula.model_flops_per_token(replace(SMALL, **{size: None}), 10)
    assert (formula.model_flops_per_token(SMALL, 10) == without) == (size in formula.ignores)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_that_a_log_may_be_printed_by_is_that_number(name):
    formula = find_formula(name)
    for recompute, printed in formula.printed_as.items():
        counted = formula.hardware_flops_per_token(LLAMA2_7B, 4096, recompute)
        assert PRINTED_FORMULAS[printed].flops_per_token(LLAMA2_7B, 4096) == pytest.approx(counted, rel=1e-12)


@pytest.mark.parametrize("recompute", get_args(Recompute))
def test_recompute_is_quoted_in_full_or_not_at_all(recompute):
    assert find_formula("ascendspeed").quoted(recompute) == ("full" if recompute == "full" else "none")
    assert find_formula("megatron").quoted(recompute) == "none"
    assert find_formula("ascendspeed").quoted(None) == "none"


# ---- registry and document


def test_registry_is_keyed_by_name():
    first, second, *others = FORMULAS
    assert (first, second) == (default_formula().name, real_model_formula().name) == ("ascendspeed", "megatron")
    assert others == sorted(others)
    assert all(find_formula(name) is formula and formula.name == name for name, formula in FORMULAS.items())


def test_every_module_has_a_name_of_its_own_one_is_the_default_and_one_the_model_as_built():
    modules = [m for m in (ROOT / "analysis" / "flops").glob("*.py") if not m.name.startswith("_")]
    assert len(FORMULAS) == len(modules)
    assert sum(f.default for f in FORMULAS.values()) == sum(f.real_model for f in FORMULAS.values()) == 1
    assert real_model_formula().ignores == ()  # it is what the notes advise


def test_unknown_formula_is_an_error_with_a_remedy():
    with pytest.raises(UsageError) as caught:
        find_formula("megatorn")
    assert str(caught.value) == (
        f"unknown formula 'megatorn'\n  try:   did you mean megatron? use one of {', '.join(FORMULAS)}"
    )


SOURCES = [
    path
    for pattern in ("*.py", "*.j2")
    for path in (ROOT / "analysis").rglob(pattern)
    if ROOT / "analysis" / "flops" not in path.parents
]


@pytest.mark.parametrize("name", FORMULAS)
def test_no_other_room_knows_a_formula_by_name(name):
    named = re.compile(rf"['\"]{name}['\"]|\b{name} formula\b|--formula {name}\b")
    assert [str(path) for path in SOURCES if named.search(path.read_text(encoding="utf-8"))] == []


def test_document_gives_the_formulas_it_describes():
    documented = documented_formulas()
    assert documented == {name: find_formula(name).text for name in documented}
    (columns,) = re.findall(r"^## What counts\n\n\| \| (.+) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert columns.split(" | ") == list(documented)
    assert {default_formula().name, real_model_formula().name} < set(documented)


def test_document_table_holds_the_numbers():
    rows = [[cell.strip() for cell in line.split("|")] for line in DOCUMENT.read_text(encoding="utf-8").splitlines()]
    tables = {row[1]: row[2:7] for row in rows if len(row) == 8 and row[1] in documented_formulas()}
    assert list(tables) == list(documented_formulas())
    for name, cells in tables.items():
        per_token = [gflops(name, LLAMA2_7B, recompute) for recompute in ("none", "selective", "full")]
        rates = [tflops(name, LLAMA2_7B, r, samples=256, seconds=10, devices=8) for r in ("none", "full")]
        assert cells == [*(f"{x:.3f}" for x in per_token), *(f"{x:.2f}" for x in rates)]
