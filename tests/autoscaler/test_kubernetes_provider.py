"""The provider of Kubernetes against a real HTTP server that keeps one Deployment and its pods."""

from __future__ import annotations

import json
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from rota.autoscaler.machine_provider import ProviderError, ProviderThrottled
from rota.autoscaler.providers.kubernetes import DELETION_COST, KubernetesProvider
from rota.errors import ConfigurationError

DEPLOYMENT = "/apis/apps/v1/namespaces/shop/deployments/worker"
PODS = "/api/v1/namespaces/shop/pods"


class Cluster:
    """One Deployment. As its controller does, it removes the pod with the lowest deletion cost."""

    def __init__(self) -> None:
        self.version = 1
        self.annotations: dict[str, str] = {}
        self.pods: dict[str, dict[str, Any]] = {}
        self.created = 0
        self.fault: tuple[int, dict[str, str]] | None = None
        #: The controller has not yet acted on the number of replicas.
        self.lags = False
        self.scale_to(2)

    def scale_to(self, replicas: int) -> None:
        """What the controller does after a change of the number of replicas."""
        self.replicas = replicas
        if self.lags:
            return
        while len(self.pods) < replicas:
            name = f"worker-{self.created}"
            self.created += 1
            self.pods[name] = {
                "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {}},
                "status": {"phase": "Running"},
            }
        while len(self.pods) > replicas:
            del self.pods[min(self.pods, key=lambda name: int(self._annotations(name).get(DELETION_COST, "0")))]

    def _annotations(self, name: str) -> dict[str, str]:
        return self.pods[name]["metadata"]["annotations"]

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The answer to a request: status and object."""
        path, _, query = path.partition("?")
        name = path.removeprefix(f"{PODS}/")
        if path == PODS:
            assert urllib.parse.parse_qs(query) == {"labelSelector": ["app=worker"]}
            return 200, {"items": list(self.pods.values())}
        if name in self.pods:
            self._annotations(name).update(body.get("metadata", {}).get("annotations", {}))
            return 200, self.pods[name]
        if path not in (DEPLOYMENT, f"{DEPLOYMENT}/scale"):
            return 404, {"message": "not found"}
        if method == "PATCH":
            if body["metadata"]["resourceVersion"] != str(self.version):
                return 409, {"message": "the object has been modified"}
            self.version += 1
            self.annotations.update(body["metadata"].get("annotations", {}))
            self.scale_to(body["spec"]["replicas"])
        return 200, {
            "metadata": {"resourceVersion": str(self.version), "annotations": self.annotations},
            "spec": {"replicas": self.replicas},
            "status": {"replicas": len(self.pods), "selector": "app=worker"},
        }


@pytest.fixture
def cluster() -> Cluster:
    """A Deployment with two pods."""
    return Cluster()


@pytest.fixture
def url(cluster: Cluster) -> Iterator[str]:
    """The address of the API, without TLS, as `kubectl proxy` gives it."""

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
            if cluster.fault is not None:
                status, headers = cluster.fault
                answer: dict[str, Any] = {"message": "too many requests"}
            else:
                (status, answer), headers = cluster.answer(self.command, self.path, body), {}
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        do_GET = do_PATCH = _serve  # noqa: N815 - names of the base class

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="kubernetes")
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def provider(url: str) -> KubernetesProvider:
    """As a new autoscaler would create it."""
    return KubernetesProvider(deployment="worker", namespace="shop", url=url, max_machines=10)


async def ids(provider: KubernetesProvider) -> list[str]:
    """The ids of its machines."""
    return [machine.id for machine in await provider.machines()]


async def test_pods_are_launched_once_for_each_token(cluster: Cluster, provider: KubernetesProvider, url: str) -> None:
    await provider.launch(2, "first")
    await KubernetesProvider(deployment="worker", namespace="shop", url=url, max_machines=10).launch(2, "first")

    assert cluster.replicas == 4
    assert await ids(provider) == [f"worker-{n}" for n in range(4)]


async def test_exactly_the_drained_pod_leaves(cluster: Cluster, provider: KubernetesProvider) -> None:
    await provider.launch(1, "grow")

    await provider.terminate("worker-1")
    await provider.terminate("worker-1")

    assert await ids(provider) == ["worker-0", "worker-2"]
    assert cluster.replicas == 2


async def test_a_pod_that_is_terminated_again_takes_no_other_with_it(
    cluster: Cluster, provider: KubernetesProvider
) -> None:
    """The controller has not removed it yet when the planner asks again."""
    await provider.launch(2, "grow")
    cluster.lags = True
    await provider.terminate("worker-1")
    await provider.terminate("worker-1")
    cluster.lags = False
    cluster.scale_to(cluster.replicas)

    assert await ids(provider) == ["worker-0", "worker-2", "worker-3"]


async def test_pods_that_are_not_created_yet_are_pending(cluster: Cluster, provider: KubernetesProvider) -> None:
    """Otherwise each round would ask for more of them. One that never comes can be given up."""
    cluster.lags = True
    await provider.launch(2, "grow")

    assert await ids(provider) == ["worker-0", "worker-1", "expected-0", "expected-1"]
    await provider.terminate("expected-1")
    assert await ids(provider) == ["worker-0", "worker-1", "expected-0"]


async def test_replicas_stay_below_the_maximum(cluster: Cluster, provider: KubernetesProvider) -> None:
    await provider.launch(50, "grow")

    assert cluster.replicas == 10
    with pytest.raises(ProviderError, match="has 10 replicas, which is the maximum"):
        await provider.launch(1, "more")


async def test_a_change_by_another_program_is_not_overwritten(cluster: Cluster, provider: KubernetesProvider) -> None:
    answer = cluster.answer

    def changed_meanwhile(method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if method == "PATCH" and path == DEPLOYMENT:
            cluster.version += 1
        return answer(method, path, body)

    cluster.answer = changed_meanwhile
    with pytest.raises(ProviderError, match="409 the object has been modified"):
        await provider.launch(1, "late")
    assert cluster.replicas == 2


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"phase": "Pending"}, "pending"),
        ({"phase": "Running"}, "running"),
        ({"phase": "Failed"}, "failed"),
        (
            {"phase": "Running", "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
            "failed",
        ),
        (
            {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
            "failed",
        ),
    ],
)
async def test_states_of_pods(
    cluster: Cluster, provider: KubernetesProvider, status: dict[str, Any], state: str
) -> None:
    cluster.pods["worker-0"]["status"] = status

    assert (await provider.machines())[0].state == state


async def test_a_pod_that_is_being_deleted_is_left_out(cluster: Cluster, provider: KubernetesProvider) -> None:
    cluster.pods["worker-0"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert await ids(provider) == ["worker-1", "expected-0"], "another one takes its place"
    await provider.terminate("worker-0")
    assert cluster.replicas == 2


async def test_throttling_tells_the_planner_how_long_to_wait(cluster: Cluster, provider: KubernetesProvider) -> None:
    cluster.fault = (429, {"Retry-After": "7"})

    with pytest.raises(ProviderThrottled) as raised:
        await provider.machines()
    assert raised.value.retry_after == 7


async def test_errors_say_what_was_refused(cluster: Cluster, provider: KubernetesProvider) -> None:
    cluster.fault = (403, {})

    with pytest.raises(ProviderError, match=r"refused GET .*deployments/worker/scale: 403"):
        await provider.machines()


def test_outside_a_cluster_the_error_says_what_to_give() -> None:
    with pytest.raises(ConfigurationError, match="run the autoscaler in the cluster, or give the namespace"):
        KubernetesProvider(deployment="worker", max_machines=1)
