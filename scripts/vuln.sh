#!/usr/bin/env bash
# Asks the Go vulnerability database about the root module and every nested one.
# The database is fetched from the web; where it can't be reached, that is said,
# and nothing is claimed. VULNDB=file:///path names a copy to ask instead.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=$PWD/.cache/bin
GOBIN=$bin go -C tools install golang.org/x/vuln/cmd/govulncheck

arguments=()
if [[ -n ${VULNDB:-} ]]; then
	arguments+=(-db "$VULNDB")
fi
mapfile -t modules < <(scripts/modules.sh)
for module in . "${modules[@]}"; do
	echo "-- $module"
	status=0
	output=$("$bin/govulncheck" -C "$module" "${arguments[@]}" ./... 2>&1) || status=$?
	printf '%s\n' "$output"
	if ((status != 0)); then
		if grep -q 'fetching vulnerabilities' <<<"$output"; then
			echo 'The vulnerability database could not be reached, so nothing was checked. Try again with' >&2
			echo 'access to the web, or name a copy of the database: make vuln VULNDB=file:///path/to/it' >&2
		fi
		exit "$status"
	fi
done
