package storetest

import (
	"errors"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/relay"
	"github.com/parley-dev/parley/internal/task"
)

// errLost is the result of a race for those who have not won it.
var errLost = errors.New("another caller was first")

// testRelays: a relay is stored with its agent, and one node at a time checks it.
func testRelays(w *world) {
	ctx, s := w.Context(), w.store.Relays()
	w.orgs("acme", "other")
	add := func(org, id string, disabled bool) {
		w.Helper()
		_, err := w.agents.Create(ctx, agent.Agent{
			ID: id, Org: org, Name: id, Disabled: disabled, Builtin: agent.Relayed,
			Relay: &agent.Relay{URL: "https://remote.example/" + org, Card: "{}"},
		})
		w.must(err)
	}
	add("acme", "far", false)
	add("other", "far", false)
	add("acme", "off", true)
	list, err := s.Relays(ctx)
	w.must(err)
	if len(list) != 2 {
		w.Errorf("relays = %+v, want those of enabled agents", list)
	}
	got, err := s.Relay(ctx, "other", "far")
	if w.must(err); got.URL != "https://remote.example/other" || got.Key() != (task.AgentKey{Org: "other", ID: "far"}) {
		w.Errorf("relay = %+v, want that of the org", got)
	}
	_, err = s.Relay(ctx, "acme", "bob")
	w.want(err, errs.NotFound)

	later := w.now().Add(time.Hour)
	won := w.race(func() error {
		mine, err := s.BeginCheck(ctx, got.Key(), got.CheckedAt, later)
		if err == nil && !mine {
			err = errLost
		}
		return err
	})
	if won != 1 {
		w.Errorf("%d nodes check the card, want one", won)
	}
	w.must(s.SetHealth(ctx, got.Key(), "it is down", later))
	if got, err = s.Relay(ctx, "other", "far"); err != nil || got.Problem != "it is down" || !got.CheckedAt.Equal(later) {
		w.Errorf("relay = %+v, %v, want its problem", got, err)
	}
	if got, err = s.Relay(ctx, "acme", "far"); err != nil || got.Problem != "" {
		w.Errorf("relay of the other org = %+v, %v, want no problem", got, err)
	}
}

// testRelayLinks: a link is stored for each attempt, and no late writer replaces it.
func testRelayLinks(w *world) {
	ctx, s := w.Context(), w.store.Relays()
	link := func(org, uid string) (relay.Link, bool) {
		w.Helper()
		l, ok, err := s.Link(ctx, org, uid)
		w.must(err)
		return l, ok
	}
	if l, ok := link("acme", "u1"); ok {
		w.Errorf("link = %+v, want none", l)
	}
	first := relay.Link{
		Org: "acme", UID: "u1", Agent: "far", Task: "r1", Context: "c1", Forwarded: 1, Attempt: 1, CreatedAt: w.now(),
	}
	w.must(s.SaveLink(ctx, first))
	first.Forwarded = 2
	w.must(s.SaveLink(ctx, first))
	if l, ok := link("acme", "u1"); !ok || l != first {
		w.Errorf("link = %+v, want %+v", l, first)
	}
	if l, ok := link("other", "u1"); ok {
		w.Errorf("link of another org = %+v, want none", l)
	}
	late := first
	late.Task, late.Forwarded = "r2", 9 // of a node that has lost its lease
	w.must(s.SaveLink(ctx, late))
	if l, _ := link("acme", "u1"); l != first {
		w.Errorf("link = %+v, want %+v", l, first)
	}
	second := relay.Link{Org: "acme", UID: "u1", Agent: "far", Task: "r3", Forwarded: 1, Attempt: 2, CreatedAt: w.now()}
	w.must(s.SaveLink(ctx, second))
	w.must(s.SaveLink(ctx, first))
	if l, _ := link("acme", "u1"); l != second {
		w.Errorf("link = %+v, want that of the second attempt", l)
	}
	foreign := second
	foreign.Org = "other"
	for _, l := range []relay.Link{foreign, first} { // the first attempt may end after the second has begun
		w.must(s.DeleteLink(ctx, l))
		if _, ok := link("acme", "u1"); !ok {
			w.Errorf("the link was deleted with %+v", l)
		}
	}
	w.must(s.DeleteLink(ctx, second))
	if l, ok := link("acme", "u1"); ok {
		w.Errorf("link = %+v, want none", l)
	}
}

// testDueLinks: links of tasks that are over are found, each by one node.
func testDueLinks(w *world) {
	ctx, s := w.Context(), w.store.Relays()
	c := w.call("acme", "user:ann", "bob")
	open, over := w.send(c, "open", "x"), w.send(c, "over", "x")
	for _, uid := range []string{open.UID, over.UID, "deleted"} {
		w.must(s.SaveLink(ctx, relay.Link{Org: "acme", UID: uid, Agent: "bob", Task: "r-" + uid, Attempt: 1, CreatedAt: w.now()}))
	}
	due := func(now time.Time, most int) (uids map[string]bool, more bool) {
		w.Helper()
		links, more, err := s.DueLinks(ctx, now, now.Add(time.Hour), most)
		w.must(err)
		uids = map[string]bool{}
		for _, l := range links {
			if uids[l.UID] = true; !l.EndedAt.Equal(now) {
				w.Errorf("%s ended at %v, want %v", l.UID, l.EndedAt, now)
			}
		}
		return uids, more
	}
	if got, more := due(w.now(), 10); len(got) > 0 || more {
		w.Errorf("due = %v, want none before its time", got)
	}
	_, err := w.tasks.Cancel(ctx, c, "over", task.All)
	w.must(err)
	w.must(s.HurryLink(ctx, "other", over.UID))
	if got, _ := due(w.now(), 10); len(got) > 0 {
		w.Errorf("due = %v, want none: another org has hurried it", got)
	}
	w.must(s.HurryLink(ctx, "acme", over.UID))
	won := w.race(func() error {
		links, _, err := s.DueLinks(ctx, w.now(), w.now().Add(time.Minute), 10)
		if err == nil && len(links) == 0 {
			err = errLost
		}
		return err
	})
	if won != 1 {
		w.Errorf("%d nodes got the link, want one", won)
	}
	w.must(s.DeleteLink(ctx, relay.Link{Org: "acme", UID: over.UID, Attempt: 1}))
	at := w.now().Add(time.Hour)
	if got, more := due(at, 1); len(got) > 1 || !more {
		w.Errorf("due = %v, %t, want one and more", got, more)
	}
	got, more := due(at, 10)
	if delete(got, "deleted"); len(got) > 0 || more {
		w.Errorf("due = %v, want only that of the deleted task", got)
	}
}
