"""Findings as data: what tells one from another, and how an error names the origin of a value."""

import json
from dataclasses import FrozenInstanceError, asdict

import pytest

from logparse.context.relations import DERIVATIONS, derive
from logparse.context.run_context import Fact
from logparse.findings import Note, Origin, flag, info, warning


def test_a_note_is_a_code_a_level_and_fields():
    assert warning("stall", n=1) == Note("stall", "warning", {"n": 1})
    assert info("stall", n=1) == Note("stall", "info", {"n": 1})
    assert info("stall", n=1) not in (info("stall", n=2), info("stalls", n=1), warning("stall", n=1))


def test_a_field_may_have_the_name_of_anything():
    assert warning("found", code="x", level="y", fields="z").fields == {"code": "x", "level": "y", "fields": "z"}


def test_findings_do_not_change():
    with pytest.raises(FrozenInstanceError):
        info("stall").code = "other"
    with pytest.raises(FrozenInstanceError):
        flag("--dtype").rule = "other"


def test_origins_are_told_apart_by_all_they_hold():
    origins = [
        Origin("log", line=8),
        Origin("log", line=9),
        Origin("log", "a.log", 8),
        Origin("log", line=8, rule="bf16 True"),
        flag("--seq-length"),
        Origin("model", rule="--seq-length"),
    ]
    assert len(set(origins)) == len(origins)
    assert Origin("log", line=8) in origins


@pytest.mark.parametrize(
    ("origin", "text"),
    [
        (Origin("log", line=153), "line 153"),
        (Origin("log", "logs/a.log", 7), "a.log:7"),
        (Origin("log", "logs/a.log", 7, "bf16 True"), "a.log:7"),
        (Origin("step lines"), "step lines"),
        (flag("--world-size"), "--world-size"),
        (Origin("model", rule="llama2-7b"), "--model llama2-7b"),
        (Origin("config", "jobs/job.toml"), "jobs/job.toml"),
        (Origin("derived", rule="moe_layers_all"), "derived"),
        (Origin("assumed"), "assumed"),
        (Origin("appearance"), "appearance"),
        (Origin("not set"), "not set"),
    ],
    ids=str,
)
def test_what_an_error_names_an_origin_by(origin, text):
    assert str(origin) == f"{origin}" == text


def test_an_origin_goes_into_json_and_back():
    origin = Origin("log", "a.log", 7, "bf16 True")
    assert Origin(**json.loads(json.dumps(asdict(origin)))) == origin


def test_every_derivation_has_a_code_of_its_own():
    # The letters of one pattern give the layers of each kind, one mesh the size of each dimension.
    several = ("layers_of_hybrid", "sizes_of_mesh")
    codes = [rule.code for rule in DERIVATIONS if not rule.code.startswith(several)]
    assert len(set(codes)) == len(codes)


def test_what_is_derived_says_by_which_rule():
    facts = {name: Fact(value, flag("--x")) for name, value in {"num_nodes": 2, "devices_per_node": 8}.items()}
    assert derive(facts)["world_size"] == Fact(16, Origin("derived", rule="world_size_of_nodes"))
