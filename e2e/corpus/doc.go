// Package corpus records what the built program says on the wire, over every
// transport, and fails when any of it changes.
//
// Each topic is a scripted session in an org of its own. Its exchanges are kept in
// testdata/<topic>.txt with ids, times, secrets and signatures replaced by
// placeholders: the same value always has the same placeholder within a topic, so
// that relations between fields stay visible. Scripts use the placeholders, too: a
// request for <prop-1> asks for the proposal that the transcript calls so.
//
// The same files hold for SQLite and PostgreSQL. After a wanted change run
//
//	go test ./e2e/corpus -update
//
// and read the difference.
package corpus
