"""A formula is one file: a module that nothing else names is chosen, computed with, explained and listed."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import test_flops
from browser import run_of
from helpers import ROOT
from shapes import LLAMA2_7B
from typer.testing import CliRunner

from analysis import flops
from analysis.cli import build_app
from analysis.flops import all_formulas, default_formula, find_formula, real_model_formula
from analysis.model.parameters import count_parameters
from analysis.report import render_page
from analysis.report.worked_formula import write_out
from logparse.language import use_language

LOG = ROOT / "fixtures/megatron/core-v0.12-llama2-7b/run.log"
NEW_FORMULA = """
from analysis.flops import six_n
from analysis.flops._formula import Formula
from analysis.model.parameters import count_parameters


def terms(shape, seq_length):
    parameters = count_parameters(shape)
    return {"all but the embedding": 6.0 * (parameters.active - parameters.embedding)}


FORMULA = Formula(
    name="NAME",
    title="6 N as nobody calls it, without the input embedding",
    phrase="6 N without the embedding",
    source="nowhere",
    text="6 (N - h V)",
    needs=six_n.needs,
    terms=terms,
    symbols={"all but the embedding": "6 · (N - h · V)"},
    selective=(),
    full=("all but the embedding",),
    ignores=("mtp_num_layers",),
    quotes_recompute=True,
    printed_as={"none": "6N-in"},
)
"""


@pytest.fixture
def new_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two more modules in the folder of formulas: one to be found, one that an underscore hides."""
    for module, name in (("zz_unheard_of", "8n"), ("_zz_draft", "draft")):
        (tmp_path / f"{module}.py").write_text(NEW_FORMULA.replace("NAME", name), encoding="utf-8")
    monkeypatch.setattr(flops, "__path__", [*flops.__path__, str(tmp_path)])
    all_formulas.cache_clear()
    yield
    use_language("en")
    all_formulas.cache_clear()
    for module in ("zz_unheard_of", "_zz_draft"):
        sys.modules.pop(f"analysis.flops.{module}", None)
        vars(flops).pop(module, None)


def output(*arguments: str) -> str:
    """What the command prints, run in this process, which alone knows the new formula."""
    done = CliRunner(env={"COLUMNS": "200"}).invoke(build_app(), arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.usefixtures("new_modules")
def test_a_new_module_is_a_new_formula():
    assert "8n" in all_formulas()
    assert "draft" not in all_formulas()
    assert (
        list(all_formulas())[:2] == [default_formula().name, real_model_formula().name] == ["ascendspeed", "megatron"]
    )
    parameters = count_parameters(LLAMA2_7B)
    expected = 6.0 * (parameters.total - LLAMA2_7B.hidden_size * LLAMA2_7B.padded_vocab_size)
    assert find_formula("8n").model_flops_per_token(LLAMA2_7B, 4096) == expected
    test_flops.test_a_formula_that_a_log_may_be_printed_by_is_that_number("8n")
    for size in ("num_experts", "multi_latent_attention", "mtp_num_layers"):
        test_flops.test_what_a_formula_ignores_makes_no_difference_and_all_else_does("8n", size)


@pytest.mark.usefixtures("new_modules")
@pytest.mark.parametrize(
    ("language", "command", "listed", "comma"),
    [
        ("en", "analyze", "ascendspeed (default), megatron (real model), {others}.", ", "),
        ("zh", "analyze", "ascendspeed（默认）、megatron（真实模型）、{others}。", "、"),
        ("en", "estimate", "megatron (default; real model), ascendspeed, {others}.", ", "),
        ("zh", "estimate", "megatron（默认，真实模型）、ascendspeed、{others}。", "、"),
    ],
)
def test_help_lists_the_new_formula(language, command, listed, comma):
    others = list(all_formulas())[2:]
    assert "8n" in others
    shown = output(command, "--lang", language, "--help")
    assert "".join(listed.format(others=comma.join(others)).split()) in "".join(shown.split())


@pytest.mark.usefixtures("new_modules")
def test_a_run_is_computed_and_told_by_the_new_formula():
    given = (str(LOG), "--formula", "8n", "--mtp-num-layers", "1", "--recompute", "full")
    (run,) = json.loads(output("analyze", *given, "--json"))["runs"]
    (none,) = json.loads(output("analyze", *given[:-1], "none", "--json"))["runs"]
    own, model = (each["metrics"]["tflops_per_second_per_device"]["median"] for each in (run, none))
    assert own == pytest.approx(model * 4 / 3)
    (text,) = [note["text"] for note in run["notes"] if note["code"] == "formula_counts_other_work"]
    assert text.startswith("TFLOP/s by 8n counts -12 % FLOPs compared with the real model: ")
    assert "c = 4: --recompute" in output("analyze", *given, "-v")


@pytest.mark.usefixtures("new_modules")
def test_the_page_works_the_new_formula_out_in_english_where_no_catalogue_has_it():
    use_language("zh")
    run = run_of(LOG, formula="8n")
    (term,) = write_out(run.analysis).terms
    assert (term.name, term.symbols) == ("all but the embedding", "6 · (N - h · V)")
    page = render_page([run])
    for text in ("公式 8n：6 N as nobody calls it, without the input embedding", "nowhere", "6 (N - h V)", term.name):
        assert text in page


def test_the_new_module_is_gone_again():
    assert not {"8n", "draft"} & set(all_formulas())
