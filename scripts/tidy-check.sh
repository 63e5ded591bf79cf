#!/usr/bin/env bash
# Fails where a go.mod or go.sum isn't tidy, and where the library's own go.mod
# requires more than it may: who imports rpcpool downloads nothing but golang.org/x.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t modules < <(scripts/modules.sh --all)
for module in "${modules[@]}"; do
	go -C "$module" mod tidy -diff || {
		echo "$module/go.mod or go.sum isn't tidy; run: go -C $module mod tidy" >&2
		exit 1
	}
done

# testify is for tests only, which the linter watches (depguard).
foreign=$(go list -m -f '{{if not (or .Main .Indirect)}}{{.Path}}{{end}}' all |
	grep -vxE '|golang\.org/x/(net|crypto|sync)|github\.com/stretchr/testify' || true)
if [[ -n $foreign ]]; then
	echo "The root go.mod requires more than it may (golang.org/x/net, x/crypto, x/sync; testify in tests):" >&2
	echo "$foreign" >&2
	echo "Move what needs it into a nested module." >&2
	exit 1
fi
