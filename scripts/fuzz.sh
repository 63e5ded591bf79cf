#!/usr/bin/env bash
# Fuzzes every target of the root module for a while each, one after the other.
#
#   FUZZTIME=10s    how long each may run
#   PKG=./...       the packages whose targets are run
#
# A crasher is written to the package's testdata/fuzz: commit it with its fix, and
# it is a test from then on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fuzztime=${FUZZTIME:-10s}
# Only packages with a target are built.
mapfile -t packages < <(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' "${PKG:-./...}")
targets=0
for line in "${packages[@]}"; do
	package=${line%% *}
	dir=${line#* }
	grep -qsE '^func Fuzz' "$dir"/*_test.go || continue
	mapfile -t names < <(go test -list '^Fuzz' "$package" | grep '^Fuzz')
	for name in "${names[@]}"; do
		echo "-- $package $name, $fuzztime"
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$fuzztime" "$package"
		targets=$((targets + 1))
	done
done
echo "$targets fuzz targets, $fuzztime each: nothing found."
