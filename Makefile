VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X routemaster/internal/app.version=$(VERSION)
# The race detector needs a C compiler; everything else is pure Go.
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help

.PHONY: help
help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build web, worker and rtm into bin/
	go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: run
run: build ## Run the whole bus on an embedded Redis, and show an event delivered
	bin/rtm dev

.PHONY: test
test: redis ## Run all tests
	go test ./... -count=1

.PHONY: check
check: redis ## Format, vet, staticcheck, import rules, and all tests with the race detector
	@unformatted=$$(gofmt -l cmd internal); test -z "$$unformatted" || { echo "not formatted, run gofmt -w: $$unformatted"; exit 1; }
	go mod tidy -diff
	go vet ./...
	go tool staticcheck ./...
	CGO_ENABLED=1 go test ./... -count=1 -race

.PHONY: redis
redis: # A real redis-server for the tests, where it can be installed
	@.ci/install redis-server redis-server

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin
