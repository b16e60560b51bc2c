"""The catalogue: every entry is complete, every name finds one model, and an unknown name says what to do."""

from collections import Counter

import pytest

from analysis.model.catalogue import all_models, find_model, is_family, named_in
from logparse.errors import UsageError
from logparse.schema import QUANTITY

MODELS = pytest.mark.parametrize("model", all_models(), ids=lambda m: m.name)


def test_catalogue_holds_the_asked_models():
    names = {model.name for model in all_models()}
    assert {"llama-65b", "llama2-34b", "llama3-405b", "baichuan2-13b", "internlm-65b", "aquila-7b"} <= names
    assert {"qwen-72b", "qwen2.5-32b", "qwen3-32b", "mixtral-8x7b", "deepseek-v2", "deepseek-v3", "gpt3-175b"} <= names


def test_no_name_is_given_twice():
    names = Counter(name for model in all_models() for name in (model.name, *model.aliases))
    assert [name for name, times in names.items() if times > 1] == []


@MODELS
def test_every_name_finds_its_model(model):
    for name in (model.name, *model.aliases):
        assert find_model(name) is model
        assert find_model(name.upper().replace("-", "_")) is model


@MODELS
def test_every_model_has_a_source(model):
    assert len(model.source) > 10
    assert "://" not in model.source


def test_only_weights_that_were_never_released_have_no_published_count():
    # Of Nemotron-4 15B the parts are published, rounded to 0.1 billion: 12.5 and 3.2.
    assert [model.name for model in all_models() if model.parameters is None] == ["internlm-65b", "nemotron4-15b"]
    assert "weights not released" in find_model("internlm-65b").source


@MODELS
def test_quantities_are_in_the_glossary_and_known(model):
    quantities = model.quantities()
    assert set(quantities) <= set(QUANTITY)
    assert None not in quantities.values()
    assert quantities["vocab_size"] == model.vocab_size
    assert "padded_vocab_size" not in quantities


@MODELS
def test_shape_is_consistent(model):
    shape = model.shape
    if shape.multi_latent_attention:
        assert shape.kv_channels is None
    else:
        assert shape.num_attention_heads % shape.num_query_groups == 0
    if shape.num_experts is not None:
        assert shape.moe_router_topk <= shape.num_experts
        assert shape.num_moe_layers <= shape.num_layers
        assert model.active_parameters < model.parameters


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("Llama-2-7b", "llama2-7b"),
        ("LLAMA2_7B", "llama2-7b"),
        ("Meta-Llama-3.1-8B", "llama3-8b"),
        ("CodeLlama-34b-hf", "llama2-34b"),
        ("Qwen-1_8B", "qwen-1.8b"),
        ("Qwen2.5 7B", "qwen2.5-7b"),
        ("deepseek3_671b", "deepseek-v3"),
        ("bloom", "bloom-176b"),
        ("llama3_1_8b", "llama3-8b"),
        ("qwen2_5_7b", "qwen2.5-7b"),
        ("meta-llama/Llama-2-7b-hf", "llama2-7b"),
        ("/data/models/Llama-2-7b-hf/", "llama2-7b"),
        ("/data/cache/hub/models--meta-llama--Llama-2-7b-hf/snapshots/01c7f73d771d", "llama2-7b"),
        ("D:\\models\\Meta-Llama-3-8B\\original\\config.json", "llama3-8b"),
    ],
)
def test_common_spellings(spelling, name):
    assert find_model(spelling).name == name


@pytest.mark.parametrize(
    ("name", "family"),
    [
        *((name, True) for name in ("gpt2", "GPT2", "openai-community/gpt2", "bloom")),
        *((name, False) for name in ("gpt2-medium", "gpt2-124m", "mistral-7b", "deepseek-v3", "llama2_7b", "no-model")),
    ],
)
def test_a_name_of_several_sizes_is_that_of_a_family(name, family):
    assert is_family(name) is family


def test_quantities_of_llama2_70b():
    assert find_model("llama2-70b").quantities() == {
        "num_layers": 80,
        "hidden_size": 8192,
        "ffn_hidden_size": 28672,
        "gated_linear_unit": True,
        "num_attention_heads": 64,
        "num_query_groups": 8,
        "kv_channels": 128,
        "untie_embeddings_and_output_weights": True,
        "vocab_size": 32000,
    }


def test_unknown_name_says_what_to_do():
    with pytest.raises(UsageError) as caught:
        find_model("llama2-8b")
    assert caught.value.problem == "unknown model 'llama2-8b'"
    assert "llama2-7b" in caught.value.remedy
    assert "--num-layers, --hidden-size, --vocab-size" in caught.value.remedy


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("llama2_70b_lora", "llama2-70b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama3-8b"),
        ("gpt2-xl-wiki", "gpt2-xl"),
        ("gpt2-8.3b", None),
        ("llama2-7b-moe", None),
        ("distill-qwen-7b", None),
        ("llama2-7bx", None),
    ],
)
def test_a_name_that_begins_with_a_model_is_of_it(name, model):
    found = named_in(name)
    assert (found.name if found else None) == model


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("olmo-1b", "give"),
        ("llama2_70b_dpo", "did you mean llama2-70b? give"),
        ("lama2-7b", "did you mean llama2-7b, "),
    ],
)
def test_only_models_of_the_family_are_proposed(name, hint):
    with pytest.raises(UsageError) as caught:
        find_model(name)
    assert caught.value.remedy.startswith(hint)
