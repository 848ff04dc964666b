package conformance

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/sdk/client"
)

// serverRestart: the server is killed and started again while handlers run. They finish under their
// first lease.
func serverRestart(t *testing.T, s *scene) {
	d := s.hire(t, terms{concurrency: 3}) // one claims while two work
	sleeps, grows := s.send(t, "sleep 2000 slept"), s.send(t, "grow 8 250")
	d.await(t, "start", 2)
	s.restart(t, time.Second)
	s.completes(t, sleeps, "slept")
	s.completes(t, grows, "1;2;3;4;5;6;7;8;")
	s.executedOnce(t, sleeps)
	s.executedOnce(t, grows)
	s.completes(t, s.send(t, "echo after"), "after")
}

// restart kills the server and starts it again after the outage. Meanwhile the worker's connections
// are refused.
func (s *scene) restart(t *testing.T, outage time.Duration) {
	t.Helper()
	s.proxy.down()
	s.site.kill()
	time.Sleep(outage)
	s.site.start(t)
	s.proxy.up(t)
}

// manyTasks: tasks are sent and executed while the server is killed again and again. Each is
// executed at least once and completed exactly once.
func manyTasks(t *testing.T, s *scene) {
	const senders = 8
	tasks, kills := fromEnv(t, "PARLEY_SDK_TASKS", 300), fromEnv(t, "PARLEY_SDK_KILLS", 2)
	began := time.Now()
	d := s.hire(t, terms{concurrency: 32, lease: 5 * time.Second})
	ids := make(chan string, tasks)
	for i := range tasks {
		s.sent = append(s.sent, fmt.Sprintf("task-%d", i))
		ids <- s.sent[i]
	}
	close(ids)
	var sending sync.WaitGroup
	for range senders {
		sending.Go(func() {
			for id := range ids {
				m := client.NewMessage(client.Text("echo " + id))
				if _, err := s.admin.Agent(s.agent).Send(t.Context(), client.SendParams{ID: id, Message: m}); err != nil {
					t.Errorf("send %s: %v", id, err)
				}
			}
		})
	}
	for i := range kills {
		goal := tasks * (i + 1) / (kills + 1)
		await(t, fmt.Sprintf("%d handlers", goal), d.ended, func() bool { return d.count(t, "end", "") >= goal })
		s.restart(t, 0)
	}
	sending.Wait()
	await(t, "the end of all tasks", d.ended, func() bool { return d.count(t, "end", "") >= tasks && s.open(t) == 0 })
	took := time.Since(began)
	again := 0
	for id, r := range s.records(t, s.agent) {
		if r.State != task.Completed || r.text() != id {
			t.Errorf("%s is %s with the artifacts %q, want it completed with %q", id, r.State, r.text(), id)
		}
		again += len(r.attempts) - 1
	}
	t.Logf("%d tasks, %d kills of the server, %d further leases, %v: %.0f tasks/s",
		tasks, kills, again, took.Round(time.Millisecond), float64(tasks)/took.Seconds())
}

// open counts tasks that are not completed.
func (s *scene) open(t *testing.T) (n int) {
	t.Helper()
	for _, state := range []client.TaskState{client.TaskSubmitted, client.TaskWorking} {
		page, err := s.admin.OrgTasks.List(t.Context(), client.OrgTaskListParams{Agent: s.agent, State: state, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Items)
	}
	return n
}

// text returns the text of all artifacts in the log.
func (r *record) text() (out string) {
	for i := range r.log {
		if a := r.log[i].Artifact; a != nil {
			for _, p := range a.Parts {
				out += p.Text
			}
		}
	}
	return out
}

// fromEnv returns the number in an environment variable, or short if it is not set.
func fromEnv(t *testing.T, name string, short int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return short
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s = %q, want a positive number", name, v)
	}
	return n
}
