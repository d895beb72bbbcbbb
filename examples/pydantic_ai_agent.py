"""Pydantic AI: one capability records whatever an agent does. The model is a function; name a real one in its place."""

from pydantic_ai import Agent, ModelResponse, ModelRetry, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.function import FunctionModel

import trackway

ANSWERS = [
    [ThinkingPart("I look it up."), ToolCallPart("capital", '{"country": "Norge"}')],
    [ToolCallPart("capital", '{"country": "Norway"}')],
    [TextPart("The capital of Norway is Oslo.")],
]


class Recording(AbstractCapability):
    """Tells the current episode what happens; works with any agent."""

    async def wrap_model_request(self, ctx, *, request_context, handler):
        """One call of the model, and what it said."""
        episode = trackway.current()
        with episode.model_call(model=ctx.model.model_name, messages=request_context.messages) as request:
            response = await handler(request_context)
            request.done(usage=response.usage, finish_reason=response.finish_reason)
        for part in response.parts:
            if isinstance(part, ThinkingPart):
                episode.thinking(part.content)
            elif isinstance(part, TextPart):
                episode.text(part.content)
        return response

    async def wrap_tool_execute(self, ctx, *, call, args, handler, **_):
        """One use of a tool."""
        episode = trackway.current()
        recorded = episode.tool_call(call.tool_name, call.args, call_id=call.tool_call_id)
        try:
            result = await handler(args)
        except Exception as error:
            episode.tool_result(recorded, str(error), is_error=True)
            raise
        episode.tool_result(recorded, result)
        return result


def capital(country: str) -> str:
    """A tool that knows one country, by its English name."""
    if country != "Norway":
        raise ModelRetry(f"there is no {country}")
    return "Oslo"


scripted = FunctionModel(lambda messages, _: ModelResponse(ANSWERS[len(messages) // 2]), model_name="scripted")
agent = Agent(scripted, tools=[capital], capabilities=[Recording()])
with trackway.record("name a capital", agent="pydantic-ai") as episode:
    episode.user("What is the capital of Norway?")
    answer = agent.run_sync("What is the capital of Norway?").output
    episode.end("success" if "Oslo" in answer else "failure")
for step in trackway.timeline(trackway.open_store().events(episode.id)):
    print(f"step {step.step}: {step.action}: {step.error or 'fine'}")
