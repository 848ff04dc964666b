package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/parley-dev/parley/internal/pgtest"
)

// threeNodes starts three servers on one PostgreSQL.
func threeNodes(t *testing.T) (engine, []*server) {
	t.Helper()
	e := engine{"postgres", []string{"--database", pgtest.URL(t)}}
	var out []*server
	for range 3 {
		out = append(out, serve(t, e.as(t, fmt.Sprint("node", len(out))), calm...))
	}
	return e, out
}

// as returns the same database with another role.
func (e engine) as(t *testing.T, role string) engine {
	t.Helper()
	db := must(pgx.Connect(t.Context(), e.data[1]))(t)
	defer func() { _ = db.Close(context.WithoutCancel(t.Context())) }()
	// Roles belong to all databases, so another test may have created it, even right now.
	if _, err := db.Exec(t.Context(), `DO $$ BEGIN
			CREATE ROLE `+role+` LOGIN SUPERUSER;
		EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
		END $$`); err != nil {
		t.Fatal(err)
	}
	u := must(url.Parse(e.data[1]))(t)
	u.User = url.User(role)
	return engine{e.name, []string{e.data[0], u.String()}}
}

// TestTaskNodes sends on one node, claims on a second and streams on a third.
func TestTaskNodes(t *testing.T) {
	t.Parallel()
	_, nodes := threeNodes(t)
	o := newTaskOrg(t, nodes[0], "nodes")
	// Each node plays each part once.
	for turn := range nodes {
		send, claim, read := nodes[turn], nodes[(turn+1)%3], nodes[(turn+2)%3]
		id := fmt.Sprintf("turn%d", turn)
		on := func(s *server) peer { return peer{base: s.base, key: o.sender} }
		h := o.hand()
		h.base = claim.base

		// The worker waits before there is a task: the notification must reach it.
		claimed := make(chan []work, 1)
		go func() {
			got, err := h.claim(t.Context(), 1, 60, 600)
			if err != nil {
				t.Errorf("claim on the second node: %v", err)
			}
			claimed <- got
		}()
		must(on(send).send(t.Context(), o.agent, id, "go"))(t)
		got := <-claimed
		if len(got) != 1 {
			t.Fatalf("the second node gives %d tasks, want 1", len(got))
		}
		w := got[0]
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		f := must(on(read).resubscribe(ctx, o.agent, id, 0))(t)
		next := func(state string) {
			t.Helper()
			if e, err := f.next(); err != nil || e.state != state {
				t.Fatalf("the third node streams %+v, %v; want %q", e, err, state)
			}
		}
		next("submitted")
		next("working")
		start := time.Now()
		if _, status, err := h.report(ctx, w.Lease, object{"artifacts": []object{artifact("part", "one")}}); err != nil ||
			status != 200 {
			t.Fatalf("report: got %d, %v; want 200", status, err)
		}
		next("")
		t.Logf("an event took %v from the second node to the third", time.Since(start).Round(time.Millisecond))
		// A cancel on one node reaches the worker on another.
		if turn == 2 {
			must(on(send).task(ctx, o.agent, "tasks/cancel", object{"id": id}))(t)
			if p, _, err := h.report(ctx, w.Lease, object{}); err != nil || !p.Canceled {
				t.Errorf("report = %+v, %v; want canceled", p, err)
			}
			next("canceled")
		} else {
			if _, status, err := h.report(ctx, w.Lease, object{"status": "completed"}); err != nil || status != 200 {
				t.Fatalf("report: got %d, %v; want 200", status, err)
			}
			next("completed")
		}
		rest, err := f.rest()
		if err != nil || len(rest) > 0 {
			t.Errorf("events after the end = %v, %v; want none", rest, err)
		}
		cancel()
		want := must(on(read).whole(t.Context(), o.agent, id))(t)
		o.cutAfterwards(t, nodes, id, want)
	}
}

// TestTaskNodeLost kills one of three nodes while tasks run on all of them. Its workers and
// senders go on elsewhere, another node takes over what ran inside it, and every acknowledged task
// ends.
func TestTaskNodeLost(t *testing.T) {
	t.Parallel()
	const senders, workers = 12, 8
	e, nodes := threeNodes(t)
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	f := newTaskFleet(t, nodes[0], senders)
	all := []string{nodes[0].base, nodes[1].base, nodes[2].base}
	f.serveOn(all...)
	stop := f.hire(t, workers, rng)
	f.sendAll(t, rng, func() {
		f.awaitAcks(t, 1000)
		f.serveOn(all[0], all[2])
		f.loseWith(t, e, nodes[1])
		// Those that lost their connection have stopped; the others go on.
		f.awaitAcks(t, 300)
	})
	f.finish(t)
	stop()
	f.tryAllStale(t)
	f.checkStreams(t, all[0])
	// The streams are the same on every node.
	f.each(t, func(p peer, s *sentTask) error {
		if s.sender%4 != 0 {
			return nil // a sample is enough
		}
		one, err := peer{all[0], p.key}.whole(t.Context(), s.agent, s.id)
		if err != nil {
			return err
		}
		other, err := peer{all[2], p.key}.whole(t.Context(), s.agent, s.id)
		if err == nil && !cmp.Equal(datas(one), datas(other)) {
			err = fmt.Errorf("two nodes stream it differently:\n%s", cmp.Diff(datas(one), datas(other)))
		}
		return err
	})
	nodes[0].Kill()
	nodes[2].Kill()
	e.settle(t)
	if taken := f.checkLog(t, e)["echo"]; taken < heldTasks {
		t.Errorf("%d tasks of the agent inside the lost node were taken over, want at least %d", taken, heldTasks)
	}
	t.Logf("%d tasks acknowledged: %v", len(f.acknowledged()), f.ends())
}

// loseWith kills a node while the agent inside it works on tasks. The echo agent is too fast to
// interrupt, so a lock in the database delays its reports.
func (f *taskFleet) loseWith(t *testing.T, e engine, s *server) {
	t.Helper()
	ctx := t.Context()
	db := must(pgx.Connect(ctx, e.data[1]))(t)
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	run := func(sql string) {
		t.Helper()
		if _, err := db.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	run(`SELECT pg_advisory_lock(42)`)
	run(`CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF OLD.id LIKE 'held-%' THEN PERFORM pg_advisory_xact_lock_shared(42); END IF;
			RETURN NEW;
		END $$`)
	run(`CREATE TRIGGER hold BEFORE UPDATE ON tasks FOR EACH ROW EXECUTE FUNCTION hold()`)
	for i := range heldTasks {
		held := &sentTask{agent: "echo", id: fmt.Sprintf("held-%d", i), acked: true}
		got := must(peer{s.base, f.peers[0]}.send(ctx, "echo", held.id, "go"))(t)
		if held.state = got.Status.State; held.state != "working" {
			t.Errorf("state of the task at the agent in this process = %s, want working", held.state)
		}
		f.mu.Lock()
		f.tasks = append(f.tasks, held)
		f.mu.Unlock()
	}
	s.Kill()
	// PostgreSQL may still hold reports of the killed server and would carry them out.
	role := must(url.Parse(s.data[1]))(t).User.Username()
	eventually(t, soon, "the database has ended what the killed server began", func() bool {
		var left int
		err := db.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE usename = $1 AND datname = current_database()`, role).Scan(&left)
		if err != nil {
			t.Fatal(err)
		}
		return left == 0
	})
	run(`DROP TRIGGER hold ON tasks`)
	run(`SELECT pg_advisory_unlock(42)`)
}

const heldTasks = 3

// awaitAcks waits for the given number of further responses.
func (f *taskFleet) awaitAcks(t *testing.T, n int64) {
	t.Helper()
	goal := f.acks.Load() + n
	for deadline := time.Now().Add(3 * time.Minute); f.acks.Load() < goal && !t.Failed(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("the servers gave %d answers in three minutes, want %d", f.acks.Load()-goal+n, n)
			return
		}
	}
}
