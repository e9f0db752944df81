"""Settings of the stack, from `pulumi config`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pulumi
import pulumi_aws as aws

#: Address range of the network, and of its two availability zones.
NETWORK: Final = "10.20.0.0/16"
PUBLIC_RANGES: Final = ("10.20.0.0/24", "10.20.1.0/24")
PRIVATE_RANGES: Final = ("10.20.10.0/24", "10.20.11.0/24")

#: Fixed addresses, because a primary, its replica and the sentinels name each other.
VALKEY_ADDRESSES: Final = ("10.20.10.10", "10.20.11.10")
MONITORING_ADDRESS: Final = "10.20.10.20"

SERVER_PORT: Final = 8080
METRICS_PORT: Final = 9400
VALKEY_PORT: Final = 6379
SENTINEL_PORT: Final = 26379
TRACES_PORT: Final = 4318

#: Names of the secrets in the parameter store.
URL_PARAMETER: Final = "/rota/url"
PASSWORD_PARAMETER: Final = "/rota/valkey-password"
TOKEN_PARAMETER: Final = "/rota/metrics-token"

STORES: Final = ("ec2", "elasticache", "memorydb")


@dataclass(frozen=True)
class Settings:
    """Each field is described in Pulumi.yaml."""

    region: str
    package: str
    app: str
    certificate_arn: str
    valkey_password: pulumi.Output[str]
    store: str
    worker_type: str
    min_workers: int
    max_workers: int

    @classmethod
    def load(cls) -> Settings:
        """Reads the settings. Raises `pulumi.RunError` for values that cannot work together."""
        config = pulumi.Config("rota")
        settings = cls(
            region=aws.config.region or pulumi.Config("aws").require("region"),
            package=config.require("package"),
            app=config.require("app"),
            certificate_arn=config.require("certificateArn"),
            valkey_password=config.require_secret("valkeyPassword"),
            store=config.get("store") or STORES[0],
            worker_type=config.get("workerType") or "t3.small",
            min_workers=config.get_int("minWorkers", 1) or 0,
            max_workers=config.get_int("maxWorkers", 10) or 0,
        )
        if settings.store not in STORES:
            raise pulumi.RunError(f"rota:store is {settings.store!r}; it must be one of {', '.join(STORES)}")
        if not 0 <= settings.min_workers <= settings.max_workers or settings.max_workers == 0:
            raise pulumi.RunError(
                f"rota:minWorkers is {settings.min_workers} and rota:maxWorkers {settings.max_workers};"
                " expected 0 <= minWorkers <= maxWorkers, and maxWorkers at least 1"
            )
        return settings
