"""The exact parameter count: hand-worked sums, published counts, and what must hold for any shape."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapes import LLAMA2_7B

from analysis.model.catalogue import Model, all_models, find_model
from analysis.model.parameters import Details, Parameters, count_parameters
from analysis.model.shape import ModelShape


def count(model: Model, *, include_mtp: bool = False) -> Parameters:
    counted = count_parameters(model.shape, model.vocab_size, details=model.details, include_mtp=include_mtp)
    assert counted is not None, model.name
    return counted


def total(shape: ModelShape, details: Details | None = None) -> int:
    counted = count_parameters(shape, details=details or Details())
    assert counted is not None
    return counted.total


def test_llama2_7b_by_hand():
    counted = count_parameters(LLAMA2_7B)
    assert counted is not None
    assert counted.embedding == counted.output == 131_072_000  # 32000 x 4096
    assert counted.attention == 67_108_864  # 4 x 4096^2
    assert counted.mlp == 135_266_304  # 3 x 4096 x 11008
    assert counted.layer_norms == 8192  # 2 x 4096
    # 32 x (67,108,864 + 135,266,304 + 8192) + 2 x 131,072,000 + 4096
    assert counted.total == counted.active == 6_738_415_616


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("llama2-7b", 6_738_415_616),
        ("llama2-13b", 13_015_864_320),
        ("llama2-70b", 68_976_648_192),
        ("llama3-8b", 8_030_261_248),
        ("qwen2.5-7b", 7_615_616_512),
        ("qwen3-0.6b", 596_049_920),
        ("bloom-7b1", 7_069_016_064),
        ("bloom-176b", 176_247_271_424),
        ("mixtral-8x7b", 46_702_792_704),
        ("deepseek-v2", 235_741_434_880),
        ("deepseek-v3", 671_026_419_200),
    ],
)
def test_count_is_exact(name, parameters):
    assert count(find_model(name)).total == parameters


def test_gpt3_is_near_its_name():
    # 96 x (12 x 12288^2 + 13 x 12288) + (50257 + 2048) x 12288 + 2 x 12288
    assert count(find_model("gpt3-175b")).total == 174_604_259_328


@pytest.mark.parametrize("model", [m for m in all_models() if m.parameters], ids=lambda m: m.name)
def test_every_published_count_agrees(model):
    assert count(model).total == pytest.approx(model.parameters, rel=1e-3)


@pytest.mark.parametrize("model", all_models(), ids=lambda m: m.name)
def test_every_model_can_be_counted_and_details_hardly_matter(model):
    plain = count_parameters(model.shape, model.vocab_size)
    assert plain is not None
    most = 2e-2 if model.details.position_embeddings else 1e-3
    assert plain.total == pytest.approx(count(model).total, rel=most)


def rounded_like(published: int, exact: int) -> int:
    """``exact`` to the last decimal place that ``published`` gives."""
    places = len(str(published)) - len(str(published).rstrip("0"))
    return round(exact, -places)


@pytest.mark.parametrize("model", [m for m in all_models() if m.active_parameters], ids=lambda m: m.name)
def test_published_active_counts_agree_to_the_last_place(model):
    counted = count(model)
    # DeepSeek-V3's leaves out the input embedding, of which a token meets one row.
    active = counted.active - (counted.embedding if model.name == "deepseek-v3" else 0)
    assert rounded_like(model.active_parameters, active) == model.active_parameters


def test_mixtral_active_by_hand():
    # a token does not meet 6 experts of 3 x 4096 x 14336 in 32 layers: 46,702,792,704 - 32 x 6 x 176,160,768
    assert count(find_model("mixtral-8x7b")).active == 12_879_925_248


def test_deepseek_v3_attention_by_hand():
    counted = count(find_model("deepseek-v3"))
    # query      1536 x (7168 + 1 + 128 x 192)            = 48,760,320
    # key, value 7168 x 576 + 512 + 512 x 128 x (128+128) = 20,906,496
    # output     128 x 128 x 7168                         = 117,440,512
    assert counted.attention == 48_760_320 + 20_906_496 + 117_440_512


def test_deepseek_v3_weights_that_each_tensor_rank_holds_by_hand():
    # 7168 x 1536 + 1536 for the query, 7168 x 576 + 512 for key and value
    assert count(find_model("deepseek-v3")).attention_whole == 11_011_584 + 4_129_280


def test_deepseek_v3_experts_by_hand():
    counted = count(find_model("deepseek-v3"))
    expert = 3 * 7168 * 2048
    assert (counted.routed, counted.active_routed, counted.shared) == (256 * expert, 8 * expert, expert)
    assert counted.router == 256 * (7168 + 1)
    assert counted.moe == 257 * expert + 256 * 7169


def test_norms_of_query_and_key_are_whole_and_projections_are_not():
    counted = count(find_model("qwen3-32b"))
    assert counted.attention_whole == 2 * 128
    assert count(find_model("llama2-7b")).attention_whole == 0


def test_multi_token_prediction_counts_only_when_asked():
    model = find_model("deepseek-v3")
    extra = count(model, include_mtp=True).total - count(model).total
    # one more layer of experts, 11,507,286,272, and 2 x 7168^2 + 3 x 7168 = 102,781,952; published as 11.5 billion
    assert extra == 11_507_286_272 + 102_781_952


def test_qkv_bias_by_hand():
    # 32 x 3 x 4096
    assert total(LLAMA2_7B, Details(bias="qkv")) - total(LLAMA2_7B) == 393_216


def test_all_biases_by_hand():
    # 32 x (3 x 4096 + 4096 + 2 x 11008 + 4096)
    assert total(LLAMA2_7B, Details(bias="all")) - total(LLAMA2_7B) == 32 * 42_496


def test_tied_embedding_counts_once():
    assert total(LLAMA2_7B) - total(replace(LLAMA2_7B, untie_embeddings_and_output_weights=False)) == 131_072_000


def test_given_vocabulary_wins_over_the_padded_one():
    counted = count_parameters(LLAMA2_7B, 100)
    assert counted is not None
    assert counted.embedding == 409_600  # 100 x 4096


@pytest.mark.parametrize("name", [name for name, size in vars(LLAMA2_7B).items() if size is not None])
def test_unknown_size_of_a_dense_model_is_no_count(name):
    assert count_parameters(replace(LLAMA2_7B, **{name: None})) is None


EXPERTS = ["moe_router_topk", "moe_ffn_hidden_size", "num_moe_layers"]
LATENT = ["kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim"]


@pytest.mark.parametrize("name", [*EXPERTS, *LATENT, "ffn_hidden_size"])
def test_unknown_size_of_a_mixture_of_experts_is_no_count(name):
    assert count_parameters(replace(find_model("deepseek-v3").shape, **{name: None}), 129280) is None


@pytest.mark.parametrize("rank", [None, 0])
def test_query_that_is_not_compressed(rank):
    counted = count_parameters(replace(find_model("deepseek-v3").shape, q_lora_rank=rank), 129280)
    assert counted is not None
    # query 7168 x 128 x 192 in place of the 48,760,320 above
    assert counted.attention == 7168 * 128 * 192 + 20_906_496 + 117_440_512


sizes = st.integers(min_value=1, max_value=512)
dense_shapes = st.builds(
    ModelShape,
    num_layers=sizes,
    hidden_size=sizes,
    ffn_hidden_size=sizes,
    gated_linear_unit=st.booleans(),
    num_attention_heads=sizes,
    num_query_groups=sizes,
    kv_channels=sizes,
    padded_vocab_size=sizes,
    untie_embeddings_and_output_weights=st.booleans(),
)
expert_shapes = st.builds(
    lambda shape, experts, topk, width, shared: replace(
        shape,
        num_experts=experts + topk,
        moe_router_topk=topk,
        moe_ffn_hidden_size=width,
        moe_shared_expert_intermediate_size=shared,
        num_moe_layers=shape.num_layers,
    ),
    dense_shapes,
    st.integers(min_value=0, max_value=64),
    st.integers(min_value=1, max_value=8),
    sizes,
    st.none() | sizes,
)


@given(dense_shapes, st.sampled_from(["num_layers", "hidden_size"]))
def test_count_grows_with_the_model(shape, name):
    assert total(replace(shape, **{name: getattr(shape, name) + 1})) > total(shape)


@given(dense_shapes)
def test_every_parameter_of_a_dense_model_is_active(shape):
    counted = count_parameters(shape)
    assert counted is not None
    assert counted.active == counted.total


@given(expert_shapes)
def test_active_is_total_only_when_every_expert_is_met(shape):
    counted = count_parameters(shape)
    assert counted is not None
    assert (counted.active == counted.total) == (shape.num_experts == shape.moe_router_topk)
    assert counted.active <= counted.total
