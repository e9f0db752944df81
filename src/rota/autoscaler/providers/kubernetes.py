"""Machines as pods of a Deployment: its scale is changed, and the deletion cost decides which pod leaves."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from rota.autoscaler.machine_provider import EXPECTED, Machine, ProviderError, ProviderThrottled
from rota.errors import ConfigurationError

#: Pods with a lower cost are removed first; without the annotation the cost is 0.
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
#: Annotation of the Deployment's scale with the last launch: its token and the replicas that it asked for.
LAUNCH_ANNOTATION: Final = "rota/launch"

_LOWEST_COST: Final = "-1000"
_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TIMEOUT: Final = 10.0


class KubernetesProvider:
    """Changes the scale of one Deployment. Runs in the cluster with a service account, or with the URL of a proxy."""

    name = "kubernetes"

    def __init__(
        self,
        *,
        deployment: str,
        max_machines: int,
        namespace: str | None = None,
        url: str | None = None,
        account: Path = _ACCOUNT,
    ) -> None:
        self._max_machines = max_machines
        self._account = account
        self._deployment = deployment
        self._namespace = namespace or self._read("namespace")
        self._url = url or _cluster_url()
        self._tls: ssl.SSLContext | None = None
        if self._url.startswith("https:"):
            self._tls = ssl.create_default_context(cafile=str(account / "ca.crt"))

    async def machines(self) -> Sequence[Machine]:
        """Lists the Deployment's pods, except those that are being deleted, and those that it has yet to create."""
        scale = await self._scale()
        listed = [
            Machine(
                id=pod["metadata"]["name"],
                state=_state(pod["status"]),  # type: ignore[arg-type]
                launched_at=_ms(pod["metadata"]["creationTimestamp"]),
            )
            for pod in await self._pods(scale)
        ]
        missing = scale["spec"].get("replicas", 0) - len(listed)
        return listed + [Machine(id=f"{EXPECTED}{number}", state="pending") for number in range(missing)]

    async def launch(self, count: int, token: str) -> Sequence[str]:
        """Raises the number of replicas by `count`, once for each token. The pods appear in `machines` later."""
        deployment = await self._call("GET", self._path)
        replicas = deployment["spec"].get("replicas", 1)
        before, _, target = deployment["metadata"].get("annotations", {}).get(LAUNCH_ANNOTATION, "").partition(" ")
        if before != token:
            target = str(min(replicas + count, self._max_machines))
            if int(target) <= replicas:
                raise ProviderError(f"the deployment {self._deployment} has {replicas} replicas, which is the maximum")
        if int(target) > replicas:
            # One patch: the token and the replicas are stored together, or neither is. It is refused after a change
            # by another program.
            version = deployment["metadata"]["resourceVersion"]
            annotations = {LAUNCH_ANNOTATION: f"{token} {target}"}
            body = {
                "metadata": {"resourceVersion": version, "annotations": annotations},
                "spec": {"replicas": int(target)},
            }
            await self._call("PATCH", self._path, body)
        return []

    async def terminate(self, machine_id: str) -> None:
        """Gives the pod the lowest deletion cost, then lowers the number of replicas by one.

        Nothing is lowered while the controller has yet to remove a pod: it would then remove another one as well.
        """
        scale = await self._scale()
        replicas = scale["spec"].get("replicas", 0)
        names = [pod["metadata"]["name"] for pod in await self._pods(scale)]
        if machine_id.startswith(EXPECTED):  # it has not been created in time: it is no longer asked for
            if replicas <= len(names):
                return
        elif machine_id not in names or replicas < len(names):
            return
        else:
            annotations = {DELETION_COST: _LOWEST_COST}
            await self._call("PATCH", f"{self._core}/pods/{machine_id}", {"metadata": {"annotations": annotations}})
        body = {
            "metadata": {"resourceVersion": scale["metadata"]["resourceVersion"]},
            "spec": {"replicas": max(0, replicas - 1)},
        }
        await self._call("PATCH", f"{self._path}/scale", body)

    async def protect(self, machine_ids: Collection[str]) -> None:
        """Does nothing: costs are set immediately before a pod is removed, not in every round."""

    async def close(self) -> None:
        """Nothing is open between calls; pods keep running."""

    async def _pods(self, scale: dict[str, Any]) -> list[dict[str, Any]]:
        """The pods that are not being deleted."""
        selector = urllib.parse.urlencode({"labelSelector": scale["status"].get("selector", "")})
        pods = await self._call("GET", f"{self._core}/pods?{selector}")
        return [pod for pod in pods["items"] if "deletionTimestamp" not in pod["metadata"]]

    @property
    def _core(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}"

    @property
    def _path(self) -> str:
        return f"/apis/apps/v1/namespaces/{self._namespace}/deployments/{self._deployment}"

    async def _scale(self) -> dict[str, Any]:
        return await self._call("GET", f"{self._path}/scale")

    async def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        return await asyncio.to_thread(self._request, method, path, body)

    def _request(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        headers = {"Accept": "application/json"}
        if self._tls is not None:
            # The token is renewed by the kubelet: it is read again for each call.
            headers["Authorization"] = f"Bearer {self._token()}"
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT, context=self._tls) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise _refused(error, method, path) from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ProviderError(f"Kubernetes did not answer {method} {path}: {error}") from error

    def _token(self) -> str:
        try:
            return self._read("token")
        except ConfigurationError as error:  # it is being replaced, or was removed: the planner holds
            raise ProviderError(str(error)) from error

    def _read(self, name: str) -> str:
        try:
            return (self._account / name).read_text(encoding="utf-8").strip()
        except OSError:
            raise ConfigurationError(
                f"there is no service account in {self._account}: run the autoscaler in the cluster, or give the"
                " namespace and the URL of `kubectl proxy`"
            ) from None


def _refused(error: urllib.error.HTTPError, method: str, path: str) -> ProviderError:
    try:
        message = json.load(error).get("message", "")
    except (OSError, ValueError, AttributeError):
        message = ""
    text = f"Kubernetes refused {method} {path}: {error.code} {message or error.reason}"
    if error.code == 429:
        after = error.headers.get("Retry-After", "")
        return ProviderThrottled(text, retry_after=float(after) if after.isdecimal() else 10.0)
    return ProviderError(text)


def _state(status: dict[str, Any]) -> str:
    """`pending` until the containers run; `failed` for a pod whose containers fail again and again."""
    waiting = [
        container.get("state", {}).get("waiting", {}).get("reason", "")
        for container in status.get("containerStatuses", ())
    ]
    if any(reason.endswith(("BackOff", "Error")) for reason in waiting):
        return "failed"
    return {"Pending": "pending", "Running": "running"}.get(status.get("phase", ""), "failed")


def _ms(time: str) -> int:
    return int(datetime.fromisoformat(time).timestamp() * 1000)


def _cluster_url() -> str:
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigurationError(
            "KUBERNETES_SERVICE_HOST is not set: run the autoscaler in the cluster, or give the URL of `kubectl proxy`"
        )
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
