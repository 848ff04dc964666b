package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// peer is a client with one key, of one server at a time.
type peer struct {
	base string
	key  string
}

// rpcAnswer is the response to one JSON-RPC request.
type rpcAnswer struct {
	status int             // of HTTP
	Result json.RawMessage `json:"result"`
	Error  *rpcFault       `json:"error"`
}

type rpcFault struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// taskView is a task as its sender sees it.
type taskView struct {
	ID     string `json:"id"`
	Status struct {
		State string `json:"state"`
	} `json:"status"`
	Artifacts []struct {
		Name string `json:"name"`
	} `json:"artifacts"`
}

// taskClient allows many connections at once and has no timeout: the context of each call has one.
var taskClient = &http.Client{Transport: sharedTransport{&http.Transport{MaxIdleConns: 512, MaxIdleConnsPerHost: 256}}}

// post sends a body as JSON; headers are "Name: value".
func post(ctx context.Context, url, key string, body any, headers ...string) (*http.Response, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	return taskClient.Do(req)
}

type object = map[string]any

func envelope(method string, params any) object {
	return object{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
}

// call makes one JSON-RPC call. The error means that no response arrived.
func (p peer) call(ctx context.Context, agent, method string, params any, headers ...string) (rpcAnswer, error) {
	var out rpcAnswer
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	res, err := post(ctx, p.base+"/a2a/"+agent, p.key, envelope(method, params), headers...)
	if err != nil {
		return out, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return out, err
	}
	out.status = res.StatusCode
	if err := json.Unmarshal(b, &out); err != nil {
		return out, unexpected{fmt.Sprintf("%s: %d %s", method, res.StatusCode, b)}
	}
	return out, nil
}

// text returns a message of one text part.
func text(s string) object {
	return object{"role": "user", "parts": []object{{"type": "text", "text": s}}}
}

// task makes a call that must return a task.
func (p peer) task(ctx context.Context, agent, method string, params any, headers ...string) (taskView, error) {
	var t taskView
	a, err := p.call(ctx, agent, method, params, headers...)
	if err != nil {
		return t, err
	}
	if a.Error != nil || a.status != http.StatusOK {
		return t, unexpected{fmt.Sprintf("%s %v: %d %+v", method, params, a.status, a.Error)}
	}
	return t, json.Unmarshal(a.Result, &t)
}

func (p peer) send(ctx context.Context, agent, id, say string, headers ...string) (taskView, error) {
	return p.task(ctx, agent, "tasks/send", object{"id": id, "message": text(say)}, headers...)
}

func (p peer) get(ctx context.Context, agent, id string) (taskView, error) {
	return p.task(ctx, agent, "tasks/get", object{"id": id})
}

// must returns a function that fails the test on an error.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// streamed is one event of a stream.
type streamed struct {
	id    int64
	data  string // the JSON as received
	state string // of a status, else empty
	final bool
}

// follower reads a stream.
type follower struct {
	res    *http.Response
	lines  *bufio.Reader
	cancel context.CancelFunc
}

// stream opens a stream; a response that is none is an error.
func (p peer) stream(ctx context.Context, agent, method string, params any, after int64) (*follower, error) {
	ctx, cancel := context.WithCancel(ctx)
	var headers []string
	if after > 0 {
		headers = append(headers, "Last-Event-ID: "+strconv.FormatInt(after, 10))
	}
	res, err := post(ctx, p.base+"/a2a/"+agent, p.key, envelope(method, params), headers...)
	if err != nil {
		cancel()
		return nil, err
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		cancel()
		return nil, unexpected{fmt.Sprintf("%s %v is no stream: %d %s", method, params, res.StatusCode, b)}
	}
	return &follower{res: res, lines: bufio.NewReader(res.Body), cancel: cancel}, nil
}

// resubscribe opens the stream of a task after an event; 0 means from the first.
func (p peer) resubscribe(ctx context.Context, agent, id string, after int64) (*follower, error) {
	return p.stream(ctx, agent, "tasks/resubscribe", object{"id": id}, after)
}

func (f *follower) close() {
	f.cancel()
	_ = f.res.Body.Close()
}

// next returns the next event, or io.EOF when the server ended the stream properly.
func (f *follower) next() (streamed, error) {
	var e streamed
	for {
		line, err := f.lines.ReadString('\n')
		if err != nil {
			if err == io.EOF && line != "" {
				err = io.ErrUnexpectedEOF
			}
			return e, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			if e.id, err = strconv.ParseInt(value, 10, 64); err != nil {
				return e, unexpected{"the id of an event is " + value}
			}
		case "data":
			e.data = value
		case "":
			if e.data != "" {
				return e, e.read()
			}
		}
	}
}

func (e *streamed) read() error {
	var m struct {
		Result *struct {
			ID     string
			Status *struct{ State string }
			Final  bool
		}
	}
	if err := json.Unmarshal([]byte(e.data), &m); err != nil || m.Result == nil || m.Result.ID == "" {
		return unexpected{fmt.Sprintf("event %d is %s (%v)", e.id, e.data, err)}
	}
	if e.final = m.Result.Final; m.Result.Status != nil {
		e.state = m.Result.Status.State
	}
	return nil
}

// rest reads to the end of the stream, which must be a proper one.
func (f *follower) rest() ([]streamed, error) {
	defer f.close()
	var out []streamed
	for {
		e, err := f.next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, e)
	}
}

// whole reads all events of a task from the first.
func (p peer) whole(ctx context.Context, agent, id string) ([]streamed, error) {
	f, err := p.resubscribe(ctx, agent, id, 0)
	if err != nil {
		return nil, err
	}
	return f.rest()
}

var terminalStates = []string{"completed", "failed", "canceled", "rejected"}

func terminal(state string) bool { return slices.Contains(terminalStates, state) }

// soon is the limit for what takes a few seconds, such as a revocation on all nodes, with room for
// a busy machine.
const soon = 3 * time.Minute

// eventually waits for a condition. The limit is generous: it ends a test that would hang, and
// measures nothing.
func eventually(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	poll(t, 10*time.Millisecond, limit, what, ok)
}

// poll is eventually with a chosen interval, for conditions that cost the server much.
func poll(t *testing.T, every, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(every) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}
