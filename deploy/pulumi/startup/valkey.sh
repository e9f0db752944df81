# Starts Valkey and a sentinel, when a machine boots for the first time.
# The lines before this one set: PRIMARY, ADDRESS, REGION, PASSWORD_PARAMETER, UNITS (valkey-server and valkey-sentinel, or only the latter).
# ROOT is empty, except where the script is tried out below another folder.
set -euo pipefail
ROOT=${ROOT:-}

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq -y --no-install-recommends awscli valkey-server valkey-sentinel >/dev/null
password=$(aws ssm get-parameter --region "$REGION" --name "$PASSWORD_PARAMETER" --with-decryption --query Parameter.Value --output text)
mkdir -p "$ROOT/etc/valkey" "$ROOT/var/lib/valkey"

(umask 077
cat >"$ROOT/etc/valkey/valkey.conf" <<END
bind $ADDRESS
port 6379
dir $ROOT/var/lib/valkey
appendonly yes
appendfsync everysec
maxmemory-policy noeviction
requirepass $password
primaryauth $password
END
if test "$ADDRESS" != "$PRIMARY"; then
  echo "replicaof $PRIMARY 6379" >>"$ROOT/etc/valkey/valkey.conf"
fi
cat >"$ROOT/etc/valkey/sentinel.conf" <<END
bind $ADDRESS
port 26379
dir $ROOT/var/lib/valkey
sentinel announce-ip $ADDRESS
sentinel monitor rota $PRIMARY 6379 2
sentinel auth-pass rota $password
sentinel down-after-milliseconds rota 5000
sentinel failover-timeout rota 30000
END
)
# Both rewrite their configuration when a primary is replaced.
chown -R valkey:valkey "$ROOT/etc/valkey" "$ROOT/var/lib/valkey"
for unit in $UNITS; do
  systemctl enable "$unit.service"
  systemctl restart "$unit.service"
done
