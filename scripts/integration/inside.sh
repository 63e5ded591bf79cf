#!/usr/bin/env bash
# inside.sh TEST-BINARY ARGS...: what "go test -exec" runs. It makes namespaces in which nothing but loopback exists,
# starts the real proxies and nodes there, runs the test binary against them and stops them all.
#
# In there every port is free, nothing can leave the machine, and the names of RPCs resolve at the proxies alone:
# they ask the resolver 127.0.53.1, the test itself asks 127.0.53.2; the test binary serves both and so sees who
# asked for what.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

if [ "${INSIDE:-}" != 1 ]; then
	: "${RUN:?inside.sh is for run.sh, which makes that folder}"
	# The process namespace is the seat belt: whatever the trap below misses, and if this process is killed, the
	# kernel ends all that was started in it.
	INSIDE=1 exec unshare --mount --net --pid --fork --kill-child --mount-proc "$0" "$@"
fi

export DENIED_PORT=18666 SSHD_PORT=10022 METRICS_PORT=19091 LOGIN=proxyuser PASSWORD=proxypass GENESIS_TIME=1700000000
PIDS=()
stop_all() {
	[ ${#PIDS[@]} = 0 ] || kill "${PIDS[@]}" 2>/dev/null || true
	local deadline=$((SECONDS + 5)) pid
	for pid in "${PIDS[@]}"; do
		while kill -0 "$pid" 2>/dev/null && [ $SECONDS -lt $deadline ]; do sleep 0.05; done
		kill -KILL "$pid" 2>/dev/null || true
	done
}
trap stop_all EXIT
trap 'exit 130' INT TERM

prepare_network() {
	ip link set lo up
	ip route add unreachable 198.51.100.0/24 # "host unreachable"; without a route at all it is "network unreachable"
	ip route add prohibit 192.0.2.0/24       # "permission denied"
	printf 'nameserver 127.0.53.1\noptions timeout:3 attempts:3\n' >"$RUN/proxies.resolv.conf"
	printf 'nameserver 127.0.53.2\noptions timeout:1 attempts:1\n' >"$RUN/client.resolv.conf"
	mount --bind "$RUN/client.resolv.conf" "$(readlink -f /etc/resolv.conf)"
}

prepare_secrets() {
	chmod 755 "$RUN" # squid and danted drop root's rights
	(cat /etc/passwd; echo "$LOGIN:x:1999:65534::/nonexistent:/bin/sh") >"$RUN/passwd"
	(cat /etc/shadow; echo "$LOGIN:$(openssl passwd -1 "$PASSWORD"):19000:0:99999:7:::") >"$RUN/shadow"
	chmod 600 "$RUN/shadow"
	echo "$LOGIN:$(openssl passwd -apr1 "$PASSWORD")" >"$RUN/squid.passwd"
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=integration-proxy \
		-addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' -keyout "$RUN/proxy-key.pem" -out "$RUN/proxy-cert.pem" 2>/dev/null
	if has ssh; then
		ssh-keygen -q -t ed25519 -N '' -f "$RUN/sshd_host_key"
		ssh-keygen -q -t ed25519 -N '' -f "$RUN/client_key"
	fi
}

has() { [[ " ${RPCPOOL_INTEGRATION_MISSING:-} " != *" $1 "* ]]; }

# up PART KIND PORT: starts one, unless its part is missing, and notes it for the tests ("KIND PORT PID").
up() {
	has "$1" || return 0
	"$SCRIPTS/start.sh" "$2" "$3" >"$RUN/$2.log" 2>&1 </dev/null &
	PIDS+=($!)
	echo "$2 $3 $!" >>"$RUN/started"
}

wait_until_up() {
	local kind port pid deadline=$((SECONDS + 30))
	while read -r kind port pid; do
		until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
			if ! kill -0 "$pid" 2>/dev/null || [ $SECONDS -ge $deadline ]; then
				echo "!! $kind didn't come up on port $port; its last words:" >&2
				tail -n 20 "$RUN/$kind.log" >&2
				return 1
			fi
			sleep 0.05
		done
	done <"$RUN/started"
}

prepare_network
prepare_secrets
: >"$RUN/started"
up hardhat hardhat 18546
up hardhat hardhat-manual 18549
up geth geth 18547
up anvil anvil 18545
up anvil anvil-manual 18548
up ssh sshd $SSHD_PORT
up squid squid 13128
up squid squid-auth 13129
up squid squid-tls 13130
up danted danted 11080
up danted danted-auth 11081
up microsocks microsocks 11082
up microsocks microsocks-auth 11083
up tinyproxy tinyproxy 18888
up tinyproxy tinyproxy-auth 18889
up privoxy privoxy 18118
up ssh ssh-D 11084
wait_until_up
status=0
START_SH=$SCRIPTS/start.sh "$@" || status=$?
exit $status
