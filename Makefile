# The latest version in CHANGELOG.md, and the commit if this is a checkout: 0.1.0+1f2e3d4c.
COMMIT := $(shell git describe --always --dirty --exclude '*' 2>/dev/null)
VERSION := $(shell awk '/^## [0-9]/ { print $$2; exit }' CHANGELOG.md)$(if $(COMMIT),+$(COMMIT))
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
run: build ## Run the whole bus on an embedded Redis, and show an event delivered and a job done
	bin/rtm dev

# Compilers and analyzers live shortly: they spend a sixth of their time on memory that would be
# freed at their end anyway. What a debugger would read takes a tenth of the time to compile, and a
# sixth of that to link a test; reports have their lines without it.
SPARE_CPU := GOGC=400 GOMEMLIMIT=2GiB GOFLAGS="$$GOFLAGS -gcflags=all=-dwarf=false"

# Tests are not vetted as they are built: `make check` vets all, with more analyzers. They run with
# Go's own limits of memory, as daemons do. Many of them wait more than they compute, so there are
# more packages at a time than cores, and more tests of a package. The time-out is for a test that
# hangs, and not for a slow host: the longest package takes 3 minutes on a quiet one.
# Random steps begin with the same seed each time, so that no change fails by chance: make chaos,
# make model and make fuzz look for what these do not meet.
MORE_THAN_CORES := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)
GO_TEST := RAPID_SEED=1 $(SPARE_CPU) go test -exec 'env -u GOGC -u GOMEMLIMIT' -vet=off -ldflags='-s -w' -count=1 -timeout 40m \
	-p $(MORE_THAN_CORES) -parallel $(MORE_THAN_CORES)

# All packages: ./... would leave out those of the Go client, which is a module of its own. So is the
# benchmark, beside these.
ALL := routemaster/...

# The benchmark without its peers: those need the modules of NATS, NSQ and asynq, which the bus does
# not, and take minutes to compile. `make peers` looks after them.
BENCH := . ./load ./report ./stack

# Packages whose tests wait long begin first, so that the others run meanwhile.
LONG_TESTS := $(addprefix routemaster/,internal/test/... cmd/rtm internal/web internal/store internal/doctor)

.PHONY: test
test: tools ## Run all tests; REDIS_SERVER=valkey-server has them run on another engine
	$(GO_TEST) $(LONG_TESTS) $(ALL)
	cd tools/bench && $(GO_TEST) -short $(BENCH)

# What `make chaos` does: SEED repeats a run, 0 takes seeds by chance; CLUSTER, if set, takes a Redis
# Cluster for one Redis. For `make bench` it is how many masters the cluster has.
CLUSTER ?=
DURATION ?= 60s
LABELS ?= 10000
RUNS ?= 1
SEED ?= 0

# Tests hold on any host, however slow. On a quiet one these also hold to their limits of time.
.PHONY: latency
latency: tools ## Run the tests that measure times on a quiet host, where they hold to their limits
	LATENCY=1 go test -count 1 -p 1 $(shell grep -rl rdbtest.Promptly --include='*_test.go' internal | sed 's|^|./|; s|/[^/]*$$||' | sort -u)

.PHONY: chaos
chaos: redis ## Run the fault test under load and count; it takes CLUSTER=1, DURATION=60s, LABELS=10000, RUNS=1, SEED=7
	LATENCY=1 go test ./internal/test/chaos -run '^TestChaos$(if $(CLUSTER),OnACluster)$$' -v -timeout 0 -count $(RUNS) -chaos.duration $(DURATION) -chaos.labels $(LABELS) -chaos.seed $(SEED)

.PHONY: keys
keys: redis ## Publish with a new idempotency key each time at full speed; it takes DURATION=60s
	go test ./internal/test -run '^TestNewKeysAtFullSpeedCostNoEvent$$' -v -timeout 0 -count 1 -keys.duration $(DURATION)

# How many sequences of steps each model is compared with. A failure names the seed of its sequence,
# which SEED=7 CHECKS=1 repeats.
CHECKS ?= 1000
MODELS = $(sort $(dir $(shell grep -srl 'func TestRandom' --include='*_test.go' internal)))

.PHONY: model
model: redis ## Take random steps, and compare what they do with models; it takes SEED=7, CHECKS=1000
	seed=$(if $(filter 0,$(SEED)),$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '),$(SEED)) && echo "seed $$seed" && \
	RAPID_SEED=$$seed RAPID_CHECKS=$(CHECKS) go test $(MODELS:%=./%) -run '^TestRandom' -v -timeout 0 -count 1

# Each target by itself, since go test takes one at a time, and only of the module that it runs in.
# What fails is left in testdata/fuzz.
FUZZ ?=

.PHONY: fuzz
fuzz: ## Look for inputs that break a fuzz target, of which make test runs the seeds; it takes FUZZ=Mutated, DURATION=60s
	@grep -ro '^func Fuzz$(FUZZ)[A-Za-z]*' --include='*_test.go' client internal | sort | sed 's|/[^/]*:func | |' | \
	while read -r folder target; do \
		echo "$$target in $$folder, $(DURATION)"; \
		go -C $$folder test -run '^$$' -fuzz "^$$target$$" -fuzztime $(DURATION) || exit 1; \
	done

.PHONY: shots
shots: ## Write the pictures of the console for its page
	go test ./internal/console/browser -run '^TestShots$$' -count 1 -shots $(CURDIR)/docs

# Packages that the race detector only slows down: they run in one goroutine at a time. The first is
# the interpreter of the embedded engine, the others fill tables whenever an rtm starts.
NOT_RACING := github.com/yuin/gopher-lua/... github.com/mattn/go-runewidth \
	github.com/santhosh-tekuri/jsonschema/v6

# The race detector runs where goroutines meet: in packages whose code starts some, or guards what
# they share. These words in it say so, hence none is forgotten. Besides, it runs in the tests of
# whole buses under load and faults, and in those of publishing, since many requests use its code at
# a time. The other tests of whole processes are about pages, backups and outages: what meets there
# meets in these too.
MEETS := ^\s+go |\.Go\(|"sync|/sync/|\bchan\b
RACED := $(addprefix routemaster/internal/,test/chaos test/client test/contract ingest) \
	$(shell grep -srlE --include='*.go' --exclude='*_test.go' '$(MEETS)' client cmd internal \
	| sed 's|^|routemaster/|; s|/[^/]*$$||' | sort -u)

.PHONY: check
check: lint race ## Format, vet, staticcheck, and the race detector where goroutines meet

# The linter of the API's description is a module of its own. It runs for a moment, and takes half a
# minute to compile, or twice that to be optimized.
LINTED := '-gcflags=github.com/speakeasy-api/...=-dwarf=false -N -l'

# The client is vetted as other programs build it, without the bus: tidy does not notice an import of
# routemaster/internal, and here it would compile.
.PHONY: lint
lint: # What reads the code, and runs none of it
	@unformatted=$$(gofmt -l client cmd examples internal tools); test -z "$$unformatted" || { echo "not formatted, run gofmt -w: $$unformatted"; exit 1; }
	go mod tidy -diff
	go -C client mod tidy -diff
	$(SPARE_CPU) go vet ./...
	$(SPARE_CPU) go -C client vet ./...
	$(SPARE_CPU) go -C tools/bench vet $(BENCH)
	$(SPARE_CPU) go tool staticcheck $(ALL)
	staticcheck=$$(go tool -n staticcheck) && cd tools/bench && $(SPARE_CPU) $$staticcheck $(BENCH)
	GOWORK=off CGO_ENABLED=0 go -C internal/web/testdata/lint run -mod=readonly $(LINTED) . ../../openapi.json

# A program with the race detector would sleep for a second before it ends.
.PHONY: race
race: tools
	GORACE=atexit_sleep_ms=50 RAPID_CHECKS=5 CGO_ENABLED=1 $(GO_TEST) -race \
		$(NOT_RACING:%='-gcflags=%=-race=false -dwarf=false') $(filter $(RACED),$(LONG_TESTS)) $(RACED)

.PHONY: bench
bench: build redis ## Measure how fast the bus is, beside its baselines; SCENARIO=ingest,bulk, FULL=1, CLUSTER=3, or PEERS=1
ifdef PEERS
	go -C tools/bench build -trimpath -o ../../bin/bench-peers ./peers
	bin/bench-peers
else
	go -C tools/bench build -trimpath -o ../../bin/bench .
	bin/bench $(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(FULL),--full) $(if $(CLUSTER),--cluster $(CLUSTER))
endif

# Each scenario, and each peer, runs for a moment. Run it after a change of the benchmark, or of what
# it uses of the bus.
.PHONY: peers
peers: build redis ## Test the benchmark, and try what PEERS=1 runs, quickly
	cd tools/bench && go mod tidy -diff && go vet ./peers && $(GO_TEST) ./... && go build -trimpath -o ../../bin/bench-peers ./peers
	bin/bench-peers --quick

.PHONY: profile
profile: build redis ## Leave CPU and heap profiles of a benchmark in profiles/; SCENARIO=ingest,end-to-end
	go -C tools/bench build -trimpath -o ../../bin/bench .
	bin/bench --profile $(CURDIR)/profiles $(if $(SCENARIO),--scenario $(SCENARIO))

.PHONY: redis
redis: # A real redis-server for the tests, where it can be installed
	@.ci/install redis-server redis-server

.PHONY: tools
tools: # That, what the pages' examples run, PostgreSQL for one of them, a browser, and what tests the alerts
	@.ci/install redis-server redis-server curl curl python3 python3 node nodejs psql postgresql \
		wget wget chromium chromium promtool prometheus

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin profiles
