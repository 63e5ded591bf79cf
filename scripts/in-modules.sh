#!/usr/bin/env bash
# Runs a command in every nested module that holds code of the project, and stops
# at the first that fails:
#
#   scripts/in-modules.sh go vet ./...
#   scripts/in-modules.sh --except integration go test ./...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

except=
if [[ $1 == --except ]]; then
	except=$2
	shift 2
fi

mapfile -t modules < <(scripts/modules.sh)
for module in "${modules[@]}"; do
	if [[ $module == "$except" ]]; then
		continue
	fi
	echo "-- $module: $*"
	(cd "$module" && "$@") || {
		echo "$*: failed in the module $module" >&2
		exit 1
	}
done
