package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

const endProgram = "/account/programs/{id}/end"

// program is a Program as a page shows it.
type program struct {
	Name, Only, Since, Used string
	End                     string // where the form goes
	Rights, Agents          []string
}

// addPrograms shows which programs act for the member.
func (p *Pages) addPrograms(ctx context.Context, v *view) error {
	list, more, err := p.Programs.Programs(ctx, v.Member.Principal)
	v.More = more
	for i := range list {
		v.Programs = append(v.Programs, showProgram(&list[i]))
	}
	return err
}

func showProgram(g *oauth.Program) program {
	out := program{
		Name: g.Name, Only: g.Audience, Since: day(g.CreatedAt), Used: day(g.UsedAt), End: strings.Replace(endProgram, "{id}", g.ID, 1),
	}
	if out.Name == "" {
		out.Name = g.ClientID
	} else if host := oauth.DocumentHost(g.ClientID); host != "" && host != out.Name {
		out.Name += " (" + host + ")"
	}
	for _, known := range rights {
		if g.Scopes.Has(identity.Scope(known.Scope)) {
			out.Rights = append(out.Rights, known.Text)
		}
	}
	for _, s := range g.Scopes {
		if id, ok := strings.CutPrefix(string(s), "agent:"); ok && id != "*" {
			out.Agents = append(out.Agents, id)
		}
	}
	return out
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") + " UTC" }

// endProgram takes back what a program was allowed.
func (p *Pages) endProgram(w http.ResponseWriter, r *http.Request) {
	m := p.must(w, r)
	if m == nil {
		return
	}
	if err := p.Programs.EndProgram(r.Context(), m.Principal, r.PathValue("id")); err != nil {
		p.failed(w, r, err)
		return
	}
	http.Redirect(w, r, accountPath, http.StatusSeeOther)
}
