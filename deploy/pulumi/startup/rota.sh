# Installs the application and starts one program of Rota as a service, when a machine boots for the first time.
# The lines before this one set: UNIT (server, worker or autoscale), PACKAGE, APP, REGION, URL_PARAMETER, EXTRA_ENVIRONMENT, SERVICE.
# ROOT is empty, except where the script is tried out below another folder.
set -euo pipefail
ROOT=${ROOT:-}
home=$ROOT/opt/rota

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq -y --no-install-recommends awscli curl python3-venv >/dev/null
id rota >/dev/null 2>&1 || useradd --system --home-dir "$home" --shell /usr/sbin/nologin rota

mkdir -p "$home" "$ROOT/etc/rota" "$ROOT/etc/systemd/system"
python3 -m venv "$home/.venv"
"$home/.venv/bin/pip" install --quiet --disable-pip-version-check "$PACKAGE"

# With the machine's id the autoscaler knows which machine to terminate when its worker has drained.
metadata=http://169.254.169.254/latest
session=$(curl -fsS -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' "$metadata/api/token")
machine=$(curl -fsS -H "X-aws-ec2-metadata-token: $session" "$metadata/meta-data/instance-id")
url=$(aws ssm get-parameter --region "$REGION" --name "$URL_PARAMETER" --with-decryption --query Parameter.Value --output text)

# The URL has a password: only root, and through systemd the service, can read this file.
(umask 077; cat >"$ROOT/etc/rota/rota.env" <<END
ROTA_URL=$url
ROTA_APP=$APP
ROTA_MACHINE=$machine
OTEL_SERVICE_NAME=rota-$UNIT
$EXTRA_ENVIRONMENT
END
)
printf '%s\n' "$SERVICE" >"$ROOT/etc/systemd/system/rota-$UNIT.service"
systemctl daemon-reload
systemctl enable --now "rota-$UNIT.service"
