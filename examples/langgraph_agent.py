"""LangGraph: a callback handler records whatever a graph does. Its model is scripted; put a real one in its place."""

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import trackway


class Recording(BaseCallbackHandler):
    """Tells an episode what happens; works with any graph, and with anything else of LangChain."""

    run_inline = True  # in order, in async graphs too

    def __init__(self, episode):
        self.episode, self.open = episode, {}

    def on_chat_model_start(self, serialized, messages, *, run_id, metadata, **_):
        self.open[run_id] = self.episode.model_call(model=metadata.get("ls_model_name", "fake"), messages=messages[0])

    def on_llm_end(self, response, *, run_id, **_):
        message = response.generations[0][0].message
        self.open.pop(run_id).done(usage=message.usage_metadata)
        self.episode.text(message.text)
        for call in message.tool_calls:
            self.open[call["id"]] = self.episode.tool_call(call["name"], call["args"], call_id=call["id"])

    def on_llm_error(self, error, *, run_id, **_):
        self.open.pop(run_id).done(error=error)

    def on_tool_end(self, output, **_):
        self.episode.tool_result(self.open.pop(output.tool_call_id), output.content)

    def on_tool_error(self, error, *, tool_call_id, **_):
        self.episode.tool_result(self.open.pop(tool_call_id), str(error), is_error=True)


def multiply(a: int, b: int) -> int:
    """The product of two numbers."""
    return a * b


CALLS = [{"name": "multiply", "args": {"a": a, "b": b}, "id": f"call_{a}"} for a, b in ((6, 7), (8, 9), (42, 72))]
USAGE = {"input_tokens": 90, "output_tokens": 30, "total_tokens": 120}
ANSWERS = [("Two products.", CALLS[:2]), ("And theirs.", CALLS[2:]), ("It is 3024.", [])]
model = FakeMessagesListChatModel(responses=[AIMessage(t, tool_calls=c, usage_metadata=USAGE) for t, c in ANSWERS])
graph = StateGraph(MessagesState)
graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
graph.add_node("tools", ToolNode([multiply]))
graph.add_edge(START, "model").add_edge("tools", "model").add_conditional_edges("model", tools_condition)

with trackway.record("multiply four numbers", agent="langgraph") as episode:
    episode.user("What is 6 * 7 * 8 * 9?")
    graph.compile().invoke({"messages": [("user", "What is 6 * 7 * 8 * 9?")]}, {"callbacks": [Recording(episode)]})
    episode.end("success")
for step in trackway.steps(trackway.open_store().events(episode.id)):
    print(f"step {step.index + 1}, batch {step.batch}: {step.tool} {step.args.decode()} = {step.observation}")
