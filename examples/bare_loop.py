"""An agent without a framework: a scripted model, real tools, and one line to trackway for whatever happens."""

import subprocess
import sys
import tempfile
from pathlib import Path

import trackway

BROKEN = "def add(a, b):\n    return a - b\n\n\nassert add(2, 3) == 5\n"
FIXED = BROKEN.replace("-", "+")
ANSWERS = [
    {"thinking": "See it fail.", "tool": "execute", "args": {}, "usage": {"input_tokens": 61, "output_tokens": 18}},
    {"thinking": "Add.", "tool": "write", "args": {"text": FIXED}, "usage": {"input_tokens": 140, "output_tokens": 39}},
    {"thinking": "Now?", "tool": "execute", "args": {}, "usage": {"input_tokens": 187, "output_tokens": 15}},
    {"text": "add() subtracted. It adds now.", "usage": {"input_tokens": 211, "output_tokens": 9}},
]


def ask_model(messages):
    """Your model goes here; this one has its answers in a list."""
    return ANSWERS[len(messages) // 2]


def use_tool(episode, file, answer):
    """An action is recorded before it happens; what came of it, after."""
    call = episode.tool_call(answer["tool"], answer["args"])
    if call.name == "write":
        episode.file_change(file.name, before=file.read_bytes(), after=call.args["text"])
        seen, code = f"{file.write_text(call.args['text'])} characters written", 0
    else:
        done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
        seen, code = done.stderr or "no error", done.returncode
        episode.reward(1.0 if code == 0 else 0.0)
    episode.tool_result(call, seen, is_error=code != 0, exit_code=code)
    return seen


with tempfile.TemporaryDirectory() as folder, trackway.record("repair calc.py", agent="bare-loop") as episode:
    file = Path(folder, "calc.py")
    file.write_text(BROKEN)
    messages = [{"role": "user", "content": "calc.py fails. Repair it."}]
    episode.user(messages[0]["content"])
    while messages[-1]["role"] != "assistant":
        request = episode.model_call(model="scripted", messages=messages)
        answer = ask_model(messages)
        request.done(usage=answer["usage"])
        messages.append({"role": "assistant", "content": str(answer)})
        if "tool" in answer:
            episode.thinking(answer["thinking"])
            messages.append({"role": "tool", "content": use_tool(episode, file, answer)})
    episode.text(answer["text"])
    episode.end("success", score=1.0)

store = trackway.open_store()
for step in trackway.steps(store.events(episode.id)):
    print(f"step {step.index + 1}: {step.tool}, {step.status}: {step.observation.splitlines()[-1]}")
spent = trackway.usage(store.events(episode.id))
print(f"{spent.calls} model calls: {spent.input} tokens in, {spent.output} out")
