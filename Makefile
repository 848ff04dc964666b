# 'make help' lists the targets.
GO ?= go
GOLANGCI    := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.14.0
GOVULNCHECK := $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0
GOTESTSUM   := $(GO) run gotest.tools/gotestsum@v1.13.0

# Packages with goroutines that share memory. The others are pure, or run in their own process. The
# commands run one after another in their tests, which takes minutes under the race detector.
RACE ?= $$($(GO) list ./internal/... | grep -v "/internal/cli$$")
# The code of SQLite itself has no goroutines, and takes twice as long with the detector.
RACEFLAGS := -race -gcflags='modernc.org/sqlite/lib=-race=false'
# How long each fuzz target runs, and the arguments of 'make bench'.
FUZZTIME ?= 30s
BENCH ?=
# Arguments of 'make release', such as '-platforms linux/amd64'.
RELEASE ?=
# With RERUN=1, a failed test runs once more, if no more than three have failed and none has a data
# race. build/flaky-*.txt names those that ran twice: they have a fault, too. A package whose process
# was ended has tests that have not run, so it fails.
RERUN ?=
ifneq ($(RERUN),1)
gotest = $(GO) test $(2) $(3)
else
gotest = mkdir -p $(CURDIR)/build && PATH="$$($(GO) env GOROOT)/bin:$$PATH" \
	$(GOTESTSUM) --format standard-quiet --rerun-fails=1 --rerun-fails-max-failures=3 \
	--rerun-fails-run-root-test --rerun-fails-abort-on-data-race --jsonfile=$(CURDIR)/build/tests-$(1).json \
	--rerun-fails-report=$(CURDIR)/build/flaky-$(1).txt --packages="$(3)" -- $(2) && \
	$(GO) -C $(CURDIR) run ./scripts/testlog build/tests-$(1).json
endif
# Builds use the profile cmd/parley/default.pgo. Tests do not need it: without it, they share the
# compiled packages with the program.
test race adapters sdkcheck looks: export GOFLAGS += -pgo=off
# Pattern of the page names for 'make screenshots'.
PAGES ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/parley
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/parley ./cmd/parley

.PHONY: release
release: ## build the archives, packages and images of all platforms in dist/ (10 minutes without a build cache)
	cd release && $(GO) run -buildvcs=false . $(RELEASE)

.PHONY: deps
deps: ## install missing dependencies of the tests: PostgreSQL, haproxy, pgbouncer, Chromium, Node.js, Python
	@scripts/deps

.PHONY: test
test: deps ## run all tests on SQLite and PostgreSQL (under 15 minutes on 2 cores)
	$(call gotest,test,-count=1 -timeout 40m,./...)
	cd release && $(call gotest,release,-count=1 -timeout 20m,./...)

.PHONY: check
check: ## run the fast tests: SQLite only, no end-to-end tests (under a minute on 2 cores)
	GOGC=400 $(GO) test -short -p 4 ./sdk/... ./internal/...

.PHONY: race
race: deps ## run the fast tests of RACE under the race detector; 'make soak' runs all of them
	$(call gotest,race,$(RACEFLAGS) -short -timeout 40m,$(RACE))

.PHONY: sdkcheck
sdkcheck: ## check the OpenAPI document with generators, linters and schemathesis (10 minutes; network)
	@scripts/deps sdkcheck
	$(call gotest,sdkcheck,-tags sdkcheck -count=1 -timeout 30m,./e2e/sdkcheck)

.PHONY: adapters
adapters: deps ## run the adapters of the Python SDK with the frameworks of others (3 minutes; network)
	$(call gotest,adapters,-tags adapters -count=1 -timeout 20m -run TestPythonAdapters,./e2e)

.PHONY: lint
lint: ## run golangci-lint and the linters of sdk/typescript (the first run builds golangci-lint, which takes minutes)
	$(GOLANGCI) run --allow-parallel-runners ./...
	cd release && $(GOLANGCI) run --allow-parallel-runners --config ../.golangci.yml ./...
	cd sdk/typescript && npm ci --ignore-scripts && npm run lint

.PHONY: fmt
fmt: ## format the code
	$(GOLANGCI) fmt
	cd release && $(GOLANGCI) fmt --config ../.golangci.yml

.PHONY: vuln
vuln: ## look for known vulnerabilities (network)
	$(GOVULNCHECK) ./...

.PHONY: bench
bench: deps ## run the benchmarks; BENCH='-quick', '-only PART', '-tasks N' (old tasks), '-base REV' (compare revisions) or '-h' (all flags)
	$(GO) run ./bench $(BENCH)

.PHONY: pgo
pgo: deps ## profile the hot paths, and optimize builds for them (cmd/parley/default.pgo; 8 minutes)
	@rm -rf build/profiles && mkdir -p build/profiles
	$(GO) run ./bench -rows 10000 -rounds 1 -only proposals -profile build/profiles
	$(GO) run ./bench -rows 10000 -rounds 1 -only a2a -profile build/profiles
	$(GO) run ./scripts/profile -o cmd/parley/default.pgo build/profiles

.PHONY: soak
soak: deps ## run the long tests: load, 20 crashes per engine, 10,000 streams, 5 rounds of chaos, attacks, 10,000 tasks per SDK, all races, packages
	@scripts/deps soak
	PARLEY_LOAD_SECONDS=60 PARLEY_CRASH_ROUNDS=20 PARLEY_STREAMS=10000 PARLEY_CHAOS_ROUNDS=5 \
		$(GO) test -count=1 -timeout 60m -v -run 'Load|Crash|Streams|Chaos' ./e2e
	PARLEY_SIEGE=soak $(GO) test -count=1 -timeout 60m -v -run 'Siege|ExampleWorkers' ./e2e
	PARLEY_SDK_TASKS=10000 PARLEY_SDK_KILLS=10 \
		$(GO) test -count=1 -timeout 60m -v -run '/.*/many_tasks' ./sdk/conformance
	$(GO) test $(RACEFLAGS) -timeout 60m $(RACE)
	cd release && PARLEY_SOAK=1 $(GO) test -count=1 -timeout 60m -v ./...

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (30s)
	@set -e; for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

.PHONY: cover
cover: deps ## show the test coverage of each function
	$(GO) test -timeout 12m -coverpkg=./internal/... -coverprofile=cover.out ./internal/...
	$(GO) tool cover -func=cover.out

.PHONY: looks
looks: deps ## run axe-core on every page of the dashboard, light and dark, at three widths
	export PARLEY_LOOKS=full; $(call gotest,looks,-count=1 -timeout 20m -run TestAxe,./e2e/browser)

.PHONY: screenshots
screenshots: deps ## save screenshots of every page in build/screenshots; PAGES='^proposal' for some
	@rm -rf build/screenshots
	PARLEY_SCREENSHOTS=$(CURDIR)/build/screenshots PARLEY_PAGES='$(PAGES)' \
		$(GO) test -count=1 -timeout 20m -run 'TestScreenshots|TestScenes' ./e2e/browser

.PHONY: demoshots
demoshots: deps ## take the pictures of the README from the demo, and log its time to ready
	PARLEY_DEMOSHOTS=$(CURDIR)/docs/images $(GO) test -v -count=1 -timeout 10m -run TestDemoScreenshots ./e2e/browser

.PHONY: openapi
openapi: ## generate api/openapi.yaml from the code
	$(GO) test ./internal/rest -update

.PHONY: clean
clean: ## remove build artifacts
	rm -rf bin build dist cover.out
