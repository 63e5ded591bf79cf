#!/usr/bin/env bash
# install.sh [debian|npm|geth]...: installs what the integration tests stand on; without an argument everything.
# It may be run again: what is there, in the pinned version, is left alone. geth is built from source, which takes
# minutes: CI starts "install.sh geth" in the background first, and a second run waits for it.
# What can't be had is named, with the reason; run.sh decides whether that is a failure.
set -uo pipefail
. "$(dirname "$0")/lib.sh"
mkdir -p "$CACHE/bin" "$CACHE/missing" || exit 1

say() { echo "install: $*"; }

install_debian() {
	local package missing=()
	for package in "${!DEBIAN[@]}"; do
		if have_package "$package" >/dev/null; then clear_reason "$package"; else missing+=("$package"); fi
	done
	[ ${#missing[@]} = 0 ] && { say "Debian packages: all there"; return; }
	if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
		for package in "${missing[@]}"; do set_reason "$package" "the Debian package $package isn't installed, and installing it needs apt-get and root"; done
		say "can't install ${missing[*]}: that needs apt-get and root"
		return 1
	fi
	say "Debian packages: ${missing[*]}"
	without_services
	apt_get update >"$CACHE/apt.log" 2>&1 || say "apt-get update failed, trying with the lists there are (see $CACHE/apt.log)"
	local status=0
	for package in "${missing[@]}"; do install_package "$package" || status=1; done
	disable_services
	return $status
}

# One package at a time: one that can't be had must not keep the others out.
install_package() {
	if [ "$1" = squid-openssl ] && dpkg-query -W -f '${db:Status-Abbrev}' squid 2>/dev/null | grep -q '^ii'; then
		set_reason "$1" "squid-openssl conflicts with the package squid, which is installed; remove that one first"
		say "$1: $(cat "$CACHE/missing/$1")"
		return 1
	fi
	if apt_get install --no-install-recommends "$1=${DEBIAN[$1]}" >>"$CACHE/apt.log" 2>&1; then
		clear_reason "$1"
		NEW_PACKAGES+=("$1")
	else
		set_reason "$1" "apt-get install $1=${DEBIAN[$1]} failed: $(grep -E '^E:' "$CACHE/apt.log" | tail -1)"
		say "$1: $(cat "$CACHE/missing/$1")"
		return 1
	fi
}

apt_get() { DEBIAN_FRONTEND=noninteractive timeout 600 apt-get -y -o Dpkg::Lock::Timeout=120 "$@" </dev/null; }

# The tests start their own proxies. The services of the packages must not run: not now (a policy of "deny" while
# they are installed) and not at the next boot (disabled, but only those that this run brought).
NEW_PACKAGES=()
POLICY=/usr/sbin/policy-rc.d
without_services() {
	[ -e $POLICY ] && return
	printf '#!/bin/sh\nexit 101\n' >$POLICY && chmod 755 $POLICY
	trap 'rm -f $POLICY' EXIT
}
disable_services() {
	local package unit
	command -v systemctl >/dev/null || return 0
	for package in "${NEW_PACKAGES[@]}"; do
		for unit in $(dpkg -L "$package" | grep -E '^(/usr)?/lib/systemd/system/[^@/]+\.(service|timer)$' | xargs -rn1 basename); do
			systemctl disable "$unit" >>"$CACHE/apt.log" 2>&1 || say "couldn't disable $unit, see $CACHE/apt.log"
		done
	done
}

install_npm() {
	if have_part anvil >/dev/null && have_part hardhat >/dev/null; then say "anvil and hardhat: there"; return; fi
	local why=
	if [ "$(uname -s)/$(uname -m)" != Linux/x86_64 ]; then
		why="anvil is pinned as a Linux x86-64 binary"
	elif ! command -v npm >/dev/null; then
		why="npm isn't installed (Node.js 20 or later, with npm)"
	else
		say "anvil and hardhat by npm"
		mkdir -p "$CACHE/npm" && cp "$SCRIPTS"/npm/package*.json "$CACHE/npm/" &&
			(cd "$CACHE/npm" && timeout 300 npm ci --ignore-scripts --no-audit --no-fund) >"$CACHE/npm.log" 2>&1 </dev/null ||
			why="npm ci failed: $(grep -m1 'npm error' "$CACHE/npm.log" || tail -1 "$CACHE/npm.log")"
	fi
	if [ -z "$why" ]; then
		clear_reason anvil
		clear_reason hardhat
		return
	fi
	set_reason anvil "$why"
	set_reason hardhat "$why"
	say "anvil, hardhat: $why"
	return 1
}

install_geth() {
	# The lock makes a second run wait for a build in progress instead of starting its own.
	exec 9>"$CACHE/geth.lock"
	flock -n 9 || { say "waiting for the geth build that is under way"; flock -w 1200 9; }
	if geth_fits; then say "geth $GETH_VERSION: there"; clear_reason geth; return; fi
	local why=
	if ! command -v go >/dev/null; then
		why="go isn't installed"
	else
		say "building geth $GETH_VERSION, this takes minutes"
		(cd "$CACHE" && GOWORK=off GOFLAGS=-mod=mod GOBIN=$CACHE/bin timeout 1200 nice -n 10 \
			go install "github.com/ethereum/go-ethereum/cmd/geth@v$GETH_VERSION") >"$CACHE/geth.log" 2>&1 </dev/null 9>&- ||
			why="go install of geth v$GETH_VERSION failed: $(tail -1 "$CACHE/geth.log")"
		[ -n "$why" ] || geth_fits || why="the geth that was built isn't version $GETH_VERSION"
	fi
	if [ -z "$why" ]; then say "geth $GETH_VERSION: built"; clear_reason geth; return; fi
	set_reason geth "$why"
	say "geth: $why"
	return 1
}

status=0
[ $# -gt 0 ] || set -- debian npm geth
for part in "$@"; do
	case $part in
	debian | npm | geth) "install_$part" || status=1 ;;
	*) echo "usage: install.sh [debian|npm|geth]..." >&2; exit 2 ;;
	esac
done
exit $status
