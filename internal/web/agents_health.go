package web

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
)

// failureRow is a group of failed tasks with the same message.
type failureRow struct {
	dispatch.Failure
	Key    string // of the message, for morphing
	Latest []taskRow
}

// refusedRow is a request of a worker that was refused.
type refusedRow struct {
	KeyID, By string
	Why       string
	At        time.Time
}

// shownFailures limits the groups on the page of an agent.
const shownFailures = 5

// health adds what only admins see: the workers, the queue, failures and refused requests.
func (v *visit) health(g *agent.Agent, view *agentView) error {
	if !view.MayManage {
		return nil
	}
	if g.Builtin == "" {
		state, err := v.connecting(g)
		if err != nil {
			return err
		}
		view.Worker = &state
	}
	if g.Builtin == "" || view.Relay != nil {
		one := []crewRow{{agentRow: view.agentRow}}
		if err := v.addCrews(one); err != nil {
			return err
		}
		view.Queued = one[0].Waiting
	}
	a, err := v.access(identity.ManageAgents)
	if err != nil {
		return err
	}
	if view.Callers, err = v.Catalogue.Callers(v.r.Context(), a, g); err != nil {
		return err
	}
	view.Failures, err = v.failures(g.ID)
	return err
}

// failures returns the latest failures of an agent, grouped by message.
func (v *visit) failures(id string) ([]failureRow, error) {
	a, err := v.access(identity.ReadTasks)
	if err != nil {
		return nil, err
	}
	list, err := v.Tasks.Failures(v.r.Context(), a, id)
	if err != nil {
		return nil, err
	}
	var out []failureRow
	for _, f := range list[:min(len(list), shownFailures)] {
		sum := sha256.Sum256([]byte(f.Text))
		row := failureRow{Failure: f, Key: hex.EncodeToString(sum[:6])}
		for i := range f.Tasks {
			t := &f.Tasks[i]
			row.Latest = append(row.Latest, taskRow{
				ID: t.ID, Href: v.orgTaskPath(t.UID), State: t.State, UpdatedAt: t.UpdatedAt,
			})
		}
		out = append(out, row)
	}
	return out, nil
}

// refusedRows returns refused requests in words.
func refusedRows(list []dispatch.Refusal) []refusedRow {
	out := make([]refusedRow, len(list))
	for i, r := range list {
		out[i] = refusedRow{KeyID: r.KeyID, By: r.Principal.Ref(), Why: connectionTitles[r.Reason], At: r.At}
	}
	return out
}
