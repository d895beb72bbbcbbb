"""trackway with its defaults: one journal, its keeper, the SQLite store in the home.

Needs nothing from this package, so that it can be put beside other peers' ``b_*.py`` as it is.
"""

import trackway


class Recorder:
    """One step is six events: the request and its result, thought, text, the tool's call and its result."""

    journal = "mmap"
    ack = "process"

    def __init__(self, folder):
        self._recorder = trackway.Recorder(home=folder, journal=self.journal, ack=self.ack)
        self._episode = None

    def begin(self, number):
        """Start an episode."""
        self._episode = self._recorder.start(f"episode {number}", agent="bench")

    def step(self, step, messages):
        """Record one step, in the order in which it happens."""
        episode = self._episode
        request = episode.model_call(model="mock", messages=messages)
        episode.thinking(step["think"])
        episode.text(step["out"])
        call = episode.tool_call("search", step["args"], call_id=step["call_id"])
        request.done(usage={"input": 300, "output": 90})
        episode.tool_result(call, step["result"])

    def end(self, number):
        """End the episode."""
        self._episode.end("success")

    def flush(self):
        """Wait until everything so far is in the store."""
        self._recorder.flush()

    def close(self):
        """Seal everything into the store."""
        self._recorder.close()


def read(folder):
    """Every step; a tool result that came twice is an error."""
    store = trackway.open_store(home=folder)
    found = {}
    for episode in store.episodes():
        text = None
        for event in store.events(episode.id):
            if event.kind == "assistant_text":
                text = event.content
            elif event.kind == "assistant_tool_call":
                found.setdefault(_place(event), {})["out"] = text
            elif event.kind == "tool_result":
                step = found.setdefault(_place(event), {})
                if "result" in step:
                    raise ValueError(f"{event.call_id} was stored twice")
                step["result"] = event.content
    store.close()
    return found


def _place(event):
    return tuple(int(each) for each in event.call_id.split("_")[1:])
