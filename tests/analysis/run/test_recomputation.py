"""What recomputation adds to a run, each case worked by hand from its settings."""

from dataclasses import replace

import pytest
from helpers import ROOT, megatron_line, megatron_log, of_code
from shapes import LLAMA2_7B, MIXTRAL

from analysis.flops import Recomputation, find_formula
from analysis.project.given_facts import facts_of_flags
from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions
from analysis.run.rates.throughput import read_recomputation
from logparse.context.relations import derive
from logparse.context.run_context import Fact, Given, RunContext
from logparse.findings import Origin

LATENT = replace(
    LLAMA2_7B,
    num_query_groups=None,
    kv_channels=None,
    multi_latent_attention=True,
    q_lora_rank=1536,
    kv_lora_rank=512,
    qk_head_dim=128,
    qk_pos_emb_head_dim=64,
    v_head_dim=128,
)


def context(**facts: object) -> RunContext:
    return RunContext(derive({name: Fact(value, Origin("log", line=1)) for name, value in facts.items()}))


def analyzed(tmp_path, *flags, **settings):
    """HFU and MFU of a LLaMA2-7B on 8 devices at 6 steps of about a second; a peak of 1000 TFLOP/s."""
    log = tmp_path / "run.log"
    log.write_text(megatron_log(30, **settings))
    given = Given((facts_of_flags(dict(flags)),))
    return analyze_logs([str(log)], RunOptions(given=given, peak_tflops=1000.0))


def times(run, share):
    """HFU over MFU where a share of the layers runs again: a third of their work once more; logits are in no layer."""
    terms = find_formula("megatron").terms_per_token(run.analysis.computation.shape, run.context.get("seq_length"))
    return 1 + share * (1 - terms["logits"] / sum(terms.values())) / 3


# ---- a share of the layers


def test_one_of_ten_layers_of_a_stage(tmp_path):
    # 40 layers in 4 stages, the first of each recomputed: 4 of 40, so c = 3.1.
    run = analyzed(
        tmp_path,
        num_layers=40,
        pipeline_model_parallel_size=4,
        tensor_model_parallel_size=1,
        data_parallel_size=2,
        recompute_method="block",
        recompute_num_layers=1,
    )
    how = run.analysis.computation
    assert how.recompute_factor == pytest.approx(3.1)
    assert run.value("hfu") / run.value("mfu") == pytest.approx(times(run, 0.1))
    # 24 c l h^2 (1 + s/(6h) + V/(16 l h)) at c = 3.1, h = s, over 32 x 4096 tokens.
    flops = 24 * 3.1 * 40 * 4096**2 * (1 + 1 / 6 + 32000 / (16 * 40 * 4096)) * 32 * 4096
    assert run.analysis.flops_per_iteration == pytest.approx(flops, rel=1e-12)
    # What was printed for all layers stands to it as 4 to 3.1: 35.1 % is 27.2 %.
    assert round(35.1 * 3.1 / 4, 1) == 27.2


@pytest.mark.parametrize(
    ("settings", "share"),
    [
        ({"recompute_method": "uniform", "recompute_num_layers": 2}, 1),  # chunks of 2, all of them
        ({"recompute_method": "block", "recompute_num_layers": 0}, 0),
        ({"recompute_method": "block", "recompute_num_layers": 8}, 8 / 32),  # one stage of 32 layers
        ({"recompute_method": "block", "recompute_num_layers": 99}, 1),
        ({"recompute_granularity": "None", "recompute_method": "block", "recompute_num_layers": 8}, 0),
    ],
)
def test_hfu_over_mfu(tmp_path, settings, share):
    run = analyzed(tmp_path, **settings)
    assert run.value("hfu") / run.value("mfu") == pytest.approx(times(run, share), rel=1e-12)
    assert of_code(run.notes, "hfu_is_a_range") == []


def test_the_users_word_beats_the_method_of_the_log(tmp_path):
    block = {"recompute_method": "block", "recompute_num_layers": 8}
    run = analyzed(tmp_path, ("recompute", "full"), **block)
    assert run.value("hfu") / run.value("mfu") == pytest.approx(times(run, 1))
    run = analyzed(tmp_path, ("recomputed_layers", 16), **block)
    assert run.value("hfu") / run.value("mfu") == pytest.approx(times(run, 0.5))


def test_a_split_that_is_not_understood_makes_hfu_a_range(tmp_path):
    unknown = {"recompute_method": "block", "recompute_num_layers": 1, "pipeline_model_parallel_layout": "Et*32L"}
    run = analyzed(tmp_path, **unknown)
    (note,) = of_code(run.notes, "hfu_is_a_range")
    mfu = run.value("mfu")
    assert note.fields["low"] == pytest.approx(mfu)
    assert note.fields["high"] == pytest.approx(mfu * times(run, 1))
    assert run.value("hfu") is None
    without = analyzed(tmp_path, ("recompute", "none"), **unknown)
    assert run.value("tflops_per_second_per_device") == without.value("tflops_per_second_per_device")
    settled = analyzed(tmp_path, ("recomputed_layers", 8), **unknown)
    assert settled.value("hfu") / settled.value("mfu") == pytest.approx(times(settled, 0.25))
    assert of_code(settled.notes, "hfu_is_a_range") == []


# ---- parts of layers, by the terms of the formula


@pytest.mark.parametrize(
    ("shape", "modules", "again"),
    [
        # Attention core of the causal half: 6 x 32 x 32 x 128 x 4096 = 3.221 G, of which the forward pass is a third.
        (LLAMA2_7B, {"core_attn"}, 2 * 32 * 32 * 128 * 4096),
        # Three matrices of 4096 x 11008 in 32 layers, two operations forward.
        (LLAMA2_7B, {"mlp"}, 2 * 32 * 3 * 4096 * 11008),
        (LLAMA2_7B, {"mlp", "core_attn"}, 2 * 32 * (3 * 4096 * 11008 + 32 * 128 * 4096)),
        (LLAMA2_7B, {"moe"}, 0),  # a dense model has none
        # Two of the experts, each three matrices of 4096 x 14336.
        (MIXTRAL, {"moe"}, 2 * 32 * 2 * 3 * 4096 * 14336),
        (MIXTRAL, {"mlp"}, 0),  # every layer has experts
        (replace(MIXTRAL, moe_shared_expert_intermediate_size=1000), {"shared_experts"}, 2 * 32 * 3 * 4096 * 1000),
        # The layer with experts holds the shared ones: they run again once.
        (
            replace(MIXTRAL, moe_shared_expert_intermediate_size=1000),
            {"shared_experts", "moe"},
            2 * 32 * 3 * 4096 * (2 * 14336 + 1000),
        ),
        # Query from 1536 to 32 x (128 + 64), key and value from 512 to 32 x (128 + 128).
        (LATENT, {"mla_up_proj"}, 2 * 32 * (1536 * 32 * 192 + 512 * 32 * 256)),
    ],
)
def test_parts_of_layers_by_the_formula_as_built(shape, modules, again):
    formula = find_formula("megatron")
    model = formula.model_flops_per_token(shape, 4096)
    hardware = formula.hardware_flops_per_token(shape, 4096, Recomputation(modules=frozenset(modules)))
    assert hardware - model == pytest.approx(again, rel=1e-9, abs=1e-3 * 2**20)


def test_parts_by_the_ascendspeed_formula_are_parts_of_its_own_terms():
    formula = find_formula("ascendspeed")

    def again(shape, *modules):
        executed = formula.hardware_flops_per_token(shape, 4096, Recomputation(modules=frozenset(modules)))
        return executed - formula.model_flops_per_token(shape, 4096)

    # Its MLP is two matrices of 4h: 16 l h^2 forward, whatever the model has; its experts are that MLP.
    assert again(LLAMA2_7B, "mlp") == pytest.approx(16 * 32 * 4096**2)
    assert again(MIXTRAL, "moe") == pytest.approx(16 * 32 * 4096**2)
    assert again(LLAMA2_7B, "core_attn") == pytest.approx(4 * 4096 * 32 * 4096)
    # A quarter of the experts' width is shared: a quarter of it, 1 of 1 + 2 x 1.5.
    shared = replace(MIXTRAL, moe_ffn_hidden_size=1500, moe_shared_expert_intermediate_size=1000)
    assert again(shared, "shared_experts") == pytest.approx(4 * 32 * 4096**2)


@pytest.mark.parametrize(
    ("modules", "known"),
    [
        ("['core_attn']", {"core_attn"}),
        ("['layernorm', 'moe_act']", set()),  # no matrix product runs again
        ("['mlp', 'moe', 'layernorm']", {"mlp", "moe"}),
        (None, {"core_attn"}),
    ],
)
def test_modules_of_megatron(modules, known):
    facts = {"recompute": "selective", "num_layers": 32} | ({} if modules is None else {"recompute_modules": modules})
    assert read_recomputation(context(**facts)).known == Recomputation(modules=frozenset(known))


def test_a_module_nobody_knows_makes_a_range():
    found = read_recomputation(context(recompute="selective", num_layers=32, recompute_modules="['mlp', 'mhc']"))
    assert (found.known, found.least) == (None, Recomputation(modules=frozenset({"mlp"})))
    assert found.most == Recomputation(1.0, 1.0)


def test_old_logs_without_modules_recompute_the_core():
    assert read_recomputation(context(recompute="selective")).known == Recomputation(modules=frozenset({"core_attn"}))


# ---- MindFormers


@pytest.mark.parametrize(
    ("facts", "least", "most"),
    [
        # 5 of 32 layers.
        ({"recompute": "full", "recompute_by_stage": "[3, 2]"}, Recomputation(5 / 32), None),
        # Beside them the attention of all other layers.
        (
            {
                "recompute": "full",
                "recompute_by_stage": "[3, 2]",
                "recompute_selected": r"{'attention\\.flash_attention': True}",
            },
            Recomputation(5 / 32, modules=frozenset({"core_attn"})),
            None,
        ),
        # Activation functions hold no matrix product.
        (
            {
                "recompute": "selective",
                "recompute_selected": r"{'feed_forward\\.mul': True, 'feed_forward\\.w1\\.activation\\.silu': True}",
            },
            Recomputation(),
            None,
        ),
        ({"recompute": "selective", "recompute_selected": r"{'feed_forward\\.mul': [1, 2]}"}, Recomputation(), None),
        # Without patterns the operators are those of the version.
        (
            {"recompute": "selective", "recompute_selected": "True"},
            Recomputation(),
            Recomputation(modules=frozenset({"core_attn"})),
        ),
        # A matrix product that is not counted apart.
        (
            {"recompute": "selective", "recompute_selected": r"{'feed_forward\\.w1': True}"},
            Recomputation(),
            Recomputation(1.0, 1.0),
        ),
    ],
)
def test_lists_of_mindformers(facts, least, most):
    found = read_recomputation(context(num_layers=32, pipeline_model_parallel_size=2, **facts))
    assert found.least == least
    assert found.most == (least if most is None else most)


def test_depths_of_prediction_are_left_out_by_the_block_method():
    # Megatron recomputes them with method uniform alone. 10 layers and one depth, as wide as each other.
    facts = {"recompute": "full", "num_layers": 10, "pipeline_model_parallel_size": 1, "mtp_num_layers": 1}
    uniform = read_recomputation(context(**facts, recompute_method="uniform", recompute_num_layers=1))
    block = read_recomputation(context(**facts, recompute_method="block", recompute_num_layers=10))
    assert (uniform.known, block.known) == (Recomputation(1.0, 1.0), Recomputation(1.0, 0.0))
    shape = replace(LLAMA2_7B, num_layers=10, mtp_num_layers=1)
    formula = find_formula("megatron")
    again = formula.again_per_token(shape, 4096, block.known)
    terms = formula.terms_per_token(shape, 4096)
    assert again["mlp"] == pytest.approx(terms["mlp"] * 10 / 11 / 3)
    assert "multi-token prediction" not in again


MINDFORMERS = ROOT / "fixtures/mindformers/family-b-1.5/run.log"
PATTERNS = r"['feed_forward\\.mul', 'feed_forward\\.w1\\.activation']"


@pytest.mark.parametrize(
    ("listed", "selected", "share"),
    [
        # 28 layers on two stages of 14.
        ("False", PATTERNS, 0),
        ("[3, 2]", "False", 5 / 28),
        ("[20, True]", "False", 1),
        # Two interleaves of 7 layers a stage: 1 and 0, then 2 and 7 though 9 is asked.
        ("[[1, 0], [2, 9]]", "False", 10 / 28),
        ("[0, 0]", PATTERNS, 0),
        ("True", "False", 1),
    ],
)
def test_a_log_of_mindformers(tmp_path, listed, selected, share):
    text = MINDFORMERS.read_text()
    was = f"'recompute': False, 'select_recompute': {PATTERNS}"
    assert was in text
    log = tmp_path / "run.log"
    log.write_text(text.replace(was, f"'recompute': {listed}, 'select_recompute': {selected}"))
    run = analyze_logs([str(log)], RunOptions(peak_tflops=400.0))
    assert run.value("hfu") / run.value("mfu") == pytest.approx(times(run, share))
    assert of_code(run.notes, "hfu_is_a_range") == []


def test_lists_of_layers_under_swap_are_not_taken_for_lists_of_stages(tmp_path):
    swapped = "initial swap_config from dict: {'swap': True, 'layer_swap': None}\n"
    text = swapped + MINDFORMERS.read_text().replace("'recompute': False", "'recompute': [3, 5]", 1)
    log = tmp_path / "run.log"
    log.write_text(text)
    run = analyze_logs([str(log)], RunOptions(peak_tflops=400.0))
    assert run.value("hfu") is None
    assert of_code(run.notes, "hfu_is_a_range")


@pytest.mark.parametrize(
    ("settings", "share"),
    [
        ({"activations_checkpoint_method": "uniform", "activations_checkpoint_num_layers": 1}, 1),
        ({"activations_checkpoint_method": "block", "activations_checkpoint_num_layers": 8}, 8 / 32),
        ({"activations_checkpoint_method": "None", "activations_checkpoint_num_layers": 1}, 0),
    ],
)
def test_the_names_of_2021(tmp_path, settings, share):
    log = tmp_path / "run.log"
    log.write_text(megatron_log(30, **settings).replace("  recompute_granularity", "  no_setting_of_then_at_all"))
    run = analyze_logs([str(log)], RunOptions(peak_tflops=1000.0))
    assert run.value("hfu") / run.value("mfu") == pytest.approx(times(run, share))


def test_modules_of_a_log_by_the_formula_as_built(tmp_path):
    # Per token forward: MLPs 2 x 32 x 3 x 4096 x 11008 = 8.657 GFLOP of a model of 42.864.
    log = tmp_path / "run.log"
    modules = {"recompute_granularity": "selective", "recompute_modules": "['mlp', 'layernorm']"}
    log.write_text(megatron_log(30, **modules))
    run = analyze_logs([str(log)], RunOptions(formula=find_formula("megatron"), peak_tflops=1000.0))
    assert run.value("hfu") / run.value("mfu") == pytest.approx(1 + 8.6570 / 42.864, rel=1e-4)


def test_a_command_line_tells_of_fp4_and_of_recomputation(tmp_path):
    command = (
        "+ torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --bf16 --fp4-format e2m1 "
        "--recompute-granularity full --recompute-method block --recompute-num-layers 2 "
        "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 4 --train-iters 500\n"
    )
    log = tmp_path / "run.log"
    log.write_text(command + "".join(f"{megatron_line(step)}\n" for step in range(1, 31)))
    context = analyze_logs([str(log)], RunOptions()).context
    # 4 stages of 2 chunks of 4 layers, 2 of each chunk.
    assert (context.get("precision"), context.get("recomputed_layers")) == ("fp4", 16)
