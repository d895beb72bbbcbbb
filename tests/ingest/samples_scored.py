"""The other half of `samples`: what evaluations and training write."""

import io
import json
import zipfile

from tests.ingest.writing import SESSION, at, document, lines

TOOLS = [{"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}]


def _asks(call_id, text=None, arguments='{"at": "hull"}'):
    call = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}}
    return {"role": "assistant", "content": text, "tool_calls": [call]}


def _tool(call_id, text):
    return {"role": "tool", "tool_call_id": call_id, "name": "look", "content": text}


def _chat():
    """A conversation with an id that repeats, and arguments that are no JSON."""
    return [
        {"role": "system", "content": "You build boats."},
        {"role": "user", "content": "Make the boat float"},
        _asks("k-1", "I look."),
        _tool("k-1", "wet"),
        _asks("k-1", arguments="{not json"),
        _tool("k-1", "dry"),
        {"role": "assistant", "content": "It floats."},
    ]


def atif():
    """Steps of the newest version, with a sub-agent inside."""
    agent = {"name": "builder", "version": "1", "model_name": "m-1", "tool_definitions": TOOLS}
    call = {"tool_call_id": "a-1", "function_name": "look", "arguments": {"at": "hull"}}
    inside = {"schema_version": "ATIF-v1.8", "trajectory_id": "t-2", "agent": agent,
              "steps": [{"step_id": 1, "source": "user", "message": "Count"}]}  # fmt: skip
    steps = [
        {"step_id": 1, "timestamp": at(1), "source": "system", "message": "You build boats."},
        {"step_id": 2, "timestamp": at(2), "source": "user", "message": "Make the boat float"},
        {"step_id": 3, "timestamp": at(3), "source": "agent", "model_name": "m-1", "message": "I look.",
         "reasoning_content": "Look first.", "tool_calls": [call],
         "observation": {"results": [{"source_call_id": "a-1", "content": "wet"}]},
         "metrics": {"prompt_tokens": 900, "completion_tokens": 9, "cached_tokens": 800, "cost_usd": 0.01}},
        {"step_id": 4, "timestamp": at(4), "source": "agent", "message": "It floats.", "extra": {"odd": 1}},
    ]  # fmt: skip
    return {"trajectory.json": document({
        "schema_version": "ATIF-v1.8", "session_id": SESSION, "agent": agent, "steps": steps,
        "final_metrics": {"total_steps": 4}, "subagent_trajectories": [inside],
    })}  # fmt: skip


_MINI = {"exit_status": "Submitted", "submission": "diff", "mini_version": "1.2.0",
         "model_stats": {"instance_cost": 0.1, "api_calls": 3}, "config": {"model": {"model_name": "m-1"}}}  # fmt: skip


def mini_swe_agent():
    """Version 1: actions are blocks in texts, observations are users' messages; its verdict lies beside it."""
    usage = {"usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}, "model": "m-1"}
    messages = [
        {"role": "system", "content": "You build boats."},
        {"role": "user", "content": "Make the boat float"},
        {"role": "assistant", "content": "THOUGHT: look\n\n```bash\nls\n```", "extra": {"response": usage}},
        {"role": "user", "content": "<returncode>0</returncode>\n<output>\nhull.py\n</output>"},
        {"role": "assistant", "content": "No block at all."},
        {"role": "user", "content": "Please always provide EXACTLY ONE action in triple backticks, found 0 actions."},
        {"role": "assistant", "content": "```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"},
        {"role": "user", "content": "diff"},
    ]
    found = {"info": _MINI, "messages": messages, "trajectory_format": "mini-swe-agent-1", "instance_id": "boat-1"}
    return {
        "boat-1.traj.json": document(found, indent=2),
        "boat-1.report.json": document({"boat-1": {"resolved": True}}),
    }


def mini_swe_agent_1_1():
    """Version 1.1: actions and return codes have fields of their own."""
    asked = {"actions": [{"command": "ls", "tool_call_id": "k-1"}], "response": {"model": "m-1"}, "cost": 0.1}
    messages = [
        {"role": "system", "content": "You build boats."},
        {"role": "user", "content": "Make the boat float"},
        {**_asks("k-1", "I look."), "extra": asked},
        {**_tool("k-1", "hull.py"), "extra": {"returncode": 0, "raw_output": "hull.py", "timestamp": 1772359200.5}},
        {"role": "exit", "content": "", "extra": {"exit_status": "Submitted", "submission": "diff"}},
    ]
    return {
        "boat.traj.json": document({"info": _MINI, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"})
    }


def swe_agent():
    """Actions and observations, the history they came from, a demonstration in it, how it ended."""
    state = {"open_file": "hull.py", "working_dir": "/boat"}
    step = {"action": "ls", "observation": "hull.py", "response": "I look.\n```\nls\n```", "thought": "I look.",
            "execution_time": 0.1, "state": state,
            "query": [{"role": "user", "content": "Make the boat float"}]}  # fmt: skip
    history = [
        {"role": "system", "content": "You build boats.", "agent": "main", "message_type": "system_prompt"},
        {"role": "user", "content": "A demonstration", "agent": "main", "is_demo": True},
        {"role": "user", "content": "Make the boat float", "agent": "main", "message_type": "observation"},
        {**_asks("k-1", "I look."), "agent": "main", "action": "ls", "thought": "I look.", "message_type": "action"},
        {
            "role": "tool",
            "content": "hull.py",
            "tool_call_ids": ["k-1"],
            "agent": "main",
            "message_type": "observation",
        },
    ]
    info = {"exit_status": "submitted (exit_cost)", "submission": "diff", "model_stats": {"instance_cost": 0.1}}
    last = {**step, "action": "submit", "observation": "", "state": json.dumps(state)}
    return {"boat.traj": document(
        {"environment": "boat", "trajectory": [step, last], "history": history, "info": info}, indent=2
    )}  # fmt: skip


def _openhands_events():
    metadata = {"function_name": "execute_bash", "tool_call_id": "k-1", "total_calls_in_response": 1,
                "model_response": {"id": "r-1", "model": "m-1", "usage": {"prompt_tokens": 9}}}  # fmt: skip
    return [
        {"id": 0, "timestamp": at(0), "source": "user", "message": "Make the boat float", "action": "message",
         "args": {"content": "Make the boat float"}},
        {"id": 2, "timestamp": at(2), "source": "agent", "message": "ls", "action": "run",
         "tool_call_metadata": metadata, "args": {"command": "ls", "thought": "I look."}},
        {"id": 3, "timestamp": at(3), "source": "agent", "message": "done", "cause": 2, "observation": "run",
         "tool_call_metadata": metadata, "content": "hull.py", "success": True,
         "extras": {"metadata": {"exit_code": 0}}},
        {"id": 4, "timestamp": at(4), "source": "agent", "action": "finish", "message": "It floats.",
         "args": {"final_thought": "It floats.", "task_completed": "true"}},
    ]  # fmt: skip


def openhands_v0():
    """A list of actions and observations."""
    return {"trajectory.json": document(_openhands_events(), indent=2)}


def openhands_rows():
    """An evaluation's output: one row, one episode."""
    row = {"instance_id": "boat-1", "instance": {"repo": "boat"}, "instruction": "Make the boat float",
           "history": _openhands_events(), "metrics": {"accumulated_cost": 0.1}, "metadata": {"agent_class": "A"},
           "test_result": {"resolved": True, "git_patch": "diff"}, "error": None}  # fmt: skip
    return {"output.jsonl": lines(row, {**row, "instance_id": "boat-2"})}


def openhands_v1():
    """Events with kinds, as the kit streams them."""
    call = {"id": "k-1", "name": "terminal", "arguments": '{"command": "ls"}', "origin": "completion"}
    said = {"role": "user", "content": [{"type": "text", "text": "Make the boat float"}]}
    action = {"kind": "TerminalAction", "command": "ls"}
    seen = {"kind": "TerminalObservation", "content": [{"type": "text", "text": "hull.py"}], "exit_code": 0}
    return {"events.jsonl": lines(
        {"id": "v-0", "timestamp": at(0), "source": "agent", "kind": "SystemPromptEvent", "tools": [],
         "system_prompt": {"type": "text", "text": "You build boats."}},
        {"id": "v-1", "timestamp": at(1), "source": "user", "kind": "MessageEvent", "llm_message": said},
        {"id": "v-2", "timestamp": at(2), "source": "agent", "kind": "ActionEvent", "tool_call_id": "k-1",
         "action": action, "thought": [{"type": "text", "text": "I look."}], "reasoning_content": "Look.",
         "tool_name": "terminal", "tool_call": call, "llm_response_id": "r-1"},
        {"id": "v-3", "timestamp": at(3), "source": "environment", "kind": "ObservationEvent", "tool_call_id": "k-1",
         "action_id": "v-2", "tool_name": "terminal", "observation": seen},
        {"id": "v-4", "timestamp": at(4), "source": "environment", "kind": "Condensation",
         "forgotten_event_ids": ["v-1"], "summary": "It floats."},
        {"id": "v-5", "timestamp": at(5), "source": "environment", "kind": "ConversationStateUpdateEvent",
         "key": "stats", "value": {}},
    )}  # fmt: skip


def openhands_pair(number):
    """A call and its result, both with the mark ``mark-NUMBER-``."""
    call_id, said = f"k-mark-{number}", f"mark-{number}-"
    call = {"id": call_id, "name": "terminal", "arguments": json.dumps({"command": said}), "origin": "completion"}
    seen = {"kind": "TerminalObservation", "content": [{"type": "text", "text": said}], "exit_code": 0}
    return [
        {"id": f"a-{number}", "timestamp": at(6), "source": "agent", "kind": "ActionEvent", "tool_call_id": call_id,
         "action": {"kind": "TerminalAction", "command": said}, "thought": [], "tool_name": "terminal",
         "tool_call": call, "llm_response_id": f"r-{number}"},
        {"id": f"b-{number}", "timestamp": at(7), "source": "environment", "kind": "ObservationEvent",
         "tool_call_id": call_id, "action_id": f"a-{number}", "tool_name": "terminal", "observation": seen},
    ]  # fmt: skip


# --- Inspect, tau -----------------------------------------------------------------------------------------------------

_EVAL = {"eval_id": "e-1", "run_id": "r-1", "created": "2026-03-01T10:00:00+00:00", "task": "boat", "task_id": "t-1",
         "model": "m-1", "dataset": {"name": "boats"}, "config": {"epochs": 1}}  # fmt: skip


def _sample():
    call = {"id": "k-1", "function": "look", "arguments": {"at": "hull"}, "type": "function"}
    messages = [
        {"id": "i-1", "role": "system", "content": "You build boats."},
        {"id": "i-2", "role": "user", "content": "Make the boat float", "source": "input"},
        {"id": "i-3", "role": "assistant", "content": "I look.", "source": "generate", "tool_calls": [call]},
        {"id": "i-4", "role": "tool", "content": "attachment://00ff", "tool_call_id": "k-1", "function": "look"},
        {"id": "i-5", "role": "assistant", "content": [{"type": "text", "text": "It floats."}], "source": "generate"},
    ]
    output = {"model": "m-1", "choices": [{"message": messages[2], "stop_reason": "tool_calls"}],
              "usage": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}}  # fmt: skip
    events = [
        {"event": "sample_init", "timestamp": at(1), "sample": {"input": "Make the boat float"}, "state": {}},
        {"event": "model", "timestamp": at(2), "model": "m-1", "input": messages[:2], "tools": [], "output": output,
         "tool_choice": "auto", "config": {"temperature": 0}},
        {"event": "tool", "timestamp": at(3), "id": "k-1", "function": "look", "arguments": {"at": "hull"},
         "result": "wet", "events": []},
        {"event": "score", "timestamp": at(4), "score": {"value": "C"}, "target": "floats"},
    ]  # fmt: skip
    return {"id": 1, "epoch": 1, "input": "Make the boat float", "target": "floats", "messages": messages,
            "output": output, "scores": {"match": {"value": "C", "answer": "floats"}}, "metadata": {}, "store": {},
            "events": events, "attachments": {"00ff": "wet"}, "model_usage": {"m-1": {"input_tokens": 9}}}  # fmt: skip


def inspect_json():
    """An evaluation as one document."""
    return {"log.json": document({
        "version": 2, "status": "success", "eval": _EVAL, "plan": {"steps": []}, "results": {"scores": []},
        "stats": {"started_at": at(0)}, "samples": [_sample()],
    })}  # fmt: skip


def inspect_eval():
    """An evaluation as an archive."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in [
            ("_journal/start.json", {"version": 2, "eval": _EVAL, "plan": {"steps": []}}),
            ("samples/1_epoch_1.json", _sample()),
            ("summaries.json", [{"id": 1, "epoch": 1}]),
            ("header.json", {"version": 2, "status": "success", "eval": _EVAL, "plan": {"steps": []}}),
        ]:
            archive.writestr(zipfile.ZipInfo(name, (2026, 3, 1, 10, 0, 0)), document(content))
    return {"log.eval": body.getvalue()}


def tau_bench():
    """Trials with rewards; ids that repeat."""
    row = {"task_id": 3, "trial": 0, "reward": 1.0, "traj": _chat(),
           "info": {"task": {"user_id": "u", "actions": []}, "source": "user", "user_cost": 0.1,
                    "reward_info": {"reward": 1.0, "info": {"r_actions": True}, "actions": []}}}  # fmt: skip
    return {"results.json": document([row, {**row, "trial": 1, "reward": 0.0}], indent=2)}


def tau2_bench():
    """Simulations in which the user calls tools too."""
    call = {"id": "k-1", "name": "look", "arguments": {"at": "hull"}, "requestor": "user"}
    messages = [
        {"role": "assistant", "content": "Hello.", "turn_idx": 0, "timestamp": at(1), "cost": 0.0, "usage": None},
        {"role": "user", "content": "Make the boat float", "turn_idx": 1, "timestamp": at(2)},
        {"role": "user", "content": None, "tool_calls": [call], "turn_idx": 2, "timestamp": at(3)},
        {"role": "tool", "id": "k-1", "content": "wet", "requestor": "user", "error": False, "turn_idx": 3},
        {"role": "assistant", "content": "It floats.", "turn_idx": 4, "usage": {"prompt_tokens": 9}},
    ]
    simulation = {"id": "s-1", "task_id": "boat-1", "trial": 0, "seed": 7, "start_time": at(0), "end_time": at(9),
                  "duration": 9.0, "termination_reason": "user_stop", "agent_cost": 0.1, "user_cost": 0.1,
                  "reward_info": {"reward": 1.0, "reward_basis": ["DB"]}, "messages": messages}  # fmt: skip
    about = {"git_commit": "ab", "num_trials": 1, "max_steps": 9, "seed": 7,
             "agent_info": {"implementation": "a", "llm": "m-1"}, "user_info": {"implementation": "u", "llm": "m-2"},
             "environment_info": {"domain_name": "boats", "policy": "Be kind."}}  # fmt: skip
    return {"run.json": document({
        "timestamp": at(0), "info": about, "tasks": [{"id": "boat-1"}], "simulations": [simulation],
    }, indent=2)}  # fmt: skip


# --- conversations ----------------------------------------------------------------------------------------------------


def openai_chat():
    """A conversation a line, with tools."""
    return {"chat.jsonl": lines({"messages": _chat(), "tools": TOOLS}, {"messages": _chat()[:2]})}


def sharegpt():
    """Conversations by who they are from; tools as a text."""
    turns = [
        {"from": "human", "value": "Make the boat float"},
        {"from": "function_call", "value": '{"name": "look", "arguments": {"at": "hull"}}'},
        {"from": "observation", "value": "wet"},
        {"from": "gpt", "value": "It floats."},
    ]
    return {"boats.json": document([{"conversations": turns, "system": "Be kind.", "tools": json.dumps(TOOLS)}])}


def sharegpt_hermes():
    """The same in Hermes's words, a line each."""
    turns = [
        {"from": "system", "value": 'You may call <tools>[{"name": "look"}]</tools>'},
        {"from": "human", "value": "Make the boat float"},
        {"from": "gpt", "value": '<think>Look.</think>\n<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'},
        {"from": "tool", "value": '<tool_response>\n{"content": "wet"}\n</tool_response>'},
        {"from": "gpt", "value": "It floats."},
    ]
    return {"boats.jsonl": lines({"conversations": turns}, {"conversations": turns})}


def full_trace():
    """A turn as seed 001 writes it."""
    steps = [
        {"kind": "user", "content": "Make the boat float"},
        {"kind": "assistant_thinking", "content": "Look first."},
        {"kind": "assistant_tool_call", "name": "look", "args": {"at": "hull"}, "call_id": "k-1"},
        {"kind": "tool_result", "call_id": "k-1", "content": "wet", "is_error": False},
        {"kind": "assistant_text", "content": "It floats."},
    ]
    trace = {"trace_id": "t-1", "timestamp": 1772359200, "model": "m-1", "system_prompt": "You build boats.",
             "tools_schema": TOOLS, "steps": steps}  # fmt: skip
    return {"traces.jsonl": lines(trace, {**trace, "trace_id": "t-2"})}


ALL = (
    atif, mini_swe_agent, mini_swe_agent_1_1, swe_agent, openhands_v0, openhands_rows, openhands_v1, inspect_json,
    inspect_eval, tau_bench, tau2_bench, openai_chat, sharegpt, sharegpt_hermes, full_trace,
)  # fmt: skip
