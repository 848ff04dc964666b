package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

func (w *world) catalogue() *agent.Catalogue { return agent.NewCatalogue(w.store.Agents(), w.now) }

// pinned is the presence of agents without workers.
func pinned(a *agent.Agent) string { return cmp.Or(a.Pinned, "offline") }

// find returns the ids of all pages, those of other orgs with their org.
func (w *world) find(a identity.Access, f agent.Find) (ids []string) {
	w.Helper()
	f.Status = pinned
	f.Limit = cmp.Or(f.Limit, 3)
	for {
		page, err := w.catalogue().Find(w.Context(), w.as(a, identity.ReadAgents), f)
		w.must(err)
		for _, g := range page.Agents {
			id := g.ID
			if !g.Own {
				id = g.Org + "/" + id
			}
			ids = append(ids, id)
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return ids
		}
	}
}

// testCatalogue: words are found without case and accents, the last one by its beginning. Names come
// before descriptions.
func testCatalogue(w *world) {
	w.orgs("acme", "other", "third")
	create := func(a agent.Agent) {
		w.Helper()
		_, err := w.agents.Create(w.Context(), a)
		w.must(err)
	}
	rich := agent.Agent{ID: "a-planner", Org: "acme", Name: "Planner", Description: "Plans tariffs."}
	rich.Describe([]agent.Skill{{ID: "plan", Name: "Étude de marché", Tags: []string{"market", "a_b"}}})
	rich.Profile.Provider = agent.Provider{Organization: "Acme Inc.", URL: "https://acme.example"}
	create(rich)
	create(agent.Agent{ID: "tariffs", Org: "other", Name: "Zölle", Description: "Knows customs.", Public: true, Pinned: "busy", Skills: []string{"aXb"}})
	create(agent.Agent{ID: "b-tariffs", Org: "third", Name: "Tariff table", Public: true, Skills: []string{"market"}})
	create(agent.Agent{ID: "secret", Org: "third", Name: "Tariff secret", Skills: []string{"market"}})
	create(agent.Agent{ID: "off", Org: "other", Name: "Tariff off", Public: true, Disabled: true})
	create(agent.Agent{ID: "kanji", Org: "acme", Name: "翻訳する人", Pinned: "available"})
	all := w.access("acme", "user:ann")
	const plan, zoll, table, kanji = "a-planner", "other/tariffs", "third/b-tariffs", "kanji"
	for _, c := range []struct {
		find agent.Find
		want []string
	}{
		{agent.Find{}, []string{plan, table, kanji, zoll}},
		{agent.Find{Words: "tariffs"}, []string{zoll, table, plan}}, // an id, a name, a description
		{agent.Find{Words: "TARIF"}, []string{table, zoll, plan}},
		{agent.Find{Words: "tarif table"}, nil}, // only the last word is a prefix
		{agent.Find{Words: "table tarif"}, []string{table}},
		{agent.Find{Words: "ZOLLE"}, []string{zoll}},
		{agent.Find{Words: "etude MARCHE"}, []string{plan}},
		{agent.Find{Words: "customs tariffs"}, []string{zoll}}, // a word of the description and one of the id
		{agent.Find{Words: "翻訳"}, []string{kanji}},
		{agent.Find{Words: "a%"}, []string{plan, zoll}}, // a and aXb
		{agent.Find{Words: "secret"}, nil},
		{agent.Find{Words: "off"}, nil},
		{agent.Find{Skill: "market"}, []string{plan, table}},
		{agent.Find{Skill: "Market"}, nil},
		{agent.Find{Skill: "a_b"}, []string{plan}},
		{agent.Find{Skill: "mark"}, nil},
		{agent.Find{Presence: "busy"}, []string{zoll}},
		{agent.Find{Presence: "available"}, []string{kanji}},
		{agent.Find{Presence: "offline"}, []string{plan, table}},
		{agent.Find{Presence: "offline", Words: "tariff"}, []string{table, plan}},
		{agent.Find{Org: "acme"}, []string{plan, kanji}},
		{agent.Find{Org: "other"}, nil},
	} {
		for _, limit := range []int{1, 2, 100} {
			c.find.Limit = limit
			if diff := gocmp.Diff(c.want, w.find(all, c.find)); diff != "" {
				w.Errorf("%+v (-want +got):\n%s", c.find, diff)
			}
		}
	}
	page, err := w.catalogue().Find(w.Context(), w.as(all, identity.ReadAgents), agent.Find{Words: "planner", Status: pinned})
	w.must(err)
	if len(page.Agents) != 1 || page.Agents[0].Profile.Provider.Organization != "Acme Inc." || page.Agents[0].Status != "offline" {
		w.Errorf("got %+v, want the planner with its provider", page.Agents)
	}
	for name, f := range map[string]agent.Find{
		"q": {Words: "%%"}, "skill": {Skill: "é"}, "presence": {Presence: "asleep"}, "limit": {Limit: 101}, "cursor": {Cursor: "x"},
	} {
		f.Status = pinned
		_, err := w.catalogue().Find(w.Context(), w.as(all, identity.ReadAgents), f)
		if w.want(err, errs.Invalid); errs.As(err).Fields[0].Path.String() != name {
			w.Errorf("%+v: got %v, want %s refused", f, err, name)
		}
	}
	w.testWordsMadeLater(all, plan)
}

// testWordsMadeLater: a member is renamed without its words, and so are agents by servers of earlier
// versions.
func (w *world) testWordsMadeLater(all identity.Access, id string) {
	w.Helper()
	ref := identity.Principal{Org: "acme", Kind: identity.Agent, ID: id}
	name := "Navigator"
	_, err := w.orgAdmin(identity.Quotas{}).UpdateMember(w.Context(), w.as(w.access("acme", "user:root"), identity.ManageMembers), ref,
		identity.MemberEdit{Name: &name})
	w.must(err)
	w.must(w.agents.operator.IndexWords(w.Context()))
	if diff := gocmp.Diff([]string{id}, w.find(all, agent.Find{Words: "navigator tariffs"})); diff != "" {
		w.Errorf("after a change of the name (-want +got):\n%s", diff)
	}
}

// testCatalogueAgainstModel: whatever the orgs, the agents and the scopes, the catalogue has what the
// caller reaches, and nothing else.
func testCatalogueAgainstModel(w *world) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	w.Logf("seed %d", seed)
	orgs := []string{"acme", "other", "third"}
	w.orgs(orgs...)
	var agents []agent.Agent
	for range 60 {
		a := agent.Agent{
			ID: fmt.Sprint("a", r.IntN(30)), Org: orgs[r.IntN(3)], Public: r.IntN(3) == 0, Disabled: r.IntN(6) == 0,
			Name: []string{"Red fox", "Blue fox", "Red owl"}[r.IntN(3)], Description: []string{"", "A fox."}[r.IntN(2)],
			Skills: [][]string{nil, {"x"}, {"x", "y"}}[r.IntN(3)], Pinned: []string{"", "busy"}[r.IntN(2)],
		}
		if made, err := w.agents.Create(w.Context(), a); err == nil {
			agents = append(agents, made)
		} else {
			w.want(err, errs.Conflict)
		}
	}
	for range 150 {
		org := orgs[r.IntN(3)]
		scopes := []identity.Scope{identity.TasksRead}
		if r.IntN(3) == 0 {
			for range 1 + r.IntN(12) {
				scopes = append(scopes, identity.Scope(fmt.Sprint("agent:a", r.IntN(30))))
			}
		}
		by := w.access(org, "user:ann", scopes...)
		f := agent.Find{
			Words: []string{"", "fox", "red", "fox re", "owl", "a1"}[r.IntN(6)], Skill: []string{"", "x", "y"}[r.IntN(3)],
			Presence: []string{"", "busy", "offline"}[r.IntN(3)], Org: []string{"", "", org}[r.IntN(3)], Limit: 1 + r.IntN(5),
		}
		want := expected(agents, by, f)
		got := w.find(by, f)
		if byID := func(a, b string) int { return strings.Compare(bare(a), bare(b)) }; f.Words == "" &&
			!slices.IsSortedFunc(got, byID) {
			w.Errorf("%+v: got %v, want them sorted by id", f, got)
		}
		slices.Sort(want)
		sorted := slices.Sorted(slices.Values(got))
		if diff := gocmp.Diff(want, sorted); diff != "" {
			w.Fatalf("%s with %v, %+v (-want +got):\n%s", org, scopes, f, diff)
		}
	}
}

func bare(id string) string { return id[strings.IndexByte(id, '/')+1:] }

// expected returns what the rules say, in any order.
func expected(agents []agent.Agent, by identity.Access, f agent.Find) (ids []string) {
	for i := range agents {
		a := &agents[i]
		own := a.Org == by.Org()
		hidden := !own && slices.ContainsFunc(agents, func(o agent.Agent) bool { return o.Org == by.Org() && o.ID == a.ID })
		names := " " + a.ID + " " + strings.ToLower(a.Name+" "+strings.Join(a.Skills, " ")) + " "
		text := names + strings.ToLower(strings.TrimSuffix(a.Description, ".")) + " "
		matches := true
		for i, word := range strings.Fields(f.Words) {
			if i < len(strings.Fields(f.Words))-1 {
				word += " "
			}
			matches = matches && strings.Contains(text, " "+word)
		}
		switch {
		case a.Disabled, !own && !a.Public, hidden, !by.ReachesAgent(a.ID), !matches,
			f.Skill != "" && !slices.Contains(a.Skills, f.Skill), f.Presence != "" && pinned(a) != f.Presence,
			f.Org != "" && !own:
			continue
		case own:
			ids = append(ids, a.ID)
		default:
			ids = append(ids, a.Org+"/"+a.ID)
		}
	}
	return ids
}

// testCatalogueWhileItGrows: pages have every agent that was there at the start, once, while others
// are added.
func testCatalogueWhileItGrows(w *world) {
	w.orgs("acme", "other")
	const n = 60
	for i := range n {
		w.must(w.agent("other", fmt.Sprintf("m%02d", i), true))
	}
	for _, words := range []string{"", "other"} {
		f := agent.Find{Words: words, Limit: 7, Status: pinned}
		seen := map[string]int{}
		for added := 0; ; added++ {
			page, err := w.catalogue().Find(w.Context(), w.as(w.access("acme", "user:ann"), identity.ReadAgents), f)
			w.must(err)
			for _, g := range page.Agents {
				seen[g.ID]++
			}
			for _, prefix := range []string{"a", "m30x", "z"} { // before, between and after
				w.must(w.agent("other", fmt.Sprint(prefix, words, added), true))
			}
			if f.Cursor = page.Next; f.Cursor == "" || added > 100 {
				break
			}
		}
		for i := range n {
			if id := fmt.Sprintf("m%02d", i); seen[id] != 1 {
				w.Errorf("q=%q: %s was listed %d times, want once", words, id, seen[id])
			}
		}
	}
}

// quotaWorld has an agent of org other with a quota, and task services like those of n nodes.
func (w *world) quotaWorld(q agent.Quota, n int) []*dispatch.Service {
	w.Helper()
	w.orgs("acme", "other", "third")
	_, err := w.agents.Create(w.Context(), agent.Agent{ID: "tariffs", Org: "other", Name: "T", Public: true, Quota: q})
	w.must(err)
	var nodes []*dispatch.Service
	for range n {
		o := w.options()
		o.Directory = dispatch.AgentDirectory(agent.NewDirectory(w.store.Agents(), w.now))
		nodes = append(nodes, dispatch.New(o))
	}
	return nodes
}

// sendTo sends a task to the agent with a quota.
func (w *world) sendTo(node *dispatch.Service, org, id string) error {
	w.Helper()
	c, err := node.Reach(w.Context(), w.access(org, "user:ann").Caller(), "tariffs")
	w.must(err)
	_, err = node.Tasks.Send(w.Context(), c, dispatch.SendRequest{ID: id, Message: says("hello")}, 0)
	return err
}

// used returns what an org has used of the quota, as callers see it.
func (w *world) used(node *dispatch.Service, org string) agent.Usage {
	w.Helper()
	c, err := node.Reach(w.Context(), w.access(org, "user:ann").Caller(), "tariffs")
	w.must(err)
	u, ok, err := node.Usage(w.Context(), c)
	w.must(err)
	if !ok {
		w.Fatalf("%s has no quota", org)
	}
	return u
}

// testCallQuota: senders on two nodes share a quota exactly.
func testCallQuota(w *world) {
	const most, senders, each = 25, 8, 10
	nodes := w.quotaWorld(agent.Quota{Tasks: most, Per: agent.Day}, 2)
	var sent, refused atomic.Int64
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				err := w.sendTo(nodes[(s+i)%2], "acme", fmt.Sprintf("t-%d-%d", s, i))
				switch {
				case err == nil:
					sent.Add(1)
				case errs.As(err).Code == task.CodeCalls && errs.As(err).RetryAfter > 0:
					refused.Add(1)
				default:
					w.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if sent.Load() != most || refused.Load() != senders*each-most {
		w.Errorf("%d tasks were sent and %d refused, want %d sent", sent.Load(), refused.Load(), most)
	}
	if u := w.used(nodes[0], "acme"); u.Used != most || u.Left() != 0 {
		w.Errorf("usage = %+v, want all %d used", u, most)
	}
	// Each org has its own, and the agent's org has none.
	w.must(w.sendTo(nodes[1], "third", "t-1"))
	for i := range most + 1 {
		w.must(w.sendTo(nodes[0], "other", fmt.Sprint("t-", i)))
	}
	if u := w.used(nodes[0], "third"); u.Used != 1 || u.Left() != most-1 {
		w.Errorf("usage of another org = %+v, want 1 used", u)
	}
	a, err := w.agents.Own(w.Context(), "other", "tariffs")
	w.must(err)
	callers, err := w.catalogue().Callers(w.Context(), w.as(w.access("other", "user:root"), identity.ManageAgents), &a)
	w.must(err)
	var got []string
	for _, u := range callers {
		got = append(got, fmt.Sprint(u.Caller, " ", u.Used))
	}
	if diff := gocmp.Diff([]string{"acme 25", "third 1"}, got); diff != "" {
		w.Errorf("callers (-want +got):\n%s", diff)
	}
	_, err = w.catalogue().Callers(w.Context(), w.as(w.access("acme", "user:root"), identity.ManageAgents), &a)
	w.want(err, errs.NotFound)
}

// testCallQuotaWindow: a window ends, retries and further turns do not count, and a changed quota
// holds at once.
func testCallQuotaWindow(w *world) {
	node := w.quotaWorld(agent.Quota{Tasks: 2, Per: agent.Hour}, 1)[0]
	limited := func(err error) {
		w.Helper()
		if w.want(err, errs.RateLimited); errs.As(err).Code != task.CodeCalls {
			w.Errorf("got %v, want %s", err, task.CodeCalls)
		}
	}
	for range 3 {
		w.must(w.sendTo(node, "acme", "t-1")) // a repetition
	}
	if u := w.used(node, "acme"); u.Used != 1 || u.Resets != time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC) {
		w.Errorf("after repetitions: %+v, want 1 used until 04:00", u)
	}
	w.must(w.sendTo(node, "acme", "t-2"))
	limited(w.sendTo(node, "acme", "t-3"))
	w.must(w.sendTo(node, "acme", "t-2")) // still a repetition
	page, err := w.catalogue().Used(w.Context(), w.as(w.access("acme", "user:ann"), identity.CallAgent), "", 10)
	w.must(err)
	if len(page.Usages) != 1 || page.Usages[0].Used != 2 || page.Usages[0].Left() != 0 || page.Usages[0].Agent != "tariffs" {
		w.Errorf("used = %+v, want 2 of tariffs", page)
	}
	found, err := w.catalogue().Find(w.Context(), w.as(w.access("acme", "user:ann"), identity.ReadAgents), agent.Find{Status: pinned})
	w.must(err)
	if len(found.Agents) != 1 || found.Agents[0].Usage == nil || found.Agents[0].Usage.Left() != 0 {
		w.Errorf("found %+v, want tariffs with nothing left", found)
	}
	w.advance(time.Hour)
	if u := w.used(node, "acme"); u.Used != 0 || u.Left() != 2 {
		w.Errorf("in the next window: %+v, want none used", u)
	}
	w.must(w.sendTo(node, "acme", "t-3"))
	w.must(w.sendTo(node, "acme", "t-4"))
	limited(w.sendTo(node, "acme", "t-5"))
	for _, c := range []struct {
		quota agent.Quota
		sends int
	}{
		{agent.Quota{Tasks: 3, Per: agent.Hour}, 1}, // counting goes on
		{agent.Quota{Tasks: 1, Per: agent.Minute}, 1},
		{agent.Quota{Tasks: 2, Per: agent.Day}, 2}, // counting starts again
	} {
		_, err := w.agents.Update(w.Context(), "other", "tariffs", agent.Edit{Quota: &c.quota})
		w.must(err)
		w.advance(2 * time.Second) // past the lifetime of caches
		for i := range c.sends {
			w.must(w.sendTo(node, "acme", fmt.Sprint(c.quota.Per, i)))
		}
		limited(w.sendTo(node, "acme", fmt.Sprint(c.quota.Per, "-more")))
	}
	_, err = w.agents.Update(w.Context(), "other", "tariffs", agent.Edit{Quota: &agent.Quota{}})
	w.must(err)
	w.advance(2 * time.Second)
	w.must(w.sendTo(node, "acme", "free"))
}
