#!/usr/bin/env bash
# Fails where a Go file other than a test has more than 450 lines: a file is a
# concept, and a longer one holds two. A file that is all table (wordings, codes)
# may be longer; it says so, and why, on a line of its own:
#
#   // file-length: the table of wordings; a row a wording, kept in one place
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly limit=450
status=0
while IFS= read -r -d '' file; do
	lines=$(wc -l <"$file")
	if ((lines > limit)) && ! grep -qE '^// file-length: .+' "$file"; then
		echo "$file: $lines lines, more than $limit; split it by concept" >&2
		status=1
	fi
done < <(find . \( -name '.?*' -o -name testdata -o -name node_modules \) -prune -o \
	-name '*.go' ! -name '*_test.go' -print0)
exit "$status"
