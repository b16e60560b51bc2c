"""The rank that is slow or did not come is among the suspects, and of a healthy run nobody is."""

from random import Random

import pytest
import regex
from helpers import ROOT, megatron_line, run_logparse
from simulated_ranks import simulate

from analysis.present.views.ending import headline
from logparse.decode.read_run import diagnose_run

# Of the 200 and 500 that benchmarks/suspect_ranks.py simulates, so many are tried here.
SICK = [range(12), pytest.param(range(12, 52), marks=pytest.mark.sweep)]
HEALTHY = [range(16), pytest.param(range(16, 86), marks=pytest.mark.sweep)]
LEAST = 0.95
TIMEOUT = (
    "[rank{0}]:[E117 07:42:01.1 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=12, OpType={1}, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600010 milliseconds"
)


def ending_of_files(folder, files):
    for name, text in files.items():
        (folder / name).write_text(text)
    return diagnose_run([str(folder) if len(files) > 1 else str(folder / next(iter(files)))])


def ending_of_lines(folder, *lines):
    return ending_of_files(folder, {"run.log": "".join(f"{line}\n" for line in lines)})


def reasons(ending):
    return [(suspect.rank, [reason.code for reason in suspect.reasons]) for suspect in ending.suspects]


@pytest.mark.parametrize("seeds", SICK)
def test_the_rank_at_fault_is_suspected(tmp_path, seeds):
    missed = []
    for seed in seeds:
        (folder := tmp_path / str(seed)).mkdir()
        run = simulate(seed, healthy=False)
        if run.culprit not in [suspect.rank for suspect in ending_of_files(folder, run.files).suspects]:
            missed.append((seed, run.kind))
    assert len(missed) <= (1 - LEAST) * len(seeds), missed


@pytest.mark.parametrize("seeds", HEALTHY)
def test_nobody_is_suspected_in_a_healthy_run(tmp_path, seeds):
    for seed in seeds:
        (folder := tmp_path / str(seed)).mkdir()
        run = simulate(seed, healthy=True)
        assert not ending_of_files(folder, run.files).suspects, (seed, run.kind)


def test_the_documented_figures_are_as_required():
    text = (ROOT / "docs/failures.md").read_text(encoding="utf-8")
    sick, of = regex.search(r"suspects in (\d+) of (\d+) simulated runs", text).groups()
    healthy, all_healthy = regex.search(r"suspected in (\d+) of (\d+) healthy runs", text).groups()
    assert (int(of), int(all_healthy)) == (200, 500)
    assert int(sick) >= LEAST * 200
    assert int(healthy) == 500


def test_a_silent_rank_is_suspected_and_a_rank_that_waits_is_not_named(tmp_path):
    ending = ending_of_lines(tmp_path, "world_size=4", *(TIMEOUT.format(rank, "ALLREDUCE") for rank in (0, 3, 1)))
    assert reasons(ending) == [(2, ["silent"])]
    assert (ending.rank, ending.ranks_compared, ending.suspects[0].reasons[0].n) == (None, 3, 3)


def test_there_is_no_outlier_where_all_wait(tmp_path):
    ending = ending_of_lines(tmp_path, "world_size=4", *(TIMEOUT.format(rank, "ALLREDUCE") for rank in range(4)))
    assert (reasons(ending), ending.ranks_compared) == ([], 4)


def test_a_log_of_one_node_accuses_no_other_rank(tmp_path):
    ending = ending_of_lines(tmp_path, "world_size=64", *(TIMEOUT.format(rank, "ALLREDUCE") for rank in range(8)))
    assert reasons(ending) == []


@pytest.mark.parametrize(("joined", "ranks"), [(5, [(5, 6, 7)]), (6, [(5, 6, 7)]), (8, [])])
def test_who_did_not_join_a_barrier_is_among_those_that_print_no_time_out(tmp_path, joined, ranks):
    """Of eight ranks five print their time-out; the message of another one may be torn."""
    line = "{0}: RuntimeError: Timed out initializing process group in store based barrier on rank: {0}, for key: k "
    counts = f"(world_size=8, worker_count={joined}, timeout=0:30:00)"
    ending = ending_of_lines(tmp_path, *(line.format(rank) + counts for rank in range(5)))
    found = [suspect for suspect in ending.suspects if suspect.reasons[0].code == "not_joined"]
    assert [suspect.ranks for suspect in found] == ranks


DUMP = (
    "[rank{0}]:[E117 07:42:02.1 ProcessGroupNCCL.cpp:1743] [PG ID 0 PG GUID 0(default_pg) Rank {0}] Received a dump "
    "signal due to a collective timeout from  rank 2. Last enqueued NCCL work: {1}, last completed NCCL work: 11."
)


def test_a_rank_without_an_open_collective_is_suspected(tmp_path):
    waits = [TIMEOUT.format(rank, "ALLREDUCE") for rank in (0, 2)]
    ending = ending_of_lines(tmp_path, *waits, *(DUMP.format(rank, 11 if rank == 1 else 12) for rank in range(4)))
    reason = ending.suspects[0].reasons[0]
    assert (reason.rank, reason.code, reason.n, reason.of, reason.at) == (1, "fewer_collectives", 3, 4, 11)


@pytest.mark.parametrize("numbers", [(12, 13), (13, 12)])
def test_of_two_ranks_the_one_at_a_smaller_number_is_suspected(tmp_path, numbers):
    lines = [TIMEOUT.format(rank, "ALLREDUCE").replace("SeqNum=12", f"SeqNum={numbers[rank]}") for rank in (0, 1)]
    ending = ending_of_lines(tmp_path, *lines)
    late = numbers.index(12)
    reason = ending.suspects[0].reasons[0]
    assert (reasons(ending), reason.n, reason.of, reason.at) == ([(late, ["earlier_collective"])], 1, 2, 12)
    assert reasons(ending_of_lines(tmp_path, "world_size=64", *lines)) == []
    assert reasons(ending_of_lines(tmp_path, "[rank5]: waits", *lines)) == []


def test_of_two_ranks_that_wait_at_the_same_number_nobody_is_suspected(tmp_path):
    assert reasons(ending_of_lines(tmp_path, *(TIMEOUT.format(rank, "ALLREDUCE") for rank in (0, 1)))) == []


def test_ranks_that_wait_in_another_group_are_not_suspected(tmp_path):
    waits = [TIMEOUT.format(2, "ALLREDUCE")]
    assert reasons(ending_of_lines(tmp_path, *waits, *(DUMP.format(rank, 11) for rank in range(4)))) == []


def test_ranks_are_read_without_the_prefix_of_new_versions(tmp_path):
    lines = [TIMEOUT.format(rank, "ALLREDUCE").replace(f"[rank{rank}]:[E117 07:42:01.1 ", "[E ") for rank in (3, 2, 1)]
    assert reasons(ending_of_lines(tmp_path, *lines)) == [(0, ["silent"])]


def test_another_collective_is_seen(tmp_path):
    lines = [TIMEOUT.format(rank, "ALLREDUCE" if rank else "BROADCAST") for rank in range(4)]
    assert reasons(ending_of_lines(tmp_path, "world_size=4", *lines)) == [(0, ["other_collective"])]


def test_the_only_two_ranks_that_wait_in_different_collectives_are_both_suspects(tmp_path):
    lines = [TIMEOUT.format(1, "ALLREDUCE"), TIMEOUT.format(3, "BROADCAST")]
    ending = ending_of_lines(tmp_path, "world_size=4", *lines)
    assert reasons(ending) == [(1, ["collectives_differ"]), (3, ["collectives_differ"])]
    assert headline(ending) == "failed: ranks 1 and 3 wait in different collectives"


def test_a_rank_that_fails_in_most_attempts_is_suspected(tmp_path):
    again = "[default] Worker group FAILED. 2/3 attempts left; will restart worker group"
    lines = ["[rank3]: ValueError: a", again, "[rank1]: KeyError: b", again, "[rank3]: TypeError: c", again]
    ending = ending_of_lines(tmp_path, *lines, "[rank3]: ValueError: d")
    assert reasons(ending) == [(3, ["fails_again"])]


def test_a_host_that_fails_in_most_attempts_is_suspected_if_the_job_has_others(tmp_path):
    again = "[default] Worker group FAILED. 2/3 attempts left; will restart worker group"
    died = [f"srun: error: node{host}: task {task}: Killed" for host, task in ((7, 3), (7, 4), (2, 1), (7, 5))]
    ending = ending_of_lines(tmp_path, *(line for one in died for line in (one, again)))
    assert [(suspect.host, suspect.reasons[0].n, suspect.reasons[0].of) for suspect in ending.suspects] == [
        ("node7", 3, 4)
    ]
    ending = ending_of_lines(tmp_path, *(line for one in died if "node7" in one for line in (one, again)))
    assert reasons(ending) == []


def test_a_cause_of_all_ranks_accuses_none_of_them(tmp_path):
    ending = ending_of_lines(tmp_path, *(f"[rank{rank}]: ValueError: batch size 7" for rank in (2, 0, 1)))
    assert (ending.same_on, reasons(ending)) == (3, [])
    shown = run_logparse("diagnose", "run.log", cwd=tmp_path).stdout
    assert "failed: ranks 0 to 2, all the same: an exception" in shown
    assert "it is not of one device" in " ".join(shown.split())


@pytest.mark.parametrize(("data", "bound"), [("0.0200", "compute"), ("0.9000", "data")])
def test_what_a_run_waits_for(tmp_path, data, bound):
    line = "[XTuner][RANK {}][2026-03-02 10:00:{:02}][INFO] Step {}/24 data_time: {} lr: 0.00002 time: 2.0000 loss: 2.4"
    lines = [line.format(rank, step, step, data) for step in range(1, 9) for rank in range(4)]
    ending = ending_of_lines(tmp_path, *lines)
    assert (ending.bound, ending.suspects, ending.ranks_compared) == (bound, (), 4)
    assert ending.data_share == pytest.approx(float(data) / (float(data) + 2))


def test_the_range_of_a_timer_names_no_rank(tmp_path):
    lines = []
    for step in range(1, 9):
        lines += [megatron_line(step), "(min, max) time across ranks (ms):"]
        lines += ["    forward-backward ...: (900.00, 1000.00)", "    batch-generator ....: (10.00, 300.00)"]
    ending = ending_of_lines(tmp_path, *lines)
    assert (ending.suspects, ending.bound, ending.data_share) == ((), "data", 0.3)


def test_scores_of_a_straggler_report(tmp_path):
    lines = [f"Rank={rank} Node=n1 Score={score}" for rank, score in enumerate((1.0, 0.99, 0.61, 0.98))]
    assert reasons(ending_of_lines(tmp_path, *lines, megatron_line(1))) == [(2, ["low_score"])]


def tables(draw, nodes, slow_node):
    """Megatron's timers of all ranks of ``nodes`` of 4 ranks, of which the ranks of one are slow."""
    settings = "------------------------ arguments ------------------------\n  nproc_per_node ............... 4\n"
    lines = [settings + "-------------------- end of arguments ---------------------"]
    for step in range(1, 7):
        lines += [megatron_line(step), "times across ranks (ms):", "  forward-compute:"]
        factors = [1.25 if rank // 4 == slow_node else 1 for rank in range(4 * nodes)]
        lines += [f"     rank {rank:2d}: {1500 * f * draw.gauss(1, 0.02):.2f}" for rank, f in enumerate(factors)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("nodes", [3, 4, 8, 16])
def test_a_node_whose_ranks_are_all_slow_is_named(tmp_path, nodes):
    for seed in range(2):
        draw = Random(seed)
        slow = draw.randrange(nodes)
        (suspect,) = ending_of_files(tmp_path, {"run.log": tables(draw, nodes, slow)}).suspects
        assert (suspect.rank, suspect.ranks, suspect.reasons[0].code) == (
            None,
            tuple(range(4 * slow, 4 * slow + 4)),
            "slow_compute",
        )
        assert not ending_of_files(tmp_path, {"run.log": tables(draw, nodes, None)}).suspects
    hosts = "".join(f"node{rank // 4}: [rank{rank}]: ready\n" for rank in range(4 * nodes))
    (tmp_path / "run.log").write_text(hosts + tables(draw, nodes, 1))
    assert "node1 (ranks 4 to 7): its compute time is " in run_logparse("diagnose", "run.log", cwd=tmp_path).stdout


def stragglers(draw, slow_node, stages):
    lines = [f"world_size=64\npipeline_model_parallel_size ........ {stages}\nLOCAL_WORLD_SIZE=8"]
    for step in range(1, 20):
        times = [3000 * draw.gauss(1, 0.02) * (1.3 if rank // 8 == slow_node else 1) for rank in range(64)]
        low, high = min(times), max(times)
        lines.append(
            f"[2026-01-17 07:00:{step:02d}] | MnRtt/Rnk: {low:.2f}ms/{times.index(low)} | "
            f"MxRtt/Rnk: {high:.2f}ms/{times.index(high)} |"
        )
    return "\n".join(lines) + "\n"


def test_a_node_that_holds_the_slowest_rank_again_and_again_is_named(tmp_path):
    for seed in range(2):
        (suspect,) = ending_of_files(tmp_path, {"run.log": stragglers(Random(seed), 5, 1)}).suspects
        assert (suspect.rank, suspect.ranks) == (None, tuple(range(40, 48)))
        # The last stage of a pipeline computes longer by design.
        assert not ending_of_files(tmp_path, {"run.log": stragglers(Random(seed), 5, 8)}).suspects
        assert not ending_of_files(tmp_path, {"run.log": stragglers(Random(seed), None, 1)}).suspects
