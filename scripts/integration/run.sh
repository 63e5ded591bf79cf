#!/usr/bin/env bash
# run.sh [GO-TEST-FLAGS]...: the integration tests, against real proxies and nodes; install.sh puts them there.
# What is missing is named, with the tests that are skipped for it. Under CI=true a missing part is a failure, unless
# RPCPOOL_INTEGRATION_ALLOW_MISSING (names of parts) has it. The whole run is bounded in time, and leaves no process.
# For one test: run.sh -run 'TestChunkedLogs' -v
set -euo pipefail
. "$(dirname "$0")/lib.sh"

check_parts
if [[ " ${MISSING[*]} " == *" namespaces "* ]]; then
	echo "!! nothing can run without namespaces" >&2
	exit 1
fi
export RPCPOOL_INTEGRATION_MISSING="${MISSING[*]}"

RUN=$(mktemp -d "${TMPDIR:-/tmp}/rpcpool-integration.XXXXXX")
export RUN
trap 'rm -rf "$RUN"' EXIT

# go test compiles here and runs the binary through inside.sh, without network; its own summary comes last.
# Attempts mostly wait, so many tests may run at once on few cores.
cd "$SCRIPTS/../../integration"
timeout --kill-after=10 240 \
	env GOWORK=off go test -count=1 -timeout 180s -parallel 16 -exec "$SCRIPTS/inside.sh" "$@" </dev/null &
run=$!
# timeout hands the signal on to all that it started.
trap 'kill "$run" 2>/dev/null; wait "$run"; rm -rf "$RUN"; exit 130' INT TERM
status=0
wait "$run" || status=$?
[ $status != 124 ] || echo "!! stopped: the run took longer than 4 minutes" >&2
exit $status
