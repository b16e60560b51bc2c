"""The printed formulas against published and printed numbers, and against each other where a shape makes them one."""

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
import shapes
from shapes import GPT_22B, LLAMA2_7B, LLAMA2_70B

from analysis.flops import find_formula
from analysis.flops.printed import PRINTED_FORMULAS
from analysis.model.shape import ModelShape

MIXTRAL = replace(shapes.MIXTRAL, moe_ffn_hidden_size=14336)
DOCUMENT = Path(__file__).parents[3] / "docs" / "identification.md"


def gflops(name, shape, seq_length=4096, ratio=0.5):
    """GFLOP per token."""
    return PRINTED_FORMULAS[name].flops_per_token(shape, seq_length, ratio) / 1e9


# LLaMA2-7B at 4096 tokens; 256 samples on 8 devices in 10 s for the TFLOP/s.
WORKED = [
    ("M2", 37.428, 490.57),
    ("M3", 37.428, 490.57),
    ("6N-in", 39.644, 519.62),
    ("6N", 40.430, 529.93),
    ("M8", 42.864, 561.82),
    ("M8r", 42.864, 561.82),
    ("N", 42.864, 561.82),
    ("6N+6lhs", 42.865, 561.84),
    ("A3", 45.687, 598.83),
    ("M1", 45.884, 601.41),
    ("M4", 46.085, 604.04),
    ("M5", 46.085, 604.04),
    ("M6", 46.085, 604.04),
    ("M7", 46.085, 604.04),
    ("D-none", 46.085, 604.04),
    ("D1-none", 46.085, 604.04),
    ("N1", 46.085, 604.04),
    ("G", 46.085, 604.04),
    ("V", 46.871, 614.35),
    ("6N+12lhs", 46.873, 614.37),
    ("D-selective", 48.232, 632.19),
    ("B4", 51.810, 679.09),
    ("A4", 60.916, 798.44),
    ("P", 60.916, 798.44),
    ("AG3", 60.916, 798.44),
    ("D-full", 61.447, 805.39),
    ("AG4", 81.221, 1064.58),
]


@pytest.mark.parametrize(("name", "per_token", "per_second"), WORKED)
def test_worked_example_of_llama2_7b(name, per_token, per_second):
    assert round(gflops(name, LLAMA2_7B), 3) == per_token
    assert round(gflops(name, LLAMA2_7B) * 256 * 4096 / 10 / 8 / 1000, 2) == per_second


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("M1", 363.96),
        ("M3", 331.75),
        ("M4", 444.49),
        ("M8", 428.39),
        ("D-none", 436.44),
        ("A3", 419.94),
        ("A4", 559.92),
        ("V", 446.06),
        ("6N", 413.86),
    ],
)
def test_worked_example_of_llama2_70b(name, expected):
    assert round(gflops(name, LLAMA2_70B), 2) == expected


def test_each_id_is_its_own_key():
    assert all(name == formula.id for name, formula in PRINTED_FORMULAS.items())
    titles = [formula.title for formula in PRINTED_FORMULAS.values()]
    assert len(set(titles)) == len(titles)


# ---- rows of published tables: tokens/s per device beside TFLOP/s, by the formula of AscendSpeed


@pytest.mark.parametrize(
    ("sizes", "seq_length", "tokens", "name", "published", "tolerance"),
    [
        ((32, 4096, 32000), 2048, 3763, "A3", 159.9, 0.001),  # LLaMA-7B
        ((40, 5120, 32000), 2048, 1894, "A4", 205.57, 0.002),  # LLaMA-13B
        ((60, 6656, 32000), 2048, 512 * 2048 / 52.7281 / 32, "A4", 167.52, 0.0001),  # LLaMA-33B, a log line
        ((32, 4096, 32000), 4096, 2662, "A3", 122.39, 0.007),  # LLaMA2-7B: means of rates beside means of times
        ((32, 4096, 125696), 4096, 2607, "A3", 124, 0.004),  # Baichuan2-7B, printed without decimals
        ((40, 5120, 64000), 4096, 1016, "A3", 88.47, 0.001),  # Baichuan-13B
        ((30, 4096, 250880), 2048, 2503, "A3", 109.85, 0.0002),  # Bloom-7B1
        ((32, 4096, 103168), 2048, 3328, "A3", 145.69, 0.0001),  # InternLM-7B
        ((80, 8192, 103168), 2048, 342, "A3", 137.8, 0.01),  # InternLM-65B, three digits of tokens/s
        ((32, 4096, 100008), 2048, 3394.56, "A3", 148.41, 0.0001),  # Aquila-7B
    ],
)
def test_published_rows_of_ascendspeed(sizes, seq_length, tokens, name, published, tolerance):
    shape = ModelShape(num_layers=sizes[0], hidden_size=sizes[1], padded_vocab_size=sizes[2])
    assert gflops(name, shape, seq_length) * tokens / 1000 == pytest.approx(published, rel=tolerance)


# ---- numbers that frameworks computed and did not round: batch, ms, devices


@pytest.mark.parametrize(
    ("name", "shape", "run", "printed"),
    [
        ("M1", replace(LLAMA2_70B, padded_vocab_size=51200), (1024, 76854.05899548905, 128), 155.58305066267403),
        ("M5", replace(LLAMA2_7B, padded_vocab_size=32256), (256, 121407.0, 8), 49.76044738432112),
        ("M4", replace(LLAMA2_7B, padded_vocab_size=32768), (32, 31407.0, 8), 24.050832194173882),
        ("M5", MIXTRAL, (128, 55080.0, 64), 12.33422908292874),
        ("M8", MIXTRAL, (256, 13789.808278942026, 64), 94.70487856928564),
        ("M8", replace(LLAMA2_70B, padded_vocab_size=32768), (1024, 19852.346441866313, 512), 176.787218655647),
    ],
)
def test_numbers_printed_in_full(name, shape, run, printed):
    batch, milliseconds, devices = run
    assert gflops(name, shape) * batch * 4096 / milliseconds / devices == pytest.approx(printed, rel=1e-6)


def test_deepspeed_of_a_gpt_is_the_model_flops_of_the_paper():
    shape = replace(GPT_22B, ffn_hidden_size=4 * 6144)
    assert gflops("D-none", shape, 2048) == pytest.approx(gflops("P3", shape, 2048))
    assert gflops("D-none", shape, 2048) * 512 * 2048 / 12185.466 / 64 == pytest.approx(187.69, abs=0.005)


def test_gpt_neox_of_2023_leaves_out_the_vocabulary():
    shape = ModelShape(num_layers=6, hidden_size=512, padded_vocab_size=50304)
    assert round(gflops("X4", shape, 2048) * 512 * 2048 / 596.5 / 8, 1) == 55.3
    assert round(gflops("A4", shape, 2048) * 512 * 2048 / 596.5 / 8, 1) == 89.3


def test_gpt_neox_since_2023_12_prints_the_formula_of_ascendspeed():
    """NeoX-20B, 1536 samples on 96 devices, checkpoint_activations, by the code of 2026-05."""
    shape = ModelShape(num_layers=44, hidden_size=6144, padded_vocab_size=50432)
    assert round(gflops("A4", shape, 2048) * 1536 * 2048 / 55719.4 / 96, 1) == 100.1
    assert round(gflops("X4", shape, 2048) * 1536 * 2048 / 55719.4 / 96, 1) != 100.1
    for name in ("A3", "A4"):
        assert "GPT-NeoX" in PRINTED_FORMULAS[name].title
        assert "GPT-NeoX since 2023-12" in PRINTED_FORMULAS[name].printed_by


def test_early_bigscience_is_right_within_its_accuracy():
    """Line 16800 of the 104B run: 384505.8 ms, 2048 samples of 2048 tokens on 256 devices, printed as 35.24."""
    shape = ModelShape(64, 11600, 46400, False, 80, 80, 145, 50688)
    assert gflops("B4", shape, 2048) * 2048 * 2048 / 384505.8 / 256 == pytest.approx(
        35.24, rel=PRINTED_FORMULAS["B4"].accuracy
    )
    assert gflops("B4", shape, 2048) == pytest.approx(4 / 3 * gflops("B3", shape, 2048))


def test_early_bigscience_counts_the_biases_and_norms_of_a_gpt():
    layers, hidden = 48, 6144
    parameters = layers * (12 * hidden**2 + 13 * hidden) + 2 * hidden
    assert gflops("B3", GPT_22B) == pytest.approx(6 * parameters / 1e9, rel=1e-12)


def test_old_gpt_neox_counts_five_times_the_attention():
    attention = 12 * 32 * 4096 * 4096 / 1e9
    assert gflops("X6", LLAMA2_7B) - gflops("6N", LLAMA2_7B) == pytest.approx(5 * attention)
    assert gflops("6N+12lhs", LLAMA2_7B) - gflops("6N", LLAMA2_7B) == pytest.approx(attention)


# ---- the steps of Megatron's history, each told from the one before


def test_ages_of_megatron_differ_by_one_thing():
    wide = replace(LLAMA2_7B, kv_channels=256)
    assert gflops("M2", MIXTRAL) < gflops("M3", MIXTRAL)  # k experts
    assert gflops("M3", LLAMA2_7B) < gflops("M4", LLAMA2_7B)  # the gate
    assert gflops("M4", wide) == gflops("M4", LLAMA2_7B)
    assert gflops("M4", wide) < gflops("M5", wide)  # heads wider than h/a
    shared = replace(MIXTRAL, moe_shared_expert_intermediate_size=1024)
    assert gflops("M5", shared) == gflops("M5", MIXTRAL)
    assert gflops("M6", shared) - gflops("M6", MIXTRAL) == pytest.approx(18 * 32 * 4096 * 1024 / 1e9)
    narrow = replace(MIXTRAL, moe_ffn_hidden_size=1024)
    assert gflops("M6", narrow) == gflops("M6", MIXTRAL)
    assert gflops("M7", narrow) < gflops("M7", MIXTRAL)
    assert gflops("M5", LLAMA2_7B) - gflops("M8", LLAMA2_7B) == pytest.approx(6 * 32 * 4096 * 4096 / 1e9)


def test_megatron_of_today_is_the_project_formula():
    assert gflops("M8", MIXTRAL) * 1e9 == find_formula("megatron").model_flops_per_token(MIXTRAL, 4096)
    assert gflops("A4", MIXTRAL) * 1e9 == pytest.approx(
        find_formula("ascendspeed").hardware_flops_per_token(MIXTRAL, 4096, "full")
    )


def test_printed_attention_share_takes_the_place_of_the_half():
    core = 12 * 32 * 4096 * 4096 / 1e9
    assert gflops("M8r", LLAMA2_7B, ratio=0.5) == pytest.approx(gflops("M8", LLAMA2_7B))
    assert gflops("M8r", LLAMA2_7B, ratio=1.0) == pytest.approx(gflops("G", LLAMA2_7B))
    assert gflops("M8r", LLAMA2_7B, ratio=0.5) - gflops("M8r", LLAMA2_7B, ratio=0.25) == pytest.approx(core / 4)
    assert PRINTED_FORMULAS["M8r"].flops_per_token(LLAMA2_7B, 4096) is None


@pytest.mark.parametrize(("groups", "projections"), [(64, 4), (32, 3), (16, 2), (8, 2), (40, 4)])
def test_deepspeed_divides_whole_numbers(groups, projections):
    """At 2 heads to a group keys and values count half, above not at all."""
    shape = replace(LLAMA2_70B, num_query_groups=groups)
    rest = 6 * (80 * (2 * 8192 * 4096 + 3 * 8192 * 28672) + 8192 * 32000) / 1e9
    assert gflops("D-none", shape) - rest == pytest.approx(6 * 80 * projections * 8192**2 / 1e9)


def test_deepspeed_counts_experts_since_2024_10():
    assert gflops("D-none", MIXTRAL) > gflops("D1-none", MIXTRAL)
    assert gflops("D1-none", MIXTRAL) == gflops("D-none", replace(MIXTRAL, num_experts=None))
    assert gflops("D-full", MIXTRAL) == pytest.approx(4 / 3 * gflops("D-none", MIXTRAL))


def test_bigscience_counts_a_gate_and_nothing_without_one():
    assert gflops("AG3", LLAMA2_7B) == pytest.approx(4 / 3 * gflops("A3", LLAMA2_7B))
    assert gflops("AG4", GPT_22B) == gflops("A4", GPT_22B)


def test_verl_takes_heads_of_a_dense_model_to_add_up_to_the_width():
    wide = replace(LLAMA2_7B, kv_channels=256)
    assert gflops("V", wide) == gflops("V", LLAMA2_7B)
    assert gflops("V", replace(MIXTRAL, kv_channels=256)) > gflops("V", MIXTRAL)
    assert gflops("V", MIXTRAL) - gflops("V", replace(MIXTRAL, num_experts=16)) == pytest.approx(
        -6 * 32 * 4096 * 8 / 1e9
    )


def test_torchtitan_counts_heads_as_wide_as_they_are():
    wide = replace(LLAMA2_7B, kv_channels=256)
    more = gflops("torchtitan", wide) - gflops("torchtitan", LLAMA2_7B)
    assert more == pytest.approx((6 * 4 * 4096 * 4096 * 32 + 12 * 32 * 4096 * 4096) / 1e9)
    llama3_8b = replace(LLAMA2_7B, ffn_hidden_size=14336, num_query_groups=8, padded_vocab_size=128256)
    assert round(gflops("torchtitan", llama3_8b, 8192), 2) == 57.91
    assert round(gflops("6N+6lhs", llama3_8b, 8192), 2) == 51.47


@pytest.mark.parametrize("name", PRINTED_FORMULAS)
def test_more_tokens_cost_no_less_and_unknown_sizes_are_named(name):
    formula = PRINTED_FORMULAS[name]
    for shape in (LLAMA2_7B, LLAMA2_70B, MIXTRAL, GPT_22B):
        if shape is MIXTRAL and name.startswith("B"):
            continue
        assert 0 < formula.flops_per_token(shape, 1024, 0.5) <= formula.flops_per_token(shape, 4096, 0.5)
    missing = formula.missing(ModelShape())
    assert {"num_layers", "hidden_size"} <= set(missing)
    assert len(missing) == len(set(missing))
    for size in missing:
        unknown = replace(LLAMA2_7B, **{size: None})
        assert formula.missing(unknown) == (size,)
        assert formula.flops_per_token(unknown, 4096, 0.5) is None


def test_document_lists_every_formula():
    """Variants by recomputation share a row, which has what their formulas have in common."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (`.+) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    listed = {name: (printed_by, text) for names, printed_by, text in rows for name in names.split(", ")}
    assert set(listed) == set(PRINTED_FORMULAS)
    for formula in PRINTED_FORMULAS.values():
        printed_by, text = listed[formula.id]
        assert printed_by == formula.printed_by
        assert f"`{re.split(', c = |; again', formula.text)[0]}`" in text


LATENT = replace(
    MIXTRAL,
    num_moe_layers=31,
    multi_latent_attention=True,
    kv_lora_rank=512,
    qk_head_dim=128,
    qk_pos_emb_head_dim=64,
    v_head_dim=128,
    mtp_num_layers=1,
)


@pytest.mark.parametrize("name", PRINTED_FORMULAS)
def test_a_size_that_is_missing_gives_no_number_and_no_crash(name):
    formula = PRINTED_FORMULAS[name]
    for size in (f.name for f in fields(ModelShape)):
        for shape in (GPT_22B, LLAMA2_70B, MIXTRAL, LATENT):
            flops = formula.flops_per_token(replace(shape, **{size: None}), 4096, 0.5)
            assert flops is None or flops > 0, size


def test_early_bigscience_knew_no_latent_attention():
    bare = replace(LLAMA2_7B, multi_latent_attention=True, kv_lora_rank=512)
    assert PRINTED_FORMULAS["B3"].flops_per_token(bare, 4096) == gflops("B3", LLAMA2_7B) * 1e9


def test_parameters_that_cannot_be_counted_give_none():
    bare = replace(LLAMA2_7B, multi_latent_attention=True)
    assert PRINTED_FORMULAS["6N-in"].flops(bare, 4096) is None
    assert PRINTED_FORMULAS["torchtitan"].flops(bare, 4096) is None
