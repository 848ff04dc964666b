package dispatch

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// Failure is a group of failed tasks of an agent with the same message.
type Failure struct {
	Text   string // empty: without a message
	Count  int
	Latest time.Time
	Tasks  []task.Task // the newest ones, newest first
}

const (
	// maxFailed limits the failed tasks that are grouped: the newest ones.
	maxFailed     = 200
	maxSame       = 3   // tasks that a group names
	maxFailedText = 300 // bytes by which messages are compared
)

// Failures groups the latest failed and rejected tasks of an agent of the org by their message,
// the most frequent first; for admins.
func (s *Tasks) Failures(ctx context.Context, a identity.Access, agent string) ([]Failure, error) {
	if err := a.For(identity.ReadTasks); err != nil {
		return nil, err
	}
	if !identity.ValidAgentID(agent) {
		return nil, errs.ErrNotFound
	}
	failed, err := s.board.read.Failed(ctx, a.Org(), agent, maxFailed)
	if err != nil {
		return nil, err
	}
	return groupFailures(failed), nil
}

// groupFailures groups failed tasks, which are sorted newest first.
func groupFailures(failed []task.Task) []Failure {
	var out []Failure
	at := map[string]int{}
	for i := range failed {
		t := &failed[i]
		text := failureText(t)
		n, known := at[text]
		if !known {
			n = len(out)
			at[text] = n
			out = append(out, Failure{Text: text, Latest: t.UpdatedAt})
		}
		g := &out[n]
		g.Count++
		if t.UpdatedAt.After(g.Latest) {
			g.Latest = t.UpdatedAt
		}
		if len(g.Tasks) < maxSame {
			g.Tasks = append(g.Tasks, *t)
		}
	}
	sortFailures(out)
	return out
}

// failureText returns the beginning of the message of a failed task.
func failureText(t *task.Task) string {
	if t.Message == nil {
		return ""
	}
	text := strings.TrimSpace(t.Message.Text())
	if len(text) > maxFailedText {
		text = strings.ToValidUTF8(text[:maxFailedText], "") + "…"
	}
	return text
}

// sortFailures sorts the most frequent first, and equal ones by time.
func sortFailures(list []Failure) {
	slices.SortStableFunc(list, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Latest.Compare(a.Latest))
	})
}
