# Starts collector, Tempo, Prometheus and Grafana, when the monitoring host boots for the first time.
# The lines before this one set: REGION, ARCHIVE (s3 address of the folder deploy/), ADDRESS, TOKEN_PARAMETER.
# ROOT is empty, except where the script is tried out below another folder.
set -euo pipefail
ROOT=${ROOT:-}
home=$ROOT/opt/rota-monitoring

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq -y --no-install-recommends awscli docker.io docker-compose unzip >/dev/null
mkdir -p "$home"
aws s3 cp --region "$REGION" "$ARCHIVE" "$home/deploy.zip"
unzip -q -o "$home/deploy.zip" -d "$home"
(umask 077; aws ssm get-parameter --region "$REGION" --name "$TOKEN_PARAMETER" --with-decryption --query Parameter.Value --output text \
  >"$home/prometheus/rota-token")
chmod 644 "$home/prometheus/rota-token"  # Prometheus runs as another user in its container

sed -i "s/region: .*/region: $REGION/" "$home/prometheus/prometheus-ec2.yml"

cd "$home"
# The passwords are those of services that do not run on this host; compose wants a value.
ROTA_WORKER_PASSWORD=unused ROTA_API_PASSWORD=unused ROTA_ADMIN_PASSWORD=unused \
  COLLECTOR_ADDRESS=$ADDRESS PROMETHEUS_CONFIG=prometheus-ec2.yml \
  docker-compose -f compose.yaml up -d collector tempo prometheus grafana
