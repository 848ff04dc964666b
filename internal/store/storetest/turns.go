package storetest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/stream"
	"github.com/parley-dev/parley/internal/task"
)

// between is a store in which something happens once between a write and the read that follows.
type between struct {
	dispatch.TaskReader
	stream.Log
	then func()
}

func (b *between) happen() {
	if then := b.then; then != nil {
		b.then = nil
		then()
	}
}

func (b *between) ByUID(ctx context.Context, org, uid string, l task.Content) (task.Task, error) {
	b.happen()
	return b.TaskReader.ByUID(ctx, org, uid, l)
}

func (b *between) Events(ctx context.Context, org, uid string, after int64, most int) ([]task.Event, error) {
	b.happen()
	return b.Log.Events(ctx, org, uid, after, most)
}

// testTurnsAgain: messages that a worker has not seen are delivered again, because the response
// that contained them may have been lost.
func testTurnsAgain(w *world) {
	ctx := w.Context()
	c, p := w.call("acme", "user:ada", "bot"), w.post("bot")
	w.send(c, "t", "one")
	a := w.claim(p)
	seen := a.Task.Seq
	report := func(r task.Report, want ...string) int64 {
		w.Helper()
		got, err := w.tasks.Report(ctx, p, a.Lease.Token, r)
		w.must(err)
		var heard []string
		for _, m := range got.Turns {
			heard = append(heard, m.Parts[0].Text)
		}
		if !slices.Equal(heard, want) {
			w.Errorf("the worker heard %q, want %q", heard, want)
		}
		return got.Seen
	}
	w.send(c, "t", "two")
	report(task.Report{Seen: &seen}, "two")
	w.send(c, "t", "three")
	made := task.ArtifactUpdate{Artifact: task.Artifact{Parts: []task.Part{{Kind: task.TextPart, Text: "x"}}}}
	report(task.Report{Seen: &seen, Artifacts: []task.ArtifactUpdate{made}}, "two", "three")
	last := report(task.Report{Seen: &seen}, "two", "three")
	if again := report(task.Report{Seen: &last}); again != last {
		w.Errorf("seen after an empty report = %d, want %d", again, last)
	}
	report(task.Report{}) // a response contained all of it
	w.send(c, "t", "four")
	report(task.Report{}, "four")
	report(task.Report{})
	last = report(task.Report{Seen: &last}, "four")
	for _, wrong := range []int64{-1, last + 1} {
		_, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Completed, Seen: &wrong})
		w.want(err, errs.Invalid)
	}
	report(task.Report{State: task.Completed, Seen: &last})
}

// testTurnsOnce: messages that the sender sends while a worker claims or reports reach the
// worker once.
func testTurnsOnce(w *world) {
	ctx := w.Context()
	o := w.options()
	store := &between{TaskReader: o.Stores.Read, Log: o.Stores.Log}
	o.Stores.Read, o.Stores.Log = store, store
	s := dispatch.New(o)
	c, p := w.call("acme", "user:ada", "bot"), w.post("bot")
	one := strings.Repeat("one ", 20<<10) // too large to be read by the claim itself
	w.send(c, "t", one)
	store.then = func() { w.send(c, "t", "two") }
	claim, err := s.Claim(ctx, p, dispatch.ClaimRequest{Worker: "w1", Max: 1, Lease: time.Minute, Capacity: 1})
	w.must(err)
	if len(claim.Assignments) != 1 || store.then != nil {
		w.Fatalf("claim = %+v, want 1 assignment", claim)
	}
	var heard []string
	hear := func(said []task.Message) {
		for _, m := range said {
			if m.Role == task.RoleUser {
				heard = append(heard, m.Parts[0].Text)
			}
		}
	}
	a := claim.Assignments[0]
	hear(a.Task.History)
	report := func() {
		w.Helper()
		got, err := s.Report(ctx, p, a.Lease.Token, task.Report{})
		w.must(err)
		hear(got.Turns)
	}
	report()
	w.send(c, "t", "three")
	store.then = func() { w.send(c, "t", "four") }
	report()
	report()
	report()
	if want := []string{one, "two", "three", "four"}; store.then != nil || !slices.Equal(heard, want) {
		w.Errorf("the worker heard %.20q, want %.20q", heard, want)
	}
}
