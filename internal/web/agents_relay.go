package web

import (
	"strings"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/relay"
)

// relayForm has the values of the form that sets the remote agent of a relay, without secrets: no
// page repeats them.
type relayForm struct {
	URL        string
	Credential string // type of the credential, noCredential or keepCredential
	HeaderName string
	TokenURL   string
	ClientID   string
	Scopes     string // separated by spaces
}

// Choices of a credential beside its types.
const (
	noCredential   = "none"
	keepCredential = "keep"
)

// Limits of the fields.
func (relayForm) MaxURL() int    { return agent.MaxURL }
func (relayForm) MaxSecret() int { return relay.MaxSecret }
func (relayForm) MaxName() int   { return relay.MaxName }

func (v *visit) relayForm() relayForm {
	return relayForm{
		URL: v.value("url"), Credential: v.value("credential"), HeaderName: v.value("header_name"),
		TokenURL: v.value("token_url"), ClientID: v.value("client_id"), Scopes: v.value("oauth_scopes"),
	}
}

// credential returns the entered credential with its secret; nil means none.
func (v *visit) credential(f *relayForm) *relay.Credential {
	c := &relay.Credential{Type: f.Credential}
	switch f.Credential {
	case noCredential, keepCredential:
		return nil
	case relay.Bearer:
		c.Token = v.value("bearer_token")
	case relay.Header:
		c.Name, c.Value = f.HeaderName, v.value("header_value")
	case relay.OAuth:
		c.TokenURL, c.ClientID, c.ClientSecret = f.TokenURL, f.ClientID, v.value("client_secret")
		c.Scopes = strings.Fields(f.Scopes)
	}
	return c
}

// credentialNames are the types of credentials in words.
var credentialNames = map[string]string{
	relay.Bearer: "bearer token", relay.Header: "API key in a header", relay.OAuth: "OAuth client credentials",
}

// relayView is the remote agent on the page of a relay.
type relayView struct {
	relay.Status
	Credential string // in words; empty: none
	Form       relayForm
	Changing   bool // the form was sent and failed
}

// Up reports whether tasks are sent to the remote agent.
func (r *relayView) Up() bool { return r.Problem == "" }

// Sentence returns why the remote agent is down.
func (r *relayView) Sentence() string { return capital(r.Problem) + "." }

// relayView returns the state of a relay, with the values of a form that failed.
func (v *visit) relayView(a identity.Access, id string, typed *relayForm) (*relayView, error) {
	s, err := v.Relays.Get(v.r.Context(), a, id)
	if err != nil {
		return nil, err
	}
	out := &relayView{
		Status: s, Credential: credentialNames[s.CredentialType],
		Form: relayForm{URL: s.URL, Credential: noCredential},
	}
	if s.CredentialType != "" {
		out.Form.Credential = keepCredential
	}
	if typed != nil {
		out.Form, out.Changing = *typed, true
	}
	return out, nil
}

// changeRemote changes the URL or the credential of a relay.
func (v *visit) changeRemote() error {
	if _, err := v.ownAgent(identity.ManageAgents); err != nil {
		return v.audited(identity.AgentUpdate, v.agentID(), err)
	}
	typed := v.relayForm()
	change := relay.Change{URL: &typed.URL, SetCredential: typed.Credential != keepCredential}
	if change.SetCredential {
		change.Credential = v.credential(&typed)
	}
	err := v.updateRelay(change)
	if err == nil {
		return v.done(v.agentPath(v.agentID()), "The remote agent was changed, and its card was read.")
	}
	if !change.SetCredential && isAt(err, "relay", "credential") {
		err = fieldError("credential", "belongs to another origin and is not sent to this URL; enter it again, or choose none")
	}
	return v.showAgent(agentExtras{Remote: &typed}, inAgentForm(err))
}

// isAt reports whether an error is about the path.
func isAt(err error, path ...any) bool {
	for _, f := range errs.As(err).Fields {
		if f.Path.Equal(path) {
			return true
		}
	}
	return false
}

// readCard reads the card of a relay's remote agent.
func (v *visit) readCard() error {
	err := v.updateRelay(relay.Change{})
	page := v.agentPath(v.agentID())
	switch e := errs.As(err); {
	case err == nil:
		return v.done(page, "The card of the remote agent was read.")
	case e.Kind == errs.Invalid && len(e.Fields) > 0:
		return v.done(page, refusal("The card was not read: "+harmless(e.Fields[0].Message)+"."))
	case isFormsFault(err) && e.Kind != errs.Forbidden:
		return v.done(page, refusal(sentence(err)))
	}
	return err
}

// updateRelay changes the relay in the URL, and reads its card.
func (v *visit) updateRelay(c relay.Change) error {
	id := v.agentID()
	a, err := v.access(identity.ManageAgents)
	if err == nil {
		err = v.awaitReceiver()
	}
	if err == nil {
		ctx, _, beginErr := v.begin()
		if beginErr != nil {
			return beginErr
		}
		_, err = v.Relays.Update(ctx, a, id, agent.Edit{}, c)
	}
	return v.audited(identity.AgentUpdate, id, err)
}
