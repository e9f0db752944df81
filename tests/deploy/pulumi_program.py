"""Runs a Pulumi program with mocks and prints, as JSON, the resources that it creates and its outputs."""

from __future__ import annotations

import asyncio
import json
import runpy
import sys
from typing import Any

import pulumi
from pulumi.runtime import MockCallArgs, MockResourceArgs, Mocks, set_all_config, set_mocks
from pulumi.runtime.stack import run_pulumi_func


class Recorder(Mocks):
    """Answers as AWS would, and remembers each resource."""

    def __init__(self) -> None:
        self.resources: list[dict[str, Any]] = []

    def new_resource(self, args: MockResourceArgs) -> tuple[str, dict[str, Any]]:
        inputs = dict(args.inputs)
        self.resources.append({"type": args.typ, "name": args.name, "inputs": inputs})
        known = {"arn": f"arn:aws:mock:::{args.name}", "name": args.name, "bucket": args.name, "key": "deploy.zip"}
        known |= {"dnsName": "rota.example", "primaryEndpointAddress": "cache.example"}
        known |= {"clusterEndpoints": [{"address": "memorydb.example", "port": 6379}]}
        return f"{args.name}-id", known | inputs

    def call(self, args: MockCallArgs) -> dict[str, Any]:
        answers: dict[str, dict[str, Any]] = {
            "aws:index/getAvailabilityZones:getAvailabilityZones": {"names": ["zone-a", "zone-b"]},
            "aws:ssm/getParameter:getParameter": {"value": "ami-1", "name": args.args.get("name")},
        }
        return answers[args.token]


def run(folder: str, config: dict[str, str]) -> None:
    """Prints what the program in the folder creates."""
    recorder = Recorder()
    outputs: dict[str, Any] = {}
    resolved: dict[str, Any] = {}
    asyncio.set_event_loop(asyncio.new_event_loop())
    set_mocks(recorder, project="rota", stack="test")
    set_all_config(config)
    sys.path.insert(0, folder)
    pulumi.export = outputs.__setitem__

    def program() -> None:
        runpy.run_path(folder, run_name="__main__")
        for name, value in outputs.items():
            pulumi.Output.from_input(value).apply(lambda value, name=name: resolved.__setitem__(name, value))

    asyncio.get_event_loop().run_until_complete(run_pulumi_func(program))
    print(json.dumps({"resources": recorder.resources, "outputs": resolved}, default=str))


if __name__ == "__main__":
    run(sys.argv[1], json.loads(sys.argv[2]))
