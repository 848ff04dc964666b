// Package cli tests the built binary as a person uses it: what is typed, what is
// printed, how it starts and stops. It imports nothing of the program.
//
// The scripts in testdata/both run on SQLite and on PostgreSQL, those in
// testdata/sqlite on SQLite alone. README.md is run as it is written.
package cli
