"""Providers: the platforms on which the autoscaler launches and terminates machines, one module each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from rota.autoscaler.machine_provider import Provider, ProviderSettings
from rota.errors import ConfigurationError


def create_provider(name: str, settings: ProviderSettings) -> Provider:
    """Makes the provider of that name. Raises ConfigurationError for settings that are missing."""
    try:
        return _PROVIDERS[name](settings)
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"provider {name} requires {error.name}, which is not installed") from error


def _local(settings: ProviderSettings) -> Provider:
    from rota.autoscaler.providers.local import LocalProvider, folder_for

    if not settings.worker_command:
        raise ConfigurationError("provider local starts workers of an application: rota autoscale module:rota")
    folder = folder_for(settings.address, settings.namespace)
    return LocalProvider(settings.worker_command, folder, stops_children=not settings.is_once)


def _exec(settings: ProviderSettings) -> Provider:
    from rota.autoscaler.providers.exec import TIMEOUT_S, ExecProvider

    script = _required(settings, "script", "ROTA_AUTOSCALE_EXEC", "--exec SCRIPT")
    timeout = settings.options.get("timeout", TIMEOUT_S)
    try:
        return ExecProvider(script, timeout_s=float(timeout))
    except ValueError:
        raise ConfigurationError(f"timeout of provider exec is {timeout!r}: give a number of seconds") from None


def _ec2(settings: ProviderSettings) -> Provider:
    from rota.autoscaler.providers.ec2 import Ec2Provider

    return Ec2Provider(
        region=_required(settings, "region", "AWS_REGION"),
        launch_template=_required(settings, "launch_template", "LAUNCH_TEMPLATE_ID"),
        namespace=settings.namespace,
        max_machines=settings.max_machines,
        subnets=(_optional(settings, "subnets", "SUBNET_IDS") or "").replace(",", " ").split(),
        endpoint=_optional(settings, "endpoint", "AWS_ENDPOINT_URL"),
    )


def _asg(settings: ProviderSettings) -> Provider:
    from rota.autoscaler.providers.auto_scaling_group import AutoScalingGroupProvider

    return AutoScalingGroupProvider(
        region=_required(settings, "region", "AWS_REGION"),
        group=_required(settings, "group", "AUTO_SCALING_GROUP"),
        hook=_optional(settings, "hook", "LIFECYCLE_HOOK"),
        endpoint=_optional(settings, "endpoint", "AWS_ENDPOINT_URL"),
    )


def _kubernetes(settings: ProviderSettings) -> Provider:
    from rota.autoscaler.providers.kubernetes import KubernetesProvider

    return KubernetesProvider(
        deployment=_required(settings, "deployment", "KUBERNETES_DEPLOYMENT"),
        max_machines=settings.max_machines,
        namespace=_optional(settings, "namespace", "KUBERNETES_NAMESPACE"),
        url=_optional(settings, "url", "KUBERNETES_URL"),
    )


_PROVIDERS: Final[Mapping[str, Callable[[ProviderSettings], Provider]]] = {
    "local": _local,
    "ec2": _ec2,
    "asg": _asg,
    "kubernetes": _kubernetes,
    "exec": _exec,
}


def _optional(settings: ProviderSettings, option: str, variable: str) -> str | None:
    """The value from the configuration file, else from the environment."""
    return settings.options.get(option) or settings.environment.get(variable) or None


def _required(settings: ProviderSettings, option: str, variable: str, how: str = "") -> str:
    value = _optional(settings, option, variable)
    if value is None:
        ways = [*([how] if how else []), variable, f"{option} in the provider's table of the configuration file"]
        raise ConfigurationError(f"the provider needs a value: set {', or '.join(ways)}")
    return value
