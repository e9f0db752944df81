#!/bin/sh
# Starts Valkey with a user for each role of Rota (deploy/acl), and passwords from the environment.
# A role without a password gets no user; the default user is off.
set -eu
roles=${ACL_FOLDER:-/etc/valkey/acl}
users=${ACL_FILE:-/data/users.acl}
umask 077
echo "user default off" >"$users"
for role in producer worker api read-only admin; do
  variable=ROTA_$(echo "$role" | tr 'a-z-' 'A-Z_')_PASSWORD
  password=$(printenv "$variable" || true)
  if test -n "$password" && test -f "$roles/$role.acl"; then
    echo "$(cat "$roles/$role.acl") >$password" >>"$users"
  fi
done
exec valkey-server --aclfile "$users" --appendonly yes --maxmemory-policy noeviction --save "" "$@"
