#!/usr/bin/env bash
# run.sh [GO-TEST-FLAGS]...: the long run of go-ethereum's ethclient on the ring: 10,000 mixed calls to geth, and
# 10,000 to anvil, over RPCs that fail at random. It takes about a minute and is bounded in time. What is missing is
# named; scripts/integration/install.sh puts geth and anvil there. Without geth its code runs in the test's process.
set -euo pipefail
cd "$(dirname "$0")"
. ../../scripts/integration/lib.sh
export RPCPOOL_CACHE=$CACHE

# Compiling doesn't count: go-ethereum takes minutes where it isn't in Go's build cache.
binary=$(mktemp "${TMPDIR:-/tmp}/rpcpool-sdk.XXXXXX")
trap 'rm -f "$binary"' EXIT
GOWORK=off go test -c -o "$binary" .
timeout --kill-after=10 175 "$binary" -test.timeout=170s -calls 10000 "$@" </dev/null
