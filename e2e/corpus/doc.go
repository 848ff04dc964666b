// Package corpus records the requests and responses of the built program on every transport, and
// fails when any of them changes.
//
// Each topic is a scripted session in its own org. Its exchanges are kept in testdata/<topic>.txt
// with ids, times, secrets and signatures replaced by placeholders: the same value always has the
// same placeholder within a topic, so that relations between fields stay visible. Scripts use the
// placeholders, too: a request for <prop-1> is for the proposal of that name in the transcript.
//
// The same files hold for SQLite and PostgreSQL. After a wanted change run "go test ./e2e/corpus
// -update" and read the difference.
package corpus
