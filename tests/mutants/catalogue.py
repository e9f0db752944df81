"""Seeded bugs: each changes one place of the scripts or the worker, as a real defect did, and names the check that
must notice it.

The sources of the defects: incidents of other queues (Celery, RQ, BullMQ, Sidekiq, asynq, disque), and the defects that
fault injection and audits found in Rota itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LUA: Final = "src/rota/store/lua/"
WORKER: Final = "src/rota/worker/"

# The checks: pytest arguments, from the repository's root.
MODEL: Final = "tests/properties/test_claim_model.py -k scripts_take_the_same_steps_as_the_model-and-valkey"
WALKS: Final = "tests/properties/test_store_state_machine.py -k long_walks-and-valkey"
DEPENDENCIES: Final = "tests/properties/test_dependency_state_machine.py -k valkey"
OUTBOX: Final = "tests/properties/test_outbox_model.py -k scripts_take_the_same_steps-and-valkey"
CHAOS: Final = "tests/crash/test_chaos.py -k "


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One bug: `old`, which is found exactly once in `file`, becomes `new`."""

    name: str
    #: What goes wrong, and where that happened.
    story: str
    file: str
    old: str
    new: str
    #: The checks that may notice it, in the order in which they are tried.
    checks: tuple[str, ...]


MUTANTS: Final[tuple[Mutant, ...]] = (
    # --- lease and fence -----------------------------------------------------------------------------------------
    Mutant(
        name="a late completion is accepted",
        story="no fence is compared: a worker that was paused completes the job of its successor (RQ, arq)",
        file=LUA + "job/complete.lua",
        old='elseif is_claim(line, "processing", claim) then',
        new='elseif line and string.find(line, "processing ", 1, true) == 1 then',
        checks=(MODEL,),
    ),
    Mutant(
        name="a late return is accepted",
        story="the same for every other report: a zombie puts a running job back into the queue",
        file=LUA + "include/report/each_accepted_report.lua",
        old='if not is_claim(line, "processing", claim) then',
        new='if not (line and string.find(line, "processing ", 1, true) == 1) then',
        checks=(MODEL, WALKS),
    ),
    Mutant(
        name="the fence does not grow",
        story="two claims have the same fence, so what compares fences outside of the queue accepts both",
        file=LUA + "include/claim/lease_runs_to_worker.lua",
        old='increment_counter(K.meta, "fence", 1)',
        new='increment_counter(K.meta, "fence", 0)',
        checks=(WALKS, CHAOS + "workers"),
    ),
    Mutant(
        name="a heartbeat renews the lease of another worker",
        story="a zombie's heartbeat keeps a job that is no longer its own from being reaped",
        file=LUA + "job/heartbeat.lua",
        old='if is_claim(line, "processing", claim) then',
        new='if line and string.find(line, "processing ", 1, true) == 1 then',
        checks=(MODEL,),
    ),
    Mutant(
        name="a heartbeat renews nothing",
        story="long jobs run twice at once, as with a visibility timeout (Celery)",
        file=LUA + "job/heartbeat.lua",
        old='if #leases > 0 then redis.call("ZADD", K.processing, unpack(leases)) end',
        new="",
        checks=(MODEL,),
    ),
    Mutant(
        name="a reaped claim stays in the record",
        story="the late report of a dead worker is answered as if it had been stored",
        file=LUA + "include/claim/charge_stall_and_requeue_or_fail_runs.lua",
        old='if owner == "gone" then r.claim = "-" end',
        new="",
        checks=(MODEL,),
    ),
    Mutant(
        name="a dead worker's stall is not charged",
        story="a job that kills its worker runs again without end (RQ #2015, asynq #1015)",
        file=LUA + "include/claim/charge_stall_and_requeue_or_fail_runs.lua",
        old="r.stalls = r.stalls + 1",
        new="r.handbacks = r.handbacks + 1",
        checks=(MODEL,),
    ),
    Mutant(
        name="an unproven claim comes back uncharged",
        story="an unreturned claim counts as never started: at_most_once jobs ran twice on a slow link",
        file=LUA + "include/claim/record_and_check_claims_abandoned_by_worker.lua",
        old="if not number or not fence then return false end",
        new="if not fence then return false end\n  if not number then return true end",
        checks=(MODEL,),
    ),
    Mutant(
        name="leases are reaped right after an outage",
        story="all running jobs are started a second time when the server is back (BullMQ, Bull)",
        file=LUA + "include/claim/detect_server_outage.lua",
        old="return now >= grace_until, grace_until, is_paused, longest",
        new="return true, grace_until, is_paused, longest",
        checks=(WALKS, "tests/store/test_outage.py -k valkey"),
    ),
    Mutant(
        name="at_most_once is returned to the queue",
        story="a job that may run only once is started again after its worker died",
        file=LUA + "include/claim/charge_stall_and_requeue_or_fail_runs.lua",
        old="if charged and (options.at_most_once or r.stalls > options.max_stalls) then",
        new="if charged and r.stalls > options.max_stalls then",
        checks=(WALKS, CHAOS + "workers"),
    ),
    # --- replay --------------------------------------------------------------------------------------------------
    Mutant(
        name="a repeated call is carried out again",
        story="the reply is lost, the client library sends again, and the job exists twice (redis-py retries)",
        file=LUA + "include/base/replay_reply_of_numbered_call.lua",
        old='return number == latest and outcome or ""',
        new="return nil",
        checks=(MODEL,),
    ),
    Mutant(
        name="a late copy of a claim is carried out",
        story="a copy that was delayed in the network leases jobs to a worker that does not expect them",
        file=LUA + "include/base/replay_reply_of_numbered_call.lua",
        old="if not latest or tonumber(number) > tonumber(latest) then return nil end",
        new="if not latest or number ~= latest then return nil end",
        checks=(MODEL,),
    ),
    Mutant(
        name="a repeated claim returns what it has lost",
        story="a claim sent again after its lease ran out starts jobs that run elsewhere",
        file=LUA + "job/claim.lua",
        old='if is_claim(line, "processing", fence .. "." .. token) then',
        new="if line then",
        checks=(MODEL,),
    ),
    Mutant(
        name="an enqueue is not remembered",
        story="the enqueue whose reply was lost makes a second job",
        file=LUA + "job/enqueue.lua",
        old='remember_reply("enqueue", call_number, text)',
        new="",
        checks=("tests/store/test_sent_twice.py -k enqueue-and-valkey", WALKS),
    ),
    Mutant(
        name="a token is not remembered",
        story="a cancel, redrive or purge sent again hits a later run",
        file=LUA + "include/base/run_once_per_token.lua",
        old="if outcome then return outcome end",
        new="",
        checks=("tests/store/test_sent_twice.py -k valkey", WALKS),
    ),
    Mutant(
        name="a bulk operation sent again starts over",
        story="the lost reply to its start set a finished operation running again",
        file=LUA + "bulk/open_operation.lua",
        old='if redis.call("EXISTS", key) > 0 then return "already" end',
        new="",
        checks=("tests/store/test_bulk_operations.py -k valkey", "tests/store/test_sent_twice.py -k valkey"),
    ),
    # --- time ----------------------------------------------------------------------------------------------------
    Mutant(
        name="jobs start early",
        story="a delayed job is promoted seconds before its time",
        file=LUA + "include/record/scheduled_score.lua",
        old="return now * 256 + 255",
        new="return (now + 400) * 256 + 255",
        checks=(CHAOS + "workers", WALKS),
    ),
    Mutant(
        name="two workers fire one tick",
        story="the tick is not compared, so every worker makes its job (Celery beat started twice)",
        file=LUA + "schedule/fire_schedule.lua",
        old='if not current or tonumber(current) ~= tonumber(awaited) then return { "moved" } end',
        new='if not current then return { "moved" } end',
        checks=("tests/store/test_schedules.py -k valkey",),
    ),
    # --- dependencies and outbox ---------------------------------------------------------------------------------
    Mutant(
        name="a dependent starts with its first parent",
        story="unmet parents are not looked at: a job starts before its dependencies",
        file=LUA + "include/dependency/release_cancel_or_restore_dependent.lua",
        old="if found % 2 == 1 then return 0 end",
        new="",
        checks=(DEPENDENCIES,),
    ),
    Mutant(
        name="an outcome leaves the outbox when it is taken",
        story="the notifier dies between taking and delivering: the dependent never starts",
        file=LUA + "dependency/take_outbox.lua",
        old='redis.call("ZADD", K.outbox, format_integer(now + hold_ms), run)',
        new='redis.call("ZREM", K.outbox, run)',
        checks=(OUTBOX, "tests/worker/test_dependencies.py -k dies"),
    ),
    Mutant(
        name="an old outcome overtakes a newer one",
        story="the failure delivered late cancels a dependent whose parent was redriven",
        file=LUA + "dependency/apply_parent_outcomes.lua",
        old="if flag and tonumber(number) > tonumber(latest) then",
        new="if flag then",
        checks=(OUTBOX, DEPENDENCIES),
    ),
    Mutant(
        name="an acknowledgement removes a newer outcome",
        story="the acknowledgement of an old outcome empties the outbox of the one that came since",
        file=LUA + "dependency/ack_outbox.lua",
        old='if latest and redis.call("ZCOUNT", key, "-inf", "(" .. latest) > 0 then',
        new="if false then",
        checks=(OUTBOX, DEPENDENCIES),
    ),
    # --- locks and ids -------------------------------------------------------------------------------------------
    Mutant(
        name="a late holder frees the lock of another",
        story="the lock is released by name and not by holder (celery-once, python-redis-lock)",
        file=LUA + "include/lock/enter_and_leave_lock_lane.lua",
        old="if occupant ~= owners[i] then",
        new="if false then",
        checks=("tests/store/test_locks.py -k valkey", DEPENDENCIES),
    ),
    Mutant(
        name="a cancelled handler gives its lock away while it runs",
        story="cancel releases lock and id at once, and two handlers overlap",
        file=LUA + "job/cancel.lua",
        old='redis.call("ZADD", K.stopping, lease or format_integer(now), found)',
        new='release_next_runs_if_any_wait({ found }, "cancelled", now)',
        checks=("tests/store/test_cancel.py -k valkey", "tests/store/test_locks.py -k valkey"),
    ),
    Mutant(
        name="a follow-up is forgotten",
        story="a call for an id that is running is dropped when the run is tried again",
        file=LUA + "include/job/requeue_run_and_merge_follow_up.lua",
        old="  run_score = merge_follow_up(run, r, tonumber(run_score), now)\n",
        new="  run_score = tonumber(run_score)\n",
        checks=("tests/store/test_same_id.py -k valkey", DEPENDENCIES),
    ),
    # --- what is kept --------------------------------------------------------------------------------------------
    Mutant(
        name="the same id twice in one batch",
        story="the second is resolved before the first is written, and the tag index keeps a run that is none",
        file=LUA + "job/enqueue.lua",
        old="  if id then is_new[id] = true end\n",
        new="",
        checks=("tests/store/test_same_id.py -k valkey", WALKS),
    ),
    Mutant(
        name="retention counts what is gone",
        story="the list of a rule keeps the entries of deleted jobs, so others are removed too early",
        file=LUA + "include/job/stop_retaining_run.lua",
        old="  if remove_from(likely) then return end\n",
        new="  if likely then return end\n",
        checks=("tests/store/test_apply_retention.py -k valkey", WALKS),
    ),
    Mutant(
        name="a purge goes on by rank",
        story="workers claim meanwhile, ranks move, and the purge ends early",
        file=LUA + "job/purge.lua",
        old="    rank, is_there = find_rank_by_score_and_member(index, after_score, after_run)\n",
        new="    rank, is_there = size, false\n",
        checks=("tests/store/test_purge.py -k valkey",),
    ),
    Mutant(
        name="run times of billions of seconds",
        story="a cache skipped the time since when the second task of a batch ran",
        file=LUA + "job/complete.lua",
        old="      since = since or tonumber(claimed_at_in_record(line))\n",
        new="      since = since or (index > 0 and 0) or tonumber(claimed_at_in_record(line))\n",
        checks=("tests/store/test_metric_counters.py -k valkey", WALKS),
    ),
    Mutant(
        name="a full server cannot be drained",
        story="complete needs memory, so a server at maxmemory stays full",
        file=LUA + "job/complete.lua",
        old="-- flags: allow-oom\n",
        new="",
        checks=("tests/store/test_out_of_memory.py -k valkey",),
    ),
    # --- worker and clients --------------------------------------------------------------------------------------
    Mutant(
        name="a receipt compares with what others have seen",
        story="the server's identity is read after the write: 7 of 8 receipts of a failover were false",
        file="src/rota/store/redis/retrying_client.py",
        old="    if await _replication_id(node) != expected_id:\n",
        new="    expected_id = await _replication_id(node)\n    if not expected_id:\n",
        checks=("tests/crash/test_failover.py -k concurrent",),
    ),
    Mutant(
        name="a claim without a reply is forgotten",
        story="the worker asks with a new number, and the jobs of the lost reply wait for their lease",
        file=WORKER + "claim_report_loop.py",
        old="            if not queue.is_unanswered:\n",
        new="            if True:\n",
        checks=("tests/crash/test_lost_replies.py",),
    ),
    Mutant(
        name="a report is dropped with its connection",
        story="reports are removed before the store has answered: finished jobs run again after every outage",
        file=WORKER + "claim_report_loop.py",
        old="        sent_at = time.perf_counter()\n",
        new="        self._reports.remove(reports)\n        reports = {}\n        sent_at = time.perf_counter()\n",
        checks=("tests/crash/test_server_away.py",),
    ),
    Mutant(
        name="a lost lease stops no handler",
        story="the worker that was frozen goes on with a job that runs elsewhere",
        file=WORKER + "lease_heartbeat.py",
        old="            self._dispatcher.stop_claim(queue, run, claims[run], why)\n",
        new="            assert run in claims, why\n",
        checks=("tests/crash/test_frozen_worker.py", CHAOS + "workers"),
    ),
    Mutant(
        name="every neighbour of a crash is charged",
        story="one job that calls os._exit makes dead letters of the nine beside it",
        file=WORKER + "dispatcher.py",
        old="    is_charged = others == 0 or job.job.counts.crashes >= MAX_CRASHES\n",
        new="    is_charged = True\n",
        checks=("tests/crash/test_killed_runner.py",),
    ),
    Mutant(
        name="a runner that ends fails its jobs",
        story="the jobs beside a failing lifespan are failed instead of returned",
        file=WORKER + "dispatcher.py",
        old='            case Failed() if job.stop_reason not in ("shutdown", "retired"):\n',
        new="            case Failed():\n",
        checks=("tests/worker/test_misbehaving.py", "tests/worker/test_stop.py"),
    ),
)
