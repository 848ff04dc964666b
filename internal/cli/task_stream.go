package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// watch shows a task's events until it rests, and returns the exit code as an error.
func (e *env) watch(
	ctx context.Context, r *remote, s subject, events iter.Seq2[client.Event, error], show func(*client.Event) error,
) error {
	var state client.TaskState // the last one received
	for event, err := range events {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil && e.ctx.Err() == nil {
			if e.unsent() {
				return r.explain(e, s, e.lost)
			}
			e.notOver(s)
			break // the wait is over, which is no failure
		}
		if err != nil {
			return e.interrupted(s, r.explain(e, s, err))
		}
		e.sending = false
		if event.Status != nil {
			state = event.Status.State
		}
		if err := show(&event); err != nil {
			return err
		}
	}
	return endOf(state)
}

// shower returns a function that prints events: as lines of JSON, or states on stderr and
// artifacts on stdout, so that a file receives only the artifacts.
func (e *env) shower(asJSON bool) func(*client.Event) error {
	if asJSON {
		return func(event *client.Event) error { return e.printRaw(event.Raw) }
	}
	s := &taskShow{out: e.stdout, log: e.stderr, p: e.palette()}
	return s.show
}

// taskShow prints a task's events for people.
type taskShow struct {
	out, log io.Writer
	p        palette
	artifact string // id of the one printed last
	open     bool   // the text on out does not end with a line break
	midLine  bool   // nor does the text on the terminal, which shows log, too
}

func (s *taskShow) show(u *client.Event) error {
	if u.Artifact != nil {
		return s.grow(u.Artifact, u.Append)
	}
	if u.Status == nil {
		return nil
	}
	at := u.Status.Timestamp.UTC().Format(time.TimeOnly)
	line := s.p.dim(at) + "  " + s.p.status(cleanLine(string(u.Status.State)))
	if text := cleanLine(messageText(u.Status.Message)); text != "" {
		line += "  " + text
	}
	switch {
	case u.Final && s.open:
		if _, err := io.WriteString(s.out, "\n"); err != nil {
			return err
		}
		s.open = false
	case s.midLine:
		line = "\n" + line // not to out, where the artifact may continue
	}
	s.midLine = false
	_, err := fmt.Fprintln(s.log, line)
	return err
}

// grow prints an artifact, or a further piece of the one before.
func (s *taskShow) grow(a *client.Artifact, more bool) error {
	text := clean(partsText(a.Parts))
	if text == "" {
		return nil
	}
	if s.open && (!more || a.ID != s.artifact) {
		text = "\n" + text
	}
	s.artifact, s.open = a.ID, !strings.HasSuffix(text, "\n")
	s.midLine = s.open
	_, err := io.WriteString(s.out, text)
	return err
}
