"""Of the lines of a failed run the cause is named first, and nothing is accused in a healthy log."""

import json

import pytest
from helpers import megatron_line, megatron_log, run_logparse

from logparse.decode.read_run import diagnose_run

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
NCCL = "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, remote process exited"
TIMEOUT = "[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12) ran for 600012 milliseconds"
CHILD = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
EXIT = "torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: {code}) local_rank: 3 (pid: 4245)"
BLOCK = """\
Root Cause (first observed failure):
[0]:
  time      : 2025-03-04_15:41:29
  host      : node1
  rank      : {rank} (local_rank: {rank})
  exitcode  : {code} (pid: 3182701)
  traceback : To enable traceback see
"""


def diagnosed(tmp_path, *lines, before=""):
    path = tmp_path / "run.log"
    path.write_text(before + "".join(f"{line}\n" for line in lines))
    return diagnose_run([str(path)])


def found(tmp_path, *lines, before=""):
    ending = diagnosed(tmp_path, *lines, before=before)
    return ending.family, ending.line


def test_the_root_beats_what_it_causes_wherever_it_is(tmp_path):
    assert found(tmp_path, f"[rank0]: {NCCL}", f"[rank3]: {OOM}", CHILD) == ("device_memory", 2)
    assert found(tmp_path, f"[rank3]: {OOM}", f"[rank0]: {NCCL}", CHILD) == ("device_memory", 1)


def test_the_earliest_of_causes_counts(tmp_path):
    assert found(tmp_path, "ValueError: a", "KeyError: b") == ("exception", 1)


def test_memory_and_hardware_of_another_rank_beat_an_exception_near_them(tmp_path):
    assert found(tmp_path, "[rank0]: ValueError: a", f"[rank3]: {OOM}") == ("device_memory", 2)
    assert found(tmp_path, "[rank3]: ValueError: a", f"[rank3]: {OOM}") == ("exception", 1)
    ecc = "[rank4]: RuntimeError: CUDA error: uncorrectable ECC error encountered"
    assert found(tmp_path, f"[rank3]: {OOM}", ecc) == ("hardware", 2)
    assert found(tmp_path, "[rank0]: ValueError: a", *["x"] * 300, f"[rank3]: {OOM}") == ("exception", 1)


def test_clocks_say_what_is_near(tmp_path):
    first = "[rank0]: 2025-01-02 03:04:05.000 ValueError: a"
    for second, cause in ((6, 2), (9, 1)):
        other = f"[rank1]: 2025-01-02 03:04:0{second}.000 {OOM}"
        text = first.replace("000 V", "000] V")
        assert found(tmp_path, text, other)[1] == cause


def test_a_time_out_with_nothing_before_it_is_a_hypothesis(tmp_path):
    ending = diagnosed(tmp_path, f"[rank5]: {TIMEOUT}", "[rank5]: RuntimeError: aborted", EXIT.format(code=-6), CHILD)
    assert (ending.family, ending.line, ending.grade) == ("collective_timeout", 1, "hypothesis")


def test_a_cause_before_a_time_out_is_the_cause(tmp_path):
    assert found(tmp_path, "[rank1]: OSError: [Errno 5] Input/output error", f"[rank5]: {TIMEOUT}") == ("disk", 1)


def test_a_cancelled_hang_is_a_hang(tmp_path):
    cancelled = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-06-17T09:00:00 DUE TO TIME LIMIT ***"
    assert found(tmp_path, TIMEOUT, cancelled) == ("collective_timeout", 1)
    assert found(tmp_path, f"[rank3]: {OOM}", cancelled) == ("device_memory", 1)
    assert found(tmp_path, "KeyboardInterrupt", cancelled) == ("time_limit", 2)


@pytest.mark.parametrize(
    ("code", "family"), [(-9, "killed"), (-11, "crash"), (-7, "shared_memory"), (-15, "signal"), (1, "unknown")]
)
def test_exit_codes_differ(tmp_path, code, family):
    ending = diagnosed(tmp_path, EXIT.format(code=code), CHILD)
    assert (ending.family, ending.line, ending.exit_code) == (family, 1, code)


def test_an_exit_code_after_a_lost_connection_is_the_cause(tmp_path):
    assert found(tmp_path, f"[rank0]: {NCCL}", EXIT.format(code=-9)) == ("killed", 2)
    assert found(tmp_path, f"[rank0]: {TIMEOUT}", EXIT.format(code=-9)) == ("collective_timeout", 1)


def test_the_launchers_report_gives_rank_host_and_code(tmp_path):
    ending = diagnosed(tmp_path, "ValueError: a", BLOCK.format(rank=5, code=1))
    assert (ending.line, ending.rank, ending.host, ending.exit_code) == (1, 5, "node1", 1)
    ending = diagnosed(tmp_path, "[rank2]: ValueError: a", BLOCK.format(rank=5, code=1))
    assert (ending.rank, ending.host) == (2, None)


def test_the_launchers_report_is_read_in_its_own_file(tmp_path):
    cut, other = tmp_path / "node_0.log", tmp_path / "node_1.log"
    heading, *lines = BLOCK.format(rank=5, code=1).splitlines(keepends=True)
    cut.write_text(f"starting\nValueError: a\n{heading}")
    other.write_text("".join(["starting\n", "waiting\n", "waiting\n", *lines]))
    ending = diagnose_run([str(cut), str(other)])
    assert (ending.family, ending.rank, ending.host, ending.exit_code) == ("exception", None, None, None)


def test_a_wrapper_of_hccl_follows_from_a_code_of_cann(tmp_path):
    wrapper = "RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:81"
    head = "[ERROR] 2025-01-02-03:04:05 (PID:7, Device:5, RankID:5) ERR02200 DIST call hccl api failed."
    busy = "EJ0001: 2025-01-02-03:04:05.1 Failed to initialize the HCCP process."
    ending = diagnosed(tmp_path, wrapper, head, busy)
    assert (ending.family, ending.line, ending.rank) == ("device_busy", 3, 5)
    assert found(tmp_path, wrapper, head, "EI0004: [PID: 7] The ranktable is invalid.") == ("setup", 3)


def test_a_fabric_that_is_not_ready_is_a_fault_of_the_node(tmp_path):
    nccl = "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, unhandled cuda error"
    lines = (
        f"[rank{rank}]: {text}" for rank in (1, 6) for text in (nccl, "Cuda failure 802 'system not yet initialized'")
    )
    ending = diagnosed(tmp_path, *lines)
    assert (ending.family, ending.line, ending.same_on, ending.remedy) == ("node", 2, 2, "fabric")


@pytest.mark.parametrize("name", ["1", "Signals.SIGHUP"])
def test_a_signal_to_the_launcher_is_the_cause(tmp_path, name):
    death = f"W0617 09:30:11.1 4242 torch/distributed/elastic/agent/server/api.py:688] Received {name} death signal, x"
    death = death.replace("signal, x", "signal, shutting down workers")
    ending = diagnosed(tmp_path, death, "Sending process 4243 closing signal SIGHUP")
    assert (ending.family, ending.line, ending.exit_code, ending.grade) == ("signal", 1, -1, "established")


def test_shapes_that_differ_are_of_the_checkpoint(tmp_path):
    frame = '  File "checkpoint/base.py", line 7, in load_checkpoint'
    error = "ValueError: Size mismatch between saved torch.Size([64, 8]) and current: torch.Size([512]) for wte"
    ending = diagnosed(tmp_path, frame, error)
    assert (ending.family, ending.line, ending.remedy) == ("checkpoint", 2, "checkpoint_keys")


def test_another_line_of_the_same_failure_names_the_rank(tmp_path):
    ecc = "CUDA error: uncorrectable ECC error encountered"
    watchdog = "[E ProcessGroupNCCL.cpp:916] [Rank {}] watchdog thread terminated with exception: " + ecc
    assert diagnosed(tmp_path, f"RuntimeError: {ecc}", watchdog.format(2)).rank == 2
    assert diagnosed(tmp_path, f"RuntimeError: {ecc}", watchdog.format(2), watchdog.format(3)).rank is None
    killed = "slurmstepd-n7: error: Detected 1 oom-kill event(s) in StepId=12.0."
    ending = diagnosed(tmp_path, killed, "srun: error: n7: task 3: Out Of Memory")
    assert (ending.line, ending.rank, ending.host) == (1, 3, "n7")
    ending = diagnosed(tmp_path, killed, "srun: error: n8: task 3: Out Of Memory")
    assert (ending.rank, ending.host) == (None, "n7")


def test_a_link_that_failed_has_two_ends(tmp_path):
    link = "NCCL WARN NET/IB : Got completion from peer 10.0.0.7<4242> with status=12 opcode=0 len=0 vendor err 129"
    (tmp_path / "run.log").write_text(f"node-3:4242:4300 [3] ib_plugin.c:1615 {link}\n")
    ending = diagnose_run([str(tmp_path / "run.log")])
    assert (ending.family, ending.host, ending.peer, ending.remedy) == ("network", "node-3", "10.0.0.7", "link")
    shown = run_logparse("diagnose", "run.log", cwd=tmp_path).stdout
    assert "failed: link of node-3 and 10.0.0.7, a network port or link failed" in shown


def test_a_local_rank_is_shown(tmp_path):
    (tmp_path / "run.log").write_text(f"{EXIT.format(code=-9)}\n")
    assert "killed: local rank 3, a process was killed" in run_logparse("diagnose", "run.log", cwd=tmp_path).stdout


BAR = "  2%|▏   | {}/620 [01:07<50:20,  4.98s/it]"


def test_an_error_after_the_last_bar_is_not_refuted_by_it(tmp_path):
    loss = "{'loss': 0.85, 'grad_norm': 4.8, 'learning_rate': 1.4e-05, 'epoch': 0.16}"
    before = [loss, BAR.format(12)]
    error = f"{BAR.format(13)}[rank3]: {OOM}"
    ending = diagnosed(tmp_path, *before, error, BAR.format(13))
    assert (ending.family, ending.line, ending.rank, ending.step) == ("device_memory", 3, 3, 13)
    assert diagnosed(tmp_path, *before, f"{error}\r{BAR.format(14)}", BAR.format(15)).state == "cut_off"


def test_the_steps_are_counted(tmp_path):
    ending = diagnosed(tmp_path, f"[rank3]: {OOM}", before=megatron_log())
    assert (ending.state, ending.step, ending.planned_steps, ending.rank) == ("failed", 6, 500, 3)


@pytest.mark.parametrize(
    "after",
    [
        "Exception ignored in: <module 'threading'>\nTraceback (most recent call last):\nKeyError: 1",
        "ERROR:root:Traceback (most recent call last):\n  File x\nValueError: handled",
        "waiting",
    ],
)
def test_nothing_is_accused_in_a_log_that_merely_ends(tmp_path, after):
    ending = diagnosed(tmp_path, after, before=megatron_log())
    assert (ending.state, ending.family) == ("cut_off", "unknown")


def test_a_logged_exception_counts_where_the_process_ends(tmp_path):
    logged = "ERROR:root:Traceback (most recent call last):\n  File x\nValueError: bad"
    assert found(tmp_path, logged, EXIT.format(code=1)) == ("exception", 3)


def test_a_healthy_end_wins_over_what_follows_it(tmp_path):
    done = "[after training is done] datetime: 2025"
    late = ("PythonFinalizationError: x", f"[rank3]: {OOM}", "srun: error: n1: task 3: Exited with exit code 1")
    assert diagnosed(tmp_path, done, *late, before=megatron_log()).state == "completed"
    assert diagnosed(tmp_path, *late, before=megatron_log() + megatron_line(500) + "\n").state == "completed"
    success = ':::MLLOG {"key": "run_stop", "metadata": {"status": "success"}}'.replace("MLLOG {", 'MLLOG {"x": 1, ')
    limit = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-06-17T09:00:00 DUE TO TIME LIMIT ***"
    assert diagnosed(tmp_path, limit, success).state == "completed"


def test_a_completed_step_refutes_an_error(tmp_path):
    assert diagnosed(tmp_path, before=f"{OOM}\n" + megatron_log()).state == "cut_off"
    bars = [f" {n}%| | {n}/100 [00:0{n}<09:00, 6.00s/it]" for n in (1, 2, 3)]
    assert diagnosed(tmp_path, bars[0], "ValueError: retried", *bars[1:]).state == "cut_off"
    # A bar that is drawn once more while the process ends.
    assert found(tmp_path, *bars, "ValueError: no", bars[-1]) == ("exception", 4)


def test_attempts_that_end_the_same_way_without_progress_are_counted(tmp_path):
    again = "[default] Worker group FAILED. 2/3 attempts left; will restart worker group"
    ending = diagnosed(
        tmp_path, "[rank1]: ValueError: a 1", again, "[rank2]: ValueError: a 2", again, "[rank1]: ValueError: a 3"
    )
    assert (len(ending.attempts), ending.repeated, ending.restart_helps, ending.line) == (3, 3, False, 5)
    ending = diagnosed(tmp_path, "[rank1]: KeyError: 1", again, f"[rank1]: {OOM}")
    assert (len(ending.attempts), ending.restart_helps, ending.family) == (2, None, "device_memory")


def test_ranks_that_others_waited_for_are_suspects(tmp_path):
    ending = diagnosed(
        tmp_path, "[rank0]: EI0002: [PID: 5] The wait execution times out. Reason: no record from remote rank:[7]"
    )
    assert (ending.family, ending.rank, ending.collect) == ("collective_timeout", None, "plog")
    assert [suspect.rank for suspect in ending.suspects] == [7]


def test_a_rank_that_the_launcher_names_is_that_of_the_crash(tmp_path):
    end = "mpirun noticed that process rank 5 with PID 42 on node n7 exited on signal 11 (Segmentation fault)."
    ending = diagnosed(tmp_path, "[n7:42] Signal: Segmentation fault (11)", end)
    assert (ending.family, ending.line, ending.rank, ending.host, ending.exit_code) == ("crash", 1, 5, "n7", -11)


def test_a_process_that_torchrun_kills_after_another_failed_is_no_cause(tmp_path):
    killed = "  exitcode  : -9 (pid: 14689)", "  traceback : Signal 9 (SIGKILL) received by PID 14689"
    ending = diagnosed(tmp_path, CHILD, "Failures:", *killed, *BLOCK.format(rank=1, code=1).splitlines())
    assert (ending.family, ending.rank, ending.exit_code) == ("unknown", 1, 1)


def test_an_exception_while_a_checkpoint_is_read_is_about_it(tmp_path):
    frame = '  File "megatron/checkpointing.py", line 526, in load_checkpoint'
    trace = ("Traceback (most recent call last):", frame, "    iteration = state_dict['iteration']")
    ending = diagnosed(tmp_path, *trace, "KeyError: 'iteration'")
    assert (ending.family, ending.grade, ending.line) == ("checkpoint", "supported", 4)
    ending = diagnosed(tmp_path, *trace, "KeyError: 'iteration'", "Traceback", "ValueError: a", before="TypeError: b\n")
    assert (ending.family, ending.line) == ("exception", 1)


def test_launchers_of_several_runs_in_one_file_begin_attempts(tmp_path):
    begin = "[2026-03-23 19:13:43,123] [INFO] [launch.py:162:main] WORLD INFO DICT: {'localhost': [0, 1]}"
    ending = diagnosed(tmp_path, begin, "ValueError: a", begin, "ValueError: a")
    assert (ending.line, len(ending.attempts), ending.restart_helps) == (4, 2, False)


def test_lines_that_are_new_in_the_run_are_quoted_with_a_poor_cause(tmp_path):
    frozen = "[rank5]: quota manager 0x7f12: lease of volume scratch-3 is over, mount is frozen"
    lines = [megatron_line(1), "[rank0]: heartbeat from monitor 7 ok", megatron_line(2)]
    lines += ["[rank0]: heartbeat from monitor 8 ok", *(f"[rank{rank}]: flushing the writer queues" for rank in (1, 2))]
    ending = diagnosed(tmp_path, *lines, frozen, EXIT.format(code=1), CHILD)
    assert [(line.line, line.rank) for line in ending.evidence if line.role == "novel"] == [(7, 5)]
    assert (ending.line, ending.family) == (8, "unknown")
    shown = " ".join(run_logparse("diagnose", "run.log", cwd=tmp_path).stdout.split())
    assert "new lines line 7: [rank5]: quota manager" in shown
    ending = diagnosed(tmp_path, *lines, frozen, f"[rank5]: {OOM}")
    assert all(line.role != "novel" for line in ending.evidence)


def test_a_task_whose_heartbeat_jax_misses_is_suspected(tmp_path):
    missed = (
        "E coordination_service.cc:954] /job:jax_worker/replica:0/task:37 has been set to ERROR in coordination service"
    )
    ending = diagnosed(tmp_path, missed, "Fatal Python error: Aborted")
    assert (ending.family, ending.line, [suspect.rank for suspect in ending.suspects]) == (
        "collective_timeout",
        1,
        [37],
    )


def test_files_of_ranks_are_ordered_by_their_clocks(tmp_path):
    for rank, second, message in ((0, 9, NCCL), (1, 5, "ValueError: a")):
        text = f"2025-01-02 03:04:0{second}.000] {message}\n"
        (tmp_path / f"rank_{rank}.log").write_text(text)
    ending = diagnose_run([str(tmp_path)])
    assert (ending.family, ending.source.endswith("rank_1.log")) == ("exception", True)


def test_the_command_answers_of_any_text(tmp_path):
    (tmp_path / "a.log").write_text(f"hello\n[rank3]: {OOM}\n")
    done = run_logparse("diagnose", "a.log", "--json", cwd=tmp_path)
    ending = json.loads(done.stdout)["ending"]
    assert (done.returncode, ending["state"], ending["line"], ending["remedy"]) == (0, "failed", 2, "device_memory")
    (tmp_path / "b.log").write_text("")
    done = run_logparse("diagnose", "b.log", cwd=tmp_path)
    assert (done.returncode, "the log is empty" in done.stderr) == (3, True)
    assert run_logparse("diagnose", "none.log", cwd=tmp_path).returncode == 2


def test_analyze_gives_the_same_ending(tmp_path):
    (tmp_path / "a.log").write_text(megatron_log() + f"[rank3]: {OOM}\n")
    asked = [run_logparse(command, "a.log", "--json", cwd=tmp_path) for command in ("analyze", "diagnose")]
    analyzed, ended = (json.loads(done.stdout) for done in asked)
    assert analyzed["runs"][0]["ending"] == ended["ending"]
    shown = " ".join(run_logparse("analyze", "a.log", cwd=tmp_path).stdout.split())
    assert "failed at step 6 of 500: rank 3, out of device memory" in shown


def test_processes_of_deepspeed_that_exit_well_complete_a_run_unless_another_failed(tmp_path):
    well = [
        f"[2025-03-04 15:41:29,467] [INFO] [launch.py:460:main] Process {pid} exits successfully." for pid in (1, 2)
    ]
    done = diagnosed(tmp_path, *well)
    assert (done.state, done.signature, done.line) == ("completed", "end.deepspeed", 1)
    for lines in ((well[0], f"[rank3]: {OOM}"), (f"[rank3]: {OOM}", well[0])):
        assert diagnosed(tmp_path, *lines).family == "device_memory"


@pytest.mark.parametrize("before", [" 0%| | 0/100 [00:00<?, ?it/s]", " 1%| | 1/100 [00:01<?, ?it/s]"])
def test_a_bar_that_is_drawn_again_at_its_first_step_is_no_progress(tmp_path, before):
    bars = [f" {n}%| | {n}/100 [00:0{n}<09:00, 6.00s/it]" for n in (1, 2, 3)]
    assert found(tmp_path, before, "ValueError: no", bars[0]) == ("exception", 2)
    assert diagnosed(tmp_path, before, "ValueError: retried", *bars).state == "cut_off"
    assert diagnosed(tmp_path, "ValueError: retried", bars[0]).state == "cut_off"


def test_a_link_is_named_before_what_follows_from_it(tmp_path):
    link = "NET/IB : Got completion from peer 10.0.0.7<4242> with error 12, opcode 0, len 0, vendor err 129"
    down = "[Rank 3] Some NCCL operations have failed, we are taking the entire process down."
    for lines in ((down, f"[rank3]: {NCCL} Last error: {link}"), (f"{down} {link}", TIMEOUT), (TIMEOUT, link)):
        ending = diagnosed(tmp_path, *lines)
        assert (ending.family, ending.peer, ending.grade) == ("network", "10.0.0.7", "hypothesis")
    assert found(tmp_path, link, f"[rank1]: {OOM}") == ("device_memory", 2)


def test_a_lost_remote_process_alone_is_a_hypothesis_on_the_network(tmp_path):
    ending = diagnosed(tmp_path, f"[rank0]: {NCCL}", "ncclRemoteError: A call failed possibly due to a network error")
    assert (ending.family, ending.line, ending.grade, ending.remedy) == ("network", 1, "hypothesis", "remote_end")


def test_of_very_many_attempts_the_first_and_the_last_are_kept(tmp_path):
    again = "[default] Worker group FAILED. 2/3 attempts left; will restart worker group"
    ending = diagnosed(tmp_path, *["[rank1]: ValueError: a", again] * 400, "[rank1]: ValueError: a")
    assert (len(ending.attempts), ending.attempts_in_log, ending.repeated) == (20, 401, 401)
    assert (ending.attempts[0].line, ending.attempts[-1].line) == (1, 801)
    shown = " ".join(run_logparse("diagnose", "run.log", cwd=tmp_path).stdout.split())
    assert "attempts 401 in this log, the last 401 ended the same way" in shown


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Received Signals.SIGHUP death signal, shutting down workers", "killed at step 6 of 500: a process received"),
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-06-17T09:00:00 ***", "cancelled at step 6 of 500 (est"),
        ("=>> PBS: job killed: walltime 3602 exceeded limit 3600", "time limit at step 6 of 500 (established)"),
    ],
)
def test_the_screen_shows_the_state_of_the_document(tmp_path, line, shown):
    state = diagnosed(tmp_path, line, before=megatron_log()).state
    done = run_logparse("diagnose", "run.log", cwd=tmp_path).stdout
    assert done.startswith(shown)
    assert done.startswith(state.replace("_", " "))


def test_a_symbol_that_is_missing_asks_for_a_rebuild(tmp_path):
    library = "/env/lib/python3.11/site-packages/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
    ending = diagnosed(tmp_path, f"ImportError: {library}: undefined symbol: _ZN3c105ErrorC2E")
    assert (ending.family, ending.remedy) == ("setup", "rebuild")
    ending = diagnosed(tmp_path, "ModuleNotFoundError: No module named 'flash_attn'")
    assert (ending.family, ending.remedy) == ("arguments", "install")
    mild = "/env/bitsandbytes/libbitsandbytes_cpu.so: undefined symbol: cadam32bit_grad_fp32"
    assert diagnosed(tmp_path, mild).state == "unknown"


def test_a_full_bar_without_a_loss_does_not_complete_a_run_that_failed_after_it(tmp_path):
    loaded = "100%|██████████| 32/32 [00:00<00:00, 1779.72it/s]"
    ending = diagnosed(tmp_path, loaded, "ValueError: fp16 mixed precision requires a GPU")
    assert (ending.state, ending.signature, ending.step) == ("failed", "setup.no_device", None)
    assert diagnosed(tmp_path, loaded, CHILD).state == "completed"


def test_a_message_below_its_exception_is_the_cause(tmp_path):
    lines = ("RuntimeError:", "        CUDA Setup failed despite GPU being available.")
    assert found(tmp_path, "│   21 │   CUDA Setup failed despite GPU being available. │", *lines) == ("setup", 3)
    assert found(tmp_path, "RuntimeError:", "my own words") == ("exception", 1)


def test_the_rank_below_an_exception_of_torch_npu_is_its_rank(tmp_path):
    error = "RuntimeError: create_config: HCCL function error: hcclCommInitRootInfoConfig(), error code is 4"
    head = "[ERROR] 2025-10-29-02:17:03 (PID:144556, Device:0, RankID:6) ERR02200 DIST call hccl api failed."
    assert diagnosed(tmp_path, error, head).rank == 6
    assert diagnosed(tmp_path, error, "x", head).rank is None


def test_an_excerpt_of_torchruns_report_gives_rank_and_host(tmp_path):
    ending = diagnosed(
        tmp_path, *BLOCK.format(rank=5, code=-11).splitlines()[2:6], "Signal 11 (SIGSEGV) received by PID 3"
    )
    assert (ending.family, ending.rank, ending.host) == ("crash", 5, "node1")


def test_a_rank_that_waits_is_not_named_by_its_state(tmp_path):
    info = "node7:14051:14895 [0] NCCL INFO [Service thread] Connection closed by localRank 3"
    works = "last enqueued NCCL work: 9, last completed NCCL work: 8."
    state = f"[rank11]:[E P.cpp:1] [PG 1 Rank 11] Timeout at NCCL work: 9, {works}"
    ending = diagnosed(tmp_path, info, state)
    assert (ending.family, ending.line, ending.rank, ending.grade) == ("collective_timeout", 2, None, "hypothesis")


def test_nccl_and_pdsh_name_the_host(tmp_path):
    closed = "worker0-0d9gnb:15:91 [3] include/socket.h 398 NCCL WARN Call to write failed : Connection reset by peer."
    assert diagnosed(tmp_path, closed).host == "worker0-0d9gnb"
    assert diagnosed(tmp_path, "worker-1: EH9999: Inner Error!").host == "worker-1"


def test_tasks_that_did_not_come_to_a_barrier_of_jax_are_suspects(tmp_path):
    error = "XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Timed out task names:"
    ending = diagnosed(tmp_path, error, *(f"/job:jax_worker/replica:0/task:{task}" for task in (1, 6)))
    assert (ending.family, [suspect.rank for suspect in ending.suspects]) == ("collective_timeout", [1, 6])


def test_a_time_limit_that_the_trainer_keeps_is_one(tmp_path):
    ending = diagnosed(tmp_path, "[trainer][INFO] - Time limit of 2m reached. Stopping training.", "ValueError: a")
    assert (ending.state, ending.line, ending.grade) == ("time_limit", 1, "established")


def test_a_launcher_names_the_rank_that_crashed(tmp_path):
    ending = diagnosed(tmp_path, "ERROR:composer.cli.launcher:Rank 2 crashed with exit code -7.")
    assert (ending.family, ending.rank, ending.exit_code) == ("shared_memory", 2, -7)


def test_an_error_after_the_end_puts_the_last_save_in_doubt(tmp_path):
    done, waits = "[after training is done] datetime: 2025-03-04 15:41:29", f"[rank5]: {TIMEOUT}"
    ending = diagnosed(tmp_path, done, waits, EXIT.format(code=-6), before=megatron_log())
    assert (ending.state, [(one.role, one.rank) for one in ending.evidence]) == ("completed", [("explains", 5)])
    full = diagnosed(tmp_path, done, "OSError: [Errno 28] No space left on device", before=megatron_log())
    assert (full.state, [one.family for one in full.evidence]) == ("completed", ["disk"])
    for tear_down in (["ValueError: a"], [waits], [EXIT.format(code=1)], [NCCL]):
        assert diagnosed(tmp_path, done, *tear_down, before=megatron_log()).evidence == ()


def test_the_first_launcher_of_torch_names_the_process_that_a_signal_ended(tmp_path):
    command = "subprocess.CalledProcessError: Command '['python3', '-u', 'train.py', '--local_rank=7', '--lr', '0.4']'"
    ending = diagnosed(tmp_path, f"{command} died with <Signals.SIGSEGV: 11>.")
    assert (ending.family, ending.local_rank, ending.exit_code) == ("crash", 7, -11)
    failed = diagnosed(tmp_path, OOM, f"{command} returned non-zero exit status 1.")
    assert (failed.family, failed.line) == ("device_memory", 1)


def test_mpirun_names_the_first_process_that_failed(tmp_path):
    ending = diagnosed(tmp_path, OOM, "  Process name: [[29973,1],3]", "  Exit code:    1")
    assert (ending.family, ending.rank) == ("device_memory", 3)
    shut = "Fri Sep 25 16:52:53 2020[2]<stderr>:Unknown: Horovod has been shut down. This was caused by an exception"
    assert (diagnosed(tmp_path, shut).rank, diagnosed(tmp_path, shut).remedy) == (2, "remote_end")


def test_an_import_that_failed_is_explained_below_it(tmp_path):
    because = "because of the following error (look up to see its traceback):"
    heads = (f"RuntimeError: Failed to import a.b {because}", f"Failed to import c.d {because}")
    assert found(tmp_path, *heads, "/env/flash.so: undefined symbol: _ZN3c10") == ("setup", 3)


DRAWN = " 10%|#         | {step}/620 [01:07<50:20,  4.98s/it]"


def test_a_log_that_ends_with_lost_values_says_so(tmp_path):
    bars = [DRAWN.format(step=step) for step in (60, 61, 62)]
    lost = diagnosed(tmp_path, *bars[:2], "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 4.5e-06}", bars[2])
    assert (lost.state, lost.family, lost.line, lost.remedy) == ("cut_off", "numerics", 3, "lost_values")
    assert not lost.failed


SCALED = "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {scale}, reducing to {half}"


def test_a_loss_scale_of_0_is_a_lost_run(tmp_path):
    bars = [DRAWN.format(step=step) for step in (60, 61)]
    lost = diagnosed(tmp_path, *bars, SCALED.format(scale=1, half=0))
    assert (lost.state, lost.family, lost.line, lost.detail) == ("cut_off", "numerics", 3, "scale_at_minimum")
    for half in ("0.5", "1024"):
        assert diagnosed(tmp_path, *bars, SCALED.format(scale=2048, half=half)).family == "unknown"


TRACEBACK = ("Traceback (most recent call last):", '  File "train.py", line 9, in main', "    train()")


def test_a_log_that_ends_inside_a_traceback_failed(tmp_path):
    bars = [DRAWN.format(step=step) for step in (60, 61)]
    torn = diagnosed(tmp_path, *bars, *TRACEBACK)
    assert (torn.state, torn.family, torn.line, torn.remedy) == ("failed", "unknown", 3, "torn_traceback")
    assert diagnosed(tmp_path, *bars, *TRACEBACK, "  File").failed
    spoken = diagnosed(tmp_path, *bars, "`mu` is needed when shifting is on", *TRACEBACK)
    assert [line.line for line in spoken.evidence] == [4, 3]
    lost = diagnosed(tmp_path, *bars, SCALED.format(scale=1, half=0), *TRACEBACK)
    assert (lost.state, lost.family, lost.line) == ("failed", "numerics", 3)
    # What comes after a traceback shows that the run went on.
    assert not diagnosed(tmp_path, *bars, *TRACEBACK, "resumed the loader").failed
    assert diagnosed(tmp_path, *bars, *TRACEBACK, "KeyError: 'text'").family != "unknown"


@pytest.mark.parametrize(
    "values",
    [
        ["iter 3000: loss 4.25, time 10.5ms"],
        ["{'loss': 1.25, 'grad_norm': nan}"],
        ["{'loss': nan, 'grad_norm': nan}", "{'loss': 1.25, 'grad_norm': 0.5}"],
        ["{'loss': 1.25, 'grad_norm': 0.5}"],
    ],
)
def test_one_step_without_a_finite_norm_is_no_lost_run(values, tmp_path):
    bars = [DRAWN.format(step=step) for step in (60, 61)]
    assert diagnosed(tmp_path, *bars, *values).family == "unknown"


def test_an_exception_of_a_task_that_nobody_waits_for_is_no_cause(tmp_path):
    closed = ["ERROR:asyncio:Task exception was never retrieved", "future: <Task finished name='Task-1'>"]
    closed += [
        "Traceback (most recent call last):",
        '  File "a.py", line 3, in aclose',
        "RuntimeError: Event loop is closed",
    ]
    assert found(tmp_path, *closed, "ValueError: a") == ("exception", 6)
    assert diagnosed(tmp_path, *closed, before=megatron_log()).state == "cut_off"


def test_a_compiler_says_what_is_wrong_below_the_program_that_it_quotes(tmp_path):
    program = [f"  a[{n}] = b;" for n in range(400)]
    wrong = "nvrtc: error: invalid value for --gpu-architecture (-arch)"
    assert found(tmp_path, "RuntimeError:", *program, wrong) == ("setup", 402)
    assert found(tmp_path, "RuntimeError:", *program, "ValueError: a") == ("exception", 1)


def test_a_time_limit_is_of_no_rank(tmp_path):
    line = "3: slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2025-06-17T09:00:00 DUE TO TIME LIMIT ***"
    ending = diagnosed(tmp_path, line)
    assert (ending.state, ending.rank) == ("time_limit", None)


@pytest.mark.parametrize(
    "warned",
    [
        "/env/lib/python3.12/site-packages/torch/cuda/__init__.py:141: UserWarning: CUDA initialization: "
        "The NVIDIA driver on your system is too old (found version 11040).",
        "/env/lib/python3.8/site-packages/glfw/__init__.py:916: GLFWError: (65544) b'X11: no display'",
    ],
)
def test_a_warning_of_a_library_is_no_failure(tmp_path, warned):
    assert diagnosed(tmp_path, warned).state == "unknown"
    assert found(tmp_path, warned, "ValueError: a") == ("exception", 2)


def test_a_run_of_wandb_that_follows_a_closed_one_is_an_attempt(tmp_path):
    begun, closed = "wandb: Tracking run with wandb version 0.24.2", "wandb: Find logs at: ./wandb/run-1/logs"
    ending = diagnosed(tmp_path, begun, "ValueError: a", closed, begun, OOM, closed)
    assert (ending.family, ending.line, ending.attempts_in_log) == ("device_memory", 5, 2)
    # Ranks that each begin a run do so in one attempt.
    assert diagnosed(tmp_path, begun, "ValueError: a", begun, OOM).attempts_in_log == 1


def test_an_engine_that_was_shut_down_did_not_die(tmp_path):
    died = (
        "ERROR 07-23 18:24:27 [core_client.py:704] Engine core proc EngineCore died unexpectedly, shutting down client."
    )
    shut = "(EngineCore pid=8) INFO 07-23 18:24:27 [core.py:1224] Shutdown complete"
    assert diagnosed(tmp_path, died).family == "killed"
    assert not diagnosed(tmp_path, shut, died).failed


def test_an_interrupt_is_of_its_rank(tmp_path):
    assert diagnosed(tmp_path, "[rank3]: KeyboardInterrupt").rank == 3


def test_the_worker_of_a_long_line_is_quoted(tmp_path):
    check = "block: [205,0,0], thread: [39,0,0] Assertion `srcIndex < srcSelectDimSize` failed."
    line = f"(CriticActor pid=1501276) {20 * 'build/'}cuda/Indexing.cu:1146: indexSelectLargeIndex: {check}"
    assert diagnosed(tmp_path, line).text.startswith("(CriticActor pid=1501276) …")


def test_the_watchdog_of_nccl_gives_way_to_the_reason_that_it_prints(tmp_path):
    first = "[rank0]:[E ProcessGroupNCCL.cpp:564] [Rank 0] Some NCCL operations have failed or timed out."
    reason = ["ncclInternalError: Internal check failed.", "Last error:", "ncclNetPluginShim_test() of the plugin"]
    ending = diagnosed(tmp_path, first, "we are taking the entire process down.", *reason)
    assert (ending.line, ending.figures["reason"]) == (3, reason[2])


def test_a_log_that_only_ends_shows_its_last_line(tmp_path):
    ending = diagnosed(tmp_path, megatron_line(1), "saving at \r 10%\r 20%", "")
    assert (ending.state, ending.printed_last.line, ending.printed_last.text) == ("cut_off", 2, "20%")
    shown = run_logparse("diagnose", "run.log", cwd=tmp_path).stdout
    assert "last line   line 2: 20%" in shown
    assert diagnosed(tmp_path, "ValueError: a").printed_last is None


STARTS, ENDS = (
    "saving checkpoint at iteration {} to /ckpt in torch format",
    "  successfully saved checkpoint from iteration {}",
)


@pytest.mark.parametrize(
    ("lines", "unfinished"),
    {
        "one that began": ([STARTS.format(4)], 1),
        "one that ended": ([STARTS.format(4), ENDS.format(4)], None),
        "the second": ([STARTS.format(2), ENDS.format(2), *["a step"] * 50, STARTS.format(4), *["a step"] * 50], 53),
        "one long ago, of a trainer that may print no end": ([STARTS.format(4), *["a step"] * 50], None),
        "none": (["a step"], None),
    }.values(),
)
def test_a_save_that_did_not_end_is_named(tmp_path, lines, unfinished):
    ending = diagnosed(tmp_path, *lines, "RuntimeError: CUDA error: an illegal memory access was encountered")
    assert (ending.unfinished_save and ending.unfinished_save.line) == unfinished


def test_a_save_that_ends_after_the_stop_or_before_a_step_did_end(tmp_path):
    steps = [megatron_line(step) for step in range(1, 4)]
    assert diagnosed(tmp_path, *steps, STARTS.format(3), LIMIT, ENDS.format(3)).unfinished_save is None
    assert diagnosed(tmp_path, STARTS.format(3), *steps, LIMIT).unfinished_save is None
    assert diagnosed(tmp_path, *steps, STARTS.format(3), LIMIT).unfinished_save.line == 4


LIMIT = "slurmstepd: error: *** JOB 7 ON node-a CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***"


@pytest.mark.parametrize(
    ("lines", "shown"),
    {
        "a line": (["evaluating", LIMIT], (1, "evaluating")),
        "a bar on the same line": (
            ["loading", f"shards:  71%|##   | 5/7 [01:51<00:45, 22.58s/it]{LIMIT}"],
            (2, "shards:"),
        ),
        "a line above a warning's code": (
            ["module.py:7: UserWarning: old", "  warnings.warn(", LIMIT],
            (1, "module.py"),
        ),
        "lines of the launcher before it": (
            ["evaluating", "srun: Job step aborted: Waiting", LIMIT],
            (1, "evaluating"),
        ),
        "nothing": ([LIMIT], (None, "")),
    }.values(),
)
def test_what_a_stopped_run_printed_last_is_shown(tmp_path, lines, shown):
    last = diagnosed(tmp_path, *lines).printed_last
    assert (last and last.line, last.text.split()[0].split(":7")[0] if last else "") == shown
