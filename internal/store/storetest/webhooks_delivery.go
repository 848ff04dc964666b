package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/webhook"
)

// testWebhookOrder: each webhook gets each selected event once and in order, although several
// nodes deliver; filtered events are passed.
func testWebhookOrder(w *world) {
	w.orgs("acme", "other")
	r := &hookReceiver{}
	h := w.hooks(r, delivery.Retry{})
	q := h.quiet()                                                          // 1
	all := h.create("https://a.example/")                                   // 2
	none := h.create("https://b.example/", event.KeyCreated)                // 3
	changes := h.create("https://a.example/2", event.WebhookChanged)        // 4
	foreign := h.of("other").create("https://a.example/", event.KeyCreated) // of another log
	h.run()
	w.hooks(r, delivery.Retry{}).run()
	h.happen(q, 30) // 5 to 34
	h.passed(all.ID)
	h.passed(changes.ID)
	h.passed(none.ID)
	want := []int64{3, 4}
	for i := int64(5); i <= 34; i++ {
		want = append(want, i)
	}
	w.wantHook(r, all.ID, want...)
	w.wantHook(r, changes.ID, want[2:]...)
	w.wantHook(r, none.ID)
	w.wantHook(r, foreign.ID)
	if r.double {
		w.Error("a webhook had two requests in flight")
	}
	list, err := h.Deliveries(w.Context(), h.admin, all.ID, 0)
	w.must(err)
	if len(list) != 32 || list[0].Seq != 34 || list[0].Attempt != 1 || list[0].Status != 200 || list[0].Response != "ok" ||
		list[0].Outcome != delivery.Delivered || list[0].Type != event.WebhookChanged || list[0].ID == list[1].ID ||
		list[0].EventID == "" || list[0].Redelivery {
		w.Errorf("deliveries = %d, the last %+v; want 32, the last of event 34", len(list), list[0])
	}
	if list, err := h.Deliveries(w.Context(), h.admin, none.ID, 0); err != nil || len(list) != 0 {
		w.Errorf("deliveries of the webhook without events = %v, %v; want none", list, err)
	}
}

// testWebhookLog: the last 100 attempts are kept.
func testWebhookLog(w *world) {
	ctx := w.Context()
	w.orgs("acme")
	r := &hookReceiver{}
	h := w.hooks(r, delivery.Retry{})
	q, all := h.quiet(), h.create("https://a.example/")
	h.run()
	h.happen(q, 98)
	h.passed(all.ID)
	r.answers(func(*delivery.Request) error { return errors.New("not now") })
	var pings []webhook.Delivery
	for range 5 {
		d, err := h.Ping(ctx, h.admin, all.ID)
		w.must(err)
		if d.Outcome != delivery.Failed || d.Error != "not now" || d.Type != webhook.Ping || d.Seq != 0 || d.Attempt != 1 {
			w.Errorf("ping = %+v, want a failed one", d)
		}
		pings = append(pings, d)
	}
	list, err := h.Deliveries(ctx, h.admin, all.ID, 0)
	w.must(err)
	if len(list) != 100 || list[0].ID != pings[4].ID || list[4].EventID != pings[0].EventID || list[99].Seq != 6 {
		w.Errorf("deliveries = %d from %+v to %+v; want 100, from the last ping to event 6", len(list), list[0], list[99])
	}
	if some, err := h.Deliveries(ctx, h.admin, all.ID, 3); err != nil || len(some) != 3 || some[0].ID != list[0].ID {
		w.Errorf("3 deliveries = %v, %v", some, err)
	}
	_, err = h.Deliveries(ctx, h.admin, all.ID, 101)
	w.want(err, errs.Invalid)
	if got := h.get(all.ID); got.State != webhook.Active || got.Attempts != 0 || got.Cursor != got.Head {
		w.Errorf("after pings = %+v, want no failure", got)
	}
}

// testWebhookFails: a webhook that keeps failing is given up, with an event; set active again, it
// continues where it stopped.
func testWebhookFails(w *world) {
	ctx := w.Context()
	w.orgs("acme")
	r := &hookReceiver{answer: func(*delivery.Request) error { return errors.New("it is broken") }}
	h := w.hooks(r, delivery.Retry{First: time.Millisecond, Most: time.Millisecond, For: 100 * time.Millisecond})
	q := h.quiet()                                               // 1
	all := h.create("https://a.example/", event.WebhookChanged)  // 2
	watch := h.create("https://b.example/", event.WebhookFailed) // 3
	gone := h.create("https://gone.example/", event.KeyCreated)  // 4
	r.answers(func(req *delivery.Request) error {
		if req.Receiver == "https://b.example" {
			return nil
		}
		return errors.New("it is broken")
	})
	h.run()
	h.happen(q, 3) // 5 to 7
	var got webhook.Webhook
	w.until("the webhook is given up", func() bool {
		w.advance(20 * time.Millisecond)
		got = h.get(all.ID)
		if got.Attempts > 1 && got.State == webhook.Active && got.FailingSince.IsZero() {
			w.Errorf("failing webhook = %+v, want the time of its first failure", got)
		}
		return got.State == webhook.Failed
	})
	if got.Cursor >= 5 || got.Attempts < 2 || got.LastError != "it is broken" || !got.NextAttemptAt.IsZero() {
		w.Errorf("failed webhook = %+v, want the cursor before event 5 and no next attempt", got)
	}
	for _, seq := range r.seqs(all.ID) {
		if seq != 5 {
			w.Errorf("event %d was sent before event 5 was delivered", seq)
		}
	}
	if list := h.logged(all.ID); !slices.Equal(list, []event.Type{event.WebhookCreated, event.WebhookFailed}) {
		w.Errorf("events = %v, want that it failed", list)
	}
	h.passed(watch.ID)
	w.wantHook(r, watch.ID, 8)
	sent := len(r.seqs(all.ID))
	behind, err := w.store.Webhooks().Behind(ctx)
	w.must(err)
	if behind.Failed != 1 {
		w.Errorf("counts = %+v, want 1 failed", behind)
	}
	r.answers(nil)
	active := webhook.Active
	again, err := h.Update(ctx, h.admin, all.ID, webhook.Edit{State: &active}) // 9
	w.must(err)
	if again.State != webhook.Active || again.Attempts != 0 || again.LastError != "" || !again.FailingSince.IsZero() {
		w.Errorf("activated = %+v, want no failures", again)
	}
	h.passed(all.ID)
	if got := r.seqs(all.ID)[sent:]; !slices.Equal(got, []int64{5, 6, 7, 9}) {
		w.Errorf("events after the activation = %v, want 5, 6, 7, 9", got)
	}

	// A receiver that is gone is given up at once.
	r.answers(func(req *delivery.Request) error {
		if req.Receiver == "https://gone.example" {
			return refused{errors.New("gone")}
		}
		return nil
	})
	types := []event.Type{event.WebhookChanged}
	_, err = h.Update(ctx, h.admin, gone.ID, webhook.Edit{Types: &types})
	w.must(err)
	w.until("the other one is given up", func() bool { return h.get(gone.ID).State == webhook.Failed })
	if n := len(r.seqs(gone.ID)); n != 1 {
		w.Errorf("attempts = %d, want 1", n)
	}
	if list, err := h.Deliveries(ctx, h.admin, gone.ID, 0); err != nil || len(list) != 1 ||
		list[0].Outcome != delivery.GivenUp || list[0].Error != "gone" {
		w.Errorf("deliveries = %+v, %v; want one that was given up", list, err)
	}
}

// testWebhookLost: if a node is lost during a delivery, the next one repeats it under the same id,
// and later results of the first node are ignored. Events whose news was lost are found.
func testWebhookLost(w *world) {
	w.orgs("acme")
	retry := delivery.Retry{Claim: 400 * time.Millisecond}
	stuck := make(chan struct{})
	lost := &hookReceiver{answer: func(*delivery.Request) error {
		<-stuck
		return errors.New("this result must be ignored")
	}}
	first := w.hooks(lost, retry)
	q := first.quiet()
	all := first.create("https://a.example/", event.WebhookChanged)
	first.happen(q, 2) // 3 and 4
	first.run()
	w.until("the first node is at it", func() bool { return len(lost.seqs(all.ID)) == 1 })
	next := &hookReceiver{}
	second := w.hooks(next, retry)
	second.run()
	if len(next.seqs(all.ID)) != 0 {
		w.Error("the second node delivers although the first has the claim")
	}
	w.advance(retry.Claim + time.Millisecond) // once: the second node has a claim of its own then
	w.until("the second node has delivered all", func() bool { return len(next.seqs(all.ID)) == 2 })
	w.wantHook(next, all.ID, 3, 4)
	if a, b := lost.first(), next.first(); a != b {
		w.Errorf("ids of one event = %s and %s, want the same", a, b)
	}
	close(stuck)
	second.passed(all.ID)
	if list, err := second.Deliveries(w.Context(), second.admin, all.ID, 0); err != nil || len(list) != 2 {
		w.Errorf("deliveries = %+v, %v; want those of the second node", list, err)
	}
}

// testWebhookPause: a paused webhook gets nothing, and later all.
func testWebhookPause(w *world) {
	ctx := w.Context()
	w.orgs("acme")
	r := &hookReceiver{}
	h := w.hooks(r, delivery.Retry{})
	q := h.quiet()                                              // 1
	all := h.create("https://a.example/", event.WebhookChanged) // 2
	paused, active := webhook.Paused, webhook.Active
	_, err := h.Update(ctx, h.admin, all.ID, webhook.Edit{State: &paused}) // 3
	w.must(err)
	h.happen(q, 3) // 4 to 6
	h.settled()
	if got, _, err := w.store.Webhooks().Claim(ctx, wideRoom(), []string{"acme"}); err != nil || len(got) != 0 {
		w.Errorf("claimed %+v, %v; want nothing", got, err)
	}
	behind, err := w.store.Webhooks().Behind(ctx)
	w.must(err)
	if len(behind.Orgs) != 0 || behind.Due != 0 {
		w.Errorf("behind = %+v, want nothing", behind)
	}
	_, err = h.Update(ctx, h.admin, all.ID, webhook.Edit{State: &active}) // 7
	w.must(err)
	h.run()
	h.passed(all.ID)
	w.wantHook(r, all.ID, 3, 4, 5, 6, 7)
}

func wideRoom() delivery.Room { return roomOf(lane(64, 8, 4), lane(64, 8, 4)) }

func roomOf(fast, slow delivery.Lane) delivery.Room {
	return delivery.Room{
		Lanes: [2]delivery.Lane{delivery.Fast: fast, delivery.Slow: slow}, Late: lane(128, 48, 0),
		Bytes: 1 << 20, BytesPerOrg: 1 << 20, Held: map[string]int64{}, Claim: time.Minute,
	}
}

func lane(most, perOrg, perReceiver int) delivery.Lane {
	return delivery.Lane{
		Free: most, PerOrg: perOrg, PerReceiver: perReceiver,
		Orgs: map[string]int{}, Receivers: map[delivery.Target]int{},
	}
}

// testWebhookClaims: a claim takes what is due and fits, of orgs with news only; an edit ends it.
func testWebhookClaims(w *world) {
	ctx := w.Context()
	w.orgs("acme", "other")
	h := w.hooks(&hookReceiver{}, delivery.Retry{})
	store := w.store.Webhooks()
	q := h.quiet()
	for range 4 {
		h.create("https://slow.example/", event.WebhookChanged)
	}
	o := h.of("other")
	oq := o.quiet()
	o.create("https://fast.example/")
	h.happen(q, 1)
	o.happen(oq, 1)
	h.settled()
	o.settled()
	if got, _, err := store.Claim(ctx, wideRoom(), nil); err != nil || len(got) != 0 {
		w.Errorf("claimed without news %+v, %v; want nothing", got, err)
	}
	behind, err := store.Behind(ctx)
	w.must(err)
	if slices.Sort(behind.Orgs); !slices.Equal(behind.Orgs, []string{"acme", "other"}) || behind.Due != 5 {
		w.Errorf("behind = %+v, want 5 of both orgs", behind)
	}
	room := wideRoom()
	room.Lanes[delivery.Fast].Receivers[delivery.Target{Owner: "acme", Receiver: "https://slow.example"}] = 2
	got, left, err := store.Claim(ctx, room, []string{"acme", "other", "none"})
	w.must(err)
	perOrg := map[string]int{}
	for _, s := range got {
		perOrg[s.Org]++
		if s.Kind != webhook.Kind || s.Owner != s.Org || s.ClaimedUntil.IsZero() || s.Cursor >= s.Head {
			w.Errorf("claimed %+v", s)
		}
	}
	if perOrg["acme"] != 2 || perOrg["other"] != 1 || !slices.Equal(left, []string{"acme"}) {
		w.Errorf("claimed %v and left %v; want 2 of acme, 1 of other, and acme left", perOrg, left)
	}
	if again, _, err := store.Claim(ctx, wideRoom(), []string{"other"}); err != nil || len(again) != 0 {
		w.Errorf("claimed twice: %+v, %v", again, err)
	}
	rest, left, err := store.Claim(ctx, wideRoom(), []string{"acme"})
	if err != nil || len(rest) != 2 || len(left) != 0 {
		w.Errorf("claimed %+v, left %v, %v; want the other two", rest, left, err)
	}
	// An edit ends the claim: the result of the delivery is refused, and it is due again.
	types := []event.Type{event.WebhookChanged, event.KeyCreated}
	_, err = h.Update(ctx, h.admin, rest[0].ID, webhook.Edit{Types: &types})
	w.must(err)
	h.settled()
	_, err = store.Progress(ctx, "acme", rest[0].ID, func(p delivery.Progress, _ time.Time) (delivery.Progress, error) {
		if !p.ClaimedUntil.IsZero() || !p.DueAt.IsZero() {
			w.Errorf("progress after an edit = %+v, want no claim", p)
		}
		return p, errs.ErrNotFound
	})
	w.want(err, errs.NotFound)
	again, _, err := store.Claim(ctx, wideRoom(), []string{"acme"})
	if err != nil || len(again) != 1 || again[0].ID != rest[0].ID {
		w.Errorf("claimed %+v, %v; want the edited one", again, err)
	}
}

// testWebhookLanes: a webhook whose last attempt failed, or was slow on this node, is claimed into the
// slow lane only.
func testWebhookLanes(w *world) {
	ctx := w.Context()
	w.orgs("acme")
	h := w.hooks(&hookReceiver{}, delivery.Retry{})
	store := w.store.Webhooks()
	q := h.quiet()
	for i := range 4 {
		h.create(fmt.Sprintf("https://h%d.example/", i), event.WebhookChanged)
	}
	h.happen(q, 1)
	h.settled()
	claimed, _, err := store.Claim(ctx, wideRoom(), []string{"acme"})
	w.must(err)
	idle := func(p delivery.Progress, _ time.Time) (delivery.Progress, error) {
		p.DueAt, p.ClaimedUntil = time.Time{}, time.Time{}
		return p, nil
	}
	for i, s := range claimed { // two have failed, and are due again
		change := idle
		if i >= 2 {
			change = func(p delivery.Progress, clock time.Time) (delivery.Progress, error) {
				p.Attempts, p.DueAt, p.ClaimedUntil = 1, clock, time.Time{}
				return p, nil
			}
		}
		_, err = store.Progress(ctx, "acme", s.ID, change)
		w.must(err)
	}
	w.advance(time.Second)
	none, slow := lane(0, 0, 0), map[delivery.Key]struct{}{claimed[1].Key: {}}
	room := roomOf(lane(64, 8, 4), none)
	room.SlowBefore = slow
	got, left, err := store.Claim(ctx, room, []string{"acme"})
	if err != nil || len(got) != 1 || got[0].ID != claimed[0].ID || len(left) != 1 {
		w.Errorf("claimed %+v into the fast lane, left %v, %v; want the one that works", got, left, err)
	}
	room = roomOf(none, lane(64, 2, 4))
	room.SlowBefore = slow
	if got, left, err = store.Claim(ctx, room, []string{"acme"}); err != nil || len(got) != 2 || len(left) != 1 {
		w.Errorf("claimed %+v into the slow lane, left %v, %v; want two", got, left, err)
	}
	room = roomOf(none, lane(64, 2, 4))
	room.SlowBefore = slow
	if got, left, err = store.Claim(ctx, room, []string{"acme"}); err != nil || len(got) != 1 || len(left) != 0 {
		w.Errorf("claimed %+v into the slow lane, left %v, %v; want the last", got, left, err)
	}
}

// testRedelivery: one event, or all since a time, are sent again under their own ids.
func testRedelivery(w *world) {
	ctx := w.Context()
	w.orgs("acme")
	r := &hookReceiver{}
	h := w.hooks(r, delivery.Retry{})
	q := h.quiet()                                              // 1
	all := h.create("https://a.example/", event.WebhookChanged) // 2
	h.run()
	h.happen(q, 3) // 3 to 5
	h.passed(all.ID)
	w.advance(10 * time.Minute)
	since := w.now()
	w.advance(time.Second)
	h.happen(q, 4) // 6 to 9
	h.passed(all.ID)
	list, err := h.Deliveries(ctx, h.admin, all.ID, 0)
	w.must(err)
	one := list[len(list)-2] // event 4
	d, err := h.Redeliver(ctx, h.admin, all.ID, one.EventID)
	w.must(err)
	if d.Seq != 4 || d.EventID != one.EventID || !d.Redelivery || d.Outcome != delivery.Delivered || d.ID == one.ID {
		w.Errorf("redelivered %+v, want event 4", d)
	}
	w.wantHook(r, all.ID, 3, 4, 5, 6, 7, 8, 9, 4)
	if got := h.get(all.ID); got.Cursor != 9 {
		w.Errorf("cursor = %d, want 9", got.Cursor)
	}
	// An event that is not among the deliveries is found in the log, if the webhook may get it.
	page, err := w.store.Events().Page(ctx, "acme", event.Query{
		Filter: event.Filter{Viewer: event.Viewer{Admin: true}}, Limit: 100,
	})
	w.must(err)
	later := h.create("https://b.example/", event.WebhookChanged) // 10
	d, err = h.Redeliver(ctx, h.admin, later.ID, page.Events[4].ID)
	w.must(err)
	if d.Seq != 5 {
		w.Errorf("redelivered %+v, want event 5", d)
	}
	_, err = h.Redeliver(ctx, h.admin, later.ID, page.Events[1].ID) // a webhook was created
	if w.want(err, errs.NotFound); errs.As(err).Code != "webhook.no_event" {
		w.Errorf("error = %v, want webhook.no_event", err)
	}
	_, err = h.Redeliver(ctx, h.admin, later.ID, "evt-unknown")
	w.want(err, errs.NotFound)
	_, err = h.Redeliver(ctx, h.admin, later.ID, "evt-' OR 1")
	w.want(err, errs.Invalid)

	sent := len(r.seqs(all.ID))
	moved, err := h.RedeliverSince(ctx, h.admin, all.ID, since)
	w.must(err)
	if moved.Cursor != 5 {
		w.Errorf("cursor = %d, want 5, the last event before the time", moved.Cursor)
	}
	h.passed(all.ID)
	if got := r.seqs(all.ID)[sent:]; !slices.Equal(got, []int64{6, 7, 8, 9}) {
		w.Errorf("redelivered %v, want 6 to 9", got)
	}
	if moved, err = h.RedeliverSince(ctx, h.admin, all.ID, w.now()); err != nil || moved.Cursor != 10 {
		w.Errorf("without events since then: cursor %d, %v; want 10", moved.Cursor, err)
	}
	_, err = h.RedeliverSince(ctx, h.admin, all.ID, w.now().Add(time.Hour))
	w.want(err, errs.Invalid)
	sent = len(r.seqs(all.ID))
	_, err = h.RedeliverSince(ctx, h.admin, all.ID, w.now().Add(-24*time.Hour))
	w.must(err)
	h.passed(all.ID)
	if got := r.seqs(all.ID)[sent:]; !slices.Equal(got, []int64{3, 4, 5, 6, 7, 8, 9}) {
		w.Errorf("redelivered %v, want 3 to 9", got)
	}
}
