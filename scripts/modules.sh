#!/usr/bin/env bash
# Lists the folders of the project's Go modules, one a line, found by their go.mod.
#
#   scripts/modules.sh          the nested ones that hold code of the project: examples, plugins, integration
#   scripts/modules.sh --all    every one: the root (.), those, and tools/
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

find . \( -name '.?*' -o -name testdata -o -name node_modules \) -prune -o -name go.mod -print |
	sed -e 's,/go\.mod$,,' -e 's,^\./,,' | LC_ALL=C sort |
	if [[ ${1:-} == --all ]]; then cat; else grep -vxE '\.|tools' || true; fi
