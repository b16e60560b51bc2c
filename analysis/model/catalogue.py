"""Named models: what a run need not print because the name of its model says it.

Comes in: a name. Goes out: the model's shape by glossary name, with its source. The data are in models.toml.
The padded vocabulary is not here: it depends on the run.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from analysis.model.parameters import Details
from analysis.model.shape import ModelShape
from logparse.errors import unknown_name
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass, fields
from logparse.package_tables import read_table

# The families of two names are one where their letters agree so far.
SAME_FAMILY = 0.75
_LETTERS = re.compile(r"[a-z]*")
# A number of parameters in a name, and words that make another model of it.
_SIZE = re.compile(r"(?<![a-z0-9.])(?:\d+x)?\d+(?:\.\d+)?[bm]\d?(?![a-z0-9])")
# The sign in a version that a name of a file writes as a dash: llama3-1-8b.
_VERSION = re.compile(r"(?<=\d)-(?=\d-)")
# Folders and files within the folder of a model.
_WITHIN = re.compile(r"(?i)|snapshots|[0-9a-f]{7,40}|original|hf|weights|config\.(?:json|ya?ml)")
_OTHER = re.compile(r"-(?:moe|tiny|mini|small|lite|debug)(?![a-z0-9])")


@dataclass(frozen=True)
class Model:
    """A named model. ``parameters`` and ``active_parameters`` are the published counts, None where there is none.

    ``common_shape``: models of other families have its shape, too.
    """

    name: str
    aliases: tuple[str, ...]
    shape: ModelShape
    details: Details
    vocab_size: int
    parameters: int | None
    active_parameters: int | None
    source: str
    common_shape: bool = False

    def quantities(self) -> dict[str, int | bool]:
        """What the model says of a run, by glossary name.

        Not whether the run trains multi-token prediction: published counts leave it out, and many train without it.
        """
        sizes = {f.name: getattr(self.shape, f.name) for f in fields(self.shape) if f.name != "mtp_num_layers"}
        return {name: size for name, size in sizes.items() if size is not None} | {"vocab_size": self.vocab_size}


@cache
def all_models() -> tuple[Model, ...]:
    """Every model of the catalogue, in its order."""
    tables = read_table(Path(__file__).parent / "models.toml")
    return tuple(_model(name, table) for name, table in tables.items())


def find_model(name: str) -> Model:
    """The model of that name or alias; case does not count, and ``_`` is ``-``.

    Raises UsageError for a name that is not in the catalogue.
    """
    model = catalogued(name)
    if model is None:
        remedy = tr("give the shape by flags: --num-layers, --hidden-size, --vocab-size and so on")
        part = named_in(name)
        near, of = ([part.name], part.name) if part else (_of_family(name), _normal(name))
        raise unknown_name(msg("model"), name, near, remedy, of)
    return model


def is_family(name: str) -> bool:
    """Whether ``name`` has no size and models of several sizes begin with it, as gpt2: it gives no shape."""
    normal = _normal(_folder_of_model(name))
    sized = {model.name for known, model in _by_name().items() if known.startswith(f"{normal}-")}
    return not _SIZE.search(normal) and len(sized) > 1


def named_in(name: str) -> Model | None:
    """The model whose name ``name`` begins with, as llama2_70b_lora does; None where the rest makes it another one."""
    normal = _normal(_folder_of_model(name))
    heads = [known for known in _by_name() if normal.startswith(f"{known}-")]
    head = max(heads, key=len, default=None)
    if head is None or _SIZE.search(normal[len(head) :]) or _OTHER.search(normal[len(head) :]):
        return None
    return _by_name()[head]


def _of_family(name: str) -> list[str]:
    """The names whose family is spelled nearly as that of ``name``: a model of another family is no remedy."""
    families = {known: _family(known) for known in _by_name()}
    near = difflib.get_close_matches(_family(_normal(name)), set(families.values()), n=2, cutoff=SAME_FAMILY)
    return [known for known, family in families.items() if family in near]


def _family(name: str) -> str:
    """The letters with which a name begins: llama of llama2-7b."""
    return _LETTERS.match(name)[0]  # type: ignore[index]


def catalogued(name: str) -> Model | None:
    """As ``find_model``; None for a name that is not in the catalogue. The owner before a slash does not count.

    Nor do folders within that of a model, as of a cache: ``models--owner--name/snapshots/0a1b2c3d``.
    """
    normal = _normal(_folder_of_model(name))
    return _by_name().get(normal) or _by_name().get(_VERSION.sub(".", normal))


def _folder_of_model(path: str) -> str:
    """The last part of ``path`` that is no folder of every model, without its owner."""
    parts = [part for part in path.replace("\\", "/").split("/") if not _WITHIN.fullmatch(part.strip())]
    return parts[-1].rpartition("--")[2] if parts else path


@cache
def _by_name() -> Mapping[str, Model]:
    return {known: model for model in all_models() for known in (model.name, *model.aliases)}


def _normal(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(" ", "-")


def _model(name: str, table: dict[str, Any]) -> Model:
    return Model(
        name=name,
        aliases=tuple(table.pop("aliases")),
        details=Details(**table.pop("details", {})),
        vocab_size=table.pop("vocab_size"),
        parameters=table.pop("parameters", None),
        active_parameters=table.pop("active_parameters", None),
        source=table.pop("source"),
        common_shape=table.pop("common_shape", False),
        # Last, and given whatever is left, so that a misspelt key fails.
        shape=ModelShape(**table),
    )


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
    of_own_shape = (model for model in all_models() if not model.common_shape)
    return tuple(model for model in of_own_shape if has_shape(model, shape))


def has_shape(model: Model, shape: ModelShape) -> bool:
    """Whether the named ``model`` has ``shape``, as far as it is known."""
    if model.shape.num_layers != shape.num_layers:
        return False
    return same_model(replace(model.shape, padded_vocab_size=model.vocab_size), shape)
