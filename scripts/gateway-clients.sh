#!/usr/bin/env bash
# Runs viem, ethers and web3.js, as they come from npm, against the gateway over anvil,
# while RPCs and proxies fail. The last lines have the counts: answers that were right,
# requests that failed.
#
#   scripts/gateway-clients.sh
#
# Needs Go, Node.js 20 or later with npm, and Linux on x86-64 for anvil; installs the
# pinned packages into ~/.cache/rpcpool-integration. Where they can't be had it says so
# and fails; with RPCPOOL_INTEGRATION_ALLOW_MISSING=clients it says so and is content.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cache=${RPCPOOL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rpcpool-integration}
clients=$cache/gateway-clients
anvil=$cache/npm/node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil

# missing WHY: ends the run.
missing() {
	echo "!! MISSING clients: $1" >&2
	echo "!!         skipped without them: the gateway under viem, ethers and web3.js" >&2
	case ",${RPCPOOL_INTEGRATION_ALLOW_MISSING:-}," in *,clients,*) exit 0 ;; esac
	exit 1
}

# ci FOLDER: installs what the lock file of a folder pins, unless it is there already.
# Nothing of it is run while it is installed.
ci() {
	local from=$1 to=$2
	mkdir -p "$to"
	if ! cmp -s "$from/package-lock.json" "$to/node_modules/.installed"; then
		cp "$from"/package.json "$from"/package-lock.json "$to/"
		(cd "$to" && timeout 300 npm ci --ignore-scripts --no-audit --no-fund) >"$to.log" 2>&1 </dev/null ||
			missing "npm ci in $to failed: $(grep -m1 'npm error' "$to.log" || tail -n 1 "$to.log")"
		cp "$from/package-lock.json" "$to/node_modules/.installed"
	fi
}

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
	missing 'Node.js and npm are not installed (Debian: apt-get install nodejs npm)'
fi
major=$(node -p 'process.versions.node.split(".")[0]')
((major >= 20)) || missing "Node.js $major is too old, the clients need 20 or later"
[[ $(uname -s)/$(uname -m) == Linux/x86_64 ]] || missing 'anvil is pinned as a Linux x86-64 binary'

ci scripts/gateway-clients "$clients"
if [[ ! -x $anvil ]]; then
	ci scripts/integration/npm "$cache/npm"
fi
cp scripts/gateway-clients/clients.mjs "$clients/"

RPCPOOL_CLIENTS=$clients RPCPOOL_ANVIL=$anvil \
	go test -tags clients -count=1 -timeout 120s -run '^TestClients$' -v ./examples/gateway
