// Command bench measures Parley and its limits, and prints both from one run.
//
// The limit of a read is a bare net/http server that returns the same bytes; the limit of a write
// is one that decodes and encodes the body and stores nothing. Each server runs in its own process,
// and a small client in another process loads both in turn, A/B/A/B: other load on the machine
// affects both alike, so the ratio means more than either rate. Submits are also compared with bare
// inserts on the same engine, and tasks with the official Go SDK of A2A, which keeps them in
// memory. The cost of credentials is measured in this process. With -base, Parley is compared with
// another revision instead (see versus.go). Nothing here asserts; see -h for the size of a run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// settings are the flags of a run.
type settings struct {
	engines   []string
	rows      []int
	duration  time.Duration // of one measurement
	rounds    int
	writeRate int // writes per second for "list under writes"
	quick     bool
	json      bool
	flood     time.Duration // length of the sustained flood of submits
	tasks     int           // old tasks in the store before tasks are measured
	only      string        // one of onlyNames; empty: all
	base      string        // revision to compare with, instead of the limits
	head      string        // revision that is compared with base; empty: this one
}

// onlyNames are what can be measured alone.
var onlyNames = []string{
	"proposals", "flood", "a2a", "work", "old", "events", "streams", "live", "backup", "size", "nodes",
	"auth", "search", "cliff", "sweep", "relay",
}

func main() {
	// The same program runs the other roles, each in its own process.
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "bare":
			exit(serveBare(os.Stdin, os.Stdout))
		case "load":
			exit(runLoad(os.Stdin, os.Stdout))
		case "sdk":
			exit(serveSDK(os.Stdout))
		case "work":
			exit(runWork(os.Stdin, os.Stdout))
		case "follow":
			exit(runFollow(os.Stdin, os.Stdout))
		case "keys":
			exit(runKeys(os.Stdin, os.Stdout))
		}
	}
	set, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(run(ctx, set))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func parse(args []string) (settings, error) {
	fs := flag.NewFlagSet("bench", flag.ExitOnError)
	quick := fs.Bool("quick", false,
		"twenty minutes instead of more than an hour: 1 thousand and 60 thousand proposals, short rounds")
	engine := fs.String("engine", "sqlite,postgres", "engines to measure")
	rows := fs.String("rows", "1000,100000,1000000", "numbers of proposals in the org, growing")
	duration := fs.Duration("duration", 3*time.Second, "length of one measurement")
	rounds := fs.Int("rounds", 5, "measurements of each side; the median counts")
	rate := fs.Int("writes", 100, "proposals and votes written per second for 'list under writes'")
	flood := fs.Duration("flood", time.Minute, "length of the sustained flood of submits")
	tasks := fs.Int("tasks", 0, "old finished `tasks` in the store before tasks are measured; "+
		"'old' compares with a store without them, by default of a million")
	only := fs.String("only", "", "measure one of "+strings.Join(onlyNames, ", ")+" alone")
	asJSON := fs.Bool("json", false, "print JSON instead of a table")
	base := fs.String("base", "", "compare every hot path with this git `revision` or built program instead of the limits, "+
		"in alternating rounds (10 of 700ms each with 10000 proposals, unless given)")
	head := fs.String("head", "", "with -base: measure this `revision` or built program instead of the working tree, "+
		"for example to compare two older commits")
	fs.StringVar(&profiles.dir, "profile", "", "save a processor profile of the server for each hot path in this `folder`")
	if err := fs.Parse(args); err != nil {
		return settings{}, err
	}
	if *head != "" && *base == "" {
		return settings{}, errors.New("-head needs -base: give the revision to compare with")
	}
	usual := func(name string, flag *string, value string) {
		if !isSet(fs, name) {
			*flag = value
		}
	}
	switch {
	case *base != "":
		usual("rows", rows, "10000")
		if !isSet(fs, "rounds") {
			*rounds = 10
		}
		if !isSet(fs, "duration") {
			*duration = 700 * time.Millisecond
		}
		if *quick {
			*duration = min(*duration, 300*time.Millisecond)
		}
	case *quick:
		*duration, *rounds = min(*duration, time.Second), min(*rounds, 3)
		usual("rows", rows, "1000,60000")
		*flood = min(*flood, 10*time.Second)
	}
	set := settings{
		engines: strings.Split(*engine, ","), duration: *duration, rounds: max(1, *rounds),
		writeRate: *rate, flood: *flood, tasks: *tasks, json: *asJSON, only: *only, base: *base, head: *head, quick: *quick,
	}
	if set.only != "" && !slices.Contains(onlyNames, set.only) {
		return set, fmt.Errorf("-only %s: use one of %s", set.only, strings.Join(onlyNames, ", "))
	}
	for _, s := range strings.Split(*rows, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < variety || len(set.rows) > 0 && n <= set.rows[len(set.rows)-1] {
			return set, fmt.Errorf("-rows %s: give growing numbers of at least 1000", *rows)
		}
		set.rows = append(set.rows, n)
	}
	for _, e := range set.engines {
		if e != "sqlite" && e != "postgres" {
			return set, fmt.Errorf("-engine %s: use sqlite, postgres or both with a comma", e)
		}
	}
	return set, nil
}

func isSet(fs *flag.FlagSet, name string) (set bool) {
	fs.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// parts can be measured alone, each with a limit. An inner part is included in another one.
var parts = []struct {
	name    string
	inner   bool
	measure func(ctx context.Context, set settings, engine, program string) ([]line, error)
}{
	{"proposals", false, measureEngine},
	{"flood", false, measureFlood},
	{"a2a", false, measureTasks},
	{"work", true, measureWorkAlone},
	{"old", false, measureOld},
	{"events", false, measureEvents},
	{"streams", false, measureStreams},
	{"live", false, measureLive},
	{"backup", false, measureBackup},
	{"size", false, measureSize},
	{"relay", false, measureRelay},
}

type inProcessPart struct {
	name    string
	measure func(ctx context.Context, set settings, engine string) ([]cost, error)
}

// inProcess are measured in this process, without a server.
var inProcess = []inProcessPart{
	{"auth", measureAuth},
	{"search", measureSearch},
	{"cliff", measureCliff},
	{"sweep", measureSweep},
}

// run measures and prints the report. A part that fails does not lose the results of the others.
func run(ctx context.Context, set settings) error {
	if set.base != "" {
		return runVersus(ctx, set)
	}
	var all report
	failed := all.measure(ctx, set)
	if set.only == "" && ctx.Err() == nil {
		all.addUnmeasured(set.engines)
	}
	all.judge()
	if set.json {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		return errors.Join(failed, enc.Encode(all))
	}
	return errors.Join(failed, all.print(os.Stdout))
}

// measure adds the results of all parts, or of the one that was chosen.
func (r *report) measure(ctx context.Context, set settings) (failed error) {
	chosen := func(name string) bool { return ctx.Err() == nil && (set.only == "" || set.only == name) }
	fail := func(engine, name string, err error) {
		if err != nil {
			progress("%s of %s failed: %v", name, engine, err)
			failed = errors.Join(failed, fmt.Errorf("%s of %s: %w", name, engine, err))
		}
	}
	for _, engine := range set.engines {
		for _, part := range inProcess {
			if chosen(part.name) {
				costs, err := part.measure(ctx, set, engine)
				r.Costs = append(r.Costs, costs...)
				fail(engine, part.name, err)
			}
		}
	}
	if slices.ContainsFunc(inProcess, func(p inProcessPart) bool { return p.name == set.only }) {
		return failed
	}
	program, cleanup, err := buildParley(ctx)
	if err != nil {
		return errors.Join(failed, err)
	}
	defer cleanup()
	for _, engine := range set.engines {
		for _, part := range parts {
			if chosen(part.name) && (set.only != "" || !part.inner) {
				lines, err := part.measure(ctx, set, engine, program)
				r.Lines = append(r.Lines, lines...)
				fail(engine, part.name, err)
			}
		}
		if engine == "postgres" && chosen("nodes") {
			costs, err := measureNodes(ctx, set, program)
			r.Costs = append(r.Costs, costs...)
			fail(engine, "nodes", err)
		}
	}
	return failed
}

// progress prints a line for the person who waits.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}
