#!/usr/bin/env bash
# Builds every example: those of the root module, and every nested module (the
# other examples, the plugins). Nothing is installed or left behind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go build -o /dev/null ./examples/...
scripts/in-modules.sh go build -o /dev/null ./...
