// Package e2e tests the built binary from outside, over HTTP: the specification
// as a table of calls and answers, the official A2A clients, load, and crashes, on
// both engines. It imports nothing of the program but the public sdk/worker, so that
// it breaks only when a user would notice; but for task_log_test.go, which reads the
// leases that the log has and no interface shows, token_grpc_test.go, which moves the
// end of a token instead of waiting for it, and main_test.go, which uses nothing of it.
//
// The command line and the README have their tests in the folder cli.
package e2e
