package main

import "github.com/urfave/cli/v2"

// examples returns the lines that -h and the man page of a command show as examples.
func (p *process) examples(c *cli.Command) []string { return exampleLines[c.Name] }

// exampleLines are the example command lines of each command.
var exampleLines = map[string][]string{
	"run":          {"git tilth run tasks.md", `git tilth run "Say hello in French too"`},
	"prep-feature": {`git tilth prep-feature --brief "export reports as CSV"`, "git tilth prep-feature --from tasks/"},
	"edit":         {"git tilth seed edit", "git tilth seed edit 20261122-08"},
	"seed":         {"git tilth seed edit", "git tilth seed edit 20261122-08"},
	"demo":         {"git tilth demo", "git tilth -v demo"},
	"doctor":       {"git tilth doctor --fix", "git tilth doctor --flaky test_dates.py::test_leap_day"},
	"resume":       {"git tilth resume -n", "git tilth resume --keep-going --max-cost 5"},
	"stop":         {"git tilth stop", "git tilth stop 20261122-08"},
	"retry":        {`git tilth retry -m "use the v2 API" T-006`, "git tilth retry 6 && git tilth resume"},
	"skip":         {"git tilth skip T-005", "git tilth skip 5 20261122-08"},
	"done":         {"git tilth done T-004", `git tilth done -m "Parse dates without a library" T-004`},
	"plan":         {"git tilth plan", "git tilth plan 20261122-08"},
	"review":       {"git tilth review", "git tilth review T-003"},
	"diff":         {"git tilth diff T-003", "git tilth diff --stat -- src"},
	"take":         {"git tilth take", "git tilth take T-001 T-003 --onto main"},
	"cleanse":      {"git tilth cleanse", "git tilth cleanse -n 20261122-08"},
	"rewind":       {`git tilth rewind -m "use the old API" T-004`, "git tilth rewind seed"},
	"undo":         {"git tilth undo", "git tilth undo -n"},
	"fork":         {"git tilth fork --at T-003", `git tilth fork --label "with another model"`},
	"reset":        {"git tilth reset", "git tilth reset --to-seed -y"},
	"pr":           {"git tilth pr", "git tilth pr --stack"},
	"update":       {"git tilth update", "git tilth update --merge"},
	"address":      {"git tilth address --reply", "git tilth address --watch --max-rounds 5"},
	"push":         {"git tilth push", "git tilth push --remote /media/usb/sessions.git"},
	"fetch":        {"git tilth fetch", "git tilth fetch --remote team 20261122-08"},
	"work":         {"git tilth work --once", "git tilth work --drain --jobs 2"},
	"list":         {"git tilth list", "git tilth list --remote team"},
	"log":          {"git tilth log -f", "git tilth log --task T-001 --type evaluator_verdict"},
	"show":         {"git tilth show", "git tilth show --json 20261122-08"},
	"visualize":    {"git tilth visualize --open", "git tilth visualize --serve"},
	"verify":       {"git tilth verify", "git tilth verify --json"},
	"config":       {"git tilth config", "git tilth config --json"},
}
