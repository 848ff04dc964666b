# What you can do here; 'make help' lists it.
GO ?= go
GOLANGCI    := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.14.0
GOVULNCHECK := $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0

# Packages whose goroutines share memory. The rest is pure, or runs in its own process.
RACE ?= ./internal/...
# How long each fuzz target runs, and what 'make bench' is told.
FUZZTIME ?= 30s
BENCH ?=
# Which pages 'make screenshots' takes: a pattern of their names.
PAGES ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/parley
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/parley ./cmd/parley

.PHONY: deps
deps: ## install what the tests need beside Go (PostgreSQL's programs, haproxy, pgbouncer, Chromium, Node.js, Python and the packages of its clients), if missing
	@scripts/deps

.PHONY: test
test: deps ## run all tests on SQLite and PostgreSQL (under 15 minutes on 2 cores)
	$(GO) test -count=1 -timeout 20m ./...

.PHONY: check
check: ## run the fast tests while you work: SQLite only, without the end-to-end tests (under a minute on 2 cores)
	$(GO) test -short -p 4 ./sdk/... ./internal/...

.PHONY: race
race: deps ## run the tests of what shares memory under the race detector
	$(GO) test -race -timeout 20m $(RACE)

.PHONY: sdkcheck
sdkcheck: ## run generators, linters and schemathesis on the OpenAPI document (about 10 minutes; needs the network)
	@scripts/deps sdkcheck
	$(GO) test -tags sdkcheck -count=1 -timeout 30m ./e2e/sdkcheck

.PHONY: lint
lint: ## run golangci-lint: formatting, go vet, staticcheck and what .golangci.yml explains (the first time builds it, which takes minutes)
	$(GOLANGCI) run ./...

.PHONY: fmt
fmt: ## format the code
	$(GOLANGCI) fmt

.PHONY: vuln
vuln: ## look for known vulnerabilities (needs the network)
	$(GOVULNCHECK) ./...

.PHONY: bench
bench: deps ## measure Parley beside its limits and the official A2A SDK; BENCH='-quick' for a short run, '-only a2a' for tasks, '-only auth' for keys and tokens, '-base REV' to compare with another revision
	$(GO) run ./bench $(BENCH)

.PHONY: soak
soak: deps ## the long runs: load, 20 crashes on each engine, 10,000 streams, 5 rounds of chaos, attacks beside honest callers
	PARLEY_LOAD_SECONDS=60 PARLEY_CRASH_ROUNDS=20 PARLEY_STREAMS=10000 PARLEY_CHAOS_ROUNDS=5 \
		$(GO) test -count=1 -timeout 60m -v -run 'Load|Crash|Streams|Chaos' ./e2e
	PARLEY_SIEGE=soak $(GO) test -count=1 -timeout 60m -v -run 'Siege|ExampleWorkers' ./e2e

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (30s)
	@set -e; for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

.PHONY: cover
cover: deps ## show how much of each function the tests reach
	$(GO) test -timeout 12m -coverpkg=./internal/... -coverprofile=cover.out ./internal/...
	$(GO) tool cover -func=cover.out

.PHONY: looks
looks: deps ## run axe-core on every page of the dashboard, light and dark, at three widths
	PARLEY_LOOKS=full $(GO) test -count=1 -timeout 20m -run TestAxe ./e2e/browser

.PHONY: screenshots
screenshots: deps ## take pictures of every page, light and dark, at three widths, into build/screenshots; PAGES='^proposal' for some
	@rm -rf build/screenshots
	PARLEY_SCREENSHOTS=$(CURDIR)/build/screenshots PARLEY_PAGES='$(PAGES)' $(GO) test -count=1 -timeout 20m -run 'TestScreenshots|TestScenes' ./e2e/browser

.PHONY: openapi
openapi: ## write api/openapi.yaml anew from the code
	$(GO) test ./internal/rest -update

.PHONY: clean
clean: ## remove what was built
	rm -rf bin build cover.out
