"""Jobs run: commands, functions, steps, what they get and what they give."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from headwater.errors import FlowError, RunError
from headwater.reduce.parsing import parse
from headwater.runtimes.jobs import Event, Job, JobQueue, JobRuntime, State, Step, telling
from tests.runtimes.lab import STEPS, Told, alive, done, events, job, ran, running, until


def test_a_command_reads_the_event_and_writes_events(tmp_path: Path) -> None:
    command = r"""python -c '
import json, os, sys
n = json.load(sys.stdin)["n"]
assert json.load(open(os.environ["HEADWATER_EVENT"])) == {"n": n}
for each in range(n): print(json.dumps({"n": n, "each": each}))
'"""
    queue, told = done(tmp_path, job(command, slots=2), events(0, 1, 2))
    assert told.values == {
        "forecast@1/e0": [],
        "forecast@1/e1": [{"n": 1, "each": 0}],
        "forecast@1/e2": [{"n": 2, "each": 0}, {"n": 2, "each": 1}],
    }
    assert queue.counts()[State.finished] == 3
    made = told.outputs["forecast@1/e2"]
    assert len({each.id for each in made}) == 2
    assert made[0].entity == f"hw:weather/forecast/{made[0].id}"
    assert made == queue.outputs("forecast@1/e2")
    assert list((tmp_path / "work").iterdir()) == []


def test_a_command_may_write_a_file_and_finds_those_of_the_flows_folder(tmp_path: Path) -> None:
    home = tmp_path / "flow"
    home.mkdir()
    (home / "forecast.py").write_text(
        "import json, os, helper, pathlib\n"
        "pathlib.Path('scratch').write_text('mine alone')\n"
        "print('chatter')\n"
        "open(os.environ['HEADWATER_OUTPUT'], 'w').write(json.dumps({'said': helper.WORD}))\n"
    )
    (home / "helper.py").write_text("WORD = 'storm'\n")
    made = job("python forecast.py", folder=str(home))
    _, told = done(tmp_path / "queue", made, events(1))
    assert told.values == {"forecast@1/e1": [{"said": "storm"}]}
    assert not (home / "scratch").exists()


def test_functions_run_in_a_process_of_their_own(tmp_path: Path) -> None:
    made = job(call="tests.runtimes.functions:double", static={"factor": 3}, folder=os.getcwd())
    _, told = done(tmp_path, made, events(7))
    (row,) = told.values["forecast@1/e7"]
    assert row["n"] == 21
    assert row["pid"] != os.getpid()


def test_slots_are_the_most_that_run_at_once(tmp_path: Path) -> None:
    command = r"""
cd "$HEADWATER_FOLDER"; ls busy-* 2>/dev/null | wc -l > n-$$; touch busy-$$ began-$$
until test $(ls began-* | wc -l) -ge 3; do sleep 0.02; done
rm busy-$$; echo "{\"others\": $(cat n-$$)}"
"""
    (tmp_path / "flow").mkdir()
    made = job(command, slots=3, folder=str(tmp_path / "flow"), timeout=10.0, retries=0)
    _, told = done(tmp_path / "queue", made, events(*range(8)))
    others = [rows[0]["others"] for rows in told.values.values()]
    assert len(others) == 8  # three ran at the same time, or the first would wait for ever
    assert max(others) <= 2


def test_a_job_that_fails_is_tried_again_then_given_up(tmp_path: Path) -> None:
    command = (
        'echo "try $HEADWATER_ATTEMPT" >&2; test "$HEADWATER_ATTEMPT" = 3 && echo "{}" || exit 4'
    )
    _, told = done(tmp_path / "a", job(command, retries=2), events(1))
    assert told.values == {"forecast@1/e1": [{}]}
    queue, told = done(tmp_path / "b", job(command, retries=1), events(1, 2))
    letter = told.failed["forecast@1/e1"]
    assert (letter.state, letter.attempts) == (State.failed, 2)
    assert letter.reason == "step main: exit code 4: try 2"
    assert letter.stderr == "try 2"
    assert letter.events == (events(1)[0],)
    assert (told.outputs, told.lines) == ({}, [])
    assert [each.key for each in queue.executions(State.failed)] == list(told.failed)


def test_retries_wait_twice_as_long_each_time(tmp_path: Path) -> None:
    began = time.monotonic()
    done(tmp_path, job("exit 1", retries=2, backoff=0.1), events(1))
    assert time.monotonic() - began >= 0.1 + 0.2
    assert [job(backoff=1.0, run="x").delay(n) for n in (1, 2, 3, 99)] == [1, 2, 4, 3600]


@pytest.mark.parametrize(
    ("run", "schema", "reason"),
    [
        ("echo hello", None, "step main: line 1 of its output is not JSON: "),
        ("echo '{}'; echo 3", None, "step main: line 2 of its output is not an object, 3"),
        ('echo \'{"n": "many"}\'', "n bigint", "event 1 of its output does not fit the schema: "),
        ("echo '{\"m\": 1}'", "n bigint", "column 'm' is not in the schema"),
        ("kill -9 $$", None, "step main: killed by signal 9"),
        ("no-such-command", None, "step main: exit code 127: "),
    ],
)
def test_what_goes_wrong_is_said(tmp_path: Path, run: str, schema: str, reason: str) -> None:
    _, told = done(tmp_path, job(run, retries=0, schema=schema), events(1))
    assert reason in (told.failed["forecast@1/e1"].reason or "")


def test_a_function_that_raises_leaves_its_traceback(tmp_path: Path) -> None:
    made = job(call="tests.runtimes.functions:double", retries=0, folder=os.getcwd())
    _, told = done(tmp_path, made, [Event("x", {"m": 1})])
    letter = told.failed["forecast@1/x"]
    assert letter.reason == "step main: exit code 1: KeyError: 'n'"
    assert "Traceback" in (letter.stderr or "")


def test_a_job_that_never_ends_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    command = "trap '' TERM; sleep 60 & echo $! > pid; wait; sleep 60"
    made = job(command, timeout=0.3, retries=0)
    began = time.monotonic()
    _, told = done(tmp_path, made, events(1), keep_work=True)
    assert time.monotonic() - began < 5
    reason = told.failed["forecast@1/e1"].reason
    assert reason == "step main: did not end within 0.3 s and was killed"
    child = int((tmp_path / "work" / "1-main-1" / "work" / "pid").read_text())
    until(lambda: not alive(child))


def test_what_a_command_leaves_running_ends_with_it(tmp_path: Path) -> None:
    _, told = done(tmp_path, job('sleep 60 & echo "{\\"pid\\": $!}"'), events(1))
    (row,) = told.values["forecast@1/e1"]
    until(lambda: not alive(row["pid"]))


def test_pause_lets_the_running_finish_and_starts_none(tmp_path: Path) -> None:
    queue, told = JobQueue(tmp_path, job("sleep 0.3; echo '{}'")), Told()
    queue.enqueue(events(1, 2, 3))
    with running(queue, told) as runtime:
        until(lambda: queue.counts()[State.running] == 1)
        runtime.pause()
        until(lambda: queue.counts()[State.finished] == 1)
        time.sleep(0.15)
        assert queue.counts()[State.ready] == 2
    # Pausing is of the queue: it holds for the next runtime, too.
    with JobQueue(tmp_path) as again, running(again, told) as runtime:
        time.sleep(0.15)
        assert (again.paused, again.counts()[State.ready]) == (True, 2)
        runtime.resume()
        assert runtime.wait(10)
    assert len(told.outputs) == told.calls == 3


def test_two_runtimes_on_one_queue_are_refused(tmp_path: Path) -> None:
    queue = JobQueue(tmp_path, job("true"))
    with running(queue, Told()) as runtime:
        with pytest.raises(RunError, match="has started already"):
            runtime.start()
        with pytest.raises(RunError, match=f"has a runtime already, process {os.getpid()}"):
            JobRuntime(JobQueue(tmp_path)).start()
    with running(JobQueue(tmp_path), Told()):
        pass


def test_a_callback_that_fails_is_called_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telling, "_AGAIN", 0.1)
    queue, seen = JobQueue(tmp_path, job("echo '{}'")), []

    def publish(execution: object, outputs: object) -> None:
        seen.append(execution)
        if len(seen) == 1:
            raise OSError("the stream is gone")

    queue.enqueue(events(1))
    runtime = JobRuntime(queue, on_finished=publish, poll=0.01).start()
    until(lambda: runtime.trouble is not None)
    assert runtime.trouble == "a callback failed: OSError: the stream is gone"
    assert runtime.wait(10)
    runtime.stop()
    assert seen[0] == seen[1]


def test_stop_may_wait_leave_or_kill(tmp_path: Path) -> None:
    queue, told = JobQueue(tmp_path, job("sleep 0.4; echo '{}'")), Told()
    queue.enqueue(events(1, 2))
    runtime = JobRuntime(queue, on_finished=told.finished, poll=0.01).start()
    until(lambda: runtime.running == 1)
    runtime.stop("finish")
    assert (len(told.outputs), queue.counts()[State.ready]) == (1, 1)
    runtime.start()
    until(lambda: runtime.running == 1)
    runtime.stop("leave")
    assert queue.counts()[State.running] == 1
    runtime.start()
    assert runtime.wait(10)
    runtime.stop()
    assert queue.execution("forecast@1/e2").attempts == 1  # it was found, not begun again
    assert told.calls == 2
    queue.enqueue(events(3))
    runtime.start()
    until(lambda: runtime.running == 1)
    runtime.stop("kill")
    assert queue.counts()[State.retry] == 1


# --- steps and reruns -----------------------------------------------------------------------------


def test_steps_pass_on_what_they_made_and_reruns_reuse_it(tmp_path: Path) -> None:
    made = job(steps=STEPS, folder=str(tmp_path))
    queue, told = done(tmp_path / "queue", made, events(5), 20)
    assert told.values == {"forecast@1/e5": [{"n": 5, "y": 11}]}
    assert ran(tmp_path) == {"prepare": 1, "simulate": 1, "report": 1}

    name = queue.rerun("forecast@1/e5", step="simulate", parameters={"scale": 10})
    with running(queue, told) as runtime:
        assert runtime.wait(20)
    assert name == "forecast@1/e5.r1"
    assert told.values[name] == [{"n": 5, "y": 110}]
    assert ran(tmp_path) == {"prepare": 1, "simulate": 2, "report": 2}
    first, second = told.outputs["forecast@1/e5"][0], told.outputs[name][0]
    assert first.id != second.id
    assert queue.outputs("forecast@1/e5", generation=0) == [first]

    # Provenance: the second report goes back through the first `prepare`, which ran once.
    made_by = {e["entity"]: e["activity"] for e in _elements(told) if e["type"] != "used"}
    used = {}
    for each in _elements(told):
        if each["type"] == "used":
            used.setdefault(each["activity"], set()).add(each["entity"])
    assert made_by[second.entity] == "weather/forecast@1/e5.r1/report"
    (middle,) = {e for e in used["weather/forecast@1/e5.r1/report"] if "simulate" in e}
    assert made_by[middle] == "weather/forecast@1/e5.r1/simulate"
    begun = {made_by[e] for e in used["weather/forecast@1/e5.r1/simulate"] if "prepare" in e}
    assert begun == {"weather/forecast@1/e5/prepare"}
    assert used["weather/forecast@1/e5/prepare"] == {"hw:weather/strong/5"}

    # The lines are what `headwater reduce` reads.
    found = parse("".join(f"{json.dumps(line)}\n" for line in told.lines).encode(), "weather")
    assert (len(found.rejected), len(found.edges)) == (0, len(_elements(told)))


def _elements(told: Told) -> list[dict[str, str]]:
    return [element for line in told.lines for element in line["group"]]


def test_a_failed_step_goes_on_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = job(steps=STEPS, folder=str(tmp_path), retries=0)
    monkeypatch.setenv("HEADWATER_TEST_FAIL", "report")
    queue, told = done(tmp_path / "queue", made, events(5), 20)
    reason = told.failed["forecast@1/e5"].reason
    assert reason == "step report: exit code 1: ValueError: no paper"
    assert queue.steps("forecast@1/e5") == {
        "prepare": State.finished,
        "simulate": State.finished,
        "report": State.failed,
    }
    with pytest.raises(RunError, match="made of the old ones; leave out step"):
        queue.rerun("forecast@1/e5", step="report", events=events(6))
    monkeypatch.delenv("HEADWATER_TEST_FAIL")
    assert queue.rerun_all(step="report") == ["forecast@1/e5.r1"]
    with running(queue, told) as runtime:
        assert runtime.wait(20)
    assert told.values == {"forecast@1/e5.r1": [{"n": 5, "y": 11}]}
    assert ran(tmp_path) == {"prepare": 1, "simulate": 1, "report": 2}


def test_a_rerun_with_other_events(tmp_path: Path) -> None:
    queue, told = done(tmp_path, job("cat"), events(1))
    queue.rerun("forecast@1/e1", events=[Event("corrected", {"n": 9})])
    with running(queue, told) as runtime:
        assert runtime.wait(10)
    assert told.values["forecast@1/e1.r1"] == [{"n": 9}]
    assert (queue.totals().taken, queue.totals().done) == (2, 2)


def test_a_step_that_runs_or_was_not_reached_cant_be_rerun(tmp_path: Path) -> None:
    steps = (Step("a", run="sleep 0.5; exit 1"), Step("b", run="cat", after=("a",)))
    queue = JobQueue(tmp_path, job(steps=steps, retries=0))
    queue.enqueue(events(1))
    with running(queue, Told()) as runtime:
        until(lambda: queue.counts()[State.running] == 1)
        with pytest.raises(RunError, match="step a of execution .* is running"):
            queue.rerun("forecast@1/e1")
        assert runtime.wait(10)
    with pytest.raises(RunError, match="from step 'b': a has not finished"):
        queue.rerun("forecast@1/e1", step="b")
    with pytest.raises(FlowError, match="no step 'c'; it has a, b"):
        queue.rerun("forecast@1/e1", step="c")


def test_bad_jobs_are_refused() -> None:
    for steps, said in [
        ([Step("a", run="x", after=("b",)), Step("b", run="x")], "no step before it"),
        ([Step("a", run="x"), Step("a", run="x")], "two steps 'a'"),
        ([Step("a", run="x"), Step("b", run="x")], "no step .* comes after 'a'"),
    ]:
        with pytest.raises(FlowError, match=said):
            Job("f", "n", steps=tuple(steps))
    with pytest.raises(FlowError, match="needs one of run, call, spark"):
        Job("f", "n")
    with pytest.raises(FlowError, match="'module:function', not 'nothing'"):
        Job("f", "n", call="nothing")
    with pytest.raises(FlowError, match="slots=0"):
        Job("f", "n", run="x", slots=0)


def test_signals_to_the_runtime_do_not_reach_the_jobs(tmp_path: Path) -> None:
    queue, told = JobQueue(tmp_path, job("ps -o pgid= -p $$ | sed 's/.*/{\"group\": &}/'")), Told()
    queue.enqueue(events(1))
    with running(queue, told) as runtime:
        assert runtime.wait(10)
    assert told.values["forecast@1/e1"][0]["group"] != os.getpgid(0)
    assert signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL
