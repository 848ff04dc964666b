// Package wire is the JSON form of messages, parts and artifacts, for every
// transport that shows them: read liberally, written strictly.
//
// It is written by hand because it is the hot path of every task and event, where that is
// four times as fast as structs with encoding/json and allocates nothing (see
// bench_test.go), and because a part has several legal spellings. It knows the types of
// package task and no transport: no envelope, no route, no status code.
package wire
