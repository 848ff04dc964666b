package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// taskUpdate is one event of a task's stream: a status or an artifact.
type taskUpdate struct {
	Status   *taskStatus   `json:"status"`
	Artifact *taskArtifact `json:"artifact"`
	Final    bool          `json:"final"`
}

// follower follows a task's events to the end, over as many connections as it takes.
type follower struct {
	cl    *client
	agent string
	id    string
	open  call // what opens the first stream; the zero value: tasks/resubscribe
	show  func(id string, raw json.RawMessage, u *taskUpdate) error

	last  string // id of the last event
	state string // as last heard
}

// maxBroken is how many connections in a row may break without a single event.
const maxBroken = 8

// run returns the state in which the stream ended.
func (f *follower) run(ctx context.Context) (string, error) {
	for broken := 1; ; broken++ {
		before := f.last
		retry, err := f.once(ctx)
		switch {
		case err == nil:
			return f.state, nil
		case ctx.Err() != nil:
			return f.state, ctx.Err()
		}
		if f.last != before {
			broken = 1
		}
		wait, again := patience(call{safe: true}, err, min(broken, maxAttempts-1))
		if !again || broken >= maxBroken {
			return f.state, err
		}
		wait = max(wait, retry)
		f.cl.notice(fmt.Sprintf("%s; going on in %s", reason(err), wait.Round(100*time.Millisecond)))
		if err := f.cl.sleep(ctx, wait); err != nil {
			return f.state, err
		}
	}
}

// once follows one connection; nil: the last event has come.
func (f *follower) once(ctx context.Context) (time.Duration, error) {
	r := f.open
	if f.last != "" || r.path == "" {
		// To send again would be safe, but only this goes on exactly after the last event.
		var err error
		if r, err = rpcCall(f.agent, "tasks/resubscribe", map[string]any{"id": f.id}, true); err != nil {
			return 0, err
		}
		if f.last != "" {
			r.header = map[string]string{"Last-Event-ID": f.last}
		}
	}
	return f.cl.stream(ctx, r, func(id string, raw json.RawMessage) (bool, error) {
		var u taskUpdate
		if err := json.Unmarshal(raw, &u); err != nil {
			return false, fmt.Errorf("the stream has not the expected form: %w", err)
		}
		if id != "" {
			f.last = id
		}
		if u.Status != nil {
			f.state = u.Status.State
		}
		return !u.Final, f.show(id, raw, &u)
	})
}

// watch shows a task's events until it rests, and returns the exit code as an error.
func (e *env) watch(ctx context.Context, f *follower) error {
	state, err := f.run(ctx)
	if errors.Is(err, context.DeadlineExceeded) && e.ctx.Err() == nil {
		err = nil // the wait is over, which is no failure
		f.cl.notice("the task is not over yet; go on with: parley task watch " + f.agent + " " + f.id)
	}
	if err != nil {
		return err
	}
	return endOf(state)
}

// shower prints events: as JSON, one a line, or states on stderr and artifacts on
// stdout, so that a file gets the artifacts alone.
func (e *env) shower(asJSON bool) func(string, json.RawMessage, *taskUpdate) error {
	if asJSON {
		return func(_ string, raw json.RawMessage, _ *taskUpdate) error { return e.printRaw(raw) }
	}
	s := &taskShow{out: e.stdout, log: e.stderr, p: e.palette()}
	return s.show
}

// taskShow prints a task's events for people.
type taskShow struct {
	out, log io.Writer
	p        palette
	artifact string // that was printed last
	open     bool   // what went to out does not end with a line's end
	midLine  bool   // nor does what a terminal shows
}

func (s *taskShow) show(_ string, _ json.RawMessage, u *taskUpdate) error {
	if u.Artifact != nil {
		return s.grow(u.Artifact)
	}
	if u.Status == nil {
		return nil
	}
	line := s.p.dim(u.Status.Timestamp.UTC().Format(time.TimeOnly)) + "  " + s.p.status(cleanLine(u.Status.State))
	if text := cleanLine(u.Status.Message.text()); text != "" {
		line += "  " + text
	}
	switch {
	case u.Final && s.open:
		if _, err := io.WriteString(s.out, "\n"); err != nil {
			return err
		}
		s.open = false
	case s.midLine:
		line = "\n" + line // not to out, where the artifact may go on
	}
	s.midLine = false
	_, err := fmt.Fprintln(s.log, line)
	return err
}

// grow prints an artifact, or a further piece of the one before.
func (s *taskShow) grow(a *taskArtifact) error {
	text := clean(partsText(a.Parts))
	if text == "" {
		return nil
	}
	if s.open && (!a.Append || a.ID != s.artifact) {
		text = "\n" + text
	}
	s.artifact, s.open = a.ID, !strings.HasSuffix(text, "\n")
	s.midLine = s.open
	_, err := io.WriteString(s.out, text)
	return err
}
