package identity

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/errs/errstest"
)

// demands is what every action needs: one of the scopes, and for some of them membership.
// The first rows stand as in section 5 of the specification; the others are the design's.
var demands = map[Action]struct {
	scopes   []Scope
	anyScope bool
	members  bool
}{
	ListProposals:   {scopes: []Scope{TasksRead}},
	ReadProposal:    {scopes: []Scope{TasksRead}},
	SubmitProposal:  {scopes: []Scope{TasksWrite}, members: true},
	VoteOnProposal:  {scopes: []Scope{TasksWrite}, members: true},
	ChangeProposal:  {scopes: []Scope{Admin, TasksWrite}},
	ResolveProposal: {scopes: []Scope{Admin}},
	ManageNotes:     {scopes: []Scope{Admin}},
	ListFollowups:   {scopes: []Scope{TasksRead}},
	ReadFollowup:    {scopes: []Scope{TasksRead}},
	CreateFollowup:  {scopes: []Scope{TasksWrite}},
	ChangeFollowup:  {scopes: []Scope{TasksWrite}},
	ReportFriction:  {scopes: []Scope{TasksWrite}, members: true},
	ReadFriction:    {scopes: []Scope{TasksRead}},
	ManageFriction:  {scopes: []Scope{Admin}},
	CallAgent:       {scopes: []Scope{A2AWrite}},
	ServeAgent:      {scopes: []Scope{A2AServe}},
	ReadAgents:      {scopes: []Scope{TasksRead, A2AWrite, Admin}},
	ManageAgents:    {scopes: []Scope{Admin}},
	ReadTasks:       {scopes: []Scope{Admin}},
	ReadEvents:      {scopes: []Scope{TasksRead}},
	ManageWebhooks:  {scopes: []Scope{Admin}},
	ReadKeys:        {scopes: []Scope{Admin}},
	ManageKeys:      {scopes: []Scope{Admin}},
	ReadMembers:     {scopes: []Scope{Admin}},
	ManageMembers:   {scopes: []Scope{Admin}},
	EraseMembers:    {scopes: []Scope{Admin}},
	ReadClients:     {scopes: []Scope{Admin}},
	ManageClients:   {scopes: []Scope{Admin}},
	ReadAudit:       {scopes: []Scope{Admin}},

	ReadSelf:             {anyScope: true},
	ManageOwnCredentials: {anyScope: true},
}

func TestEveryActionHasADemand(t *testing.T) {
	t.Parallel()
	for _, action := range slices.Sorted(maps.Keys(rules)) {
		if _, ok := demands[action]; !ok {
			t.Errorf("the action %q has no row in the table of this test, want one", action)
		}
	}
	for _, action := range slices.Sorted(maps.Keys(demands)) {
		if _, ok := rules[action]; !ok {
			t.Errorf("the action %q has no rule, want one", action)
		}
	}
}

// Every action × every set of scopes × every kind of principal × both orgs.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	for action, want := range demands {
		for set := range 1 << len(AllScopes) {
			scopes := Scopes{"agent:scout"} // which is no right
			enough := want.anyScope
			for i, s := range AllScopes {
				if set&(1<<i) != 0 {
					scopes = append(scopes, s)
					enough = enough || slices.Contains(want.scopes, s)
				}
			}
			for _, kind := range Kinds {
				c := &Caller{Principal: Principal{Org: "acme", Kind: kind, ID: "x"}, KeyID: "key-1", Scopes: scopes}
				name := fmt.Sprintf("a %s with %s, to %s", kind, scopes, action)
				code := ""
				switch {
				case !enough:
					code = "auth.scope_missing"
				case want.members && kind == Service:
					code = "auth.not_a_member"
				}
				a, err := Authorize(c, "acme", action)
				if got := errstest.Code(err); got != code {
					t.Errorf("%s: got %q, want %q", name, got, code)
					continue
				}
				switch code {
				case "":
					if a.Org() != "acme" || a.Principal() != c.Principal || a.Caller() != c {
						t.Errorf("%s: got access to %s for %+v, want acme for %+v", name, a.Org(), a.Principal(), c.Principal)
					}
				case "auth.scope_missing":
					e, named := errs.As(err), Scopes(want.scopes).String()
					said := strings.Contains(e.Message, strings.ReplaceAll(named, " ", " or "))
					if e.Kind != errs.Forbidden || e.Scope != named || !said {
						t.Errorf("%s: got %s, missing scope %q (%s); want forbidden, missing scope %q",
							name, e.Kind, e.Scope, e.Message, named)
					}
				default:
					if got := errs.KindOf(err); got != errs.Forbidden {
						t.Errorf("%s: got %s, want forbidden", name, got)
					}
				}
				// A caller from elsewhere learns nothing, whatever its rights.
				for _, org := range []string{"other", ""} {
					if _, err := Authorize(c, org, action); errs.As(err) != errs.ErrNotFound {
						t.Errorf("%s in the org %q: got %v, want not found", name, org, err)
					}
				}
			}
		}
		if _, err := Authorize(nil, "acme", action); errstest.Code(err) != "auth.missing" {
			t.Errorf("nobody, to %s: got %v, want auth.missing", action, err)
		}
	}
	c := &Caller{Principal: Principal{Org: "acme", Kind: User, ID: "x"}, Scopes: AllScopes}
	for _, action := range []Action{"", "fly"} {
		if _, err := Authorize(c, "acme", action); errstest.Code(err) != "auth.unknown_action" ||
			errs.KindOf(err) != errs.Internal {
			t.Errorf("an action without a rule, %q: got %v, want an internal error", action, err)
		}
	}
}

// Every kind of principal × every restriction: whom it may call, and whom it may work for.
func TestWhichAgentsACredentialIsGoodFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		restriction string
		calls       []string // of the agents scout and other
	}{
		{"", []string{"scout", "other"}},
		{"agent:scout", []string{"scout"}},
		{"agent:other", []string{"other"}},
		{"agent:third", nil},
		{"agent:third agent:other", []string{"other"}},
		{"agent:scout agent:other", []string{"scout", "other"}},
		{"agent:*", []string{"scout", "other"}},
		{"agent:third agent:*", []string{"scout", "other"}},
	} {
		for _, kind := range Kinds {
			a := Access{caller: &Caller{
				Principal: Principal{Org: "acme", Kind: kind, ID: "scout"}, Scopes: append(SplitScopes(c.restriction), A2AServe),
			}}
			for _, id := range []string{"scout", "other"} {
				calls := slices.Contains(c.calls, id)
				if got := a.ReachesAgent(id); got != calls {
					t.Errorf("%s:scout with %q calls %s: got %v, want %v", kind, c.restriction, id, got, calls)
				}
				// An agent works for itself; others need to be given the agent by name.
				serves := calls && (kind == Agent && id == "scout" || kind != Agent && c.restriction != "")
				if got := a.ServesAgent(id); got != serves {
					t.Errorf("%s:scout with %q works for %s: got %v, want %v", kind, c.restriction, id, got, serves)
				}
			}
		}
	}
}

func TestTheOneAgentOfScopes(t *testing.T) {
	t.Parallel()
	for scopes, want := range map[string]string{
		"": "", "svc:a2a:write": "", "agent:*": "", "agent:a": "a", "svc:a2a:write agent:a": "a", "agent:a agent:a": "a",
		"agent:a agent:b": "", "agent:a agent:*": "", "agent:* agent:a": "",
	} {
		if got, ok := SplitScopes(scopes).OnlyAgent(); got != want && ok || ok != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", scopes, got, ok, want)
		}
	}
}

// A session that administers needs the password again to hand that right on.
func TestWhatASessionMustConfirm(t *testing.T) {
	t.Parallel()
	for _, session := range []bool{false, true} {
		for _, holds := range []bool{false, true} {
			for _, asks := range []bool{false, true} {
				c, scopes := &Caller{KeyID: "key-1", Scopes: Scopes{TasksRead}}, Scopes{TasksRead}
				if session {
					c.KeyID = SessionID("abc")
				}
				if holds {
					c.Scopes = append(c.Scopes, Admin)
				}
				if asks {
					scopes = append(scopes, Admin)
				}
				want := ""
				if session && holds && asks {
					want = "auth.confirm"
				}
				if got := errstest.Code(c.CheckConfirmed(scopes)); got != want {
					t.Errorf("session %v, holds admin %v, asks for admin %v: got %q, want %q", session, holds, asks, got, want)
				}
				if got := c.IsSession(); got != session {
					t.Errorf("%s is a session: got %v, want %v", c.KeyID, got, session)
				}
			}
		}
	}
}

func TestKindsOfPrincipals(t *testing.T) {
	t.Parallel()
	for kind, member := range map[Kind]bool{User: true, Agent: true, Service: false, "robot": false, "": false} {
		p := Principal{Org: "acme", Kind: kind, ID: "x"}
		if got := p.IsMember(); got != member {
			t.Errorf("%s is a member: got %v, want %v", p.Ref(), got, member)
		}
		known := slices.Contains(Kinds, kind)
		got, err := ParseRef("acme", p.Ref())
		if known && (err != nil || got != p) {
			t.Errorf("%s: got %+v, %v; want %+v", p.Ref(), got, err, p)
		}
		if !known && errstest.Code(err) != "identity.bad_principal" {
			t.Errorf("%s: got %v, want identity.bad_principal", p.Ref(), err)
		}
	}
}
