# git-tilth: make demo shows it, make test runs the tests. Both need only Go and git.

GO      ?= go
PREFIX  ?= /usr/local
DESTDIR ?=
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# The first tag drops the man page renderer of urfave/cli, whose Markdown library would slow down every start. The second
# drops HTTP/2, half a megabyte that no endpoint needs.
TAGS    := -tags urfave_cli_no_docs,nethttpomithttp2
# Without C the program needs no libraries and starts a tenth faster. Host names that only the system's resolver knows
# (.local) need CGO=1.
CGO     ?= 0
DATE    ?= $(shell git log -1 --format=%cs 2>/dev/null || echo 1970-01-01)
LDFLAGS := -ldflags "-s -w -X main.version=$(VERSION) -X main.date=$(DATE)"

# Tests that need more libraries than the program are separate modules.
TEST_MODULES := internal/view/browsertest

STATICCHECK  := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: build test demo lint longlines install uninstall dist bench nightly crash soak fuzz test-agents test-fleet clean

build:
	CGO_ENABLED=$(CGO) $(GO) build $(TAGS) $(LDFLAGS) -o bin/git-tilth ./cmd/git-tilth

# These packages mostly run other processes, in which -race finds nothing. CI tests the others with RACE=-race.
UNRACED := ./cmd/... ./internal/crashtest ./internal/validator

test:
	CGO_ENABLED=$(CGO) $(GO) test $(TAGS) -timeout 60m $(TESTFLAGS) $(UNRACED)
	$(GO) test $(TAGS) $(RACE) -timeout 30m $(TESTFLAGS) \
		$$($(GO) list ./internal/... | grep -vE '/(crashtest|validator)$$')
	for m in $(TEST_MODULES); do (cd $$m && $(GO) test -timeout 10m $(TESTFLAGS) ./...) || exit 1; done

demo: build
	bin/git-tilth demo

lint: longlines
	@test -z "$$(gofmt -l cmd internal testdata)" || { gofmt -l cmd internal testdata; echo "gofmt would change these"; exit 1; }
	for m in . $(TEST_MODULES); do \
		(cd $$m && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...) || exit 1; done
	$(GO) vet ./testdata/agents

# Lines of Go longer than 120 columns.
longlines:
	$(GO) run scripts/longlines.go

SHARE := $(DESTDIR)$(PREFIX)/share

install: build
	install -d "$(DESTDIR)$(PREFIX)/bin"
	install -m 0755 bin/git-tilth "$(DESTDIR)$(PREFIX)/bin/git-tilth"
	BIN=bin/git-tilth ./scripts/share "$(SHARE)"
	@case "$(DESTDIR)::$$PATH:" in :*":$(PREFIX)/bin:"*|[!:]*) ;; \
		*) echo 'git finds it after:  export PATH="$(PREFIX)/bin:$$PATH"';; esac

uninstall:
	rm -f "$(DESTDIR)$(PREFIX)/bin/git-tilth" "$(SHARE)"/man/man1/git-tilth.1 "$(SHARE)"/man/man1/git-tilth-*.1 \
		"$(SHARE)/bash-completion/completions/git-tilth" "$(SHARE)/zsh/site-functions/_git-tilth" \
		"$(SHARE)/fish/vendor_conf.d/git-tilth.fish"

# Release archives, .deb and .rpm, and checksums, in dist/: the same bytes for the same commit.
dist:
	VERSION=$(VERSION) GO=$(GO) ./scripts/dist

# Each row is a ratio or a time, compared with a baseline from the same run.
bench: build
	$(GO) test -tags bench -count=1 -timeout 60m -v ./internal/bench

# The tests that take hours: the full tests, the kills and the simulated sessions. Run it before every tag.
nightly:
	TILTH_TESTS=full $(MAKE) test
	$(MAKE) crash soak test-fleet

# Kills the process at every file and git operation in turn. Needs the ptrace and seccomp of Linux.
crash:
	TILTH_CRASH=full $(GO) test -count=1 -timeout 90m -v ./internal/crashtest

# Runs 500 sessions with random kills, full disks and endpoint failures, and prints the random seed. TILTH_SOAK_SEED and
# TILTH_SOAK_SESSION replay a session; TILTH_SOAK sets the number. Then it runs as many with parallel tasks;
# TILTH_LANES_SEED replays one of those.
soak:
	TILTH_SOAK=$${TILTH_SOAK:-500} TILTH_SOAK_SEED=$${TILTH_SOAK_SEED:-$$(date +%s)} \
		$(GO) test -count=1 -timeout 5h -run '^TestSoak$$' -v ./internal/crashtest
	TILTH_LANES_SESSIONS=$${TILTH_SOAK:-500} TILTH_LANES_FIRST=$${TILTH_SOAK_SEED:-$$(date +%s)} \
		$(GO) test $(TAGS) -count=1 -timeout 5h -run '^TestLanesSimulated$$' -v ./cmd/git-tilth

# Installs the real agent programs from the npm registry into a scratch directory and drives each against a stub of its API.
test-agents:
	$(GO) run ./testdata/agents
	$(GO) run ./testdata/agents -acp

# Eight workers, forty sessions, and kills; and the job system examples against their engines.
test-fleet:
	TILTH_TESTS=full TILTH_FLEET=8,40,24,1 $(GO) test -count=1 -timeout 30m -run 'Drain|HTTP|TestScripts/^fleet' -v ./cmd/git-tilth
	TILTH_TESTS=full $(GO) test -count=1 -timeout 30m ./internal/fleet
	cd internal/fleet/enginetest && $(GO) test -count=1 -timeout 30m ./...

fuzz:
	./scripts/fuzz

clean:
	rm -rf bin dist
