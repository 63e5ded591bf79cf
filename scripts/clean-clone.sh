#!/usr/bin/env bash
# Clones what is committed into an empty folder and runs .ci/run there, as on a
# machine that has never seen the project.
#
#   COLD=1    with empty build and module caches too, so that everything is built
#             and downloaded: this shows how long a new machine needs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ -n $(git status --porcelain) ]]; then
	echo 'Note: what is not committed is not checked.'
fi
folder=$(mktemp -d)
cleanup() {
	chmod -R u+w "$folder" # downloaded modules are read-only
	rm -rf "$folder"
}
trap cleanup EXIT

git clone --quiet --no-hardlinks . "$folder/rpcpool"
if [[ ${COLD:-} == 1 ]]; then
	export GOCACHE=$folder/cache/build GOMODCACHE=$folder/cache/modules GOLANGCI_LINT_CACHE=$folder/cache/lint
fi
cd "$folder/rpcpool"
CI=true bash .ci/run </dev/null
