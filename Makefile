# Two commands matter: "make run" shows Anteroom, "make test" runs everything that has to hold. While you
# work: "make check".
# All targets call go or a script of scripts/; nothing here holds logic.

# go.mod names the Go version; an older go command fetches it.
export GOTOOLCHAIN := auto

# The address of your application; without it, make run starts a demo shop and a crowd.
ORIGIN ?=
# The first world that make sim draws, and how many.
SEED ?= 1
RUNS ?= 400
# Runs of the cluster rig, and where cluster-report draws them.
CLUSTER ?= all
REPORT ?= cluster-report
# Flags passed on by run, release, load, cluster, sim, mutants, model and test's scripts.
ARGS ?=
# What make release makes.
VERSION ?=

.PHONY: run build check test release lint race bench bench-peers shots load cluster cluster-report conformance edges kubernetes sim mutants model fuzz clean help

run: build ## Start Anteroom before a demo shop, or before ORIGIN=http://localhost:3000
ifeq ($(ORIGIN),)
	bin/anteroom demo $(ARGS)
else
	@echo "  your site, behind its waiting room   http://localhost:8080/"
	@echo "  status                               http://127.0.0.1:8081/-/status"
	bin/anteroom run --origin $(ORIGIN) --log-format text $(ARGS)
endif

build: ## Build bin/anteroom, static
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/anteroom ./cmd/anteroom

check: ## Run this while you work: format, build, vet, all tests except the long ones
	scripts/check $(ARGS)

test: ## Install what is needed (root or sudo) and run everything; see scripts/test help
	scripts/test $(ARGS)

release: ## Make VERSION (0.1.0) in dist: deb, rpm, archives, image, checksums
	scripts/release $(VERSION) $(ARGS)

lint: ## gofmt, go vet, staticcheck, govulncheck
	scripts/test format vet lint vulnerable

race: ## Tests with the race detector
	scripts/test race

bench-peers: ## CPU time of a request beside nginx, HAProxy, fasthttp and net/http, and its picture, docs/peers.svg; about 7 minutes
	scripts/bench-peers

bench: ## Benchmarks; figures belong into docs/performance.md
	go test -run '^$$' -bench . -benchmem ./...

shots: build ## Pictures of every page of the dashboard, into shots; those of the documents into docs/shots
	scripts/shots $(ARGS)

load: ## 20,000 visitors with kill -9 in the middle, judged by the origin's log
	scripts/load $(ARGS)

cluster: ## Three data centres on this machine, faults, the origin's log as the judge; CLUSTER="kill keys" (all)
	scripts/cluster $(ARGS) $(CLUSTER)

cluster-report: ## The same, drawn into REPORT (cluster-report): CLUSTER="spike-world kill cut-queue"
	scripts/cluster -page $(REPORT) $(ARGS) $(CLUSTER)

conformance: ## HTTP/2 by h2spec, HTTP/1.1 beside net/http
	scripts/conformance $(ARGS)

edges: ## The proxies that ask Anteroom (docs/edges.md), with Caddy, which takes minutes to build
	scripts/edges $(ARGS)

kubernetes: ## The Helm chart against a real API server with etcd, which take minutes to build
	scripts/kubernetes $(ARGS)

sim: ## Search RUNS (400) simulated worlds from SEED (1) on for a broken promise; ARGS="-sim.trace=FILE" shows the last
	go -C sim test -run '^TestSearch$$' -count=1 -timeout 0 -sim.seed=$(SEED) -sim.runs=$(RUNS) $(ARGS)

mutants: ## Break the engine on purpose, and fail unless the simulator notices every defect (two minutes); ARGS="-only epoch"
	scripts/mutants $(ARGS)

model: ## Check every state of the models of ledger and homes (lab/model), then break one rule at a time
	scripts/model $(ARGS)

fuzz: ## Every fuzz target for FUZZTIME (20s)
	scripts/fuzz

clean: ## Remove what was built
	rm -rf bin dist

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile
