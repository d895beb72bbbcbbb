"""An agent is killed in the middle of a step. What it recorded is there, and another process goes on with it."""

import os
import signal
import subprocess
import sys

import trackway


def work_and_die():
    """Record, as agents do, and be killed: nothing is closed, flushed or handled."""
    episode = trackway.record("deploy", agent="doomed")
    print(episode.id, flush=True)
    episode.user("ship it")
    call = episode.tool_call("bash", {"cmd": "make build"})
    episode.tool_result(call, "built", exit_code=0)
    episode.tool_call("bash", {"cmd": "make deploy"}, call_id="deploy")
    os.kill(os.getpid(), signal.SIGKILL)


if "die" in sys.argv:
    work_and_die()

died = subprocess.run([sys.executable, __file__, "die"], stdout=subprocess.PIPE, text=True, check=False)
episode_id = died.stdout.strip()
store = trackway.open_store()
print(f"exit {died.returncode}, {store.episode(episode_id).state}")
for step in trackway.steps(store.events(episode_id)):
    print(f"step {step.index + 1}: {step.tool} {step.args.decode()}: {step.status}")

with trackway.Recorder() as recorder:
    episode = recorder.resume(episode_id)
    episode.tool_result("deploy", "the agent was killed; the site is as it was", status="interrupted")
    episode.end("abandoned", reason="killed while it deployed")
summary = store.episode(episode_id)
print(f"{summary.state}, {summary.outcome}: {summary.reason}")
