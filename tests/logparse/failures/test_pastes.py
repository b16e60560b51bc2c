"""Excerpts as people paste them: the cause, its rank and its host, from a few lines of several processes."""

import pytest
from helpers import SETTINGS, arguments_dump, megatron_line, run_logparse

from analysis.present.views.ending import headline
from logparse.decode.read_run import diagnose_run
from logparse.failures.scan import quoted

_LOADER_ENDS = (
    "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>\n"
    "Traceback (most recent call last):\n"
    '  File "/env/lib/python3.11/site-packages/torch/utils/data/_utils/signal_handling.py", line 66, in handler\n'
    "    _error_if_any_worker_fails()\n"
    "RuntimeError: DataLoader worker (pid 99) is killed by signal: Aborted. \n"
)
PASTES = {
    "an exception after the loader's workers that it takes down": (
        f"{_LOADER_ENDS}Process Process-1:\nTraceback (most recent call last):\n"
        '  File "/home/a/engine.py", line 778, in evaluate\n    a, _ = classify(batch)\n'
        "ValueError: too many values to unpack (expected 2)\n",
        ("exception", 10, None, None, None),
    ),
    "workers of a loader that crashed, and nothing else": (
        _LOADER_ENDS,
        ("crash", 5, None, None, None),
    ),
    "the process of Paddle whose log its launcher prints below": (
        "Container rank 6 status failed cmd ['python', 'train.py'] code 1 log log/default.abc.6.log\n"
        "I0721 11:58:51.079766 29676 tcp_utils.cc:130] Successfully connected to 10.0.0.1:60216\n"
        "OSError: (External) NCCL error(5), invalid usage.\n"
        "  [Hint: 'ncclInvalidUsage'. The call to NCCL is incorrect.]\n",
        ("setup", 3, 6, None, None),
    ),
    "memory that two processes of NCCL could not share": (
        "node-a:41:42 [1] transport/p2p.cc:235 NCCL WARN hipIpcGetMemHandle failed : invalid argument\n"
        "node-a:51:52 [0] transport/p2p.cc:235 NCCL WARN hipIpcGetMemHandle failed : invalid argument\n"
        "E1 torch/distributed/elastic/multiprocessing/api.py:8] failed (exitcode: 1) local_rank: 0 (pid: 51) of a\n",
        ("setup", 1, None, None, "node-a"),
    ),
    "a record that holds all lines of the error in one": (
        '  "message": "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution\\n'
        'CUDA kernel errors might be asynchronously reported at some other API call"\n',
        ("hardware", 1, None, None, None),
    ),
    "a report of torchrun that ends before its root, where all others ended the same way": (
        "[1]:\n  rank      : 5 (local_rank: 1)\n  exitcode  : -9 (pid: 41)\n"
        "  traceback : Signal 9 (SIGKILL) received by PID 41\n"
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-01-02_03:04:05\n",
        ("killed", 4, None, None, None),
    ),
    "a process that crashed, reported after the wait for its rank": (
        "[rank0]: RuntimeError: [Rank 0]: Ranks 6 failed to pass monitoredBarrier in 180000 ms\n"
        "E1 torch/distributed/elastic/multiprocessing/api.py:8] failed (exitcode: -8) local_rank: 6 (pid: 3) of a\n",
        ("crash", 2, None, 6, None),
    ),
    "the only rank that torch_npu names below CANN's own line": (
        "EZ9999: The error from device(chipId:6, dieId:0), serial number is 1, there is an aivec error exception\n"
        "[ERROR] 2026-01-17-16:50:00 (PID:7, Device:2, RankID:2) ERR99999 UNKNOWN application exception\n",
        ("device_program", 1, 2, None, None),
    ),
    "a check on the device before two bars of different totals": (
        "Indexing.cu:699: block: [588,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
        "Iteration:   4%|#  | 43/1216 [00:21<09:52,  1.98it/s]\nEpoch:   0%|   | 0/50 [00:21<?, ?it/s]\n"
        "RuntimeError: CUDA error: device-side assert triggered\n",
        ("device_program", 1, None, None, None),
    ),
    "a compiler that CUDA refuses, before the end of the build": (
        "host_config.h:139:2: error: #error -- unsupported GNU version! gcc versions later than 11 are not supported!\n"
        "ninja: build stopped: subcommand failed.\n",
        ("arguments", 1, None, None, None),
    ),
    "the worker of Ray that was killed": (
        "(raylet) A worker died. Node ID: 1b36 Worker IP address: 10.0.0.7 Worker port: 33877 Worker PID: 42 "
        "Worker exit type: SYSTEM_ERROR Worker exit detail: The worker may have exceeded K8s pod memory limits.\n",
        ("host_memory", 1, None, None, "10.0.0.7"),
    ),
    "the actor of Ray that raised in its creation task": (
        "ray.exceptions.RayTaskError(ActorDiedError): ray::Runner.run() (pid=7, ip=10.0.0.6, actor_id=2e)\n"
        "ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, "
        "ray::Sync.__init__() (pid=8, ip=10.0.0.7, actor_id=3f)\nRuntimeError: NCCL is not available.\n",
        ("setup", 3, None, None, "10.0.0.7"),
    ),
    "the worker of Ray that died": (
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
        "\tclass_name: Worker\n\tpid: 42\n\tname: 4kqR2tWorkerDict_0:3\n\tip: 10.0.0.7\n",
        ("unknown", 1, 3, None, None),
    ),
    "what a run outlived, before what ended it": (
        "RpcError: the counter service is away\nepoch 0, step 1\nepoch 0, step 2\nepoch 0, step 3\n"
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.batch.\n",
        ("host_memory", 5, None, None, None),
    ),
    "a server that did not start": (
        "[rank1]: RuntimeError: server launch failed\n",
        ("exception", 1, 1, None, None),
    ),
    "a report of torchrun that ends before its root, where others ended in two ways": (
        "[1]:\n  rank      : 5 (local_rank: 1)\n  exitcode  : 1 (pid: 41)\n[2]:\n  exitcode  : -9 (pid: 42)\n"
        "  traceback : Signal 9 (SIGKILL) received by PID 42\n"
        "Root Cause (first observed failure):\n[0]:\n  rank      : 3 (local_rank: 3)\n",
        ("unknown", 7, 3, 3, None),
    ),
    "a tool of the system that the environment breaks, before the cause": (
        "/usr/libexec/git-core/git-remote-https: symbol lookup error: /lib64/libcurl.so.4: undefined symbol: SSL_new\n"
        "node-a:41:41 [0] plugin/net.cc:9 NCCL WARN Failed to initialize any NET plugin\n",
        ("setup", 2, None, None, "node-a"),
    ),
    "a link that failed before NCCL's report on the device of another host": (
        "node-a:51:52 [0] net_ib.cc:12 NCCL WARN NET/IB : Got completion from peer 10.1.4.6<43> with error 12\n"
        "node-b:41:42 [1] init.cc:194 NCCL WARN Cuda failure 700 'an illegal memory access was encountered'\n",
        ("network", 1, None, None, "node-a"),
    ),
    "NCCL's report on the device before the link": (
        "node-b:41:42 [1] init.cc:194 NCCL WARN Cuda failure 700 'an illegal memory access was encountered'\n"
        "node-a:51:52 [0] net_ib.cc:12 NCCL WARN NET/IB : Got completion from peer 10.1.4.6<43> with error 12\n",
        ("device_program", 1, None, None, "node-b"),
    ),
    "a process of torch.multiprocessing.spawn": (
        "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 1 terminated with the following error:\n"
        'Traceback (most recent call last):\n  File "a.py", line 7, in work\n'
        "RuntimeError: CUDA error: invalid device ordinal\n",
        ("setup", 6, 1, 1, None),
    ),
    "a process of torch.multiprocessing.spawn that only ended": (
        "torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with exit code 1\n",
        ("unknown", 1, 2, 2, None),
    ),
    "a rank and a blank": ("rank: 2 ValueError: too many values to unpack\n", ("exception", 1, 2, None, None)),
    "the environment of the only process": (
        "RANK=5 LOCAL_RANK=1 WORLD_SIZE=8\nValueError: too many values to unpack\n",
        ("exception", 2, 5, None, None),
    ),
    "the environments of two processes": (
        "RANK=5 LOCAL_RANK=1\nRANK=6 LOCAL_RANK=2\nValueError: too many values to unpack\n",
        ("exception", 3, None, None, None),
    ),
    "the socket that NCCL did not reach, below its general error": (
        "torch.distributed.DistBackendError: NCCL error in: a.hpp:7, unhandled system error\n"
        "Last error:\nsocketStartConnect: Connect to 10.1.4.6<4243> failed : No route to host\n",
        ("network", 3, None, None, None),
    ),
    "the device that two ranks share, below NCCL's general error": (
        "ncclInvalidUsage: This usually reflects invalid usage.\nLast error:\n"
        "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 3b000\n",
        ("setup", 3, None, None, None),
    ),
    "shared memory, below NCCL's general error": (
        "torch.distributed.DistBackendError: NCCL error in: a.hpp:7, unhandled system error\n"
        "Last error:\nError while creating shared memory segment /dev/shm/nccl-x (size 96)\n",
        ("shared_memory", 3, None, None, None),
    ),
    "what another rank of Lightning raised, below its own report": (
        "lightning.exceptions.DeadlockDetectedException: DeadLock detected from rank: 1\n"
        " Traceback (most recent call last):\nValueError: too many values to unpack\n",
        ("exception", 3, None, None, None),
    ),
    "a message that a chat wrapped between words": (
        "Traceback (most recent call last):\nRuntimeError: CUDA out of\nmemory. Tried to allocate\n20.00 MiB\n",
        ("device_memory", 2, None, None, None),
    ),
    "a message that is cut in its first word": (
        "[rank2]:[E x.cpp:475] [Rank 2] Watchdog caught collective op\neration timeout: WorkNCCL(SeqNum=10, "
        "OpType=BROADCAST, Timeout(ms)=600000) ran\n",
        ("collective_timeout", 1, None, None, None),
    ),
    "a line of another rank, which completes no message": (
        "[rank1]: collective op\n[rank2]: eration done\nCUDA out of\n[rank2]: memory. Tried to allocate\n",
        ("unknown", None, None, None, None),
    ),
    "CANN's message, below the exception of MindSpore that points to it": (
        "RuntimeError: Run task for graph:g_1 error! The details refer to 'Ascend Error Message'.\n\n"
        "EI0002: The wait execution of the Notify register times out. Reason: no record from remote rank [0].\n",
        ("collective_timeout", 3, None, None, None),
    ),
    "a function that an old driver does not have, after what failed": (
        "[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=6, OpType=ALLREDUCE)\n"
        "Can't find nvmlDeviceGetX: /lib64/libnvidia-ml.so.1: undefined symbol: nvmlDeviceGetX\n",
        ("collective_timeout", 1, None, None, None),
    ),
    "memory that a library in Rust did not get, in lines that mix": (
        "memory allocation of memory allocation of 4096524096 bytes failed\n bytes failed\n",
        ("host_memory", 1, None, None, None),
    ),
    "an address of IPv6 with its interface": (
        "node7:1:2 [5] socket.cc:483 NCCL WARN socketStartConnect: Connect to fe80::9:2%ib1<17943> failed : aborted\n",
        ("network", 1, None, None, "node7"),
    ),
    "weights that are missing": (
        "RuntimeError: unable to open file </m/a.safetensors> in read-only mode: No such file or directory (2)\n",
        ("file", 1, None, None, None),
    ),
    "an error that is printed before the last bar": (
        "[rank0]: RuntimeError: [enforce fail at inline_container.cc:626] . unexpected pos 128 vs 126\n"
        "100%|##########| 3/3 [00:09<00:00, 3.00s/it]\n"
        "[2025-03-23 10:03:55,562] [ERROR] [launch.py:325:sigkill_handler] ['python'] exits with return code = 1\n",
        ("checkpoint", 1, 0, None, None),
    ),
    "a Python module of CANN, in a line of its own log": (
        "[ERROR] TUNE(24,python):2024-04-08-15:18:43.444.270 [Tid:24]\"ModuleNotFoundError: No module named 'tbe.x'\n",
        ("setup", 1, None, None, None),
    ),
    "a collective of HCCL that fails": (
        "RuntimeError: The Inner error is reported as above. The current working operator name is HcclAllreduce.\n",
        ("collective_timeout", 1, None, None, None),
    ),
    "a process that aborts before NCCL says why": (
        "run.sh: line 197: 2985003 Aborted (core dumped) python train.py\n"
        "[rank1]: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting.\n",
        ("network", 2, 1, None, None),
    ),
    "a general error of NCCL alone": (
        "RuntimeError: NCCL error: unhandled system error, NCCL version 2.21.5\n",
        ("collective_timeout", 1, None, None, None),
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
    "a consequence that Ray carries to its driver": (
        "ray.exceptions.RayTaskError(RuntimeError): ray::TaskRunner.run() (pid=7, ip=10.0.0.3, actor_id=ab)\n"
        '  File "a.py", line 9, in fit\nRuntimeError: ACL stream synchronize failed, error code:507999\n',
        ("device_program", 3, None, None, "10.0.0.3"),
    ),
    "the only process of the only node": (
        "[launch.py:151:main] nnodes=1, num_local_procs=1, node_rank=0\n"
        "[ERROR] [launch.py:321:sigkill_handler] ['python', '-u', 'main.py', '--local_rank=0']"
        " exits with return code = -9\n",
        ("killed", 2, 0, 0, None),
    ),
    "another process than the one whose environment is printed": (
        "RANK=0 LOCAL_RANK=0\nlocal_rank=3 ValueError: too many values to unpack\n",
        ("exception", 2, None, 3, None),
    ),
    "a count that is 0": (
        "Number of steps/epoch 0, number of epochs 6\nZeroDivisionError: integer division or modulo by zero\n",
        ("data", 1, None, None, None),
    ),
    "a shell that goes on after a time-out": (
        "[rank0]:[E1218 20:27:21.426 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600057 ms\n"
        "+ sleep 5\nrun.sh: line 45: --disable_tqdm: command not found\n",
        ("collective_timeout", 1, None, None, None),
    ),
    "a bar that is first seen in the middle, as a process draws it once more at its end": (
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.\n"
        "  4%|4         | 17/387 [05:25<1:57:56, 19.13s/it]\n",
        ("numerics", 1, None, None, None),
    ),
    "an environment that conda cannot activate, which ends no job": (
        "CommandNotFoundError: Your shell has not been properly configured to use 'conda activate'.\n"
        "  2%|2         | 1/50 [10:31<8:35:20, 631.04s/it]slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT "
        "2026-03-01T16:20:46 DUE TO TIME LIMIT ***\n",
        ("time_limit", 2, None, None, None),
    ),
    "a segfault that Ray repeats across its workers": (
        "(Worker pid=88)     @ ... and at least 12 more frames [repeated 3x across cluster]\n"
        "(Worker pid=88) [2026-03-04 05:06:07,089 E 88 88] logging.cc:440: *** SIGSEGV received at time=1772600767 on "
        "cpu 3 *** [repeated 3x across cluster]\n"
        "(Worker pid=88) [2026-03-04 05:06:07,091 E 88 88] logging.cc:440:     @     0x7f01ab  96  call()\n",
        ("crash", 2, None, None, None),
    ),
    "a message that a line of another traceback parts from its exception": (
        'Traceback (most recent call last):\nAssertionError:   File "a/grads.py", line 14, in sync\n'
        '  File "a/schedule.py", line 9, in step\n    sync(grads)\n'
        "Rank 6: found NaN in local grad norm in backward pass before the collective. Device: 6, node: node7\n",
        ("numerics", 5, 6, None, "node7"),
    ),
    "an exception that another traceback parts from its message, with nothing known below": (
        'AssertionError:   File "a/grads.py", line 14, in sync\n[rank1]: ValueError: too many values to unpack\n',
        ("exception", 1, None, None, None),
    ),
    "a preemption that Slurm names after it ended the step": (
        "slurmstepd: error: *** STEP 812.0 ON n1 CANCELLED AT 2026-03-01T16:20:46 ***\n"
        "slurmstepd: error: *** JOB 812 ON n1 CANCELLED AT 2026-03-01T16:30:52 DUE TO PREEMPTION ***\n",
        ("preempted", 2, None, None, None),
    ),
    "a preemption of another job of Slurm": (
        "slurmstepd: error: *** STEP 812.0 ON n1 CANCELLED AT 2026-03-01T16:20:46 ***\n"
        "slurmstepd: error: *** JOB 813 ON n1 CANCELLED AT 2026-03-01T16:30:52 DUE TO PREEMPTION ***\n",
        ("cancelled", 1, None, None, None),
    ),
    "memory for a size that an aborted collective left empty": (
        "[rank1]:[E813 12:25:30.1 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=9, OpType=ALLGATHER, NumelIn=1, NumelOut=4, Timeout(ms)=600000) ran for 600038 ms\n"
        "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 301.50 GiB. GPU 2 has a total capacity "
        "of 79.14 GiB of which 40.00 GiB is free.\n",
        ("collective_timeout", 1, None, None, None),
    ),
    "memory that a device might have had, near a time-out": (
        "[rank1]:[E813 12:25:30.1 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=9, OpType=ALLGATHER, NumelIn=1, NumelOut=4, Timeout(ms)=600000) ran for 600038 ms\n"
        "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 41.50 GiB. GPU 2 has a total capacity "
        "of 79.14 GiB of which 40.00 GiB is free.\n",
        ("device_memory", 2, 2, None, None),
    ),
    "far too much memory, without a time-out before it": (
        "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 301.50 GiB. GPU 2 has a total capacity "
        "of 79.14 GiB of which 40.00 GiB is free.\n"
        "[rank1]:[E813 12:25:30.1 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=9, OpType=ALLGATHER, NumelIn=1, NumelOut=4, Timeout(ms)=600000) ran for 600038 ms\n",
        ("device_memory", 1, 2, None, None),
    ),
    "the unit of the device that failed, below the call that found it": (
        "worker ERROR: no group: ProcessGroupHCCL.cpp:1 NPU function error: aclrtFoo(limit), error code is 507049\n"
        "[ERROR] 2026-03-01-01:43:41 (PID:88, Device:1, RankID:9) ERR00100 PTA call acl api failed\n"
        "EE9999: Inner Error!\n"
        "EE9999[PID: 88] (EE9999): The error from device(chipId:1, dieId:0), serial number is 4. there is a fftsplus "
        "sdma error, sdma channel is 2\n",
        ("device_program", 4, 9, None, None),
    ),
    "a host whose name pdsh puts before a line": (
        "TRAIN7: Traceback (most recent call last):\nTRAIN7: OSError: [Errno 24] Too many open files\n",
        ("limits", 2, None, None, "TRAIN7"),
    ),
    "a notebook of Kaggle, whose lines have a time and a number": (
        "81.5s\t40\tOSError: [Errno 28] No space left on device\n"
        "81.6s\t41\tRoot Cause (first observed failure):\n81.6s\t42\t[0]:\n"
        "81.6s\t43\t  host      : box\n81.6s\t44\t  rank      : 2 (local_rank: 2)\n"
        "81.6s\t45\t  exitcode  : 1 (pid: 77)\n",
        ("disk", 1, 2, 2, "box"),
    ),
    "a worker of Ray in a pod": (
        "(raylet) A worker died or was killed while executing a task by an unexpected system error. Worker exits with "
        "an exit code None. The worker may have exceeded K8s pod memory limits.\nname: q7XWorkerDict_0:3\n",
        ("host_memory", 1, 3, None, None),
    ),
    "an operator of CANN without a tiling": (
        "[rank6]: RuntimeError: OPS function error: aclnnFooBar, error code is 561000\n"
        "[rank6]: AclNN_Runtime_Error(EZ9903): InitTilingParseCtx failed\n",
        ("setup", 2, 6, None, None),
    ),
}


def ending_of(tmp_path, text):
    (tmp_path / "run.log").write_text(text)
    return diagnose_run([str(tmp_path / "run.log")])


@pytest.mark.parametrize("name", PASTES)
def test_a_paste_names_cause_rank_and_host(tmp_path, name):
    text, expected = PASTES[name]
    path = tmp_path / "run.log"
    path.write_text(text)
    ending = diagnose_run([str(path)])
    assert (ending.family, ending.line, ending.rank, ending.local_rank, ending.host) == expected


def wrapped(text, width):
    return "".join(f"{text[at : at + width]}\n" for at in range(0, len(text), width))


def test_a_message_that_a_terminal_wrapped_is_read_whole(tmp_path):
    watchdog = (
        "[rank5]:[E612 09:11:23.036611330 ProcessGroupNCCL.cpp:632] [Rank 5] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=1712, OpType=ALLREDUCE, NumelIn=8192, NumelOut=8192, Timeout(ms)=600000) ran for 600"
    )
    path = tmp_path / "run.log"
    for width in (80, 100):
        path.write_text(wrapped(watchdog, width) * 2)
        ending = diagnose_run([str(path)])
        assert (ending.family, ending.line, ending.cause.rank, ending.detail) == (
            "collective_timeout",
            1,
            5,
            "collective_number",
        )
        assert ending.figures == {"number": "1712", "operation": "ALLREDUCE", "limit": "600 s"}


def test_a_vague_line_has_the_meaning_of_its_rest(tmp_path):
    begin = "[rank4]: RuntimeError: [3] sets up a communicator and asks for its unique Id of the node that leads: "
    text = begin + "CUDA error: an illegal memory access was encountered"
    path = tmp_path / "run.log"
    path.write_text("x" * 80 + "\n" + wrapped(text, 80))
    ending = diagnose_run([str(path)])
    assert (ending.family, ending.line, ending.rank) == ("device_program", 2, 4)


def test_lines_of_one_width_are_not_joined_without_a_message_across_them(tmp_path):
    path = tmp_path / "run.log"
    path.write_text("step 1 of 9 caught collective".ljust(80, ".") + "\n" + "=" * 80 + "\n" + "operation timeout\n")
    assert diagnose_run([str(path)]).state == "unknown"


def test_the_next_step_has_the_figures_of_a_wrapped_message_but_not_of_another_rank(tmp_path):
    path = tmp_path / "run.log"
    head = "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 h"
    rest = "as a total capacity of 79.15 GiB of which 512.00 MiB is free."
    path.write_text(f"{head}\n{rest}\n")
    assert diagnose_run([str(path)]).figures == {"asked": "2.00 GiB", "total": "79.15 GiB", "free": "512.00 MiB"}
    path.write_text(f"{head}\n[rank6]: {rest}\n")
    assert diagnose_run([str(path)]).figures == {"asked": "2.00 GiB"}


@pytest.mark.parametrize(("own", "detail"), [("8.38 GiB", "memory_of_others"), ("39.30 GiB", "memory_free")])
def test_a_device_that_another_process_fills_is_named(tmp_path, own, detail):
    path = tmp_path / "run.log"
    path.write_text(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB. GPU 0 has a total capacity of 39.49 "
        f"GiB of which 119.38 MiB is free. Including non-PyTorch memory, this process has {own} memory in use.\n"
    )
    assert diagnose_run([str(path)]).detail == detail


def test_the_device_that_a_warning_above_names_is_in_the_next_step(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(
        "UserWarning: A card with CUDA capability sm_120 is not compatible with this installation.\n"
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
    )
    assert diagnose_run([str(path)]).figures == {"device": "sm_120"}


@pytest.mark.parametrize(
    ("text", "detail", "figures"),
    [
        (
            "[rank6]: AclNN_Runtime_Error(EZ9903): InitTilingParseCtx failed\n\n"
            "op[FooBar], compile info not contain [_pattern][FUNC:Parse]\n",
            "operator_absent",
            {"name": "FooBar"},
        ),
        (
            "omegaconf.errors.ConfigAttributeError: Key 'lr' is not in struct\n    full_key: optim.lr\n",
            "setting_missing",
            {"name": "optim.lr"},
        ),
        (
            "deepspeed.ZeRORuntimeException: The checkpoint being loaded used a DP world size of 64 but the current "
            "world size is 8.\n",
            "ranks_of_save",
            {"saved": "64", "current": "8"},
        ),
    ],
)
def test_the_next_step_names_what_to_add_or_convert(tmp_path, text, detail, figures):
    path = tmp_path / "run.log"
    path.write_text(text)
    ending = diagnose_run([str(path)])
    assert (ending.detail, ending.figures) == (detail, figures)


def test_the_rank_that_the_others_wait_for_is_named(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(
        "[rank1]: EI0006: [PID: 7] Getting socket times out.\n"
        "Failed to create link, localRank[1], remoteRank[4], localIp[10.0.0.1]\n"
    )
    ending = diagnose_run([str(path)])
    assert [suspect.rank for suspect in ending.suspects] == [4]
    assert headline(ending) == "failed: rank 1 waited for rank 4"


def test_others_wait_for_the_rank_that_a_log_without_ranks_names(tmp_path):
    path = tmp_path / "run.log"
    path.write_text("EI0002: The wait of the Notify register times out. Reason: no record from remote rank [3].\n")
    assert headline(diagnose_run([str(path)])) == "failed: others waited for rank 3"


@pytest.mark.parametrize(("operation", "suspected"), [("_ALLGATHER_BASE", [3]), ("ALLTOALL_BASE", [])])
def test_a_rank_with_another_number_of_elements_is_in_another_collective(tmp_path, operation, suspected):
    path = tmp_path / "run.log"
    path.write_text(
        "".join(
            f"[rank{rank}]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType={operation}, "
            f"NumelIn={8 if rank == 3 else 64}, Timeout(ms)=600000) ran\n"
            for rank in range(4)
        )
    )
    assert [suspect.rank for suspect in diagnose_run([str(path)]).suspects] == suspected


def test_ranks_that_fail_in_the_same_way_are_named(tmp_path):
    path = tmp_path / "run.log"
    path.write_text("".join(f"[rank{rank}]: ValueError: a\n" for rank in (2, 0, 1)))
    ending = diagnose_run([str(path)])
    assert (ending.same_ranks, headline(ending)) == ((0, 1, 2), "failed: ranks 0 to 2, all the same: an exception")
    path.write_text("".join(f"[rank{rank}]: ValueError: a\n" for rank in (4, 0, 2)))
    assert headline(diagnose_run([str(path)])) == "failed: ranks 0, 2 and 4, all the same: an exception"
    path.write_text("".join(f"[rank{rank}]: ValueError: a\n" for rank in range(0, 16, 2)))
    assert headline(diagnose_run([str(path)])) == "failed: 8 ranks, an exception"
    path.write_text("[rank0]: ValueError: a\n[rank1]: ValueError: a\n")
    assert headline(diagnose_run([str(path)])) == "failed: ranks 0 and 1, all the same: an exception"


def test_a_failure_before_all_others_begins_an_attempt(tmp_path):
    path = tmp_path / "run.log"
    usage = "usage: train.py [-h]\ntrain.py: error: argument {}\n"
    path.write_text(usage.format("--a: invalid choice: 'b'") + 2 * usage.format("--lr: invalid float value: 'c'"))
    ending = diagnose_run([str(path)])
    assert (ending.line, ending.figures, ending.attempts_in_log) == (4, {"name": "--lr"}, 2)
    syntax = '  File "train.py", line 8\n    lr=1 2\n    ^\nSyntaxError: invalid syntax\n'
    path.write_text(f"Traceback (most recent call last):\nValueError: a\n{syntax}")
    ending = diagnose_run([str(path)])
    assert (ending.line, ending.detail, ending.attempts_in_log) == (6, "syntax_at", 2)


CANCELLED = "slurmstepd: error: *** JOB {} ON n7 CANCELLED AT 2025-08-21T02:26:53 ***\n"


def test_jobs_that_follow_each_other_in_a_file_are_attempts(tmp_path):
    path = tmp_path / "run.log"
    begins = "wandb: Tracking run with wandb version 0.21.1\n"
    path.write_text(f"{begins}ValueError: a\n{begins}")
    # Without a report that the first one ended, another rank may begin late.
    assert diagnose_run([str(path)]).attempts_in_log == 1
    path.write_text(f"{begins}{CANCELLED.format(7)}{begins}{CANCELLED.format(8)}")
    ending = diagnose_run([str(path)])
    assert (ending.line, ending.attempts_in_log, ending.repeated) == (4, 2, 1)
    launch = "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n"
    path.write_text(f"{launch}ValueError: a\n{launch}KeyError: 'b'\n")
    assert (diagnose_run([str(path)]).line, diagnose_run([str(path)]).attempts_in_log) == (4, 2)


def test_an_exception_after_the_training_of_a_script_is_quoted(tmp_path):
    path = tmp_path / "run.log"
    done = "{'train_runtime': 312.4, 'train_samples_per_second': 8.2, 'train_loss': 1.2, 'epoch': 1.0}\n"
    path.write_text(f"{done}Traceback (most recent call last):\nAttributeError: a\n")
    ending = diagnose_run([str(path)])
    assert (ending.state, [line.text for line in ending.evidence]) == ("completed", ["AttributeError: a"])


def test_an_error_in_a_later_section_of_a_document_is_not_of_its_run(tmp_path):
    path = tmp_path / "run.log"
    steps = "".join(f"{megatron_line(step)}\n" for step in range(1, 4))
    document = "# Train\n```bash\ntrain\n```\n```text\n{}```\n{}\n```text\nValueError: a\n```\n"
    path.write_text(document.format(steps, "## 2. It may fail"))
    assert not diagnose_run([str(path)]).failed
    path.write_text(document.format(steps, "Then it failed:"))
    assert diagnose_run([str(path)]).failed


def test_processes_of_several_nodes_without_their_ranks_are_counted(tmp_path):
    path = tmp_path / "run.log"
    block = "Root Cause (first observed failure):\n[0]:\n  rank      : {} (local_rank: 0)\n  exitcode  : 1 (pid: 7)\n"
    path.write_text(
        2 * "FileNotFoundError: [Errno 2] No such file or directory: 'a'\n" + block.format(8) + block.format(16)
    )
    ending = diagnose_run([str(path)])
    assert (ending.same_on, ending.rank, ending.host) == (2, None, None)


def test_ray_names_the_process_above_its_traceback(tmp_path):
    path = tmp_path / "run.log"
    call = "ray::Worker.__init__() (pid=7, ip=10.0.0.3, actor_id=ab, repr=Worker[rank=15])\n"
    path.write_text(f"(Runner pid=5) {call}(Runner pid=5) ValueError: a\n")
    ending = diagnose_run([str(path)])
    assert (ending.rank, ending.host) == (15, "10.0.0.3")


def test_a_message_logged_before_its_exception_has_the_rank_of_that(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(
        "RuntimeError: Parent directory /a does not exist.\n"
        "[rank0]: RuntimeError: Parent directory /a does not exist.\n"
    )
    assert diagnose_run([str(path)]).rank == 0


def test_another_rank_that_begins_a_traceback_is_quoted(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(
        "[rank2]: Traceback (most recent\n[rank3]: Traceback (most recent call last):\n[rank3]: ValueError: a\n"
    )
    ending = diagnose_run([str(path)])
    assert (ending.rank, [line.text for line in ending.evidence][1:]) == (3, ["[rank2]: Traceback (most recent"])


def test_a_run_that_completed_counts_the_attempts_before_it(tmp_path):
    failed = "Traceback (most recent call last):\nValueError: too many values\n"
    starts = [
        f"{arguments_dump(SETTINGS)}\n" + "".join(f"{megatron_line(step)}\n" for step in range(first, first + 4))
        for first in (489, 493, 497)
    ]
    (tmp_path / "run.log").write_text(failed.join(starts) + "[after training is done] datetime\n")
    shown = run_logparse("diagnose", "run.log", cwd=tmp_path).stdout
    assert "attempts    3 in this log, 2 x an exception, last at step 496" in shown
    assert "steps 489 to 500 of 500, completed in attempt 3" in run_logparse("analyze", "run.log", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ('      "RuntimeError: bad value \\"x\\"\\n",', 'RuntimeError: bad value "x"'),
        ('   "\\u001b[31mValueError\\u001b[0m: no batch\\n"', "ValueError: no batch"),
        ('      "KeyError: \\q\\n",', "KeyError: \\q"),
        ('"ValueError: quoted",', '"ValueError: quoted",'),
    ],
)
def test_a_line_of_a_notebook_is_quoted_without_its_escapes(stored, shown):
    assert quoted(stored, "Error") == shown


def test_losses_of_an_actor_that_are_lost_are_the_cause_of_a_torn_traceback(tmp_path):
    step = "epoch: 0|step: {n}|act_loss: {loss}|cri_loss: {loss}|unsuper_loss: 0.0\n"
    lines = [step.format(n=n, loss="0.5" if n < 3 else "inf") for n in range(1, 6)]
    torn = 'Traceback (most recent call last):\n  File "main.py", line 534, in <module>\n    main(args, device)\n'
    ending = ending_of(tmp_path, "".join(lines) + torn)
    assert (ending.state, ending.family, ending.line) == ("failed", "numerics", 3)


@pytest.mark.parametrize(("loss", "lost"), [("nan", True), ("0.7", False)])
def test_a_completed_run_with_lost_losses_says_so(tmp_path, loss, lost):
    lines = [f"{{'eval_loss': {loss}, 'eval_runtime': 1.25, 'epoch': 0.{n}}}\n" for n in range(1, 9)]
    end = "{'train_runtime': 30.5, 'train_samples_per_second': 8.4, 'train_steps_per_second': 0.5, 'train_loss': 0.0}\n"
    (tmp_path / "run.log").write_text("".join(lines) + end + f"  eval_loss  =  {loss}\n")
    done = run_logparse("diagnose", "run.log", cwd=tmp_path)
    assert done.stdout.startswith("completed; but the last losses are not finite" if lost else "completed")
    assert ("values" in done.stdout) == lost


def test_losses_of_evaluations_alone_are_no_cause_of_an_end(tmp_path):
    ending = ending_of(tmp_path, "epoch 0, step 1, loss: 0.5\nepoch 0, step 2, loss: 0.4\nval_loss: nan\n")
    assert (ending.state, ending.family, ending.evidence) == ("cut_off", "unknown", ())


def test_a_stamp_with_a_colon_is_before_the_rank(tmp_path):
    line = "2021-03-10T13:22:37.483Z: [1,2]<stderr>:OSError: cannot identify image file 'a.JPEG'\n"
    ending = ending_of(tmp_path, line)
    assert (ending.family, ending.rank) == ("data", 2)


def test_advice_within_an_exception_does_not_hide_it(tmp_path):
    line = "ValueError: The file a.yaml had unknown keys (['tp_size']), please try upgrading or remove these keys.\n"
    ending = ending_of(tmp_path, line)
    assert (ending.family, ending.detail, ending.figures) == ("arguments", "keys_unknown", {"names": "tp_size"})


def test_a_failed_assertion_beats_the_abort_it_causes(tmp_path):
    lines = (
        "train: src/loader.h:186: void init(Loader*, int): Assertion `tokens >= batch * length + 1' failed.\n"
        "[n7:1] Signal: Aborted (6)\n"
    )
    ending = ending_of(tmp_path, lines)
    assert (ending.family, ending.line, ending.detail) == ("crash", 1, "check_failed")


def test_a_loss_scale_near_0_is_the_cause_of_a_torn_traceback(tmp_path):
    scales = (f"| WARNING: overflow detected, setting loss scale to: {2.0**-n}\n" for n in range(2, 14))
    ending = ending_of(tmp_path, "".join(scales) + 'Traceback (most recent call last):\n  File "train.py", l\n')
    assert (ending.state, ending.family, ending.line) == ("failed", "numerics", 12)


def test_a_signal_is_how_a_scheduler_cancels_a_job(tmp_path):
    text = (
        "W0811 19:10:32.576000 1389313 torch/distributed/elastic/agent/server/api.py:719] Received Signals.SIGTERM "
        "death signal, shutting down workers\n"
        "slurmstepd: error: *** JOB 9835976 ON gpu54 CANCELLED AT 2025-08-11T19:10:32 ***\n"
    )
    ending = ending_of(tmp_path, text)
    assert (ending.state, ending.family, ending.line, ending.figures) == (
        "cancelled",
        "cancelled",
        2,
        {"job": "9835976"},
    )


def test_every_rank_that_torchrun_reports_with_the_signal_is_named(tmp_path):
    report = "  rank      : {0} (local_rank: {0})\n  exitcode  : {1} (pid: 1{0})\n"
    text = (
        "E1 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: -11) local_rank: 0 (pid: 10) of x\n"
        "Failures:\n"
        + report.format(1, -11)
        + report.format(2, -15)
        + report.format(3, -11)
        + "Root Cause (first observed failure):\n"
        + report.format(0, -11)
    )
    ending = ending_of(tmp_path, text)
    assert (ending.family, ending.same_ranks, ending.same_on) == ("crash", (0, 1, 3), 3)


def test_the_nodes_that_report_a_cause_are_named_where_no_line_has_a_rank(tmp_path):
    line = "{}: /usr/bin/python3: can't open file 'train.py': [Errno 2] No such file or directory\n"
    text = "".join(line.format(host) for host in ("10.0.0.7", "10.0.0.9", "10.0.0.7"))
    ending = ending_of(tmp_path, text)
    assert (ending.family, ending.host, ending.same_hosts) == ("file", None, ("10.0.0.7", "10.0.0.9"))
    assert "10.0.0.7 and 10.0.0.9, all the same" in headline(ending)
    assert ending_of(tmp_path, line.format("10.0.0.7")).host == "10.0.0.7"
    every = ending_of(tmp_path, "".join(line.format(f"10.0.0.{n}") for n in range(1, 5)))
    assert "4 nodes, all the same" in headline(every)


def test_the_process_of_ray_that_raised_the_cause_is_named(tmp_path):
    text = (
        "ray.exceptions.RayTaskError(RuntimeError): ray::WorkerDict.generate() (pid=51, ip=10.0.0.7, actor_id=b4)\n"
        '  File "/home/a/rollout.py", line 7, in generate\n    tokens = outputs.tolist()\n'
        "RuntimeError: ACL stream synchronize failed, error code:507035\n"
    )
    (tmp_path / "run.log").write_text(text)
    assert ending_of(tmp_path, text).process == "WorkerDict.generate(), pid 51"
    shown = run_logparse("diagnose", "run.log", cwd=tmp_path).stdout
    assert "  process     WorkerDict.generate(), pid 51" in shown


def test_the_process_that_ray_killed_is_not_the_one_that_waited_for_it(tmp_path):
    text = (
        "ray.exceptions.RayTaskError(OutOfMemoryError): ray::Runner.run() (pid=51, ip=10.0.0.7, actor_id=b4)\n"
        '  File "/home/a/trainer.py", line 7, in run\n    output = ray.get(output)\n'
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
        "Memory on the node (IP: 10.0.0.7, ID: d4) where the lease (lease ID: e5, name=Worker.__init__, pid=77, "
        "memory used=49.21GB) was running was 59.84GB / 62.51GB (0.957), which exceeds the threshold\n"
    )
    ending = ending_of(tmp_path, text)
    assert (ending.host, ending.process) == ("10.0.0.7", None)
    assert (ending.figures["pid"], ending.figures["own"]) == ("77", "49.21GB")


def test_a_worker_of_ray_may_have_its_rank_in_its_name(tmp_path):
    ending = ending_of(tmp_path, "(PolicyWorker[rank=9] pid=7, ip=10.0.0.7) ValueError: a batch is empty\n")
    assert (ending.rank, ending.host) == (9, "10.0.0.7")


def test_a_key_is_named_with_the_line_that_asks_for_it(tmp_path):
    text = (
        'Traceback (most recent call last):\n  File "/home/a/zeta.py", line 110, in step\n'
        "    n = group['accum_steps']\nKeyError: 'accum_steps'\n"
    )
    (tmp_path / "run.log").write_text(text)
    shown = " ".join(run_logparse("diagnose", "run.log", cwd=tmp_path).stdout.split())
    assert "raised in zeta.py, line 110, in step" in shown
    assert "the key is accum_steps" in shown


@pytest.mark.parametrize(
    ("before", "line", "detail"),
    [
        (
            '  File "modeling_utils.py", line 4415, in _load_pretrained_model\n',
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
            "memory_loading",
        ),
        (
            '  File "/usr/lib/torch/nn/modules/module.py", line 1355, in to\n    return self._apply(convert)\n',
            "RuntimeError: CUDA error: out of memory\n",
            "memory_moving",
        ),
        (
            "INFO Saving model and optim state...\n",
            "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the tasks have been OOM Killed.\n",
            "memory_saving",
        ),
        (
            '  File "shutil.py", line 728, in rmtree\n    os.rmdir(path)\n',
            "FileNotFoundError: [Errno 2] No such file or directory: '/out/global_step15'\n",
            "removed_twice",
        ),
    ],
)
def test_what_the_program_did_says_what_to_do(tmp_path, before, line, detail):
    assert ending_of(tmp_path, before + line).detail == detail
    assert ending_of(tmp_path, line).detail != detail


def test_a_program_that_fails_in_every_process_has_no_rank(tmp_path):
    torn = "RuntimeError: Invalid device string: 'npu:-1'\n"
    report = "Root Cause (first observed failure):\n[0]:\n  rank      : 3 (local_rank: 3)\n  exitcode  : 1 (pid: 9)\n"
    ending = ending_of(tmp_path, 3 * torn + report)
    assert (ending.family, ending.rank, ending.same_on) == ("arguments", None, 3)
    assert ending_of(tmp_path, torn + report).rank == 3


def test_the_steps_of_a_completed_run_are_not_those_of_the_next_one(tmp_path):
    command = "[2026-03-11 10:00:00,000] [INFO] [launch.py:162:main] WORLD INFO DICT: {'n7': [0, 1]}\n"
    steps = "".join(f" iteration {n:8}/      20 | elapsed time per iteration (ms): 9.5 |\n" for n in range(1, 21))
    end = "[after training is done] datetime: 2026-03-11 10:20:00\n"
    ending = ending_of(tmp_path, command + steps + end + command + "AssertionError: 2 is not divisible by 4\n")
    assert (ending.state, ending.step) == ("failed", None)


def test_an_exception_whose_message_is_on_the_next_line_is_read_with_it(tmp_path):
    text = "RuntimeError:\n            Some tensors share memory, this will lead to duplicate memory on disk\n"
    ending = ending_of(tmp_path, text)
    assert (ending.family, ending.remedy, ending.line) == ("checkpoint", "shared_tensors", 1)
    assert ending.text.startswith("RuntimeError: Some tensors share memory")
    assert ending_of(tmp_path, "ValueError:\nTraceback (most recent call last):\n").text == "ValueError:"


def test_an_exception_that_carries_another_one_is_read_as_that(tmp_path):
    text = (
        "KeyError: 'DataLoader worker(1) caught KeyError with message:\\nTraceback (most recent call last):\\n"
        '  File "/home/a/sampling.py", line 169, in sampling\\n    found = self.sampler[name].sampling(\\n'
        "KeyError: \\'Car\\'\\n'\n"
    )
    ending = ending_of(tmp_path, text)
    assert (ending.text, ending.detail, ending.figures["name"]) == ("KeyError: 'Car'", "key_missing", "Car")
    assert [(call.path, call.line, call.name) for call in ending.frames] == [("sampling.py", 169, "sampling")]


def test_a_worker_of_paddle_that_connects_again_is_an_attempt(tmp_path):
    start = "I0405 09:49:00.394932 2874715 tcp_utils.cc:130] Successfully connected to 127.0.1.1:35168\n"
    text = (
        start + "train.py: error: argument --arch: invalid choice: 'a' (choose from 'b')\n" + start + "KeyError: 'c'\n"
    )
    ending = ending_of(tmp_path, text)
    assert (ending.line, ending.attempts_in_log) == (4, 2)


def test_the_exit_code_of_python_tells_which_of_two_causes_it_was(tmp_path):
    bind = "[c10d] The server socket has failed to bind to [::]:6000 (errno: 98 - Address already in use).\n"
    script = "/usr/bin/python: can't open file 'pretrain_gpt.py': [Errno 2] No such file or directory\n"
    report = (
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: {}) local_rank: 0 (pid: 7) of binary\n"
    )
    assert ending_of(tmp_path, bind + script + report.format(2)).line == 2
    assert ending_of(tmp_path, bind + script + report.format(1)).line == 1


def test_all_ranks_that_others_waited_for_are_named(tmp_path):
    text = (
        "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: 0_async_write_complete.0.1.\n"
    )
    tasks = "".join(f"/job:jax_worker/replica:0/task:{task}\n" for task in (6, 0, 4, 5, 1, 2, 7, 3))
    ending = ending_of(tmp_path, text + tasks)
    assert [suspect.ranks for suspect in ending.suspects] == [tuple(range(8))]
    assert headline(ending) == "failed: others waited for 8 ranks"
    assert ending.detail == "save_barrier"
    few = ending_of(tmp_path, text + tasks[: tasks.index("task:4")])
    assert [suspect.rank for suspect in few.suspects] == [6, 0]


def test_where_all_ranks_hang_in_the_first_collective_none_is_missing(tmp_path):
    line = (
        "[rank{n}]:[E923 15:45:08.0 ProcessGroupNCCL.cpp:607] [Rank {n}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800048 ms\n"
    )
    ending = ending_of(tmp_path, "".join(line.format(n=n) for n in range(4)))
    assert headline(ending) == "failed: ranks 0 to 3 hung in their first collective"
    later = ending_of(tmp_path, "".join(line.format(n=n) for n in range(4)).replace("SeqNum=1,", "SeqNum=9,"))
    assert "waited for a missing rank" in headline(later)


def test_ranks_that_ask_for_different_sizes_report_one_cause(tmp_path):
    """The quoted beginning of a long line ends at another word where its numbers are longer."""
    path = tmp_path / "run.log"
    line = (
        "[rank{rank}]: RuntimeError: NPU out of memory. Tried to allocate {asked} (NPU {rank}; 60.96 GiB total "
        "capacity; 46.26 GiB already allocated; 46.26 GiB current active; {free} free; 47.23 GiB reserved in total by "
        "PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.\n"
    )
    sizes = (("728.00 MiB", "126.75 MiB"), ("1.66 GiB", "554.02 MiB"), ("1.66 GiB", "1.28 GiB"))
    path.write_text("".join(line.format(rank=n, asked=a, free=f) for n, (a, f) in enumerate(sizes)))
    ending = diagnose_run([str(path)])
    assert (ending.same_ranks, ending.detail) == ((0, 1, 2), "memory_outside")


def test_a_time_limit_without_steps_asks_whether_the_run_moved(tmp_path):
    path = tmp_path / "run.log"
    limit = "slurmstepd: error: *** JOB 7 ON node-a CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***\n"
    path.write_text(limit)
    assert diagnose_run([str(path)]).remedy == "time_limit_unseen"
    path.write_text("".join(megatron_line(step) + "\n" for step in range(1, 5)) + limit)
    assert diagnose_run([str(path)]).remedy == "time_limit"


def test_code_that_python_cannot_read_is_of_an_earlier_start(tmp_path):
    """Python reads all code before a run does anything: what fails later is of another start."""
    begin = 'Traceback (most recent call last):\n  File "/home/a/train.py", line {line}, in main\n    {code}\n'
    syntax = begin.format(line=20, code="import brain") + "IndentationError: unindent does not match\n"
    path = tmp_path / "run.log"
    path.write_text(
        syntax
        + begin.format(line=151, code="save(model)")
        + "RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 2 vs 1\n"
    )
    ending = diagnose_run([str(path)])
    assert (ending.line, ending.attempts_in_log, ending.frames[-1].line) == (8, 2, 151)
    path.write_text(syntax + "Exception in thread Thread-1:\n" + begin.format(line=9, code="f()") + "OSError: closed\n")
    assert (diagnose_run([str(path)]).line, diagnose_run([str(path)]).attempts_in_log) == (4, 1)


def test_workers_of_ray_that_print_on_do_not_outlive_their_driver(tmp_path):
    bar = "(train pid=7) Progress:   0%|          | {}/10000 [00:16<3:37:33,  1.31s/it] [repeated 9x across cluster]\n"
    path = tmp_path / "run.log"
    path.write_text(bar.format(11) + "KeyboardInterrupt\n" + bar.format(12) + bar.format(13) + "a" * 120 + "\n")
    assert (diagnose_run([str(path)]).family, diagnose_run([str(path)]).line) == ("cancelled", 2)


def test_what_paddle_prints_of_the_users_code_is_no_message(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(
        'RuntimeError: In user code:\n\n    File "/home/a/train.py", line 317, in do_train\n      scores = model(x)\n\n'
        "    PreconditionNotMetError: Tensor not initialized yet when Tensor::place() is called.\n"
    )
    assert diagnose_run([str(path)]).line == 6


def test_a_log_without_a_finite_value_shows_what_was_nan_first(tmp_path):
    bar = "Epoch 0:   0%|          | {}/99 [00:12<05:51,  0.08it/s, loss=nan]\n"
    path = tmp_path / "run.log"
    path.write_text("[Check] audio: nan=True\n" + bar.format(1) + bar.format(2))
    ending = diagnose_run([str(path)])
    assert (ending.remedy, [line.line for line in ending.evidence]) == ("never_finite", [1, 2])
    path.write_text("loss: 2.5\n[Check] audio: nan=True\n" + bar.format(1) + bar.format(2))
    assert diagnose_run([str(path)]).remedy == "lost_values"
