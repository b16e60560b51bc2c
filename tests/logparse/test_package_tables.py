"""A compiled table is what its TOML says now, or is not used."""

import pytest

from logparse.package_tables import COMPILED, compile_table, read_table


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "devices.toml"
    path.write_text('[[device]]\nname = "910B3"\npeak = 313.0\n', encoding="utf-8")
    return path


DEVICES = {"device": [{"name": "910B3", "peak": 313.0}]}


def test_a_table_is_read_without_a_compiled_one(path):
    assert read_table(path) == DEVICES
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_compiled_table_is_read_in_place_of_its_toml(path, monkeypatch):
    compile_table(path)
    monkeypatch.setattr("tomllib.loads", None)
    assert read_table(path) == DEVICES
    assert {file.name for file in path.parent.iterdir()} == {path.name, f"devices{COMPILED}"}


def test_a_compiled_table_of_another_text_is_not_used(path):
    compile_table(path)
    path.write_text("[[device]]\n", encoding="utf-8")
    assert read_table(path) == {"device": [{}]}


def test_a_damaged_compiled_table_is_not_used(path):
    compile_table(path)
    compiled = path.with_suffix(COMPILED)
    for size in (70, 20, 0):
        compiled.write_bytes(compiled.read_bytes()[:size])
        assert read_table(path) == DEVICES
