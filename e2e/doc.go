// Package e2e tests the built binary from outside, over HTTP, on both engines: the specification
// as a table of calls and responses, the official A2A clients, load, and crashes.
//
// It imports only the public sdk/worker and sdk/client, so that it breaks only when a user would
// notice. There are two exceptions: task_log_test.go reads leases from the log, which no API shows, and
// token_grpc_test.go moves the expiry of a token instead of waiting for it.
//
// The tests build the program, which Go's test cache does not see: run them with -count=1. The
// tests of the command line and the README are in e2e/cli.
package e2e
