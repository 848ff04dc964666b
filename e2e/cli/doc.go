// Package cli tests the built binary: its arguments, its output, how it starts and stops.
// It imports nothing of the program.
//
// The scripts in testdata/both run on SQLite and on PostgreSQL, those in
// testdata/sqlite on SQLite alone. The examples of README.md and docs are run as they are
// written.
package cli
