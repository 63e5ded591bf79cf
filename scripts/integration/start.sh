#!/usr/bin/env bash
# start.sh KIND PORT: becomes one real proxy or node, in the foreground, on 127.0.0.1:PORT, so that its pid is the
# caller's child. Only inside the namespaces that inside.sh makes; RUN is the folder that it prepared.
# Proxies run in a mount namespace of their own, with another resolver and other accounts than the test has.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
: "${RUN:?start.sh is for inside.sh and the tests}"
kind=$1 port=$2
HOME_DIR=$RUN/$kind-$port

become_proxy_host() {
	mount --bind "$RUN/proxies.resolv.conf" "$(readlink -f /etc/resolv.conf)"
	mount --bind "$RUN/passwd" /etc/passwd
	mount --bind "$RUN/shadow" /etc/shadow
	mount -t tmpfs tmpfs /run && mkdir /run/sshd # sshd insists on that folder
}

render() { # TEMPLATE, then NAME=VALUE...
	local script="s|@PORT@|$port|g;s|@RUN@|$RUN|g;s|@HOME@|$HOME_DIR|g;s|@DENIED@|$DENIED_PORT|g" pair
	for pair in "${@:2}"; do script+=";s|@${pair%%=*}@|${pair#*=}|g"; done
	sed -e "$script" "$SCRIPTS/conf/$1"
}

squid() { # LISTEN, then lines about access
	local listen=$1
	shift
	chown proxy "$HOME_DIR"
	{
		echo "$listen"
		printf '%s\n' "acl denied port $DENIED_PORT" "http_access deny denied" "$@"
		render squid.conf
	} >"$HOME_DIR/squid.conf"
	exec squid -N -f "$HOME_DIR/squid.conf"
}
squid_with_login() { # LISTEN
	squid "$1" "auth_param basic program $(dpkg -L squid-openssl | grep -m1 '/basic_ncsa_auth$') $RUN/squid.passwd" \
		"auth_param basic realm integration" "acl authed proxy_auth REQUIRED" "http_access allow authed" "http_access deny all"
}

tinyproxy_conf() {
	render tinyproxy.conf >"$HOME_DIR/tinyproxy.conf"
	echo ":$DENIED_PORT" >"$HOME_DIR/filter"
}

case $kind in
anvil* | hardhat* | geth | prometheus | redis) ;;
*) [ "${PROXY_HOST:-}" = 1 ] || PROXY_HOST=1 exec unshare --mount "$0" "$@"
	become_proxy_host ;;
esac
mkdir -p "$HOME_DIR"

case $kind in
danted) render danted.conf METHOD=none >"$HOME_DIR/conf" && exec danted -f "$HOME_DIR/conf" -p "$HOME_DIR/pid" ;;
danted-auth) render danted.conf METHOD=username >"$HOME_DIR/conf" && exec danted -f "$HOME_DIR/conf" -p "$HOME_DIR/pid" ;;
microsocks) exec microsocks -i 127.0.0.1 -p "$port" ;;
microsocks-auth) exec microsocks -i 127.0.0.1 -p "$port" -u "$LOGIN" -P "$PASSWORD" ;;
tinyproxy) tinyproxy_conf && exec tinyproxy -d -c "$HOME_DIR/tinyproxy.conf" ;;
tinyproxy-auth)
	tinyproxy_conf && echo "BasicAuth $LOGIN $PASSWORD" >>"$HOME_DIR/tinyproxy.conf"
	exec tinyproxy -d -c "$HOME_DIR/tinyproxy.conf"
	;;
squid) squid "http_port 127.0.0.1:$port" "http_access allow all" ;;
squid-auth) squid_with_login "http_port 127.0.0.1:$port" ;;
squid-tls) squid_with_login "https_port 127.0.0.1:$port tls-cert=$RUN/proxy-cert.pem tls-key=$RUN/proxy-key.pem" ;;
privoxy)
	render privoxy.conf "TEMPLATES=$(dpkg -L privoxy | grep -m1 '/templates$')" >"$HOME_DIR/config"
	printf '{+block{integration rule}}\n:%s\n' "$DENIED_PORT" >"$HOME_DIR/rules.action"
	exec privoxy --no-daemon "$HOME_DIR/config"
	;;
sshd) render sshd_config >"$HOME_DIR/conf" && exec /usr/sbin/sshd -D -e -f "$HOME_DIR/conf" ;;
ssh-D) # the login is the one account of the copied /etc/passwd
	exec ssh -N -D "127.0.0.1:$port" -i "$RUN/client_key" -p "$SSHD_PORT" -F none -o StrictHostKeyChecking=no \
		-o UserKnownHostsFile=/dev/null -o ConnectionAttempts=20 -o ExitOnForwardFailure=yes "$LOGIN@127.0.0.1"
	;;
anvil) exec "$CACHE/npm/node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil" --host 127.0.0.1 --port "$port" --quiet ;;
anvil-manual) exec "$CACHE/npm/node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil" --host 127.0.0.1 --port "$port" --quiet --no-mining ;;
anvil-twin) # those that mine at the same timestamps have the same blocks, down to the hashes
	exec "$CACHE/npm/node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil" --host 127.0.0.1 --port "$port" --quiet --timestamp "$GENESIS_TIME"
	;;
hardhat | hardhat-manual)
	[ "$kind" = hardhat ] || export MINING=manual
	ln -sfn "$CACHE/npm/node_modules" "$HOME_DIR/node_modules"
	cp "$SCRIPTS/conf/hardhat.config.js" "$SCRIPTS/npm/package.json" "$HOME_DIR/"
	cd "$HOME_DIR" && HARDHAT_DISABLE_TELEMETRY_PROMPT=true exec node node_modules/hardhat/internal/cli/bootstrap.js node --hostname 127.0.0.1 --port "$port"
	;;
geth) # it answers 403 to a Host that isn't in --http.vhosts: the tests use that
	exec "$CACHE/bin/geth" --dev --datadir "$HOME_DIR/data" --http --http.addr 127.0.0.1 --http.port "$port" \
		--http.api eth,net,web3 --http.vhosts geth.rpc.test --ipcdisable --nodiscover --maxpeers 0 --port 0 --verbosity 2
	;;
prometheus) # it scrapes what a test serves at METRICS_PORT
	render prometheus.yml "METRICS=$METRICS_PORT" "RULES=$(readlink -f "$SCRIPTS/../../plugins/prometheus/alerts.yml")" >"$HOME_DIR/prometheus.yml"
	exec prometheus --config.file="$HOME_DIR/prometheus.yml" --storage.tsdb.path="$HOME_DIR/data" --web.listen-address="127.0.0.1:$port"
	;;
redis) exec redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no --dir "$HOME_DIR" ;;
*) echo "start.sh: unknown kind $kind" >&2; exit 2 ;;
esac
