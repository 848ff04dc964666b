package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parley-dev/parley/sdk/worker"
)

// obey carries out the command in the first message of a task.
func obey(ctx context.Context, t *worker.Task) error {
	command, rest, _ := strings.Cut(t.History[0].Text(), " ")
	switch command {
	case "echo":
		return t.Complete(ctx, worker.Text(rest))
	case "sleep":
		pause, word, _ := strings.Cut(rest, " ")
		if err := wait(ctx, pause); err != nil {
			return err
		}
		return t.Complete(ctx, worker.Text(word))
	case "grow":
		return grow(ctx, t, rest)
	case "status":
		return status(ctx, t, strings.Fields(rest))
	case "ask":
		if !t.Replied() {
			return t.AskForInput(ctx, rest)
		}
		return t.Complete(ctx, worker.Text(t.Text()))
	case "listen":
		return listen(ctx, t)
	case "fail":
		return t.Fail(ctx, rest)
	case "reject":
		return t.Reject(ctx, rest)
	case "crash":
		panic("told to crash")
	case "file":
		return sendBack(ctx, t)
	case "make":
		return makeFile(ctx, t, rest)
	case "friction":
		return friction(ctx, t, rest)
	}
	return fmt.Errorf("unknown command %q", command)
}

// wait waits for some milliseconds, or until ctx ends.
func wait(ctx context.Context, milliseconds string) error {
	n, err := strconv.Atoi(milliseconds)
	if err != nil {
		return err
	}
	select {
	case <-time.After(time.Duration(n) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func grow(ctx context.Context, t *worker.Task, rest string) error {
	count, pause, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	for i := 1; i <= n; i++ {
		if err := wait(ctx, pause); err != nil {
			return err
		}
		chunk := worker.Artifact{
			ID: "log", Parts: []worker.Part{worker.Text(fmt.Sprintf("%d;", i))}, LastChunk: i == n,
		}
		if err := t.AppendArtifact(ctx, chunk); err != nil {
			return err
		}
	}
	return t.Complete(ctx)
}

func status(ctx context.Context, t *worker.Task, words []string) error {
	for _, word := range words[1:] {
		if err := wait(ctx, words[0]); err != nil {
			return err
		}
		if err := t.Progress(ctx, word); err != nil {
			return err
		}
	}
	return t.Complete(ctx, worker.Text("done"))
}

func listen(ctx context.Context, t *worker.Task) error {
	if t.Replied() { // the message arrived before this attempt
		return t.Complete(ctx, worker.Text(t.Text()))
	}
	m, ok := <-t.Turns()
	if !ok {
		return context.Cause(ctx)
	}
	return t.Complete(ctx, worker.Text(m.Text()))
}

func sendBack(ctx context.Context, t *worker.Task) error {
	back := worker.Artifact{ID: "file", LastChunk: true}
	for _, p := range t.Message.Parts {
		if p.Kind == worker.PartFile {
			back.Parts = append(back.Parts, worker.File(p.Name, p.MediaType, p.Bytes))
		}
	}
	if err := t.Artifact(ctx, back); err != nil {
		return err
	}
	return t.Complete(ctx)
}

func makeFile(ctx context.Context, t *worker.Task, rest string) error {
	size, name, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(size)
	if err != nil {
		return err
	}
	content := make([]byte, n)
	for i := range content {
		content[i] = byte(i % 251)
	}
	file := worker.Artifact{
		ID: "file", Parts: []worker.Part{worker.File(name, "application/octet-stream", content)}, LastChunk: true,
	}
	if err := t.Artifact(ctx, file); err != nil {
		return err
	}
	return t.Complete(ctx)
}

func friction(ctx context.Context, t *worker.Task, key string) error {
	got, err := t.Friction(ctx, worker.Friction{
		Fingerprint: key, Title: "Friction " + key, Category: "performance", Problem: "It is slow.",
	})
	if err != nil {
		return err
	}
	if !got.Counted {
		return t.Complete(ctx, worker.Text("not counted"))
	}
	return t.Complete(ctx, worker.Text("counted"))
}
