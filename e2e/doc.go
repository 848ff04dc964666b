// Package e2e tests the built binary from outside, over HTTP: the specification
// as a table of calls and answers, the official A2A clients, load, and crashes, on
// both engines. It imports nothing of the program but the public sdk/worker, so that
// it breaks only when a user would notice; but for task_log_test.go, which reads the
// leases that the log has and no interface shows, and token_grpc_test.go, which moves
// the end of a token instead of waiting for it.
//
// The tests build the program, which Go's cache of results does not see: without
// -count=1 it shows old results when only the program has changed.
//
// The command line and the README have their tests in the folder cli.
package e2e
