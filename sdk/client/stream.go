package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"strconv"
	"time"
)

// Event is a change of a task: a new status, or a new or growing artifact.
type Event struct {
	// ID is the number of the event; see [SubscribeParams].
	ID        string
	TaskID    string
	ContextID string
	Status    *TaskStatus
	Artifact  *Artifact
	// Append means that the artifact's parts are added to those of earlier events.
	Append bool
	// LastChunk means that the artifact is complete.
	LastChunk bool
	// Task is the task when a stream of A2A 1.0 began; nil in other events.
	Task *Task
	// Final means that the task rests, and that the stream ends here.
	Final bool
	// Raw is the encoded event.
	Raw json.RawMessage
}

// eventJSON is an event in all forms of A2A.
type eventJSON struct {
	ID        string          `json:"id"`
	TaskID    string          `json:"taskId"`
	ContextID string          `json:"contextId"`
	Status    *TaskStatus     `json:"status"`
	Artifact  json.RawMessage `json:"artifact"`
	Final     bool            `json:"final"`
	chunk

	Task           *Task      `json:"task"`           // 1.0
	StatusUpdate   *eventJSON `json:"statusUpdate"`   // 1.0
	ArtifactUpdate *eventJSON `json:"artifactUpdate"` // 1.0
}

type chunk struct {
	Append    bool `json:"append"`
	LastChunk bool `json:"lastChunk"`
}

func newEvent(id string, raw json.RawMessage) (Event, error) {
	var in eventJSON
	if err := json.Unmarshal(raw, &in); err != nil {
		return Event{}, fmt.Errorf("unexpected event in the stream: %w", err)
	}
	body, official := &in, true
	switch {
	case in.StatusUpdate != nil:
		body = in.StatusUpdate
	case in.ArtifactUpdate != nil:
		body = in.ArtifactUpdate
	default:
		official = in.Task != nil
	}
	e := Event{
		ID: id, TaskID: cmp.Or(body.TaskID, body.ID), ContextID: body.ContextID,
		Status: body.Status, Task: in.Task, Final: body.Final, Raw: raw,
	}
	if body.Artifact != nil {
		var inner chunk
		err := errors.Join(json.Unmarshal(body.Artifact, &e.Artifact), json.Unmarshal(body.Artifact, &inner))
		if err != nil {
			return Event{}, fmt.Errorf("unexpected event in the stream: %w", err)
		}
		e.Append, e.LastChunk = body.Append || inner.Append, body.LastChunk || inner.LastChunk
	}
	if t := e.Task; t != nil {
		e.TaskID, e.ContextID, e.Final = t.ID, t.ContextID, t.Status.State.Terminal()
	}
	if official && e.Status != nil {
		e.Final = e.Status.State.Rests()
	}
	return e, nil
}

// Stream sends a task and iterates over its events until it rests. A further message on a
// live task begins with its own events. The stream survives broken connections; an error
// is its last value. The iterator can be used once.
func (a *AgentClient) Stream(ctx context.Context, p SendParams, opts ...Option) iter.Seq2[Event, error] {
	if err := p.complete(); err != nil {
		return func(yield func(Event, error) bool) { yield(Event{}, err) }
	}
	f := a.follow(p.ID, opts)
	f.first = a.rpc("tasks/sendSubscribe", p, true)
	return f.events(ctx)
}

// SubscribeParams selects where to begin.
type SubscribeParams struct {
	After string // the ID of the last known event; if empty, the stream begins with the first event
}

// Subscribe iterates over the events of a task that the caller sent, until it rests. The iterator
// can be used once.
func (a *AgentClient) Subscribe(
	ctx context.Context, id string, p SubscribeParams, opts ...Option,
) iter.Seq2[Event, error] {
	f := a.follow(id, opts)
	f.first, f.last = f.resume(), p.After
	return f.events(ctx)
}

func (a *AgentClient) follow(id string, opts []Option) *follower {
	f := &follower{c: a.c, opts: opts, task: id}
	f.resume = func() call { return a.rpc("tasks/resubscribe", taskParams{ID: id}, true) }
	return f
}

// follower follows the events of a task over as many connections as necessary.
type follower struct {
	c      *Client
	opts   []Option
	first  call        // opens the stream
	resume func() call // continues it
	task   string      // its id, once it is known
	last   string      // id of the last event
}

// maxBroken is how many connections in a row may break without a single event.
const maxBroken = 8

// events returns an iterator that can be used once.
func (f *follower) events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		stopped := false
		each := func(e Event) bool {
			stopped = !yield(e, nil)
			return !stopped
		}
		if err := f.run(ctx, each); err != nil && !stopped {
			yield(Event{}, err)
		}
	}
}

// run calls each until it returns false or the last event arrives.
func (f *follower) run(ctx context.Context, each func(Event) bool) error {
	return f.c.reconnect(ctx, func() (end connectionEnd) {
		before := f.last
		end.wish, end.err = f.connect(ctx, each)
		end.worked, end.repeatable = f.last != before, f.last != "" || f.first.repeat
		return end
	})
}

// connectionEnd says how one connection of a stream ended.
type connectionEnd struct {
	err        error         // nil: the stream is over
	wish       time.Duration // how long the server wants the client to wait before it reconnects
	worked     bool          // the connection was of use
	repeatable bool          // the request may be sent again
}

// reconnect calls connect until the stream is over, or another connection cannot help.
func (c *Client) reconnect(ctx context.Context, connect func() connectionEnd) error {
	for broken := 1; ; broken++ {
		end := connect()
		switch {
		case end.err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if end.worked {
			broken = 1
		}
		wait, repeats := c.retry.after(end.err, broken, end.repeatable)
		if !repeats || broken >= maxBroken || c.retry.Attempts == 1 {
			return end.err
		}
		wait = max(wait, min(end.wish, c.retry.MaxRetryAfter))
		left := c.retry.left(end.err, wait, broken, maxBroken)
		again := Retrying{Err: end.err, Wait: wait, Left: left, Attempt: broken, Stream: true}
		if err := c.pause(ctx, again); err != nil {
			return err
		}
	}
}

// connect follows one connection. It returns nil at the end of the stream, and how long the server
// wants the client to wait before it reconnects.
func (f *follower) connect(ctx context.Context, each func(Event) bool) (time.Duration, error) {
	r := f.first
	if f.last != "" {
		r = f.resume()
		r.set("Last-Event-ID", f.last)
	}
	return f.c.stream(ctx, r, f.opts, func(id string, raw json.RawMessage) (bool, error) {
		e, err := newEvent(id, raw)
		if err != nil || !f.isNew(id) {
			return err == nil, err
		}
		if id != "" {
			f.last = id
		}
		if f.task == "" {
			f.task = e.TaskID
		}
		return each(e) && !e.Final, nil
	})
}

// isNew reports whether an event is newer than the last one.
func (f *follower) isNew(id string) bool {
	n, err := strconv.ParseUint(id, 10, 64)
	last, lastErr := strconv.ParseUint(f.last, 10, 64)
	return err != nil || lastErr != nil || n > last
}

// eachEvent gets the id and the result of an event, and reports whether to continue.
type eachEvent func(id string, result json.RawMessage) (bool, error)

// stream opens a stream of JSON-RPC responses and calls each for every one until it returns false.
func (c *Client) stream(ctx context.Context, r call, opts []Option, each eachEvent) (time.Duration, error) {
	return c.sse(ctx, r, opts, func(res *http.Response, e sseEvent) (bool, error) {
		if e.data == nil {
			return true, nil
		}
		result, err := c.rpcResult(res, e.data)
		if err != nil {
			return false, err
		}
		return each(e.id, result)
	})
}

// sse opens a stream and calls each for every event until it returns false.
func (c *Client) sse(
	ctx context.Context, r call, opts []Option, each func(*http.Response, sseEvent) (bool, error),
) (time.Duration, error) {
	body, err := c.prepare(ctx, &r, opts)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.set("Accept", "text/event-stream, application/json;q=0.9")
	watchdog := time.AfterFunc(silence, func() { cancel(fmt.Errorf("the stream was silent for %s", silence)) })
	defer watchdog.Stop()
	endless := *c.http
	endless.Timeout = 0
	res, err := c.send(ctx, &endless, &r, body)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if r.response != nil {
		*r.response = Response{Status: res.StatusCode, Header: res.Header}
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode != http.StatusOK || media != "text/event-stream" {
		return 0, c.notStream(res)
	}
	events := newSSEReader(heard{res.Body, func() { watchdog.Reset(silence) }}, c.maxResponse)
	for {
		e, err := events.next()
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return events.retry, &ConnectionError{Server: c.base, Err: err}
		}
		if more, err := each(res, e); err != nil || !more {
			return events.retry, err
		}
	}
}

// notStream returns the error in a response that is not a stream.
func (c *Client) notStream(res *http.Response) error {
	body, err := c.readAll(res)
	switch {
	case err != nil:
		return err
	case res.StatusCode/100 != 2:
		return newError(res, body)
	}
	if _, err := c.rpcResult(res, body); err != nil {
		return err
	}
	return errors.New("the response of the server is not an event stream")
}
