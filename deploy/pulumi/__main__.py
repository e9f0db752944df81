"""Rota on AWS. See docs/deploy.md."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws
from monitoring import create_monitoring
from network import create_network
from server import create_server
from settings import PASSWORD_PARAMETER, TOKEN_PARAMETER, URL_PARAMETER, Settings
from store import create_store
from workers import create_workers

settings = Settings.load()
network = create_network()

password = aws.ssm.Parameter(
    "valkey-password", name=PASSWORD_PARAMETER, type="SecureString", value=settings.valkey_password
)
url = aws.ssm.Parameter("url", name=URL_PARAMETER, type="SecureString", value=create_store(settings, network, password))
# Written by you once the server runs: see docs/deploy.md. Later deployments leave it as it is.
token = aws.ssm.Parameter(
    "metrics-token",
    name=TOKEN_PARAMETER,
    type="SecureString",
    value="not-set",
    opts=pulumi.ResourceOptions(ignore_changes=["value"]),
)

address = create_server(settings, network, url)
template = create_workers(settings, network, url)
monitoring = create_monitoring(settings, network, password, token)

pulumi.export("AWS_REGION", settings.region)
pulumi.export("LAUNCH_TEMPLATE_ID", template.id)
pulumi.export("ROTA_URL_PARAMETER", url.name)
pulumi.export("SERVER_ADDRESS", address)
pulumi.export("MONITORING_INSTANCE", monitoring.id)
