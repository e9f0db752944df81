"""Calls of AWS services: in a thread, with short time-outs, and with the planner's errors."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any, Final

from rota.autoscaler.machine_provider import ProviderError, ProviderThrottled
from rota.errors import ConfigurationError
from rota.install_command import install_command

#: Error codes with which AWS limits the rate of calls.
THROTTLED: Final = frozenset(
    {"RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequestsException", "SlowDown"}
)


class AwsCallFailed(ProviderError):
    """AWS refused a call. `code` is its error code."""

    def __init__(self, operation: str, code: str, message: str) -> None:
        super().__init__(f"AWS refused {operation}: {code}: {message}")
        self.code = code


@cache
def _session() -> Any:
    """One session of all clients: it keeps the descriptions of services, which are large files."""
    try:
        import botocore.session
    except ImportError:
        raise ConfigurationError(f"AWS needs botocore: {install_command('aws')}") from None
    untyped: Any = botocore.session
    return untyped.get_session()


class AwsClient:
    """One service in one region. `endpoint` replaces the address of AWS, in tests."""

    def __init__(self, service: str, region: str, *, endpoint: str | None = None) -> None:
        session = _session()
        from botocore.config import Config

        # The planner repeats what fails: two attempts here cover a broken connection.
        config = Config(connect_timeout=3, read_timeout=10, retries={"total_max_attempts": 2, "mode": "standard"})
        self.raw: Any = session.create_client(service, region_name=region, endpoint_url=endpoint, config=config)

    async def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Calls an operation, such as `describe_instances`. Raises ProviderThrottled or AwsCallFailed."""
        return await asyncio.to_thread(self._call, operation, parameters)

    def _call(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return getattr(self.raw, operation)(**parameters)
        except ClientError as error:
            response: Any = error.response
            details: dict[str, str] = response.get("Error", {})
            code, message = details.get("Code", "unknown"), details.get("Message", "")
            if code in THROTTLED:
                raise ProviderThrottled(f"AWS limits the rate of {operation}: {code}") from error
            raise AwsCallFailed(operation, code, message) from error
        except BotoCoreError as error:
            raise ProviderError(f"AWS did not answer {operation}: {error}") from error

    async def pages(self, operation: str, items: str, **parameters: Any) -> list[dict[str, Any]]:
        """All items of an operation that answers in pages."""
        found: list[dict[str, Any]] = []
        while True:
            answer = await self.call(operation, **parameters)
            found += answer.get(items, [])
            if not answer.get("NextToken"):
                return found
            parameters["NextToken"] = answer["NextToken"]

    async def close(self) -> None:
        """Closes the connections."""
        await asyncio.to_thread(self.raw.close)
