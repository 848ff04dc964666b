package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// stalling makes the world push to a receiver. Its hosts that begin with "stall" do not respond
// until release is called.
func (w *world) stalling() (r *receiver, release func()) {
	stop := make(chan struct{})
	release = sync.OnceFunc(func() { close(stop) })
	r = &receiver{answer: func(d *pushed) error {
		if strings.Contains(d.URL, "//stall") {
			<-stop
		}
		return nil
	}}
	w.pushing(r, delivery.Retry{Claim: time.Hour})
	w.Cleanup(release)
	return r, release
}

// testPushOrgs: an org whose receivers all stall, more of them than slots and each on its own
// host, does not delay pushes of another org.
func testPushOrgs(w *world) {
	r, release := w.stalling()
	greedy := w.call("other", "user:ann", "bob")
	const n = 100
	for i := range n {
		w.sendPushed(greedy, fmt.Sprint("s", i), task.PushConfig{
			ID: "stall", URL: fmt.Sprintf("https://stall-%d.example/", i),
		})
	}
	const begin, most = 8, 8 + 48 // in the fast lane, and with those that moved to the late lane
	w.until("the stalling ones hold their share", func() bool { return len(r.seqs("stall")) >= begin })
	t := w.sendPushed(w.call("acme", "user:ann", "bob"), "quick", hook("quick"))
	w.until("the other org's push arrives", func() bool { return w.push(t.UID, "quick").Cursor == 2 })
	if got := len(r.seqs("stall")); got > most {
		w.Errorf("%d deliveries of one org at once, want at most %d", got, most)
	}
	release()
	w.until("the stalling ones have all", func() bool { return len(r.seqs("stall")) == n })
}

// testPushClaims: a claim finds the row of one org behind thousands of due rows of another, and
// shares the available room.
func testPushClaims(w *world) {
	ctx := w.Context()
	w.tasks = dispatch.New(withPush(w.options()))
	greedy, honest := w.call("other", "user:ann", "bob"), w.call("acme", "user:ann", "bob")
	for i := range 50 {
		w.sendPushed(greedy, fmt.Sprint("g", i), task.PushConfig{ID: "g", URL: fmt.Sprintf("https://h%d.example/", i)})
	}
	w.sendPushed(honest, "t", hook("h"))
	w.sendPushed(honest, "u", hook("h"))
	w.advance(time.Second)
	claim := func(c delivery.Room) map[string]int {
		w.Helper()
		got, err := w.store.Deliveries().Claim(ctx, c)
		w.must(err)
		out := map[string]int{}
		for _, p := range got {
			out[p.Owner]++
			if p.Org != "acme" || p.ClaimedUntil.IsZero() {
				w.Errorf("claimed %+v, want one of acme with the end of the claim", p)
			}
		}
		return out
	}
	fast := func(most, perOrg int) delivery.Room { return roomOf(lane(most, perOrg, 2), lane(0, 0, 0)) }
	busy := func(r delivery.Room) delivery.Room {
		r.Lanes[delivery.Fast].Orgs["other"] = 8
		return r
	}
	if got := claim(busy(fast(1, 8))); got["acme"] != 1 || got["other"] != 0 {
		w.Errorf("claim beside a busy org = %v, want 1 of acme", got)
	}
	room := fast(8, 4)
	room.Lanes[delivery.Fast].Receivers[delivery.Target{Owner: "other", Receiver: "https://receiver.example"}] = 2
	room.Lanes[delivery.Fast].Receivers[delivery.Target{Owner: "acme", Receiver: "https://receiver.example"}] = 2
	if got := claim(room); got["acme"] != 0 || got["other"] != 3 {
		w.Errorf("claim beside a busy receiver = %v, want 3 of other", got)
	}
	room = fast(8, 4)
	room.Lanes[delivery.Fast].Receivers[delivery.Target{Owner: "other", Receiver: "https://receiver.example"}] = 2
	if got := claim(room); got["acme"] != 1 || got["other"] != 3 {
		w.Errorf("claim with room for 8 = %v, want 1 of acme, whose receiver is busy for another org, and 3 of other", got)
	}
	if got := claim(busy(fast(8, 8))); len(got) != 0 {
		w.Errorf("claim after all of the other org = %v, want none", got)
	}
	if got := claim(fast(64, 3)); got["other"] != 3 {
		w.Errorf("claim with 3 for each org = %v, want 3 of other", got)
	}
}

// testPushLanes: a configuration whose last attempt failed, or was slow on this node, is claimed into
// the slow lane only. Many slow ones do not hide one that works.
func testPushLanes(w *world) {
	ctx := w.Context()
	w.tasks = dispatch.New(withPush(w.options()))
	c := w.call("acme", "user:ann", "bob")
	for _, id := range []string{"failed", "slow", "new"} {
		w.sendPushed(c, id, task.PushConfig{ID: id, URL: "https://" + id + ".example/"})
	}
	w.advance(time.Second)
	store := w.store.Deliveries()
	slow := map[delivery.Key]struct{}{}
	claim := func(r delivery.Room) (ids []string) {
		w.Helper()
		r.Claim, r.SlowBefore = time.Hour, slow
		subs, err := store.Claim(ctx, r)
		w.must(err)
		for _, s := range subs {
			ids = append(ids, s.ID)
		}
		slices.Sort(ids)
		return ids
	}
	all, err := store.Claim(ctx, wideRoom())
	w.must(err)
	// retry makes those with these ids due again.
	retry := func(ids ...string) {
		w.Helper()
		for _, s := range all {
			if !slices.Contains(ids, s.ID) {
				continue
			}
			_, err := store.Update(ctx, s.Key, func(p delivery.Progress, clock time.Time) (delivery.Progress, error) {
				p.DueAt, p.ClaimedUntil = clock, time.Time{}
				if s.ID == "failed" {
					p.Attempts = 1
				}
				return p, nil
			})
			w.must(err)
		}
	}
	for _, s := range all {
		if s.ID == "slow" {
			slow[s.Key] = struct{}{}
		}
	}
	retry("failed", "slow", "new")
	if got := claim(roomOf(lane(64, 8, 4), lane(0, 0, 0))); !slices.Equal(got, []string{"new"}) {
		w.Errorf("claimed %v into the fast lane, want the new one", got)
	}
	one := func(inFlight int) delivery.Room {
		r := roomOf(lane(1, 1, 4), lane(64, 8, 4))
		r.Lanes[delivery.Slow].Receivers[delivery.Target{Owner: "acme", Receiver: "https://slow.example"}] = inFlight
		return r
	}
	if got := claim(one(4)); !slices.Equal(got, []string{"failed"}) {
		w.Errorf("claimed %v beside a full receiver, want the failed one", got)
	}
	retry("failed")
	if got := claim(one(3)); !slices.Equal(got, []string{"failed", "slow"}) {
		w.Errorf("claimed %v into the slow lane, want the failed one and the slow one", got)
	}

	const many = 100
	for i := range many {
		w.sendPushed(c, fmt.Sprint("many", i), task.PushConfig{ID: "many", URL: "https://slow.example/"})
	}
	w.advance(time.Second)
	more, err := store.Claim(ctx, roomOf(lane(4*many, many, many), lane(0, 0, 0)))
	w.must(err)
	for _, s := range more {
		slow[s.Key] = struct{}{}
	}
	all = append(all, more...)
	retry("many")
	w.advance(time.Second)
	retry("new") // due after the others
	if got := claim(one(4)); !slices.Equal(got, []string{"new"}) {
		w.Errorf("claimed %v behind %d slow ones, want the new one", got, len(more))
	}
}

// testPushBytes: pushed tasks use no more than their share of memory, and small tasks are not
// blocked by large ones.
func testPushBytes(w *world) {
	r, release := w.stalling()
	c := w.call("acme", "user:ann", "bob")
	for i := range 6 {
		_, err := w.tasks.Send(w.Context(), c, dispatch.SendRequest{
			ID: fmt.Sprint("big", i), Message: says(strings.Repeat("x", 5<<20)),
			Push: &task.PushConfig{ID: "big", URL: fmt.Sprintf("https://stall-%d.example/", i), Form: task.PushV03},
		}, 0)
		w.must(err)
	}
	w.until("large tasks are on their way", func() bool { return len(r.seqs("big")) == 3 })
	t := w.sendPushed(c, "small", hook("small"))
	w.until("a small one passes by", func() bool { return w.push(t.UID, "small").Cursor == 2 })
	if n := len(r.seqs("big")); n != 3 {
		w.Errorf("%d tasks of 5 MiB at once, want 3 in 16 MiB", n)
	}
	release()
	w.until("all large ones arrive", func() bool { return len(r.seqs("big")) == 6 })
}

// testPushReplays: the bytes that a sender makes the server push again are limited, for any
// configuration, URL, task or request.
func testPushReplays(w *world) {
	ctx := w.Context()
	r := &receiver{}
	w.pushing(r, delivery.Retry{})
	c := w.call("other", "user:ann", "bob")
	big := says(strings.Repeat("x", 7<<20))
	for _, id := range []string{"t1", "t2"} {
		_, err := w.tasks.Send(ctx, c, dispatch.SendRequest{ID: id, Message: big}, 0)
		w.must(err)
		_, err = w.tasks.Cancel(ctx, c, id, task.All)
		w.must(err)
	}
	set := func(id string, p task.PushConfig) error {
		p.Form = task.PushV03
		_, err := w.tasks.SetPush(ctx, c, id, p)
		return err
	}
	w.must(set("t1", hook("a")))
	for range 20 {
		w.must(set("t1", hook("a"))) // setting the same again costs nothing
	}
	w.must(set("t2", hook("a")))
	w.until("both are pushed", func() bool { return len(r.all()) == 2 })
	w.must(w.tasks.DeletePush(ctx, c, "t1", "a"))
	w.must(set("t1", hook("a"))) // deleted and set again: a replay
	_, err := w.tasks.Send(ctx, c, dispatch.SendRequest{ID: "t1", Message: big, Push: ptr(hook("b"))}, 0)
	w.must(err) // a repeated send with another configuration is a replay, too
	for name, err := range map[string]error{
		"another id":   set("t1", hook("c")),
		"another task": set("t2", hook("d")),
	} {
		w.want(err, errs.RateLimited)
		if e := errs.As(err); e.Code != dispatch.CodePushReplay || e.RetryAfter <= 0 {
			w.Errorf("%s: error = %+v, want code %s with a retry time", name, e, dispatch.CodePushReplay)
		}
	}
	_, err = w.tasks.Send(ctx, c, dispatch.SendRequest{ID: "t1", Message: big, Push: ptr(hook("e"))}, 0)
	w.want(err, errs.RateLimited)
	w.must(set("t1", hook("a"))) // it exists already
	// Other senders have their own budgets.
	mine := w.call("acme", "user:ann", "bob")
	_, err = w.tasks.Send(ctx, mine, dispatch.SendRequest{ID: "t", Message: big}, 0)
	w.must(err)
	_, err = w.tasks.Cancel(ctx, mine, "t", task.All)
	w.must(err)
	_, err = w.tasks.SetPush(ctx, mine, "t", hook("a"))
	w.must(err)
	w.until("what was allowed arrives", func() bool { return len(r.all()) == 5 })
	w.advance(time.Minute)
	w.must(set("t1", hook("c")))
}

func testMailbox(w *world) {
	ctx := w.Context()
	b := dispatch.MailboxLimits{Places: 6, PerOrg: 3, PerSender: 2}
	n := 0
	put := func(org, ref string) error {
		p, err := identity.ParseRef(org, ref)
		w.must(err)
		n++
		return w.store.Mailbox().Put(ctx, dispatch.DirectMessage{
			ID: fmt.Sprint("msg-", n), Org: "acme", Agent: "bob", From: p, Message: says("x"), At: w.now(),
		}, b)
	}
	refused := func(code, org, ref string) {
		w.Helper()
		err := put(org, ref)
		w.want(err, errs.RateLimited)
		if e := errs.As(err); e.Code != code || e.RetryAfter <= 0 {
			w.Errorf("%s of %s: %+v, want %s", ref, org, e, code)
		}
	}
	w.must(put("other", "user:eve"))
	w.must(put("other", "user:eve"))
	refused(dispatch.CodeSenderShare, "other", "user:eve")
	w.must(put("other", "user:mal"))
	refused(dispatch.CodeOrgShare, "other", "user:mal")
	refused(dispatch.CodeOrgShare, "other", "user:new")
	// The same name in another org is another sender, and the agent's own org has no quota.
	w.must(put("third", "user:eve"))
	w.must(put("acme", "user:eve"))
	w.must(put("acme", "user:bea"))
	refused(dispatch.CodeMailboxFull, "acme", "user:cid")
	refused(dispatch.CodeMailboxFull, "fourth", "user:dan")
	// The mailbox of another agent is separate.
	p, err := identity.ParseRef("other", "user:eve")
	w.must(err)
	w.must(w.store.Mailbox().Put(ctx, dispatch.DirectMessage{
		ID: "msg-x", Org: "acme", Agent: "local", From: p, Message: says("x"), At: w.now(),
	}, b))
	w.must(w.store.Mailbox().Put(ctx, dispatch.DirectMessage{
		ID: "msg-x", Org: "other", Agent: "bob", From: p, Message: says("x"), At: w.now(),
	}, b))
	// An acknowledged message makes room.
	w.must(w.store.Mailbox().Ack(ctx, "acme", "bob", []string{"msg-1"}))
	w.must(put("other", "user:eve"))

	_, err = w.tasks.Message(ctx, w.call("other", "user:zoe", "bob"), says(strings.Repeat("x", dispatch.MaxMessage)))
	w.want(err, errs.TooLarge)
	if errs.As(err).Code != dispatch.CodeMessageTooLarge {
		w.Errorf("error = %+v, want code %s", errs.As(err), dispatch.CodeMessageTooLarge)
	}
	_, err = w.tasks.Message(ctx, w.call("other", "user:zoe", "bob"),
		says(strings.Repeat("\x01", dispatch.MaxMessage/4)))
	w.want(err, errs.TooLarge) // escaping makes it larger
	_, err = w.tasks.Message(ctx, w.call("other", "user:zoe", "bob"), says(strings.Repeat("x", dispatch.MaxMessage-100)))
	w.must(err)
}
