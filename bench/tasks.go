package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

const (
	getters    = 8 // callers of tasks/get
	fewSenders = 64
	taskSends  = "task send → completed (limit: SDK in memory)"
	taskFew    = "task send → completed, 64 callers (limit: SDK in memory)"
	taskSteps  = "task send → completed (limit: SDK in memory, the same events)"
	taskV1     = "SendMessage of A2A 1.0 → completed (limit: SDK in memory)"
	taskStream = "task stream, start to end (limit: SDK in memory)"
	taskGets   = "task get (limit: bare POST echo)"
	taskWork   = "task through HTTP workers; p50, p99: send to claim"
	taskPaced  = "the same at 300 a second"
	taskPG     = "task send → completed (limit: pgbench simple-update)"
	taskWorkPG = "task through HTTP workers (limit: pgbench simple-update)"
	bot        = "bench-bot"
)

// rpcCall is a JSON-RPC request with one message. The echo decodes and encodes only this.
type rpcCall struct {
	Version string    `json:"jsonrpc"`
	ID      int       `json:"id"`
	Method  string    `json:"method"`
	Params  rpcParams `json:"params"`
}

type rpcParams struct {
	ID      string      `json:"id,omitempty"`
	Message *rpcMessage `json:"message,omitempty"`
}

type rpcMessage struct {
	Role      string    `json:"role"`
	MessageID string    `json:"messageId,omitempty"`
	Parts     []rpcPart `json:"parts"`
}

type rpcPart struct {
	Type string `json:"type,omitempty"`
	Text string `json:"text"`
}

func (c rpcCall) body() string {
	c.Version, c.ID = "2.0", 1
	b, _ := json.Marshal(c) // strings only
	return string(b)
}

// taskWorld is a Parley server with an agent, and the servers that it is compared with, if any.
type taskWorld struct {
	*world
	caller, worker string // keys
	sdk, bare      *process
}

// measureTasks measures tasks from send to end on one engine.
func measureTasks(ctx context.Context, set settings, engine, program string) ([]line, error) {
	data, cleanup, err := newData(ctx, engine)
	if err != nil {
		return nil, err
	}
	defer cleanup()
	w, err := newTaskWorld(ctx, engine, program, data)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if err := w.addOld(ctx, set.tasks); err != nil {
		return nil, err
	}
	if err := w.startPeers(ctx); err != nil {
		return nil, err
	}
	scenarios, err := w.taskScenarios()
	if err != nil {
		return nil, err
	}
	var out []line
	for _, sc := range scenarios {
		l, err := sc.run(ctx, set)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sc.name, err)
		}
		l.Engine, l.Rows = engine, set.tasks
		progress("%s, %s: %.0f/s, limit %.0f/s, ratio %.2f", engine, l.Name, l.Rate, l.LimitRate, l.Ratio)
		out = append(out, l)
	}
	worked, err := w.measureWorkers(ctx, set)
	if err != nil {
		return nil, err
	}
	out = append(out, worked...)
	loop := w.addLifeLoop
	if engine == "sqlite" {
		loop = w.addLiteLifeLoop
	}
	l, err := loop(ctx, set, scenarios[0].parley)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", lifeName, err)
	}
	l.Rows = set.tasks
	if out = append(out, l); engine == "sqlite" {
		return out, nil
	}
	return addPgbench(ctx, set, data[1], out)
}

// measureWorkAlone measures the part of measureTasks with workers.
func measureWorkAlone(ctx context.Context, set settings, engine, program string) ([]line, error) {
	data, cleanup, err := newData(ctx, engine)
	if err != nil {
		return nil, err
	}
	defer cleanup()
	w, err := newTaskWorld(ctx, engine, program, data)
	if err != nil {
		return nil, err
	}
	defer w.close()
	return w.measureWorkers(ctx, set)
}

func newTaskWorld(ctx context.Context, engine, program string, data []string) (*taskWorld, error) {
	base, err := newWorld(ctx, engine, program, data)
	if err != nil {
		return nil, err
	}
	w := &taskWorld{world: base}
	if err := w.setUp(ctx); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *taskWorld) setUp(ctx context.Context) error {
	for _, args := range [][]string{
		{"service", "create", "partner", "--org", org},
		{"agent", "create", bot, "--org", org, "--name", "Bot"},
	} {
		if _, err := w.cli(ctx, args...); err != nil {
			return err
		}
	}
	var err error
	w.caller, err = w.cli(ctx, "key", "create", "--org", org, "--as", "service:partner", "--scope", "svc:a2a:write")
	if err != nil {
		return err
	}
	w.worker, err = w.cli(ctx, "key", "create", "--org", org, "--as", "agent:"+bot, "--scope", "svc:a2a:serve")
	return err
}

func (w *taskWorld) startPeers(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if w.sdk, err = startServer(ctx, nil, "/ready", self, "sdk"); err != nil {
		return err
	}
	w.bare, err = startBare(ctx, answers{})
	return err
}

func (w *taskWorld) close() {
	for _, p := range []*process{w.process, w.sdk, w.bare} {
		if p != nil {
			p.Kill()
		}
	}
}

// Parts of a response whose task is done, in Parley's and in the SDK's dialect.
const done, sdkDone = `"state":"completed"`, `"TASK_STATE_COMPLETED"`

// taskCalls are requests that make tasks.
type taskCalls struct{ sends, v1, streams [][]byte }

func (w *taskWorld) taskCalls() (c taskCalls) {
	for i := range variety {
		say := w.words(80)
		call := func(method string, headers ...string) []byte {
			call := rpcCall{Method: method, Params: textParams("", say)}
			return request("POST", w.addr, "/a2a/echo", w.caller, call.body(), headers...)
		}
		v1 := official("SendMessage", i, say)
		c.sends = append(c.sends, call("tasks/send", "Prefer: wait=30"))
		c.v1 = append(c.v1, request("POST", w.addr, "/a2a/echo", w.caller, v1, "A2A-Version: 1.0"))
		c.streams = append(c.streams, call("tasks/sendSubscribe"))
	}
	return c
}

// official returns a call of A2A 1.0.
func official(method string, i int, say string) string {
	return rpcCall{Method: method, Params: rpcParams{Message: &rpcMessage{
		Role: "ROLE_USER", MessageID: fmt.Sprintf("m%d", i), Parts: []rpcPart{{Text: say}},
	}}}.body()
}

// taskJob makes tasks with many callers.
func taskJob(addr, expect string, requests [][]byte) job {
	return job{Addr: addr, Callers: writers, Requests: requests, Expect: expect}
}

// taskScenarios compares Parley, durable and with keys, with a peer that is neither.
func (w *taskWorld) taskScenarios() ([]scenario, error) {
	ours := w.taskCalls()
	var sdkSends, sdkSteps, sdkStreams [][]byte
	for i := range variety {
		say := w.words(80)
		theirs := func(path, method string) []byte {
			return request("POST", w.sdk.addr, path, "", official(method, i, say))
		}
		sdkSends = append(sdkSends, theirs("/once", "SendMessage"))
		sdkSteps = append(sdkSteps, theirs("/steps", "SendMessage"))
		sdkStreams = append(sdkStreams, theirs("/once", "SendStreamingMessage"))
	}
	gets, err := w.taskGets()
	if err != nil {
		return nil, err
	}
	sends, sdk := taskJob(w.addr, done, ours.sends), taskJob(w.sdk.addr, sdkDone, sdkSends)
	few, sdkFew := sends, sdk
	few.Callers, sdkFew.Callers = fewSenders, fewSenders
	echo := rpcCall{Method: "tasks/get", Params: rpcParams{ID: "bench-0001"}}.body()
	return []scenario{
		{name: taskSends, parley: sends, limit: sdk},
		{name: taskFew, parley: few, limit: sdkFew},
		{name: taskSteps, parley: sends, limit: taskJob(w.sdk.addr, sdkDone, sdkSteps)},
		{name: taskV1, parley: taskJob(w.addr, sdkDone, ours.v1), limit: sdk},
		{
			name: taskStream, parley: taskJob(w.addr, done, ours.streams),
			limit: taskJob(w.sdk.addr, sdkDone, sdkStreams),
		},
		{
			name: taskGets, parley: job{Addr: w.addr, Callers: getters, Requests: gets, Expect: done},
			limit: job{
				Addr: w.bare.addr, Callers: getters, Expect: `"tasks/get"`,
				Requests: [][]byte{request("POST", w.bare.addr, "/rpc", w.caller, echo)},
			},
		},
	}, nil
}

// taskGets makes tasks and returns the requests that read them.
func (w *taskWorld) taskGets() ([][]byte, error) {
	c, err := dial(w.addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	out := make([][]byte, variety)
	for i := range out {
		id := fmt.Sprintf("bench-%04d", i)
		call := rpcCall{Method: "tasks/send", Params: textParams(id, w.words(80))}
		var body bytes.Buffer
		status, err := c.do(request("POST", w.addr, "/a2a/echo", w.caller, call.body(), "Prefer: wait=30"), &body)
		if err == nil && (status != 200 || !strings.Contains(body.String(), `"completed"`)) {
			err = fmt.Errorf("send %s: %d %s", id, status, &body)
		}
		if err != nil {
			return nil, err
		}
		get := rpcCall{Method: "tasks/get", Params: rpcParams{ID: id}}
		out[i] = request("POST", w.addr, "/a2a/echo", w.caller, get.body())
	}
	return out, nil
}

// textParams are the params of a message with one text part.
func textParams(id, text string) rpcParams {
	return rpcParams{ID: id, Message: &rpcMessage{Role: "user", Parts: []rpcPart{{Type: "text", Text: text}}}}
}
