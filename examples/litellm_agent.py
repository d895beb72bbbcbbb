"""litellm: record around ``completion``. Arguments, call ids and tokens are kept as the provider gave them.

The provider is a script. For a real one, delete ``Scripted`` and the line that registers it, and set ``MODEL``.
"""

import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else importing litellm asks the network for prices

import litellm

import trackway

MODEL = "scripted/weather"
CELSIUS = {"Oslo": "4", "Rome": "21"}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "celsius", "parameters": CITY}}]


class Scripted(litellm.CustomLLM):
    """A provider that asks for two cities at once, then answers."""

    def completion(self, model, messages, **_):
        """A response, as every provider of litellm gives it."""
        choice = {"finish_reason": "stop", "message": {"content": "Oslo has 4 degrees, Atlantis is not known."}}
        if messages[-1]["role"] == "user":
            asked = [{"name": "celsius", "arguments": json.dumps({"city": city})} for city in ("Oslo", "Atlantis")]
            calls = [{"id": f"call_{n}", "type": "function", "function": each} for n, each in enumerate(asked)]
            choice = {"finish_reason": "tool_calls", "message": {"content": "I look both up.", "tool_calls": calls}}
        usage = litellm.Usage(prompt_tokens=(size := 55 * len(messages)), completion_tokens=20, total_tokens=size + 20)
        return litellm.ModelResponse(model=model, choices=[choice], usage=usage)


litellm.custom_provider_map = [{"provider": "scripted", "custom_handler": Scripted()}]

with trackway.record("how warm is it", agent="litellm", model=MODEL) as episode:
    messages = [{"role": "user", "content": "How warm is it in Oslo and in Atlantis?"}]
    episode.user(messages[0]["content"])
    while messages[-1]["role"] != "assistant":
        with episode.model_call(model=MODEL, messages=messages, tools=TOOLS) as request:
            response = litellm.completion(model=MODEL, messages=messages, tools=TOOLS)
            request.done(usage=response.usage, finish_reason=response.choices[0].finish_reason)
        message = response.choices[0].message
        messages.append(message)
        episode.text(message.content)
        wanted = [(each.function.name, each.function.arguments, each.id) for each in message.tool_calls or ()]
        for call in [episode.tool_call(name, args, call_id=call_id) for name, args, call_id in wanted]:
            seen = CELSIUS.get(json.loads(call.args)["city"])
            episode.tool_result(call, seen or "no such city", is_error=seen is None)
            messages.append({"role": "tool", "tool_call_id": call.call_id, "content": seen or "no such city"})
    episode.end("partial", score=0.5, reason="one city of two")

events = list(trackway.open_store().events(episode.id))
for step in trackway.steps(events):
    print(f"step {step.index + 1}: {step.tool} {step.args.decode()}: {step.status}, {step.observation}")
spent = trackway.usage(events)
print(f"{spent.calls} model calls: {spent.input} tokens in, {spent.output} out")
