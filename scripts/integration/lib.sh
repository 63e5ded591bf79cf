# shellcheck shell=bash
# Names, versions and checks shared by install.sh, run.sh, inside.sh and start.sh. Sourced, not run.

SCRIPTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE=${RPCPOOL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rpcpool-integration}

# Upstream versions are pinned; Debian's own security revisions of them pass.
GETH_VERSION=1.17.10
declare -A DEBIAN=(
	[dante-server]='1.4.2*' [microsocks]='1.0.3*' [tinyproxy-bin]='1.11.1*' [squid-openssl]='5.7*'
	[privoxy]='3.0.34*' [openssh-server]='1:9.2p1*' [openssh-client]='1:9.2p1*' [openssl]='3.0.*' [iproute2]='6.1.*'
	[prometheus]='2.42.0*'
	[redis-server]='5:7.0.*'
)
# The nodes from npm are pinned, with everything they stand on, in npm/package-lock.json.

# A part is what a test may need. Each is checked by have_PART, which says on
# standard output why it is missing.
PARTS=(namespaces danted microsocks tinyproxy squid privoxy ssh redis anvil hardhat geth prometheus)

part_needs() { # PART: the Debian packages that it comes from
	case $1 in
	namespaces) echo iproute2 openssl ;; # openssl for the secrets of all
	danted) echo dante-server ;;
	microsocks) echo microsocks ;;
	tinyproxy) echo tinyproxy-bin ;;
	squid) echo squid-openssl ;;
	privoxy) echo privoxy ;;
	ssh) echo openssh-server openssh-client ;;
	prometheus) echo prometheus ;;
	redis) echo redis-server ;;
	esac
}

part_tests() { # PART: which tests are skipped without it
	case $1 in
	namespaces) echo "all of them" ;;
	anvil | hardhat | geth) echo "every test that asks the node $1" ;;
	ssh) echo "every test through ssh -D" ;;
	redis) echo "the tests of a fleet that shares a Redis" ;;
	squid) echo "every test through squid, the https:// proxy included" ;;
	prometheus) echo "the test of the metrics, the dashboard and the alerts with a real Prometheus" ;;
	*) echo "every test through $1" ;;
	esac
}

# have_part PART: succeeds, or prints the reason and fails.
have_part() {
	local package
	for package in $(part_needs "$1"); do
		have_package "$package" || return 1
	done
	case $1 in
	namespaces)
		[ "$(uname -s)" = Linux ] || { echo "needs Linux"; return 1; }
		[ "$(id -u)" = 0 ] || { echo "needs root: run \"sudo -E make integration\""; return 1; }
		unshare --mount --net --pid --fork --mount-proc ip link set lo up 2>/dev/null ||
			{ echo "\"unshare --mount --net --pid\" isn't permitted here (a container without CAP_SYS_ADMIN?)"; return 1; }
		;;
	anvil) [ "$(npm_version @foundry-rs/anvil-linux-amd64)" = "$(npm_pin @foundry-rs/anvil-linux-amd64)" ] ||
		{ reason anvil "isn't installed"; return 1; } ;;
	hardhat)
		[ "$(npm_version hardhat)" = "$(npm_pin hardhat)" ] || { reason hardhat "isn't installed"; return 1; }
		command -v node >/dev/null || { echo "node, which runs hardhat, isn't installed"; return 1; }
		;;
	geth) geth_fits || { reason geth "$CACHE/bin/geth isn't version $GETH_VERSION"; return 1; } ;;
	esac
}

have_package() {
	local version
	command -v dpkg-query >/dev/null || { echo "dpkg isn't here: the proxies come from Debian's packages"; return 1; }
	version=$(dpkg-query -W -f '${db:Status-Abbrev}${Version}' "$1" 2>/dev/null) || version=
	case $version in
	ii*) ;;
	*) reason "$1" "the Debian package $1 isn't installed"; return 1 ;;
	esac
	# shellcheck disable=SC2053 # the pin is a pattern
	[[ ${version#ii } == ${DEBIAN[$1]} ]] || { echo "the Debian package $1 has version ${version#ii }, the tests are written for ${DEBIAN[$1]}"; return 1; }
}

npm_version() { sed -n 's/^  "version": "\(.*\)",\{0,1\}$/\1/p' "$CACHE/npm/node_modules/$1/package.json" 2>/dev/null | head -1; }
npm_pin() { sed -n "s|^    \"$1\": \"\(.*\)\",\{0,1\}\$|\1|p" "$SCRIPTS/npm/package.json"; }
geth_fits() { [[ $("$CACHE/bin/geth" version 2>/dev/null) == *"Version: $GETH_VERSION-"* ]]; }

# What an install attempt said is kept, so that a later run can say why a part is missing.
reason() { # PART DEFAULT
	if [ -s "$CACHE/missing/$1" ]; then cat "$CACHE/missing/$1"; else echo "$2 (run scripts/integration/install.sh)"; fi
}
set_reason() { mkdir -p "$CACHE/missing"; echo "$2" >"$CACHE/missing/$1"; }
clear_reason() { rm -f "$CACHE/missing/$1"; }

# check_parts: prints what is missing; fails where a missing part isn't allowed to be.
# Under CI=true nothing may be missing but what RPCPOOL_INTEGRATION_ALLOW_MISSING names.
MISSING=()
check_parts() {
	local part why fatal=0 allowed
	allowed=" $(tr , " " <<<"${RPCPOOL_INTEGRATION_ALLOW_MISSING:-}") "
	for part in "${PARTS[@]}"; do
		why=$(have_part "$part") && continue
		MISSING+=("$part")
		echo "!! MISSING $part: $why" >&2
		echo "!!         skipped without it: $(part_tests "$part")" >&2
		if [ "${CI:-}" = true ] && [[ $allowed != *" $part "* ]]; then fatal=1; fi
	done
	if [ $fatal = 1 ]; then
		echo "!! CI=true: a missing part is a failure, unless RPCPOOL_INTEGRATION_ALLOW_MISSING names it" >&2
		return 1
	fi
}
