// Command manpages writes the manual pages of all commands of parley to a folder:
//
//	go run ./scripts/manpages -out build/man -version 1.2.3 -date 2026-01-31
//
// It is not part of parley, which prints the same text with --help.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-dev/parley/internal/cli"
)

func main() {
	out := flag.String("out", "build/man", "folder for the pages")
	version := flag.String("version", "0.0.0-dev", "version in the footer")
	date := flag.String("date", time.Now().UTC().Format(time.DateOnly), "date in the footer")
	flag.Parse()
	if err := write(*out, *version, *date); err != nil {
		fmt.Fprintln(os.Stderr, "manpages:", err)
		os.Exit(1)
	}
}

func write(dir, version, date string) error {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return err
	}
	pages, err := cli.ManPages(version, day)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, page := range pages {
		if err := os.WriteFile(filepath.Join(dir, name), page, 0o644); err != nil {
			return err
		}
	}
	return nil
}
