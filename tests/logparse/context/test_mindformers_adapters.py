"""Adapters of MindFormers, where the configuration is not printed."""

from helpers import ROOT

from logparse import analyze


def test_adapters_are_known_by_the_optimizer_s_list(tmp_path):
    text = (ROOT / "fixtures/mindformers/family-b-llama2-7b/run.log").read_text()
    listed = 'INFO - Network Parameters: 8388608.\n      "model.layers.0.attention.wq.mindpet_delta_lora_a",\n'
    (tmp_path / "run.log").write_text(text.replace("INFO - Network Parameters: 6738 M.\n", listed))
    context = analyze(tmp_path / "run.log").context
    assert (context.get("lora"), context.get("adapter_parameters")) == (True, 8388608)
