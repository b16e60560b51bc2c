"""Frames without secrets, and the parts of secrets in lines; which texts are secrets is known in ``masking``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache

import polars as pl
import regex

from logparse.lazy_regex import lazy_regex
from logparse.masking import MASKED, finds, marks, mask, mask_setting, mask_text

# Words that may be parts of a secret; shorter ones are parts of too many others.
_PARTS = lazy_regex(r"\w{3,}+")
# The names of settings in which the last word is one of these; the value is on the line after.
_SHORT_NAMES = r"(?:^|[^a-z])(?:ak|sk|pw|pat)\n"


@cache
def _trigger() -> str:
    """A pattern for polars that finds every text in which something may be masked."""
    literals = "|".join(regex.escape(mark, special_only=True) for mark in marks())
    return f"(?i:{literals})|{finds().pattern}"


def secret_words(lines: pl.DataFrame) -> frozenset[str]:
    """The words of the ``text`` of ``lines`` that are in no line once its secrets are masked."""
    suspects = lines.filter(pl.col("text").str.contains(_trigger()))["text"].to_list()
    masked = {text: mask_text(text) for text in suspects}
    changed = {text: shown for text, shown in masked.items() if text != shown}
    shown = {word for text in changed.values() for word in _PARTS.findall(MASKED.sub(" ", text))}
    return frozenset(word for text in changed for word in _PARTS.findall(text)) - shown


def hide(text: str, secrets: Collection[str]) -> str:
    """``text`` with its secrets masked, and every word that is a part of one of ``secrets``."""

    def shown(word: regex.Match[str]) -> str:
        return mask(word[0]) if any(word[0] in secret for secret in secrets) else word[0]

    text = mask_text(text)
    return _PARTS.sub(shown, text) if secrets else text


def mask_settings(settings: pl.DataFrame) -> pl.DataFrame:
    """A frame of settings (``name``, ``value`` and others) without secrets."""
    suspects = set(settings.filter(_suspect())["name", "value"].iter_rows())
    masks = [(name, value, mask_setting(name, value)) for name, value in suspects]
    changed = [row for row in masks if row[1] != row[2]]
    if not changed:
        return settings
    schema = {"name": pl.String, "value": pl.String, "masked": pl.String}
    masked = pl.DataFrame(changed, schema=schema, orient="row")
    joined = settings.join(masked, on=["name", "value"], how="left", maintain_order="left")
    return joined.with_columns(value=pl.coalesce("masked", "value")).select(settings.columns)


def masked_settings(frames: Iterable[pl.DataFrame]) -> int:
    """How many settings of ``frames`` hold a mask; one that is printed several times counts once."""
    names = (frame.filter(pl.col("value").str.contains(MASKED.pattern))["name"] for frame in frames)
    return len(set().union(*(series.to_list() for series in names)))


def _suspect() -> pl.Expr:
    """Whether something may be masked in a setting. To build a regex of all marks takes as long as to mask a log."""
    both = pl.concat_str("name", pl.lit("\n"), "value")
    lowered = both.str.to_lowercase()
    return (
        lowered.str.contains_any(list(marks()))
        | lowered.str.contains(_SHORT_NAMES)
        | both.str.contains(finds().pattern)
    )
