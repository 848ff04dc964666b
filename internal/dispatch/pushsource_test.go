package dispatch

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/stream"
	"github.com/parley-dev/parley/internal/task"
)

// logged is a store of one task.
type logged struct {
	TaskReader
	stream.Log
	events []task.Event
	from   int64 // the first event that was read
}

func (l *logged) Row(_ context.Context, _, uid string) (task.Task, error) {
	if uid != "u" {
		return task.Task{}, errs.ErrNotFound
	}
	return task.Task{ID: "t-1", UID: uid, State: task.Completed, Seq: int64(len(l.events))}, nil
}

func (l *logged) Events(_ context.Context, _, _ string, after int64, _ int) ([]task.Event, error) {
	if l.from == 0 {
		l.from = after + 1
	}
	return l.events[after:min(after+2, int64(len(l.events)))], nil
}

func TestPushesFollowTheLog(t *testing.T) {
	t.Parallel()
	says := func(text string) *task.Message {
		return &task.Message{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: text}}}
	}
	events := []task.Event{
		{Seq: 1, Kind: task.TurnEvent, Message: says("do it")},
		{Seq: 2, Kind: task.StatusEvent, State: task.Submitted},
		{Seq: 3, Kind: task.TurnEvent, Message: says("please")},
		{Seq: 4, Kind: task.StatusEvent, State: task.Working},
		{Seq: 5, Kind: task.StatusEvent, State: task.Completed},
	}
	encode := func(p *task.PushConfig, t *task.Task, e *task.Event) (map[string]string, []byte) {
		return nil, fmt.Appendf(nil, "%s of %s: %d %s, %d messages", p.ID, p.TaskID, e.Seq, t.State, len(t.History))
	}
	for name, c := range map[string]struct {
		form   task.PushForm
		cursor int64
		from   int64 // the first event that has to be read
		want   []string
	}{
		"1.0": {task.PushV1, 0, 1, []string{
			"1", "p of t-1: 2 submitted, 0 messages", "3", "p of t-1: 4 working, 0 messages",
			"p of t-1: 5 completed, 0 messages, the last",
		}},
		"1.0, from the middle": {task.PushV1, 3, 4, []string{
			"p of t-1: 4 working, 0 messages", "p of t-1: 5 completed, 0 messages, the last",
		}},
		"0.3, from the middle": {task.PushV03, 3, 1, []string{
			"p of t-1: 4 working, 2 messages", "p of t-1: 5 completed, 2 messages, the last",
		}},
		"nothing more": {task.PushV1, 5, 6, nil},
	} {
		log := &logged{events: events}
		source := pushSource{read: log, log: log, encode: encode}
		sub := &delivery.Subscription{
			Key: delivery.Key{Topic: "u", ID: "p"}, Form: string(c.form), Progress: delivery.Progress{Cursor: c.cursor},
		}
		var got []string
		for e, err := range source.Events(t.Context(), sub) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			sub.Cursor = e.Seq // as it is delivered
			text := fmt.Sprint(e.Seq)
			if e.Encode != nil {
				_, body := e.Encode()
				text = string(body)
			}
			if e.Last {
				text += ", the last"
			}
			got = append(got, text)
		}
		if !slices.Equal(got, c.want) || log.from != c.from {
			t.Errorf("%s: got %q, read from %d; want %q, from %d", name, got, log.from, c.want, c.from)
		}
	}
	source := pushSource{read: &logged{}}
	for _, err := range source.Events(t.Context(), &delivery.Subscription{}) {
		if errs.KindOf(err) != errs.NotFound {
			t.Errorf("of a deleted task: got %v; want not found", err)
		}
	}
}
