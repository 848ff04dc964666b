package web

import (
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

const endProgram = "/account/programs/{id}/end"

// program is the view of an OAuth client that acts for the member.
type program struct {
	Name, Only, Since, Used string
	End                     string // URL of the form that ends its access
	Rights, Agents          []string
}

// programs lists the clients that act for the member; more reports whether the list is cut.
func (v *visit) programs() (list []program, more bool, err error) {
	a, err := v.access(identity.ManageOwnCredentials)
	if err != nil {
		return nil, false, err
	}
	found, more, err := v.Programs.Programs(v.r.Context(), a)
	for i := range found {
		list = append(list, showProgram(&found[i]))
	}
	return list, more, err
}

func showProgram(g *oauth.Program) program {
	out := program{
		Name: g.Name, Only: g.Audience, Since: day(g.CreatedAt), Used: day(g.UsedAt),
		End: strings.Replace(endProgram, "{id}", g.ID, 1),
	}
	if out.Name == "" {
		out.Name = g.ClientID
	} else if host := oauth.DocumentHost(g.ClientID); host != "" && host != out.Name {
		out.Name += " (" + host + ")"
	}
	for _, w := range inWords(g.Scopes).Rights {
		out.Rights = append(out.Rights, w.Yours)
	}
	out.Agents = restrictions(g.Scopes)
	return out
}

// restrictions returns the agents that scopes name. Empty means that all agents are allowed.
func restrictions(scopes identity.Scopes) []string {
	var out []string
	for _, s := range scopes {
		if id, ok := strings.CutPrefix(string(s), "agent:"); ok && id != "*" {
			out = append(out, id)
		}
	}
	return out
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") + " UTC" }

// endProgram revokes the grant of a client.
func (v *visit) endProgram() error {
	a, err := v.access(identity.ManageOwnCredentials)
	if err != nil {
		return err
	}
	if err := v.Programs.EndProgram(v.r.Context(), a, v.r.PathValue("id")); err != nil {
		return err
	}
	return v.done(v.accountPath(), "The program can no longer act for you.")
}
