package oauth

import "github.com/parley-dev/parley/internal/identity"

// Question is what the consent page asks a person.
type Question struct {
	Client      Client
	Member      identity.Member
	Scopes      identity.Scopes // the scopes to grant; the person may remove some
	Audience    string          // the only path that the token is good for; empty: the whole service
	RedirectURI string          // where the code goes
	Answer      string          // the path that the form is posted to
	Problem     string          // with the previous post; empty: none
}
