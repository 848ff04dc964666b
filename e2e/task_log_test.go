package e2e

import (
	"fmt"
	"testing"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/store"
	domain "github.com/parley-dev/parley/internal/task"
)

// checkStreams reads every acknowledged task's stream from the first event: one terminal event,
// marked final, at the end.
func (f *taskFleet) checkStreams(t *testing.T, base string) {
	t.Helper()
	f.each(t, func(p peer, s *sentTask) error {
		p.base = base
		events, err := p.whole(t.Context(), s.agent, s.id)
		if err != nil {
			return err
		}
		return checkStream(events, s.state)
	})
}

// checkStream returns what is wrong with the whole stream of a task that has ended.
func checkStream(events []streamed, end string) error {
	for i, e := range events {
		last := i == len(events)-1
		switch {
		case i == 0 && e.state != "submitted":
			return fmt.Errorf("starts with %s", e.data)
		case i > 0 && e.id <= events[i-1].id:
			return fmt.Errorf("event %d follows event %d", e.id, events[i-1].id)
		case terminal(e.state) != last, e.final != last:
			return fmt.Errorf("event %d of %d is %s", i+1, len(events), e.data)
		case last && e.state != end:
			return fmt.Errorf("ends as %s, and the task is %s", e.state, end)
		}
	}
	if len(events) == 0 {
		return fmt.Errorf("has no events")
	}
	return nil
}

// checkLog reads the whole log with the leases, which no API shows. Only this function opens the
// store itself, while no server uses it. It returns how many leases expired, by agent.
func (f *taskFleet) checkLog(t *testing.T, e engine) (expired map[string]int) {
	t.Helper()
	expired = map[string]int{}
	o := store.Options{Dir: e.data[1]}
	if e.name == "postgres" {
		o = store.Options{URL: e.data[1]}
	}
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	ended := map[string]string{} // acknowledged, by agent, sender and id
	for _, s := range f.acknowledged() {
		ended[fmt.Sprintf("%s service:sender%d %s", s.agent, s.sender, s.id)] = s.state
	}
	leases, seen := 0, 0
	for _, org := range []string{f.org, "main"} { // the echo agent's org is main
		for before := ""; ; {
			rows, err := db.Tasks().List(t.Context(), dispatch.Filter{Org: org, Before: before, Limit: 500})
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) == 0 {
				break
			}
			before = rows[len(rows)-1].UID
			for _, row := range rows {
				events := readLog(t, db, row)
				n, err := checkEvents(events)
				if err != nil {
					t.Errorf("the log of task %s (%s): %v", row.ID, row.Agent, err)
				}
				leases += n
				for _, e := range events {
					if e.Ended == domain.LeaseExpired {
						expired[row.Agent]++
					}
				}
				want, acked := ended[fmt.Sprintf("%s %s %s", row.Agent, row.Sender.Ref(), row.ID)]
				if !acked {
					continue // its response was lost; any state is possible
				}
				seen++
				if got := events[len(events)-1].State; string(got) != want || !got.Terminal() {
					t.Errorf("the log of task %s ends with %q, and its sender saw %q", row.ID, got, want)
				}
			}
		}
	}
	if seen != len(ended) {
		t.Errorf("%d tasks are in the log, want %d, all that were acknowledged", seen, len(ended))
	}
	t.Logf("%s: %d leases in the log; expired: %v", e.name, leases, expired)
	return expired
}

func readLog(t *testing.T, db *store.Store, row domain.Task) (out []domain.Event) {
	t.Helper()
	for {
		events, err := db.Tasks().Events(t.Context(), row.Org, row.UID, int64(len(out)), 500)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			return out
		}
		out = append(out, events...)
	}
}

// checkEvents checks one log: numbers without gaps, nothing after the end, no lease while another
// is live, nothing of a stale report. It returns the number of leases.
func checkEvents(events []domain.Event) (leases int, err error) {
	live, over := "", false
	for i, e := range events {
		switch {
		case e.Seq != int64(i+1):
			return leases, fmt.Errorf("event %d has the number %d", i+1, e.Seq)
		case over:
			return leases, fmt.Errorf("event %d follows the end: %+v", e.Seq, e)
		case e.Artifact != nil && e.Artifact.Name == staleName:
			return leases, fmt.Errorf("event %d came under a stale lease", e.Seq)
		case e.Artifact != nil && live == "":
			return leases, fmt.Errorf("event %d came without a lease", e.Seq)
		case e.Lease != "" && e.Ended == "":
			if live != "" {
				return leases, fmt.Errorf("event %d gives the lease %s while %s is live", e.Seq, e.Lease, live)
			}
			live = e.Lease
			leases++
		case e.Lease != "":
			if live != e.Lease {
				return leases, fmt.Errorf("event %d ends the lease %s while %q is live", e.Seq, e.Lease, live)
			}
			live = ""
		}
		if over = e.Kind == domain.StatusEvent && e.State.Terminal(); over && live != "" {
			return leases, fmt.Errorf("event %d ends the task under the live lease %s", e.Seq, live)
		}
	}
	return leases, nil
}
