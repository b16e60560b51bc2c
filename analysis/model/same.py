"""Whether two shapes are of one model, as far as both are known.

Comes in: shapes, one of them of a log. Goes out: yes or no. Which numbers are right is not decided here.
"""

from __future__ import annotations

from dataclasses import fields, replace

from analysis.model.catalogue import Model, all_models
from analysis.model.shape import ModelShape

# The vocabulary is padded to a multiple of 128 x tensor parallel size; of published models none is nearer than this.
MOST_PADDING = 2048
# What logs print of these is not to be relied on: AscendSpeed's llama is gated, has an output matrix of its own, and
# prints neither. Padding, the depth of multi-token prediction and adapters belong to the run and not to the model.
NOT_COMPARED = (
    "gated_linear_unit",
    "untie_embeddings_and_output_weights",
    "multi_latent_attention",
    "padded_vocab_size",
    "mtp_num_layers",
    "lora",
    "adapter_parameters",
)
# Sizes without which no two models are the same.
KNOWN = ("num_layers", "hidden_size")
COMPARED = tuple(f.name for f in fields(ModelShape) if f.name not in NOT_COMPARED)


def same_model(published: ModelShape, shape: ModelShape) -> bool:
    """Every size that both know is the same, and layers and hidden size are known; a vocabulary may be padded."""
    if shape.missing(KNOWN) or any(getattr(published, name) != getattr(shape, name) for name in KNOWN):
        return False
    both = ((getattr(published, name), getattr(shape, name)) for name in COMPARED)
    plain, padded = published.padded_vocab_size, shape.padded_vocab_size
    same_vocabulary = plain is None or padded is None or 0 <= padded - plain <= MOST_PADDING
    return same_vocabulary and same_kind(published, shape) and all(a == b for a, b in both if None not in (a, b))


def same_kind(published: ModelShape, shape: ModelShape) -> bool:
    """None is dense: a mixture of experts is not its dense twin."""
    return bool(published.num_experts) == bool(shape.num_experts)


def models_of(shape: ModelShape) -> tuple[Model, ...]:
    """The named models that have ``shape``, as far as it is known, in the order of the catalogue.

    None whose shape is common: GPT-2, OPT, Pythia and MPT share theirs.
    """
    own = (model for model in all_models() if not model.common_shape)
    return tuple(model for model in own if has_shape(model, shape))


def has_shape(model: Model, shape: ModelShape) -> bool:
    """Whether the named ``model`` has ``shape``, as far as it is known."""
    if model.shape.num_layers != shape.num_layers:
        return False
    return same_model(replace(model.shape, padded_vocab_size=model.vocab_size), shape)
