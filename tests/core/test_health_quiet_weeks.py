"""No false alarm: every five minutes of generated healthy weeks get the verdict "Healthy"."""

from __future__ import annotations

import pytest

from rota.core.health.verdict import findings, verdict
from tests.core.health_history import STEPS_PER_DAY, SimulatedQueue, healthy_queues, situations


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_quiet_week_raises_no_alarm(seed: int) -> None:
    alarms: list[tuple[int, str]] = []
    judged = 0
    for situation in situations(healthy_queues(), days=21, judged=7, seed=seed):
        judged += 1
        found = verdict(findings(situation))
        if found.level != "ok":
            alarms.append((situation.at, found.text))

    assert judged == 7 * STEPS_PER_DAY
    assert alarms == []


def test_the_first_days_of_a_system_raise_no_alarm() -> None:
    queues = [queue for queue in healthy_queues() if queue.name in ("mail", "webhooks", "rare", "idle")]

    alarms = [
        verdict(found).text
        for situation in situations(queues, days=3, judged=3, seed=4)
        if verdict(found := findings(situation)).level != "ok"
    ]

    assert alarms == []


def test_a_day_on_which_mail_is_slow_is_noticed_within_ten_minutes() -> None:
    mail = SimulatedQueue("mail", lambda step: 400.0, slots=8, run_ms=120)
    seen: list[str] = []
    for number, situation in enumerate(situations([mail], days=10, judged=1, seed=5)):
        seen.append(verdict(findings(situation)).text)
        if number == 11:
            mail.run_ms = 3_600.0  # from the thirteenth step on
        if number == 15:
            break

    assert set(seen[:12]) == {"Healthy"}
    assert "mail" in seen[13]
    assert "slower than usual" in seen[13]
