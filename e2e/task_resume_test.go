package e2e

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTaskResume cuts a stream after every event and resumes it with Last-Event-ID. The pieces
// must equal an uncut stream: while the task runs, after it ended, across a crash and, on
// PostgreSQL, on another node.
func TestTaskResume(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e engine) {
		t.Parallel()
		s := serve(t, e, calm...)
		o := newTaskOrg(t, s, "resume")
		nodes := []*server{s}
		if e.name == "postgres" {
			nodes = append(nodes, serve(t, e, calm...))
		}
		p := o.peer()

		uncut := make(chan []streamed, 1)
		f := must(p.stream(t.Context(), o.agent, "tasks/sendSubscribe", object{"id": "long", "message": text("go")}, 0))(t)
		go func() {
			all, err := f.rest()
			if err != nil {
				t.Errorf("the uncut stream: %v", err)
			}
			uncut <- all
		}()
		lease := o.hand().take(t, 600).Lease
		cut := newCutter(t, nodes, p, o.agent, "long")
		cut.step() // what the claim made
		for i := range 6 {
			o.tell(t, lease, object{"status": "working", "message": says(fmt.Sprintf("step %d", i))})
			o.tell(t, lease, object{"artifacts": []object{artifact("part", fmt.Sprintf("piece %d", i))}})
			cut.step()
		}
		o.tell(t, lease, object{"status": "completed", "artifacts": []object{artifact("result", "done")}})
		cut.finish()
		all := <-uncut
		if d := cmp.Diff(datas(all), datas(cut.events)); d != "" {
			t.Errorf("cut while it ran (-uncut +resumed):\n%s", d)
		}
		if err := checkStream(all, "completed"); err != nil {
			t.Error(err)
		}
		o.cutAfterwards(t, nodes, "long", all)

		o.overPauses(t, nodes)
		o.acrossCrashes(t, e, nodes)
	})
}

// cutter follows a task in pieces: one event at a time, each on another node.
type cutter struct {
	t      *testing.T
	nodes  []*server
	p      peer
	agent  string
	id     string
	events []streamed
}

func newCutter(t *testing.T, nodes []*server, p peer, agent, id string) *cutter {
	return &cutter{t: t, nodes: nodes, p: p, agent: agent, id: id}
}

// step opens a stream after the last known event, reads one event and closes it.
func (c *cutter) step() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), soon)
	defer cancel()
	p := c.p
	p.base = c.nodes[len(c.events)%len(c.nodes)].base
	after := int64(0)
	if n := len(c.events); n > 0 {
		after = c.events[n-1].id
	}
	f, err := p.resubscribe(ctx, c.agent, c.id, after)
	if err != nil {
		c.t.Fatalf("resume after event %d: %v", after, err)
	}
	defer f.close()
	e, err := f.next()
	if err != nil {
		c.t.Fatalf("the event after %d: %v", after, err)
	}
	if e.id <= after {
		c.t.Fatalf("resumed after event %d: got event %d, want a later one", after, e.id)
	}
	c.events = append(c.events, e)
}

// finish takes steps to the end of the task, after which no event may follow.
func (c *cutter) finish() {
	c.t.Helper()
	for !c.events[len(c.events)-1].final {
		c.step()
	}
	last := c.events[len(c.events)-1].id
	for _, n := range c.nodes {
		p := c.p
		p.base = n.base
		f := must(p.resubscribe(c.t.Context(), c.agent, c.id, last))(c.t)
		if more, err := f.rest(); err != nil || len(more) > 0 {
			c.t.Errorf("after the final event: got %v, %v; want nothing", more, err)
		}
	}
}

// cutAfterwards resumes the stream of a finished task after every event, on every node.
func (o *taskOrg) cutAfterwards(t *testing.T, nodes []*server, id string, want []streamed) {
	t.Helper()
	for _, n := range nodes {
		p := o.peer()
		p.base = n.base
		for at := range len(want) + 1 {
			after := int64(0)
			if at > 0 {
				after = want[at-1].id
			}
			f := must(p.resubscribe(t.Context(), o.agent, id, after))(t)
			rest, err := f.rest()
			if err != nil {
				t.Errorf("after event %d: %v", after, err)
			}
			if d := cmp.Diff(datas(want[at:]), datas(rest)); d != "" {
				t.Errorf("resumed after event %d (-want +got):\n%s", after, d)
			}
		}
	}
}

// tell reports under a lease that must be live.
func (o *taskOrg) tell(t *testing.T, lease string, body object) {
	t.Helper()
	if p, status, err := o.hand().report(t.Context(), lease, body); err != nil || status != 200 {
		t.Fatalf("report %v: got %d %+v, %v; want 200", body, status, p, err)
	}
}

// overPauses follows a task that asks for input twice: its stream ends each time, and resumes with
// the input.
func (o *taskOrg) overPauses(t *testing.T, nodes []*server) {
	t.Helper()
	p := o.peer()
	var pieces []streamed
	for i := range 3 {
		say := object{"id": "pause", "message": text(fmt.Sprintf("turn %d", i))}
		f := must(p.stream(t.Context(), o.agent, "tasks/sendSubscribe", say, 0))(t)
		w := o.hand().take(t, 600)
		if w.turns() != i+1 {
			t.Errorf("the worker has %d turns, want %d", w.turns(), i+1)
		}
		status := "input-required"
		if i == 2 {
			status = "completed"
		}
		o.tell(t, w.Lease, object{"status": status, "artifacts": []object{artifact("part", say["id"].(string))}})
		pieces = append(pieces, must(f.rest())(t)...)
		if last := pieces[len(pieces)-1]; last.state != status || !last.final {
			t.Errorf("turn %d ends with %s, want %s and final", i, last.data, status)
		}
	}
	for _, n := range nodes {
		p.base = n.base
		all := must(p.whole(t.Context(), o.agent, "pause"))(t)
		if err := checkStream(all, "completed"); err != nil {
			t.Error(err)
		}
		// A pause that is over no longer ends the stream.
		over := strings.NewReplacer(`"final":true`, `"final":false`)
		if d := cmp.Diff(over.Replace(strings.Join(datas(pieces), "\n")),
			over.Replace(strings.Join(datas(all), "\n"))); d != "" {
			t.Errorf("over pauses (-pieces +whole):\n%s", d)
		}
		o.cutAfterwards(t, []*server{n}, "pause", all)
	}
}

// acrossCrashes kills the servers between any two events. A reader that keeps its stream until the
// crash and then resumes sees the same events as one that reads everything at the end.
func (o *taskOrg) acrossCrashes(t *testing.T, e engine, nodes []*server) {
	t.Helper()
	p := o.peer()
	must(p.send(t.Context(), o.agent, "crash", "go"))(t)
	lease := o.hand().take(t, 600).Lease
	cut := newCutter(t, nodes[:1], p, o.agent, "crash")
	cut.step()
	cut.step()
	for i := range 3 {
		p.base = o.server.base
		f := must(p.resubscribe(t.Context(), o.agent, "crash", cut.events[len(cut.events)-1].id))(t)
		o.tell(t, lease, object{"status": "working", "message": says(fmt.Sprintf("before crash %d", i))})
		ev, err := f.next()
		if err != nil {
			t.Fatal(err)
		}
		cut.events = append(cut.events, ev)
		// Committed and acknowledged, but perhaps not streamed any more.
		o.tell(t, lease, object{"artifacts": []object{artifact("part", fmt.Sprintf("at crash %d", i))}})
		for _, n := range nodes {
			n.Kill()
		}
		for err == nil {
			if ev, err = f.next(); err == nil {
				cut.events = append(cut.events, ev)
			}
		}
		if err == io.EOF {
			t.Error("stream of a killed server ended with EOF, want it broken")
		}
		f.close()
		e.settle(t)
		o.server = serve(t, e, calm...)
		nodes = []*server{o.server}
		cut.nodes, cut.p.base = nodes, o.server.base
	}
	o.tell(t, lease, object{"status": "completed"})
	cut.finish()
	p.base = o.server.base
	all, err := p.whole(t.Context(), o.agent, "crash")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(datas(all), datas(cut.events)); d != "" {
		t.Errorf("across crashes (-uncut +resumed):\n%s", d)
	}
	if n := strings.Count(strings.Join(datas(all), "\n"), "crash "); n != 6 {
		t.Errorf("the log has %d events acknowledged around crashes, want 6:\n%v", n, datas(all))
	}
	o.cutAfterwards(t, nodes, "crash", all)
}

// datas returns the events as received, with their ids.
func datas(events []streamed) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = fmt.Sprintf("%d %s", e.id, e.data)
	}
	return out
}
