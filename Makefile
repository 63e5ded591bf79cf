# The project's commands. `make help` lists them; .ci/run runs those that must pass.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Further flags of go test for `make test`, such as -v: GOTESTFLAGS='-count=1 -v' make test
GOTESTFLAGS ?=
# What `make fuzz` and `make benchmarks` may be given: make fuzz FUZZTIME=1m PKG=./internal/x
FUZZTIME ?= 10s
PKG ?= ./...
BENCH ?= .
export FUZZTIME PKG VULNDB COLD

.PHONY: help
help: ## Lists the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: ## Runs the tests, examples and fuzz seeds of the library; needs nothing but Go.
	go test $(GOTESTFLAGS) ./...

.PHONY: test-nested
test-nested: ## Vets the nested modules and tests those that need nothing but Go (examples, plugins).
	scripts/in-modules.sh go vet ./...
	@# -count=1: the test cache doesn't see that a file outside the module, such as a page of docs/, has changed.
	scripts/in-modules.sh --except integration go test -count=1 -timeout 5m ./...

.PHONY: race
race: ## Runs the library's tests under the race detector, in a random order; needs gcc.
	CGO_ENABLED=1 go test -race -shuffle=on -timeout 8m ./...

.PHONY: fuzz-seeds
fuzz-seeds: ## Runs the seeds and found crashers of every fuzz target, without fuzzing.
	go test -run '^Fuzz' ./...

.PHONY: fuzz
fuzz: ## Fuzzes every target for FUZZTIME (10s) each; PKG narrows it to some packages.
	scripts/fuzz.sh

.PHONY: bench
bench: ## Compares the library with others over loopback, into docs/PERFORMANCE.md; takes a quarter of an hour and a quiet machine.
	go -C bench run . -out ../docs/PERFORMANCE.md

.PHONY: benchmarks
benchmarks: ## Runs the Go benchmarks that match BENCH (all) in PKG (all).
	go test -run '^$$' -bench '$(BENCH)' -benchmem $(PKG)

.PHONY: cover
cover: ## Measures the statement coverage of the root package and internal/; fails under 90 %.
	scripts/cover.sh

.PHONY: fmt
fmt: ## Formats the Go files.
	find . \( -name '.?*' -o -name testdata -o -name node_modules \) -prune -o -name '*.go' -print0 | xargs -0r gofmt -s -w

.PHONY: fmt-check
fmt-check: ## Fails where a Go file isn't formatted; in CI also where the tree differs from the commit.
	scripts/fmt-check.sh

.PHONY: vet
vet: ## Runs go vet over the library.
	go vet ./...

.PHONY: tools
tools: ## Builds the pinned linter into .cache/bin; the first time it takes minutes.
	GOBIN='$(CURDIR)/.cache/bin' go -C tools install github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: lint
lint: tools ## Runs the linters and our own checks (file length, sleeps in tests) over every module.
	scripts/lint.sh

.PHONY: tidy-check
tidy-check: ## Fails where a go.mod isn't tidy, or the library requires more than it may.
	scripts/tidy-check.sh

.PHONY: examples
examples: ## Builds every example, and every nested module.
	scripts/examples.sh

.PHONY: docs-check
docs-check: ## Fails where a link between the docs is broken, a line too long, or a generated page out of date.
	go run ./scripts/doclinks .
	go test -run '(?i)docs|verdicts' . ./internal/...

.PHONY: integration
integration: ## Runs the tests against real nodes and proxies on this machine.
	scripts/integration/run.sh
	integration/sdk/run.sh

.PHONY: gateway
gateway: ## Tries the gateway with clients from npm, and its page in a browser.
	scripts/gateway-clients.sh
	scripts/browser.sh

.PHONY: demo
demo: ## Tells a story of failing RPCs and proxies, on loopback, in under 15 seconds.
	go run ./examples/demo

.PHONY: vuln
vuln: ## Asks the Go vulnerability database about all modules; needs the web, or VULNDB=file:///path.
	scripts/vuln.sh

.PHONY: ci
ci: ## Runs everything that must pass before a change lands.
	bash .ci/run

.PHONY: clean-clone
clean-clone: ## Clones the last commit into an empty folder and runs .ci/run there; COLD=1 with empty caches.
	scripts/clean-clone.sh

.PHONY: clean
clean: ## Removes what the other targets built.
	rm -rf .cache coverage.out
