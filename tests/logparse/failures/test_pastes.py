"""Excerpts as people paste them: the cause, its rank and its host, from a few lines of several processes."""

import pytest

from logparse.decode.read_run import diagnose_run

PASTES = {
    "a link that failed before NCCL's report on the device of another host": (
        "node-a:51:52 [0] transport/net_ib.cc:12 NCCL WARN NET/IB : Got completion from peer 10.1.4.6<43> with error 12\n"
        "node-b:41:42 [1] init.cc:194 NCCL WARN Cuda failure 700 'an illegal memory access was encountered'\n",
        ("network", 1, None, None, "node-a"),
    ),
    "NCCL's report on the device before the link": (
        "node-b:41:42 [1] init.cc:194 NCCL WARN Cuda failure 700 'an illegal memory access was encountered'\n"
        "node-a:51:52 [0] transport/net_ib.cc:12 NCCL WARN NET/IB : Got completion from peer 10.1.4.6<43> with error 12\n",
        ("device_program", 1, None, None, "node-b"),
    ),
    "a process of torch.multiprocessing.spawn": (
        "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 1 terminated with the following error:\n"
        'Traceback (most recent call last):\n  File "a.py", line 7, in work\nRuntimeError: CUDA error: invalid device ordinal\n',
        ("setup", 6, 1, 1, None),
    ),
    "a process of torch.multiprocessing.spawn that only ended": (
        "torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with exit code 1\n",
        ("unknown", 1, 2, 2, None),
    ),
    "a global rank": ("global rank 3: ValueError: too many values to unpack\n", ("exception", 1, 3, None, None)),
    "a rank after a colon": ("rank: 2 | ValueError: too many values to unpack\n", ("exception", 1, 2, None, None)),
    "both ranks": ("rank 11 (local_rank: 3): ValueError: too many values\n", ("exception", 1, 11, 3, None)),
    "the error file of torchelastic": (
        'errors.error_handler:{\n  "message": {\n    "message": "ValueError: split \\"dev\\" is not there",\n'
        '    "extraInfo": {\n      "py_callstack": "Traceback (most recent call last):\\n  File \\"a.py\\", line 9\\n'
        'ValueError: split \\"dev\\" is not there\\n",\n      "timestamp": "1690000000"\n',
        ("exception", 3, None, None, None),
    ),
    "the rank below an exception of DDP": (
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.\n"
        "Parameter indices which did not receive grad for rank 5: 160 161\n",
        ("exception", 1, 5, None, None),
    ),
    "a child of Lightning, which kills the others": (
        "[rank: 1] Child process with PID 42 terminated with code -11. Forcefully terminating all other processes.\n"
        "Killed\n",
        ("crash", 1, 1, None, None),
    ),
    "an exception that Ray carries to its driver": (
        "ray.exceptions.RayTaskError(ValueError): ray::WorkerDict.init_model() (pid=88, ip=10.0.0.9, actor_id=ab)\n"
        '  File "a.py", line 500, in init_model\nValueError: too many values to unpack\n',
        ("exception", 3, None, None, "10.0.0.9"),
    ),
}


@pytest.mark.parametrize("name", PASTES)
def test_a_paste_names_cause_rank_and_host(tmp_path, name):
    text, expected = PASTES[name]
    path = tmp_path / "run.log"
    path.write_text(text)
    ending = diagnose_run([str(path)])
    assert (ending.family, ending.line, ending.rank, ending.local_rank, ending.host) == expected
