package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// hotPath is an operation that a change must not make slower. rate measures it once.
type hotPath struct {
	name string
	rate func(ctx context.Context, set settings) (float64, error)

	server *process // nil: none
}

func (p hotPath) pid() int {
	if p.server == nil {
		return 0
	}
	return p.server.Cmd.Process.Pid
}

// hotPaths returns the hot paths of a server with proposals, in the same order for every server.
func (w *taskWorld) hotPaths(set settings) ([]hotPath, error) {
	var out []hotPath
	if set.only == "" || set.only == "proposals" {
		paths, err := w.proposalPaths(set)
		if err != nil {
			return nil, err
		}
		out = append(out, paths...)
	}
	if set.only == "" || set.only == "a2a" {
		paths, err := w.taskPaths()
		if err != nil {
			return nil, err
		}
		out = append(out, paths...)
	}
	for i := range out {
		out[i].server = w.process
	}
	return out, nil
}

// jobPath measures a job, with another one in the background if background is set.
func jobPath(name string, background *job, j job) hotPath {
	return hotPath{name: name, rate: func(ctx context.Context, set settings) (float64, error) {
		saved := profiles.start(ctx, j.Addr, name, set.duration)
		r, err := beside(ctx, set, background, j)
		return r.rate(), errors.Join(err, saved())
	}}
}

func (w *taskWorld) proposalPaths(set settings) ([]hotPath, error) {
	ids, err := w.ids()
	if err != nil {
		return nil, err
	}
	gets := make([][]byte, len(ids))
	for i, id := range ids {
		gets[i] = request("GET", w.addr, path+"/"+id, w.keys[0], "")
	}
	searches := w.searches() // before further bodies are made
	submits, votes := w.submits(), w.votes(ids)
	var mixed [][]byte
	for i := range submits {
		mixed = append(mixed, submits[i], votes[i%len(votes)])
	}
	list := job{Addr: w.addr, Callers: callers, Requests: [][]byte{request("GET", w.addr, path, w.keys[0], "")}}
	get, vote, submit := list, list, list
	cold, filtered, search := list, list, list
	filtered.Requests, search.Requests = w.filters(), searches
	if cold.Requests, err = w.cursors(0); err != nil {
		return nil, err
	}
	trickled := &job{Addr: w.addr, Callers: 1, Requests: votes, Rate: trickle}
	get.Requests = gets
	vote.Requests, vote.Callers = votes, writers
	submit.Requests, submit.Callers = submits, writers
	submitPath := jobPath(subName, nil, submit)
	measure := submitPath.rate
	submitPath.rate = func(ctx context.Context, set settings) (float64, error) {
		rate, err := measure(ctx, set)
		if err != nil {
			return 0, err
		}
		return rate, w.settle(ctx)
	}
	return []hotPath{
		jobPath(listName, nil, list),
		jobPath(freshName, &job{Addr: w.addr, Callers: callers, Requests: mixed, Rate: set.writeRate}, list),
		jobPath(coldName, trickled, cold),
		jobPath(filtName, trickled, filtered),
		jobPath(findName, trickled, search),
		jobPath(getName, nil, get),
		jobPath(voteName, nil, vote),
		submitPath,
	}, nil
}

// settle waits until the text index contains all submissions: indexing must not overlap with the
// next measurement, which is that of the other server.
func (w *world) settle(ctx context.Context) error {
	var err error
	for range 20 {
		if _, err = w.get(path + "?limit=1&q=settled"); err == nil || ctx.Err() != nil {
			break
		}
		time.Sleep(time.Second) // a search may time out
	}
	return err
}

func (w *taskWorld) taskPaths() ([]hotPath, error) {
	gets, err := w.taskGets()
	if err != nil {
		return nil, err
	}
	calls := w.taskCalls()
	return []hotPath{
		jobPath("task send → completed", nil, taskJob(w.addr, done, calls.sends)),
		jobPath("SendMessage of A2A 1.0 → completed", nil, taskJob(w.addr, sdkDone, calls.v1)),
		jobPath("task stream, start to end", nil, taskJob(w.addr, done, calls.streams)),
		jobPath("task get", nil, job{Addr: w.addr, Callers: getters, Requests: gets, Expect: done}),
		{name: "task through HTTP workers", rate: func(ctx context.Context, set settings) (float64, error) {
			sent, _, err := w.workRound(ctx, set, 0)
			return sent.rate(), err
		}},
	}, nil
}

// keyPath measures the check of a known key in another process, with the identity package of its
// program.
func keyPath(program string) hotPath {
	measure := func(ctx context.Context, set settings) (rate float64, err error) {
		in, err := json.Marshal(keyJob{Duration: set.duration})
		if err != nil {
			return 0, err
		}
		if program == "" {
			if program, err = os.Executable(); err != nil {
				return 0, err
			}
		}
		out, err := runRoleOf(ctx, program, "keys", in)
		if err != nil {
			return 0, fmt.Errorf("check keys: %w", err)
		}
		return rate, json.Unmarshal(out, &rate)
	}
	return hotPath{name: "check of a known key", rate: measure}
}
