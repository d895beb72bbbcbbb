"""An environment for reinforcement learning: rewards, diffs and pass rates with ``TrajectoryLogger``, and a replay.

Two policies write a function; a step earns what it adds to the pass rate. Then the better one's actions are taken
again as they were recorded. The environment is deterministic, so they earn the same.
"""

import trackway

TESTS = [(-3, -1), (0, 0), (8, 1)]
POLICIES = {
    "hasty": ["def sign(x):\n    return 1 if x else 0\n"],
    "careful": ["def sign(x):\n    return -1 if x < 0 else 1\n", "def sign(x):\n    return (x > 0) - (x < 0)\n"],
}


class Environment:
    """One file, three tests."""

    def __init__(self):
        self.text, self.pass_rate = None, 0.0

    def write(self, text):
        """Replace the file; returns what that earned, and the file as it was."""
        before, earlier, names = self.text, self.pass_rate, {}
        exec(text, names)
        self.text, self.pass_rate = text, sum(names["sign"](x) == wanted for x, wanted in TESTS) / len(TESTS)
        return self.pass_rate - earlier, before


def play(logger, variant, texts):
    """One episode; returns its id."""
    environment = Environment()
    episode_id = logger.start_episode("write sign(x)", variant)
    for number, text in enumerate(texts, start=1):
        reward, before = environment.write(text)
        logger.record_step(
            number, "write_file", "sign.py", reward=reward, done=environment.pass_rate == 1.0,
            file_diff=trackway.FileDiff("sign.py", before, text, abs(len(text) - len(before or ""))),
            test_pass_rate=environment.pass_rate,
        )  # fmt: skip
    logger.end_episode(final_score=environment.pass_rate)
    return episode_id


logger = trackway.TrajectoryLogger()
played = {variant: play(logger, variant, texts) for variant, texts in POLICIES.items()}
actions = logger.get_replay_actions(played["careful"])
played["replayed"] = play(logger, "replayed", [each["content"] for each in actions])

for variant, episode_id in played.items():
    rewards = [round(each["reward"], 2) for each in logger.get_step_timeline(episode_id)]
    print(f"{variant}: rewards {rewards}, score {logger.get_trajectory(episode_id)['final_score']:.2f}")
