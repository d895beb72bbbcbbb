"""Any order of record, seal, adopt, crash, read and prune agrees with plain lists of what was recorded."""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import Machine, MemoryMachine

EXAMPLES = int(os.environ.get("MODEL", "50"))
STEPS = 40


@pytest.mark.promise("model", "any order of record, seal, adopt, crash, read, prune agrees with a plain list")
@pytest.mark.parametrize("machine", [Machine, MemoryMachine])
def test_any_order_agrees_with_a_plain_list(machine, monkeypatch, tell):
    """After every step each reader sees each event once, in order, and no episode that was pruned."""
    steps = 0

    class Counted(machine):
        def check_invariants(self, *args, **named):
            nonlocal steps
            steps += 1
            super().check_invariants(*args, **named)

    quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    run_state_machine_as_test(
        Counted, settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS, suppress_health_check=quiet)
    )
    tell(steps=steps)
