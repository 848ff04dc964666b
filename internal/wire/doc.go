// Package wire is the JSON form of messages, parts and artifacts, for every
// transport that shows them: read liberally, written strictly.
//
// It is written by hand because it is the hot path of every task, and because a
// part has several legal spellings. It knows the types of package task and no
// transport: no envelope, no route, no status code.
package wire
