#!/usr/bin/env bash
# Fails where a Go file isn't formatted; in CI, where a tree is fresh, also where it
# differs from what was committed (a generator that was not run, a step that leaves
# files behind).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

unformatted=$(find . \( -name '.?*' -o -name testdata -o -name node_modules \) -prune -o -name '*.go' -print0 |
	xargs -0 --no-run-if-empty gofmt -s -l)
if [[ -n $unformatted ]]; then
	printf '%s\n' "$unformatted" >&2
	echo 'These files are not formatted; run: make fmt' >&2
	exit 1
fi

if [[ ${CI:-} == true ]] && git rev-parse --git-dir >/dev/null 2>&1; then
	changes=$(git status --porcelain)
	if [[ -n $changes ]]; then
		git --no-pager diff
		printf '%s\n' "$changes" >&2
		echo 'The tree differs from what was committed; see above.' >&2
		exit 1
	fi
fi
