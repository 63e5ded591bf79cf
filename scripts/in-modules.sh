#!/usr/bin/env bash
# Runs a command in every nested module that holds code of the project, and stops
# at the first that fails:
#
#   scripts/in-modules.sh go vet ./...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t modules < <(scripts/modules.sh)
for module in "${modules[@]}"; do
	echo "-- $module: $*"
	(cd "$module" && "$@") || {
		echo "$*: failed in the module $module" >&2
		exit 1
	}
done
