"""Invented events of OpenHands V0, and a row of its evaluation."""


def response(name, content, *calls):
    """A model's whole response, as every action carries it."""
    uses = [
        {"id": call, "type": "function", "function": {"name": tool, "arguments": arguments}}
        for call, tool, arguments in calls
    ]
    message = {"role": "assistant", "content": content, "tool_calls": uses, "function_call": None}
    return {
        "id": name, "model": "m-1", "created": 1_770_000_000,
        "choices": [{"finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1}, "service_tier": "std",
    }  # fmt: skip


def event(number, source="agent", **fields):
    """An event's envelope."""
    return {"id": number, "timestamp": f"2026-03-01T10:00:{number:02}.5", "source": source, "message": ""} | fields


def action(number, kind, call=None, told=None, **args):
    """An action of the agent's; ``told`` is the response it was taken from."""
    made = event(number, action=kind, args=args)
    if told is not None:
        calls = told["choices"][0]["message"]["tool_calls"]
        name = next(each["function"]["name"] for each in calls if each["id"] == call)
        made["tool_call_metadata"] = {
            "function_name": name, "tool_call_id": call, "model_response": told, "total_calls_in_response": len(calls),
        }  # fmt: skip
    return made


def observed(number, cause, kind, content="", acted=None, **extras):
    """What came of an action; it repeats the action's response."""
    made = event(number, cause=cause, observation=kind, content=content, extras=extras)
    if acted is not None:
        made["tool_call_metadata"] = acted["tool_call_metadata"]
    return made


def message(number, content, source="user", **args):
    """Somebody said something."""
    return event(number, source, action="message", args={"content": content, **args})


RAN = action(3, "run", "c1", response("r1", "I look.", ("c1", "execute_bash", '{"command": "ls"}')), command="ls",
             thought="I look.")  # fmt: skip
METADATA = {"exit_code": 1, "suffix": "\n[done]"}


def stream():
    """A session: a prompt, a command, a last word."""
    finish = response("r2", "Done.", ("c2", "finish", '{"message": "done"}'))
    return [
        message(0, "Make it float\nplease"), event(1, "environment", observation="agent_state_changed", content="",
                                                   extras={"agent_state": "running"}),
        RAN, observed(4, 3, "run", "a.py", RAN, command="ls", metadata=METADATA),
        action(7, "finish", "c2", finish, thought="Done.", outputs={}), message(9, "Thanks"),
        message(11, "Welcome.", "agent", wait_for_response=True),
    ]  # fmt: skip


def evaluation(**fields):
    """A row of an evaluation."""
    about = {"agent_class": "CodeActAgent", "llm_config": {"model": "m-1"}, "max_iterations": 50}
    return {
        "instance_id": "a__b-1", "instance": {"problem_statement": "It leaks\nbadly"}, "instruction": "<x>\nMend",
        "metadata": about, "history": [message(0, "<x>\nMend"), *stream()[2:]], "metrics": {"accumulated_cost": 0.2},
        "test_result": {"git_patch": "diff"}, "error": None,
    } | fields  # fmt: skip
