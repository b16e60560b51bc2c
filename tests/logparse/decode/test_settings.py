"""Settings as frameworks print them: argument dumps in every layout, sentences, nested configs."""

import time
from pathlib import Path

import pytest
from helpers import SETTINGS, arguments_dump, megatron_line

from logparse.context.dialects import interpret
from logparse.context.run_context import build_context
from logparse.decode.read_run import read_run
from logparse.decode.reader import Contents, read_sources
from logparse.decode.settings import LONGEST, settings_frames
from logparse.formats import find_format
from logparse.formats._base import LogFormat
from logparse.inputs.sources import Source

MEGATRON = find_format("megatron")
MINDFORMERS = find_format("mindformers")
PYNATIVE = find_format("mindformers-pynative")

LONG_NAME = "distributed_timeout_seconds_after_init_of_groups"
SHORT = {"adam_beta1": 0.9, "bf16": True, "data_path": ["/data/my corpus", 0.5], "fp8": None, "world_size": 8}


@pytest.fixture
def read(tmp_path):
    """Settings of a text by ``kind:name``, read in blocks of a given size; the first of each name."""

    def read_settings(text: str, fmt: LogFormat = MEGATRON, block_bytes: int = 2**20) -> dict[str, str]:
        return {f"{row[2]}:{row[0]}": row[1] for row in reversed(rows(tmp_path, text, fmt, block_bytes))}

    return read_settings


def rows(folder: Path, text: str, fmt: LogFormat, block_bytes: int) -> list[tuple[str, str, str, str, int]]:
    found = contents(folder, text, fmt, block_bytes)
    return next(settings_frames(found.sentences, found.inside, [fmt])).rows()


def contents(folder: Path, text: str, fmt: LogFormat, block_bytes: int) -> Contents:
    path = folder / "run.log"
    path.write_bytes(text.encode())
    return read_sources([Source("run.log", path)], (fmt,), block_bytes)


def arguments(settings: dict[str, object]) -> dict[str, str]:
    return {f"arguments:{name}": str(value) for name, value in settings.items()}


LAYOUTS = {
    "v2 and later": {},
    "v1.0": {"dashes": 20, "width": 32},
    "MindSpeed-LLM": {"title": "MindSpeed-LLM Arguments"},
    "ModelLink 1.2": {"title": "ModelLink Arguments"},
    "torchrun": {"prefix": "[default0]:"},
    "srun": {"prefix": "0: "},
    "logger": {"prefix": "[2026-01-01 00:00:00] [INFO] [rank0]: "},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_argument_dump(read, layout):
    found = read(arguments_dump(SHORT, **LAYOUTS[layout]))
    assert {name: value for name, value in found.items() if not name.startswith("title:")} == arguments(SHORT)


def test_setting_knows_its_line(tmp_path):
    text = "noise\nnoise\n" + arguments_dump({"a": 1, "world_size": 8})
    assert rows(tmp_path, text, MEGATRON, 2**20) == [
        ("a", "1", "arguments", "run.log", 4),
        ("world_size", "8", "arguments", "run.log", 5),
    ]


@pytest.mark.parametrize("name", [LONG_NAME, LONG_NAME + "_and_more"], ids=len)
def test_name_too_long_for_dots(read, name):
    text = arguments_dump({"a": 1}).replace("  a", f"  {name}  600\n  a")
    assert read(text) == arguments({name: 600, "a": 1})


def test_values_with_spaces_brackets_and_dots(read):
    settings = {"a": "['x y', 'z']", "b": "/path/with.dots ...", "c": "<Enum.flash: 1>", "d": "torch.bfloat16"}
    assert read(arguments_dump(settings)) == arguments(settings)


def test_lines_of_other_ranks_between_are_not_settings(read):
    dump = arguments_dump(SHORT).splitlines(keepends=True)
    noise = ["[rank3] world_size = 99\n", "WARNING: TransformerEngine not found\n", "world_size .... 77\n", "\n"]
    text = "".join(line + noise[i % len(noise)] for i, line in enumerate(dump))
    assert read(text) == arguments(SHORT)


def test_an_argument_torn_within_its_dots_is_read(read):
    dump = arguments_dump({"a": 1, "ffn_hidden_size": 8192, "z": 2}, prefix="0: [default0]:")
    assert read(dump.replace("...... 8192", "\n0: ...... 8192")) == arguments({"a": 1, "ffn_hidden_size": 8192, "z": 2})


def test_settings_outside_a_block_are_not_read(read):
    entry = "  world_size ...................................... 64\n"
    assert read(entry + "world_size: 64\n'world_size': 64\n" + arguments_dump({"a": 1}) + entry) == arguments({"a": 1})


def test_retro_arguments_are_another_block(read):
    assert read(arguments_dump({"world_size": 64}, title="retro arguments")) == {}


def test_dump_cut_off_at_the_end_of_the_file(read):
    whole = arguments_dump(SHORT)
    assert read(whole[: whole.index("  fp8")]) == arguments({k: v for k, v in SHORT.items() if k < "fp8"})


@pytest.mark.parametrize("cut", range(1, 4))
def test_cut_off_value_is_not_read(read, cut):
    text = arguments_dump({"a": 1, "world_size": 1024}).split("1024")[0] + "1024"[:cut]
    assert read(text) == arguments({"a": 1})


def test_cut_off_sentence_is_not_read(read):
    assert read("noise\nusing world size: 10") == {}


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 100, 1000])
def test_dump_over_several_read_blocks(tmp_path, block_bytes):
    text = "noise\n" + arguments_dump(SETTINGS) + "noise\n" + arguments_dump({"world_size": 16}) + "noise\n"
    assert rows(tmp_path, text, MEGATRON, block_bytes) == rows(tmp_path, text, MEGATRON, 2**20)
    assert len(rows(tmp_path, text, MEGATRON, block_bytes)) == len(SETTINGS) + 1


def test_two_starts_in_one_file_print_their_settings_both(tmp_path):
    text = arguments_dump({"world_size": 8}) + "noise\n" + arguments_dump({"world_size": 16})
    assert [(row[1], row[4]) for row in rows(tmp_path, text, MEGATRON, 2**20)] == [("8", 2), ("16", 6)]


def world(**sizes: int) -> dict[str, str]:
    names = {"dp": "data_parallel_size", "cp": "context_parallel_size"}
    names |= {"tp": "tensor_model_parallel_size", "pp": "pipeline_model_parallel_size", "world": "world_size"}
    return {f"world:{names[short]}": str(size) for short, size in sizes.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("using world size: 64 and model-parallel size: 4 ", world(world=64, tp=4)),
        ("using world size: 64 and intra-layer-model-parallel size: 4 ", world(world=64, tp=4)),
        (
            "using world size: 64, data-parallel-size: 2, tensor-model-parallel size: 4, "
            "pipeline-model-parallel size: 8 ",
            world(world=64, dp=2, tp=4, pp=8),
        ),
        (
            "using world size: 64, data-parallel size: 2, context-parallel size: 3 tensor-model-parallel size: 4, "
            "pipeline-model-parallel size: 8 ",
            world(world=64, dp=2, cp=3, tp=4, pp=8),
        ),
        (
            "using world size: 64, data-parallel size: 2, context-parallel size: 3, tensor-model-parallel size: 4, "
            "encoder-tensor-model-parallel size: 5, pipeline-model-parallel size: 8, "
            "encoder-pipeline-model-parallel size: 6",
            world(world=64, dp=2, cp=3, tp=4, pp=8),
        ),
        (
            "using world size: 64, data-parallel size: 2, context-parallel size: 3, hierarchical context-parallel "
            "sizes: Nonetensor-model-parallel size: 4, encoder-tensor-model-parallel size: 0, "
            "pipeline-model-parallel size: 8, encoder-pipeline-model-parallel size: 0",
            world(world=64, dp=2, cp=3, tp=4, pp=8),
        ),
        (
            "using world size: 64, data-parallel size: 2, context-parallel size: 3, hierarchical context-parallel "
            "sizes: None, tensor-model-parallel size: 4, pipeline-model-parallel size: 8",
            world(world=64, dp=2, cp=3, tp=4, pp=8),
        ),
        (
            "using world size: 64, data-parallel-size: 2, sequence-parallel size: 9, tensor-model-parallel size: 4, "
            "pipeline-model-parallel size: 8 ",
            world(world=64, dp=2, tp=4, pp=8),
        ),
    ],
    ids=["v1.0", "2020-08", "v2.0", "core 0.4", "core 0.9", "core 0.12", "core 0.15", "Megatron-DeepSpeed"],
)
@pytest.mark.parametrize("prefix", ["", "[default0]:", " 0: "], ids=["", "torchrun", "srun"])
def test_world_size_sentence(read, prefix, text, expected):
    assert read(f"noise\n{prefix}{text}\nnoise\n") == expected


def test_padded_vocabulary_sentence(read):
    text = " > padded vocab (size: 50257) with 943 dummy tokens (new size: 51200)\n"
    assert read(text) == {"vocab:vocab_size": "50257", "vocab:padded_vocab_size": "51200"}


@pytest.mark.parametrize("word", ["micro-batches", "microbatches"])
def test_number_of_microbatches(read, word):
    text = f"setting number of {word} to constant 16\n"
    assert read(text) == {"microbatches:num_microbatches": "16"}


DEEPSPEED = """\
[2023-05-01 10:00:00,000] [INFO] [config.py:957:print]   json = {
    "train_batch_size": 256, 
    "train_micro_batch_size_per_gpu": 4, 
    "zero_optimization": {
        "stage": 1, 
        "train_batch_size": 7
    }, 
    "bf16": {
        "enabled": true
    }, 
    "steps_per_print": 2.000000e+03
}
  "train_batch_size": 99
"""  # noqa: W291


@pytest.mark.parametrize("prefix", ["", "localhost: "])
def test_deepspeed_json(read, prefix):
    text = "".join(prefix + line for line in DEEPSPEED.splitlines(keepends=True))
    assert read(text) == {
        "deepspeed:train_batch_size": "256",
        "deepspeed:train_micro_batch_size_per_gpu": "4",
        "deepspeed:zero_optimization.stage": "1",
        "deepspeed:zero_optimization.train_batch_size": "7",
        "deepspeed:bf16.enabled": "true",
        "deepspeed:steps_per_print": "2.000000e+03",
    }


LOGGER = "2026-05-01 10:00:00,123 - mindformers./output/log[mindformers/core/parallel_config.py:51] - INFO - "


def test_parallel_and_recompute_config_lines(read):
    text = (
        LOGGER + "initial recompute_config from dict: {'recompute': [3, 2], 'select_recompute': False, 'x': True}\n"
        "[INFO] 2024-07-25 22:38:29,891 [mindformers/core/parallel_config.py:51] build_parallel_config: "
        "initial parallel_config from dict: {'data_parallel': 2, 'model_parallel': 8, 'context_parallel': 3, "
        "'expert_parallel': 5, 'pipeline_stage': 4, 'micro_batch_num': 64, 'vocab_emb_dp': False}\n"
    )
    assert read(text, MINDFORMERS) == {
        "recompute:recompute": "[3, 2]",
        "recompute:select_recompute": "False",
        "parallel:data_parallel": "2",
        "parallel:model_parallel": "8",
        "parallel:context_parallel": "3",
        "parallel:expert_parallel": "5",
        "parallel:pipeline_stage": "4",
        "parallel:micro_batch_num": "64",
    }


BATCH = {
    "pipeline, result last": (
        "Pipeline parallel was opened: pipeline_stages = 4, full batch is True, global batch size will be changed: "
        "global_batch_size = batch_size * data_parallel * micro_batch_num * micro_batch_interleave_num = "
        "2 * 2 * 16 * 1 = 64).",
        64,
        None,
    ),
    "pipeline, result first": (
        "Pipeline parallel was opened: pipeline_stages = 8, full batch is True, gradient_accumulation_steps will not "
        "take effect in pipeline parallel, global batch size will be changed: "
        "global_batch_size = batch_size * data_parallel * micro_batch_num * micro_batch_interleave_num = "
        "128 = 1 * 4 * 32 * 1).",
        128,
        None,
    ),
    "full batch, result last": (
        "The current parallel mode is semi_auto_parallel, full batch is True,so global batch size will be changed: "
        "global_batch_size = batch_size * data_parallel * micro_batch_interleave_num = 4 * 6 * 1 = 24",
        24,
        None,
    ),
    "full batch, result first": (
        "The current parallel mode is semi_auto_parallel, full batch is True,so global batch size will be changed: "
        "global_batch_size = batch_size * data_parallel * micro_batch_interleave_num * gradient_accumulation_steps = "
        "24 = 4 * 6 * 1 * 1",
        24,
        None,
    ),
    "per batch times data parallel": ("global_batch_size = per_batch_size * data_parallel = 64 * 4 = 256", 256, None),
    "per card, result last": ("global_batch_size = batch_size_per_card * device_num = 4 * 8 = 32", 32, 8),
    "per card, result first": (
        "global_batch_size = batch_size_per_card * device_num * gradient_accumulation_steps = 64 = 4 * 8 * 2",
        64,
        8,
    ),
    "0.3": (
        "batch size will be changed: batch_size = batch_size * data_parallel * micro_batch_num = 1 * 2 * 3 = 6).",
        6,
        None,
    ),
}


@pytest.mark.parametrize("case", BATCH)
def test_global_batch_sentence(read, case):
    text, batch, devices = BATCH[case]
    expected = {"batch:global_batch_size": str(batch)} | ({"batch:device_num": str(devices)} if devices else {})
    assert read(LOGGER + text + "\n", MINDFORMERS) == expected


CONFIG = """\
noise {'vocab_size': 1}
{'auto_trans_ckpt': False,
 'device_num': 4,
 'model': {'arch': {'type': 'LlamaForCausalLM'},
           'model_config': {'compute_dtype': 'bfloat16',
                            'hidden_size': 4096,
                            'pet_config': {'lora_rank': 8,
                                           'pet_type': 'lora'},
                            'seq_length': 2048,
                            'vocab_size': 128256}},
 'processor': {'tokenizer': {'vocab_size': 32000}},
 'runner_config': {'epochs': 3, 'sink_size': 2}}
2026-05-01 10:00:00,123 - mindformers - INFO - .........Starting Training Model..........
 'vocab_size': 7
"""


def test_printed_config_gives_nested_names(read):
    settings = read(CONFIG, MINDFORMERS)
    assert settings["config:device_num"] == "4"
    assert settings["config:model.model_config.hidden_size"] == "4096"
    assert settings["config:model.model_config.pet_config.pet_type"] == "lora"
    assert settings["config:model.model_config.seq_length"] == "2048"
    assert settings["config:model.model_config.vocab_size"] == "128256"
    assert settings["config:runner_config.sink_size"] == "2"
    assert not any(value in ("7", "1") for value in settings.values())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("config:model.arch.type", "LlamaForCausalLM"),
        ("config:model.model_config.compute_dtype", "bfloat16"),
        ("config:model.model_config.pet_config.lora_rank", "8"),
        ("config:processor.tokenizer.vocab_size", "32000"),
        ("config:runner_config.epochs", "3"),
    ],
)
def test_first_name_of_a_nested_config_is_read_too(read, name, value):
    assert read(CONFIG, MINDFORMERS)[name] == value


def test_a_product_over_all_devices_gives_the_batch_of_one_rank_only(read):
    """MindFormers to 1.3.2 multiplies by tensor and pipeline parallel size too; 64 per data-parallel rank is right."""
    text = "x - INFO - global_batch_size = per_batch_size * device_num = 64 * 4 = 256\n"
    settings = read(text, MINDFORMERS)
    assert settings["batch:per_batch_size"] == "64"
    assert "batch:global_batch_size" not in settings


JSON_CONFIG = """\
2026-05-01 10:00:00,123 - mindformers/w/output/log[mindformers/pynative/trainer.py:1] - INFO - Current config: {
  "training": {
    "local_batch_size": 2,
    "global_batch_size": 512
  },
  "parallelism": {
    "tensor_parallel": 4
  }
}
  "global_batch_size": 7
2026-05-01 10:00:01,123 - mindformers/w/output/log[x.py:1] - INFO - Current world size: 64.
2026-05-01 10:00:01,123 - mindformers/w/output/log[x.py:1] - INFO - Got parallelism settings: data_parallel=8(dp_shard[8] * dp_replicate[1]), tensor_parallel=4, pipeline_parallel=2, context_parallel=1
2026-05-01 10:00:01,123 - mindformers/w/output/log[x.py:1] - INFO - Calculate global_batch_size=512, num_accumulation_steps=4.
"""  # noqa: E501


def test_pynative_config(read):
    assert read(JSON_CONFIG, PYNATIVE) == {
        "config:training.local_batch_size": "2",
        "config:training.global_batch_size": "512",
        "config:parallelism.tensor_parallel": "4",
        "world:world_size": "64",
        "world:data_parallel": "8",
        "world:model_parallel": "4",
        "world:pipeline_stage": "2",
        "world:context_parallel": "1",
        "batch:global_batch_size": "512",
    }


TRANSFORMER = """\
2026-05-01 10:00:00,123 - mindformers/w/log[converter.py:112] - INFO - The final converted TransformerConfig is: {
  'batch_size': 1,
  'compute_dtype': mindspore.bfloat16,
  'num_layers': 61,
  'moe_layer_freq': [0, 0, 0, 1, 1],
  'init_method': functools.partial(<function f at 0x7f>, mean=0.0, std=0.02),
  'vocab_size': 129280,
  'mtp_num_layers': None
}
  'vocab_size': 7,
"""


@pytest.mark.parametrize("kind", ["TransformerConfig", "MLATransformerConfig"])
def test_converted_transformer_config(read, kind):
    assert read(TRANSFORMER.replace("TransformerConfig", kind), MINDFORMERS) == {
        "transformer:batch_size": "1",
        "transformer:compute_dtype": "mindspore.bfloat16",
        "transformer:num_layers": "61",
        "transformer:moe_layer_freq": "[0, 0, 0, 1, 1]",
        "transformer:init_method": "functools.partial(<function f at 0x7f>, mean=0.0, std=0.02)",
        "transformer:vocab_size": "129280",
        "transformer:mtp_num_layers": "None",
    }


def test_other_sentences_of_mindformers(read):
    text = (
        LOGGER + "Now Running Task is: text_generation, Model is: llama2_7b\n"
        "2026-05-01 10:00:00,123 - x - INFO - runner_config epochs:2, sink_mode:True, sink_size:4\n"
    )
    assert read(text, MINDFORMERS) == {"task:model_name": "llama2_7b", "runner:sink_size": "4"}


def blocks_of(folder: Path, text: str, fmt: LogFormat, block_bytes: int = 2**20) -> dict[str, list[tuple[int, int]]]:
    """(start, line number) of every line inside a block, by the block's marker."""
    inside = contents(folder, text, fmt, block_bytes).inside
    return {block.marker: lines.select("opened", "line_number").rows() for block, lines in inside.items()}


HEADER = arguments_dump({}).splitlines()[0]


@pytest.mark.parametrize("block_bytes", [1, 100, 2**20])
def test_a_start_ends_the_block_before_it(tmp_path, block_bytes):
    text = f"{HEADER}\n  a ... 1\n{HEADER}\n{HEADER}\n  b ... 2\n"
    inside = blocks_of(tmp_path, text, MEGATRON, block_bytes)
    assert inside["rguments ----------"] == [(1, 1), (1, 2), (3, 3), (4, 4), (4, 5)]
    assert [row[:2] for row in rows(tmp_path, text, MEGATRON, block_bytes)] == [("a", "1"), ("b", "2")]


@pytest.mark.parametrize("start", [HEADER, "{'auto_trans_ckpt': False,", "x json = {"])
def test_lines_of_nothing_but_starts_are_kept_once(tmp_path, start):
    fmt = MINDFORMERS if start.startswith("{") else MEGATRON
    inside = blocks_of(tmp_path, f"{start}\n" * 3000, fmt)
    assert sum(map(len, inside.values())) == 3000


@pytest.mark.parametrize("block_bytes", [2**10, 2**20])
@pytest.mark.parametrize("fmt", [MEGATRON, MINDFORMERS], ids=lambda f: f.name)
def test_a_block_without_an_end_has_so_many_lines(tmp_path, fmt, block_bytes):
    starts = {"rguments": HEADER, "json": "x json = {", "{'a": "{'auto_tune': False,", "Curr": "x Current config: {"}
    starts["Trans"] = "x converted TransformerConfig is: {"
    for block in fmt.blocks:
        (start,) = [text for sign, text in starts.items() if block.marker.startswith(sign)]
        inside = blocks_of(tmp_path, start + "\n  noise" * (block.max_lines + 2) + "\n", fmt, block_bytes)
        assert inside[block.marker][-1] == (1, block.max_lines + 1)


def test_the_last_line_of_a_block_is_the_one_before_its_end(read):
    """Another rank's log line ends the printed config, and what it says is not of the config."""
    text = CONFIG.replace("INFO - ....", "INFO - {'vocab_size': 7} ....")
    assert read(text, MINDFORMERS) == read(CONFIG, MINDFORMERS)


@pytest.mark.parametrize(
    "line",
    [
        "{'accuracy': 0.5}",
        "{'accuracy': 0.5, 'vocab_size': 7}",
        "{'a': {'vocab_size': 7}}",
        "{'accuracy': 0.5, 'b': 1,",
    ],
)
def test_metrics_printed_as_a_dict_are_no_config(tmp_path, line):
    inside = blocks_of(tmp_path, f"{line}\n 'vocab_size': 7,\n", MINDFORMERS)
    assert not any(inside.values())


@pytest.mark.parametrize("first", ["'auto_trans_ckpt': False", "'adapter_id': None", "'aicc_config': 'text'"])
def test_first_line_of_a_printed_config(read, first):
    assert read(f"{{{first},\n 'device_num': 4}}\n", MINDFORMERS)["config:device_num"] == "4"


def test_a_carriage_return_does_not_reach_a_value(read):
    assert read(arguments_dump({"data_path": "one\rtwo"})) == {"arguments:data_path": "one two"}


LAUNCHED = "--tensor-model-parallel-size 2 --num-layers 32 --seq-length=4096 --swiglu --bf16 --train-iters 500"


def launched(**settings: object) -> dict[str, str]:
    return {f"launcher:launched_{name}": str(value) for name, value in settings.items()}


COMMANDS = {
    "bare": f"torchrun pretrain_gpt.py {LAUNCHED}",
    "echoed": f"+ /opt/bin/torchrun --nproc_per_node 8 --nnodes $NNODES pretrain_gpt.py {LAUNCHED} --hidden-size $H",
    "module": f"+ python -u -m torch.distributed.launch --master_port 6000 pretrain_gpt.py {LAUNCHED}",
    "prefixed": f"[2026-01-01 00:00:00] Executing: torchrun --nproc-per-node=8 --nnodes 2 pretrain_gpt.py {LAUNCHED}",
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_command_line_that_starts_training(read, kind):
    expected = launched(tensor_model_parallel_size=2, num_layers=32, seq_length=4096, swiglu="--swiglu", bf16="--bf16")
    nodes = ("launcher:launched_num_nodes", "launcher:launched_devices_per_node")
    assert {name: value for name, value in read(COMMANDS[kind] + "\n").items() if name not in nodes} == expected


NODES = {
    "--nproc_per_node 8 --nnodes 1": (1, 8),
    "--nnodes=2 --node_rank 0 --nproc-per-node=8": (2, 8),
    "--nproc_per_node 8": (None, 8),
    "--nproc_per_node 8 --nnodes 1:4": (None, 8),
    "--nproc_per_node gpu --nnodes 1": (1, None),
}


@pytest.mark.parametrize("nodes", NODES)
def test_nodes_and_devices_of_the_command_line(read, nodes):
    settings = read(f"torchrun {nodes} pretrain_gpt.py {LAUNCHED}\n")
    known = {"num_nodes": NODES[nodes][0], "devices_per_node": NODES[nodes][1]}
    assert {name: settings.get(f"launcher:launched_{name}") for name in known} == {
        name: None if value is None else str(value) for name, value in known.items()
    }


@pytest.mark.parametrize(
    "text",
    [
        "python tools/preprocess_data.py --num-layers 32 --train-iters 5",
        "torchrun tools/checkpoint/convert.py --num-layers 32 --target-tensor-parallel-size 4",
        "torchrun pretrain_gpt.py --num-layers 32 --train-iters $ITERS",
        "+ GPT_ARGS=' --num-layers 32 --train-iters 500'",
    ],
    ids=["no launcher", "no training", "no number", "arguments only"],
)
def test_other_command_lines_are_no_settings(read, text):
    assert read(text + "\n") == {}


def test_the_argument_dump_beats_the_command_line(tmp_path):
    text = (
        COMMANDS["bare"] + " --global-batch-size 64\n" + arguments_dump({"num_layers": 24, "bf16": False, "fp16": True})
    )
    path = tmp_path / "run.log"
    path.write_text(text + megatron_line(1) + "\n")
    log = read_run([str(path)])
    known = build_context(log.settings, log.format)
    assert (known.get("num_layers"), known.get("precision"), known.get("global_batch_size")) == (24, "fp16", 64)


def test_a_command_line_alone_tells_the_shape_and_not_the_age(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(f"{COMMANDS['bare']} --pipeline-model-parallel-size 2\n{megatron_line(1)}\n")
    log = read_run([str(path)])
    known = build_context(log.settings, log.format)
    assert (known.get("tensor_model_parallel_size"), known.get("gated_linear_unit")) == (2, True)
    assert interpret(log).framework.name == "Megatron-LM family"


# Lines made to cost much: each of these took ten seconds and more.

HOSTILE = {
    "dots": arguments_dump({"junk": "." * 60_000, "a": 1}),
    "many lines of dots": arguments_dump({"junk" + "x" * n: "." * 8_000 for n in range(100)} | {"a": 1}),
    "nested": "json = {\n" + '    "a": {' * 60_000 + "\n" + arguments_dump({"a": 1}),
    "launchers": "torchrun --num-layers 3 --train-iters " + " torchrun" * 60_000 + "\n" + arguments_dump({"a": 1}),
    "short launchers": ("torchrun --num-layers 3 --train-iters " + " torchrun" * 800 + "\n") * 40
    + arguments_dump({"a": 1}),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_line_of_any_length_costs_little(read, kind):
    before = time.process_time()
    settings = read(HOSTILE[kind])
    assert time.process_time() - before < 3
    assert settings["arguments:a"] == "1"


def test_a_long_line_is_cut_at_a_space_and_no_value_loses_digits(read):
    long = "torchrun --num-layers 32 --train-iters 5 " + "--data-path " + "x" * LONGEST
    assert read(long + " --seq-length 4096\n") == launched(num_layers=32)
    start = "torchrun --train-iters 5 --num-layers "
    filler = "torchrun --train-iters 5 ".ljust(LONGEST - 15, "x") + " --num-layers "
    assert len(filler) == LONGEST - 1
    assert read(filler + "32\n") == {}
    assert read(start + "32\n") == launched(num_layers=32)


def test_a_block_is_nested_fifty_deep_at_most(read):
    text = "json = {\n" + "".join(f'{" " * n}"a": {{\n' for n in range(1, 80)) + " " * 80 + '"b": 1\n}\n'
    assert list(read(text)) == ["deepspeed:" + "a." * 50 + "b"]


def test_sentences_of_an_excerpt_without_arguments(read):
    text = (
        "using torch.bfloat16 for parameters ...\n"
        "> initialized tensor model parallel with size 8\n"
        "> initialized pipeline model parallel with size 2\n"
    )
    assert read(text) == {
        "dtype:params_dtype": "torch.bfloat16",
        "world:tensor_model_parallel_size": "8",
        "world:pipeline_model_parallel_size": "2",
    }
