#!/usr/bin/env bash
# Runs the linters over the root module and every nested one, after the checks of
# our own. The linter is .cache/bin/golangci-lint, which `make tools` builds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/file-length.sh
go run ./scripts/sleepcheck .

linter=$PWD/.cache/bin/golangci-lint
"$linter" config verify --config .golangci.yml
"$linter" run --config .golangci.yml ./...
scripts/in-modules.sh "$linter" run --config "$PWD/.golangci.yml" ./...
