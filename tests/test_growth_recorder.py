"""A recorder that lives for days: what has ended leaves nothing behind in it."""

import gc

import pytest

from trackway.recording.episode import Core
from trackway.recording.recorder import Recorder
from trackway.recording.redact import Redactor


def _held(kind):
    gc.collect()
    return sum(type(each) is kind for each in gc.get_objects())


@pytest.mark.parametrize("redact", [None, True, ["hunter2"]], ids=["as it is", "known secrets", "rules of one's own"])
def test_an_episode_that_ended_is_held_no_longer(tmp_path, redact):
    """Hundreds of episodes, one after another: no view, no context and no redactor of them is left."""
    with Recorder(tmp_path / "home") as recorder:
        cores, redactors = _held(Core), _held(Redactor)
        for i in range(300):
            episode = recorder.start(f"{i}", redact=redact)
            episode.agent("helper").user("hunter2")
            episode.model_call(messages=[{"role": "user", "content": "go"}]).done()
            episode.end("success")
        del episode
        assert _held(Core) == cores
        assert _held(Redactor) <= redactors + 1


def test_a_label_after_the_end_is_hidden_by_the_rules_of_its_episode(tmp_path):
    """Rules that only the caller knows are remembered for what may follow the end."""
    with Recorder(tmp_path / "home") as recorder:
        for rules in (["hunter2"], True):
            episode = recorder.start("secret", redact=rules)
            episode.end("success")
            recorder.label(episode.id, comment="said hunter2 and sk-ant-api03-" + "a1B2" * 24)
            label = list(episode.events())[-1]
            assert ("hunter2" in label.comment) == (rules is True)
            assert label.redacted
            assert "a1B2a1B2" not in label.comment or rules is not True
