package oauth

import "github.com/parley-dev/parley/internal/identity"

// Question is what a person is asked before a client gets anything.
type Question struct {
	Client      Client
	Member      identity.Member
	Scopes      identity.Scopes // what may be allowed; the person may take some away
	Audience    string          // the only path that it would be for; empty: the whole service
	RedirectURI string          // where the answer goes
	Answer      string          // the path to send the answer to
	Problem     string          // with the answer before; empty: there was none
}
