"""What is counted, and how files are read for it: see `counting`, which is made of this. No code of trackway."""

import json
from collections import defaultdict
from typing import NamedTuple

import zstandard


class Counts(NamedTuple):
    """The numbers of one file."""

    episodes: int
    calls: int
    results: int
    pairs: int
    turns: int


class Tally:
    """The facts of one file as they are met."""

    def __init__(self):
        self.episodes, self.waiting, self.people, self.programs = {}, defaultdict(list), set(), set()
        self.calls = self.results = self.pairs = self.turns = 0

    def episode(self, session):
        """One more, where it is a new one; what is kept of it is how many facts followed."""
        self.episodes.setdefault(session, 0)

    def call(self, session, call_id, agent=None, why=""):
        """A tool was called; ``why`` says why nothing came back, should nothing have come back."""
        self.episode(session)
        self.calls += 1
        self.waiting[session, agent, call_id].append((self.episodes[session], why))

    def result(self, session, call_id, agent=None):
        """Something came back."""
        self.episode(session)
        self.episodes[session] += 1
        self.results += 1
        if self.waiting[session, agent, call_id]:
            self.waiting[session, agent, call_id].pop(0)
            self.pairs += 1

    def turn(self, session):
        """Somebody said something."""
        self.episode(session)
        self.episodes[session] += 1
        self.people.add(session)
        self.turns += 1

    def given(self, session):
        """A program said something in somebody's name: a turn, where nobody said anything."""
        self.episode(session)
        self.programs.add(session)

    def interrupted(self, session, why):
        """Nothing will come back of what waits now."""
        for key, waiting in self.waiting.items():
            if key[0] == session:
                waiting[:] = [(after, known or why) for after, known in waiting]

    def unpaired(self):
        """Why nothing came back, for each call that waits, by episode, agent and id; empty where nobody knows."""
        ends = "the file ends before its result"
        return {
            key: [why or (ends if after == self.episodes[key[0]] else "") for after, why in waiting]
            for key, waiting in self.waiting.items()
            if waiting
        }

    def counts(self):
        """The sums."""
        turns = self.turns + len(self.programs - self.people)
        return Counts(len(self.episodes), self.calls, self.results, self.pairs, turns)


# --- reading ----------------------------------------------------------------------------------------------------------


def text_of(path):
    """The text of a file, compressed or not."""
    body = path.read_bytes()
    if path.suffix == ".zst":
        body = zstandard.ZstdDecompressor().stream_reader(body).read()
    return body.decode()


def lines_of(path):
    """The objects of a file of lines, two on one line if need be; what is none is passed by."""
    decoder = json.JSONDecoder()
    for line in text_of(path).split("\n"):
        at, line = 0, line.strip()  # noqa: PLW2901  the same line
        while at < len(line):
            try:
                value, at = decoder.raw_decode(line, at)
            except ValueError:
                break
            if isinstance(value, dict):
                yield value


def blocks_of(message):
    """The blocks of a message's content; a text is one."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [each for each in content or () if isinstance(each, dict)]
