// Command testlog reads the events that 'go test -json' has written and fails if the tests of a
// package did not run to their end: its process was ended, or failed before or after its tests. To
// repeat only the failed tests of such a package would leave out those that have never run.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "testlog:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: testlog file")
	}
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	found, err := unfinished(f)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	for _, line := range found {
		fmt.Println(line)
	}
	if len(found) > 0 {
		return errors.New("not all tests have run; see the output of these packages above")
	}
	return nil
}

// event is what go test says about a test or, without one, about a package.
type event struct{ Action, Package, Test string }

// tested is what is known of a package.
type tested struct {
	running map[string]bool
	failed  bool // a test, in the current run
}

// unfinished returns a line for each package and each test that did not end properly. A package may
// have run several times.
func unfinished(in io.Reader) (found []string, err error) {
	packages := map[string]*tested{}
	for decoder := json.NewDecoder(in); ; {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		p := packages[e.Package]
		if p == nil {
			p = &tested{running: map[string]bool{}}
			packages[e.Package] = p
		}
		ended := e.Action == "pass" || e.Action == "fail" || e.Action == "skip"
		switch {
		case e.Test != "" && e.Action == "run":
			p.running[e.Test] = true
		case e.Test != "" && ended:
			delete(p.running, e.Test)
			p.failed = p.failed || e.Action == "fail"
		case e.Test == "" && ended:
			for name := range p.running {
				found = append(found, fmt.Sprintf("%s: %s has begun and not ended", e.Package, name))
			}
			if e.Action == "fail" && !p.failed && len(p.running) == 0 {
				found = append(found, e.Package+": failed, but none of its tests did")
			}
			*p = tested{running: map[string]bool{}}
		}
	}
	for name, p := range packages {
		if len(p.running) > 0 {
			found = append(found, name+": has not ended")
		}
	}
	slices.Sort(found)
	return found, nil
}
