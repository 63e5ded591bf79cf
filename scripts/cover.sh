#!/usr/bin/env bash
# Measures which statements of the root package and of internal/… their tests run,
# together: a statement counts whichever package's test runs it. Fails under 90 %.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly wanted=90.0
profile=coverage.out
packages=$(go list . ./internal/... | paste -sd, -)

# The line of each package names all those measured; it's cut before them.
go test -short -timeout 5m -covermode=set -coverpkg="$packages" -coverprofile="$profile" . ./internal/... |
	sed 's/ of statements in .*//'

functions=$(go tool cover -func="$profile")
total=$(awk '$1 == "total:" { sub("%", "", $NF); print $NF }' <<<"$functions")
if [[ -z $total ]]; then
	echo 'No statement was measured.' >&2
	exit 1
fi
if awk -v total="$total" -v wanted="$wanted" 'BEGIN { exit !(total < wanted) }'; then
	echo 'The functions that the tests reach least:' >&2
	grep -v '^total:' <<<"$functions" | awk '{ print $NF "\t" $0 }' | sort -n | head -n 30 | cut -f2- >&2 || true
	echo "The tests run $total % of the statements; $wanted % are wanted. See: go tool cover -html=$profile" >&2
	exit 1
fi
echo "The tests run $total % of the statements ($wanted % are wanted)."
