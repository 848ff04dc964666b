package agent

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/parley-dev/parley/internal/cursor"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
	"github.com/parley-dev/parley/internal/words"
)

// Catalogue finds the agents that a caller may reach: those of its org, and the public ones of
// other orgs. It also tells how much of their quotas is used.
type Catalogue struct {
	store CatalogueStore
	now   func() time.Time
}

// CatalogueStore is the part of the store that a Catalogue reads.
type CatalogueStore interface {
	// Search returns a page of enabled agents in the order of their positions. Private agents of
	// other orgs have no influence on it. Of the profile the agents have the provider only.
	Search(ctx context.Context, s Search) ([]Match, error)
	// Counted returns what an org has used of the quotas of agents. Agents that it never called are
	// left out.
	Counted(ctx context.Context, caller string, agents []Agent) (map[ID]Counted, error)
	// Quotas returns the public, enabled agents with a quota that an org has called, by id, and
	// what it has used.
	Quotas(ctx context.Context, caller, after string, limit int) ([]Called, error)
	// Callers returns up to most orgs that have called an agent since a time, those with the most
	// tasks first.
	Callers(ctx context.Context, org, id string, since time.Time, most int) ([]Caller, error)
}

// ID identifies an agent.
type ID struct{ Org, ID string }

// Called is an agent with what an org has counted against its quota.
type Called struct {
	Agent   Agent
	Counted Counted
}

// Caller is an org with what it has counted against the quota of an agent.
type Caller struct {
	Org     string
	Counted Counted
}

// Search selects agents.
type Search struct {
	Org      string   // of the caller
	Own      bool     // only agents of Org
	IDs      []string // only these; nil: any
	Words    []string // all must occur; the last one is a prefix
	Exact    string   // an agent with this id comes first
	Skill    string   // a tag; empty: any
	Presence string   // leaves out agents that certainly have another presence; empty: any
	After    Position
	Limit    int
}

// maxRank is the last rank of an agent that was found.
const maxRank = 2

// Position is the place of an agent in the results. The zero value is before all.
type Position struct {
	Rank int // 0: the id was searched for; 1: all words are names; maxRank: others
	ID   string
}

// Match is an agent that was found.
type Match struct {
	Agent Agent
	Rank  int
}

// Find is a search of the catalogue.
type Find struct {
	Words    string
	Skill    string
	Presence string
	Org      string // the caller's own org: only its agents. An agent of another org has no org here.
	Cursor   string
	Limit    int // 0: DefaultFound

	// Status returns the presence of an agent.
	Status func(*Agent) string
}

// Found is a page of the catalogue.
type Found struct {
	Agents []Listed
	Next   string // cursor of the next page; empty: this is the last
}

// Listed is an agent of the catalogue.
type Listed struct {
	Agent
	Own    bool // of the caller's org
	Status string
	Usage  *Usage // by the caller's org; nil: the agent has no quota for it
}

// Limits of a search.
const (
	MaxWords     = 200 // characters
	MaxFound     = 100 // agents of a page
	DefaultFound = 20
	// maxSought is how many agents one search looks at if their presence decides. The page is then
	// shorter than its limit, and the next one continues.
	maxSought = 1000
)

// NewCatalogue returns the service.
func NewCatalogue(store CatalogueStore, now func() time.Time) *Catalogue {
	return &Catalogue{store: store, now: now}
}

// Find returns a page of the agents that match. Agents whose id or names match come first, then by
// id. The position of an agent depends on itself only, so that pages stay complete while other
// agents are added.
func (c *Catalogue) Find(ctx context.Context, a identity.Access, f Find) (Found, error) {
	if err := a.For(identity.ReadAgents); err != nil {
		return Found{}, err
	}
	s, err := f.search(a)
	if err != nil {
		return Found{}, err
	}
	if f.Org != "" && f.Org != a.Org() {
		return Found{}, nil
	}
	limit := s.Limit
	if f.Presence != "" {
		s.Limit = MaxFound
	}
	s.Limit++ // to know whether there are more
	var out Found
	for sought := 0; ; {
		matches, err := c.store.Search(ctx, s)
		if err != nil {
			return Found{}, err
		}
		more := len(matches) == s.Limit
		for i := range matches {
			m := &matches[i]
			status := f.Status(&m.Agent)
			if f.Presence != "" && status != f.Presence {
				s.After = Position{m.Rank, m.Agent.ID}
				continue
			}
			if len(out.Agents) == limit {
				out.Next = s.After.cursor(&f)
				return out, c.addUsage(ctx, a, out.Agents)
			}
			s.After = Position{m.Rank, m.Agent.ID}
			out.Agents = append(out.Agents, Listed{Agent: m.Agent, Own: m.Agent.Org == a.Org(), Status: status})
		}
		if sought += len(matches); !more {
			break
		}
		if sought >= maxSought {
			out.Next = s.After.cursor(&f)
			break
		}
	}
	return out, c.addUsage(ctx, a, out.Agents)
}

// search checks the request.
func (f *Find) search(a identity.Access) (Search, error) {
	var c checks
	c.text(errs.At("q"), f.Words, MaxWords)
	s := Search{
		Org: a.Org(), Own: f.Org != "", IDs: a.OnlyAgents(), Words: words.Query(f.Words), Exact: f.Words,
		Skill: f.Skill, Presence: f.Presence, Limit: f.Limit,
	}
	if len(s.Words) > words.MaxQuery {
		c.add(errs.At("q"), fmt.Sprintf("must not have more than %d words", words.MaxQuery))
	}
	if f.Words != "" && len(s.Words) == 0 {
		c.add(errs.At("q"), "must have a letter, a digit or a symbol")
	}
	if f.Skill != "" && !tagPattern().MatchString(f.Skill) {
		c.add(errs.At("skill"), "is not a skill tag; "+tagRule)
	}
	if f.Presence != "" && !slices.Contains(Presences, f.Presence) {
		c.add(errs.At("presence"), fmt.Sprintf("must be one of %v", Presences))
	}
	if problem := (text.Rule{Max: identity.MaxName}).Check(f.Org); problem != "" {
		c.add(errs.At("org"), problem)
	}
	if s.Limit == 0 {
		s.Limit = DefaultFound
	}
	if s.Limit < 1 || s.Limit > MaxFound {
		c.add(errs.At("limit"), fmt.Sprintf("must be between 1 and %d", MaxFound))
	}
	if f.Cursor != "" {
		r := f.list().Read(f.Cursor)
		rank := r.Int()
		s.After = Position{Rank: int(rank), ID: r.Text()}
		if !r.Done() || rank < 0 || rank > maxRank || !identity.ValidAgentID(s.After.ID) {
			c.add(errs.At("cursor"), "is not a cursor of this list; use that of the page before, with the same filters")
		}
	}
	if len(c.fields) > 0 {
		return s, errs.InvalidFields(c.fields...)
	}
	return s, nil
}

func (f *Find) list() cursor.List { return cursor.Of("agents", f.Words, f.Skill, f.Presence, f.Org) }

func (p Position) cursor(f *Find) string {
	return f.list().At().Int(int64(p.Rank)).Text(p.ID).String()
}

// addUsage adds what the caller's org has used of the quotas of other orgs' agents.
func (c *Catalogue) addUsage(ctx context.Context, a identity.Access, list []Listed) error {
	var limited []Agent
	for i := range list {
		if g := &list[i]; !g.Own && g.Quota != (Quota{}) {
			limited = append(limited, g.Agent)
		}
	}
	if len(limited) == 0 {
		return nil
	}
	counted, err := c.store.Counted(ctx, a.Org(), limited)
	if err != nil {
		return err
	}
	now := c.now()
	for i := range list {
		if g := &list[i]; !g.Own && g.Quota != (Quota{}) {
			u := counted[ID{g.Org, g.ID}].Usage(&g.Agent, a.Org(), now)
			g.Usage = &u
		}
	}
	return nil
}

// UsagePage is a page of what an org has used of quotas.
type UsagePage struct {
	Usages []Usage
	Next   string // cursor of the next page; empty: this is the last
}

// Used returns what the caller's org has used of the quotas of agents of other orgs, by agent. It has
// the agents that the org has called and the credential may reach.
func (c *Catalogue) Used(ctx context.Context, a identity.Access, after string, limit int) (UsagePage, error) {
	if err := a.For(identity.CallAgent); err != nil {
		return UsagePage{}, err
	}
	last, err := usedAfter(after)
	if err != nil {
		return UsagePage{}, err
	}
	if limit < 1 || limit > MaxFound {
		return UsagePage{}, invalid("limit", "must be between 1 and "+strconv.Itoa(MaxFound))
	}
	called, err := c.store.Quotas(ctx, a.Org(), last, limit+1)
	if err != nil {
		return UsagePage{}, err
	}
	var out UsagePage
	now := c.now()
	for i := range called {
		if i == limit {
			out.Next = usageList.At().Text(called[i-1].Agent.ID).String()
			break
		}
		if g := &called[i]; a.ReachesAgent(g.Agent.ID) {
			out.Usages = append(out.Usages, g.Counted.Usage(&g.Agent, a.Org(), now))
		}
	}
	return out, nil
}

var usageList = cursor.Of("usage")

// usedAfter returns the agent after which a page of Used begins, or "".
func usedAfter(after string) (id string, err error) {
	if after == "" {
		return "", nil
	}
	r := usageList.Read(after)
	if id = r.Text(); !r.Done() || !identity.ValidAgentID(id) {
		return "", invalid("cursor", "is not a cursor of this list; use that of the page before")
	}
	return id, nil
}

// MaxCallers is how many calling orgs the usage of an agent lists.
const MaxCallers = 100

// Callers returns what other orgs have used of the quota of an agent of the caller's org in the
// current window, those with the most tasks first.
func (c *Catalogue) Callers(ctx context.Context, by identity.Access, a *Agent) ([]Usage, error) {
	if err := by.For(identity.ManageAgents); err != nil {
		return nil, err
	}
	if a.Org != by.Org() {
		return nil, errs.ErrNotFound
	}
	if a.Quota == (Quota{}) {
		return nil, nil
	}
	now := c.now()
	start, _ := a.Quota.Per.Window(now)
	callers, err := c.store.Callers(ctx, a.Org, a.ID, start, MaxCallers)
	if err != nil {
		return nil, err
	}
	var out []Usage
	for _, caller := range callers {
		if u := caller.Counted.Usage(a, caller.Org, now); u.Used > 0 {
			out = append(out, u)
		}
	}
	return out, nil
}
