"""`rota workflow`."""

from __future__ import annotations

from rota import Workflow
from tests.cli.driver import Cli, Hand


def order(hand: Hand) -> Workflow:
    """Three steps, of which the second will fail."""
    with hand.rota.workflow("order") as flow:
        added = flow.step(hand.add.call(1))
        sent = flow.step(hand.send.call("a@b.c"), after=[added], name="letter")
        flow.step(hand.add.call(2), after=[sent])
    return flow


def test_a_list_shows_how_each_stands(cli: Cli, hand: Hand) -> None:
    first, second = order(hand), order(hand)
    second.cancel_sync()

    listed = cli.json("workflow", "list")["workflows"]
    assert [(flow["id"], flow["state"], flow["total"]) for flow in listed] == [
        (second.id, "cancelled", 3),
        (first.id, "running", 3),
    ]
    assert [flow["id"] for flow in cli.json("workflow", "list", "--state", "running")["workflows"]] == [first.id]
    text = cli.run("workflow", "list").out
    assert "0 of 3" in text
    assert first.id in text
    assert "there are no workflows in this state" in cli.run("workflow", "list", "--state", "parked").err


def test_show_draws_the_graph(cli: Cli, hand: Hand) -> None:
    flow = order(hand)

    text = cli.run("workflow", "show", flow.id).out
    assert f"workflow order {flow.id}: running: 0 of 3 steps done" in text
    assert "1 letter  (waiting; after 0" in text
    chart = cli.run("workflow", "show", flow.id, "--mermaid").out
    assert chart.startswith("flowchart TD")
    assert "s1 --> s2" in chart
    shape = cli.json("workflow", "show", flow.id)
    assert [step["after"] for step in shape["steps"]] == [[], [0], [1]]
    assert shape["steps"][1]["job"] == f"mail:{flow.id}.1"


def test_one_is_cancelled_once(cli: Cli, hand: Hand) -> None:
    flow = order(hand)

    refused = cli.run("workflow", "cancel", flow.id, code=2)
    assert (
        f"This cancels workflow order {flow.id} (running, 0 of 3 steps done); completed steps are compensated"
        in refused.err
    )
    assert flow.state_sync() == "running"
    assert cli.run("workflow", "cancel", flow.id, "--yes").out == f"workflow {flow.id} is cancelled\n"
    assert "has ended" in cli.run("workflow", "cancel", flow.id, "--no-undo", code=4).err


def test_one_that_is_held_is_resumed_and_no_other(cli: Cli, hand: Hand) -> None:
    flow = order(hand)
    assert "only one that failed" in cli.run("workflow", "resume", flow.id, code=4).err
    cli.run_bare("worker", "tasks:rota", "--queues", "default,mail", "--burst")
    assert "step letter" in cli.run("workflow", "show", flow.id).out

    assert cli.json("workflow", "resume", flow.id) == {"id": flow.id, "state": "running"}


def test_one_that_is_not_there_is_said_to_be_so(cli: Cli, hand: Hand) -> None:
    for verb in ("show", "cancel", "resume"):
        assert "there is no workflow nowhere" in cli.run("workflow", verb, "nowhere", code=3).err
    assert "there are no workflows" in cli.run("workflow", "list").err
