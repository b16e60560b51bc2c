"""Pairs that stand one on a line find the step line before them, in whatever order the lines were read."""

import polars as pl

from logparse.decode.multiline_records import NO_PAIRS, of_rows, with_pair_lines


def rows(*heads: tuple[str, int]) -> pl.DataFrame:
    """Step lines of files, of which the first prints the norm of its gradient itself."""
    own = [5.0] + [None] * (len(heads) - 1)
    return pl.DataFrame(heads, ["source", "line_number"], orient="row").with_columns(grad_norm=pl.Series(own))


def pairs(source: str, *told: tuple[int, str, float | None]) -> pl.DataFrame:
    """Read pairs of a file: line, column and number."""
    found = [(source, line, column, "", column, number, number is None) for line, column, number in told]
    return pl.DataFrame(found, NO_PAIRS.schema, orient="row")


def joined(heads: pl.DataFrame, *blocks: pl.DataFrame) -> dict[str, list[float | None]]:
    return with_pair_lines(heads, of_rows(blocks, heads)).select("grad_norm", "loss").to_dict(as_series=False)


def test_pairs_belong_to_the_step_line_before_them_in_their_file():
    heads = rows(("a", 2), ("a", 5), ("b", 3))
    first = pairs("a", (1, "loss", 9.0), (3, "loss", 1.0), (4, "grad_norm", 6.0))
    second = pairs("a", (6, "grad_norm", 7.0), (7, "loss", 2.0))
    other = pairs("b", (2, "loss", 8.0), (4, "loss", 3.0))
    told = {"grad_norm": [5.0, 7.0, None], "loss": [1.0, 2.0, 3.0]}
    assert joined(heads, first, NO_PAIRS, second, other, pairs("c", (9, "loss", 4.0))) == told


def test_the_first_of_a_repeated_label_counts_though_it_be_malformed():
    heads = rows(("a", 1), ("a", 5))
    block = pairs("a", (7, "loss", 2.5), (3, "loss", 1.5), (2, "loss", None), (6, "loss", 2.0))
    assert joined(heads, block)["loss"] == [None, 2.0]


def test_where_no_pair_is_told_nothing_is_added():
    heads = rows(("a", 1))
    assert with_pair_lines(heads, of_rows([NO_PAIRS], heads)).equals(heads)
    assert of_rows([pairs("a", (2, "loss", 1.0))], heads.clear()).is_empty()
