// Command profile merges the processor profiles that 'make bench' saves into the one that builds of
// Parley are optimized for, and removes what tells where they were taken.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/pprof/profile"
)

func main() {
	out := flag.String("o", "cmd/parley/default.pgo", "`file` to write")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: profile [-o file] folder")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := merge(flag.Arg(0), *out); err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		os.Exit(1)
	}
}

func merge(folder, out string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.pprof"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("folder %s has no profiles; run 'make pgo'", folder)
	}
	var all []*profile.Profile
	for _, file := range files {
		p, err := read(file)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		all = append(all, p)
	}
	merged, err := profile.Merge(all)
	if err != nil {
		return err
	}
	for _, m := range merged.Mapping {
		m.File, m.BuildID = "parley", ""
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := merged.Write(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

func read(file string) (*profile.Profile, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return profile.Parse(f)
}
