#!/usr/bin/env bash
# Looks at the gateway's status page in a real browser: changes without reloading, both
# colour schemes, contrast, desktop to smallest phone, keyboard, screen reader's tables,
# no request to another host, no secret. Prints where the pictures are.
#
#   scripts/browser.sh
#
# Needs Go and a Chromium: RPCPOOL_BROWSER names one, else the chromium of PATH; on
# Debian, as root, it is installed. Where it can't be had the script says so and fails;
# with RPCPOOL_INTEGRATION_ALLOW_MISSING=browser it says so and is content.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# missing WHY: ends the run.
missing() {
	echo "!! MISSING browser: $1" >&2
	echo "!!         skipped without it: the tests of the gateway's page in a browser" >&2
	case ",${RPCPOOL_INTEGRATION_ALLOW_MISSING:-}," in *,browser,*) exit 0 ;; esac
	exit 1
}

install_chromium() {
	local log=$1
	if ! command -v apt-get >/dev/null || ((EUID != 0)); then
		missing 'chromium is not installed, and installing it needs apt-get and root (Debian: apt-get install chromium)'
	fi
	echo 'browser: installing chromium'
	{
		apt-get -o Dpkg::Lock::Timeout=120 update -qq &&
			DEBIAN_FRONTEND=noninteractive apt-get -o Dpkg::Lock::Timeout=120 install -y -qq --no-install-recommends chromium fonts-dejavu-core
	} >"$log" 2>&1 </dev/null || missing "apt-get install chromium failed: $(grep -E '^E:' "$log" | tail -n 1)"
}

pictures=${RPCPOOL_SCREENSHOTS:-$(mktemp -d "${TMPDIR:-/tmp}/rpcpool-pictures.XXXXXX")}
mkdir -p "$pictures"
if [[ -z ${RPCPOOL_BROWSER:-} ]] && ! command -v chromium >/dev/null; then
	install_chromium "$pictures/apt.log"
fi
"${RPCPOOL_BROWSER:-chromium}" --version 2>/dev/null || missing "${RPCPOOL_BROWSER:-chromium} doesn't start"

RPCPOOL_SCREENSHOTS=$pictures go test -tags browser -count=1 -timeout 4m -run '^TestBrowser' -v ./examples/gateway
echo "browser: the pictures are in $pictures"
