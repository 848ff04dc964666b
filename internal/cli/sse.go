package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// silence is how long a stream may say nothing: the server sends a comment every
	// 15 seconds, so it is broken after three that did not come.
	silence = 45 * time.Second
	// maxLine bounds an event; an artifact may have 16 MiB, and JSON escapes make it longer.
	maxLine = 128 << 20
)

// sseEvent is one event of a stream.
type sseEvent struct {
	id   string
	data string
}

// sseReader reads a stream of server-sent events.
type sseReader struct {
	lines *bufio.Scanner
	retry time.Duration // how long to wait before coming back, if the server said it
}

func newSSEReader(r io.Reader) *sseReader {
	s := &sseReader{lines: bufio.NewScanner(r)}
	s.lines.Buffer(nil, maxLine)
	return s
}

// next returns the next event that has data; io.EOF at the end. What an unfinished
// event has said is dropped, as the standard demands.
func (s *sseReader) next() (sseEvent, error) {
	var ev sseEvent
	var data []string
	for s.lines.Scan() {
		line := s.lines.Text()
		if line == "" {
			if data != nil {
				ev.data = strings.Join(data, "\n")
				return ev, nil
			}
			ev = sseEvent{}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			ev.id = value
		case "data":
			data = append(data, value)
		case "retry":
			if ms, err := strconv.Atoi(value); err == nil && ms >= 0 {
				s.retry = min(time.Duration(ms)*time.Millisecond, maxRetryAfter)
			}
		}
	}
	if err := s.lines.Err(); err != nil {
		return sseEvent{}, err
	}
	return sseEvent{}, io.EOF
}

// errNotStream is an answer that is a plain JSON-RPC one: an error, said before the
// first event.
var errNotStream = errors.New("the server did not answer with a stream")

// stream opens a stream, and calls each for every event until it returns false or
// the stream ends. The stream's wish for a pause is returned.
func (c *client) stream(ctx context.Context, r call, each func(id string, result json.RawMessage) (bool, error)) (time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.header = maps.Clone(r.header)
	if r.header == nil {
		r.header = map[string]string{}
	}
	r.header["Accept"] = "text/event-stream, application/json"
	watchdog := time.AfterFunc(silence, func() { cancel(fmt.Errorf("nothing was heard for %s", silence)) })
	defer watchdog.Stop()
	endless := *c.http
	endless.Timeout = 0
	res, err := c.exchange(ctx, &endless, r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	server := res.Request.URL.Scheme + "://" + res.Request.URL.Host
	if media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); res.StatusCode != http.StatusOK || media != "text/event-stream" {
		return 0, plainAnswer(res)
	}
	events := newSSEReader(heard{res.Body, func() { watchdog.Reset(silence) }})
	for {
		ev, err := events.next()
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return events.retry, &unreachable{server: server, cause: err, sent: true}
		}
		var a rpcAnswer
		if err := json.Unmarshal([]byte(ev.data), &a); err != nil {
			return 0, fmt.Errorf("the stream has not the expected form: %w", err)
		}
		if a.Error != nil {
			return 0, a.Error
		}
		if more, err := each(ev.id, a.Result); err != nil || !more {
			return 0, err
		}
	}
}

// plainAnswer is the error in an answer that is no stream.
func plainAnswer(res *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return err
	}
	var a rpcAnswer
	switch {
	case res.StatusCode/100 != 2:
		return newProblem(res, body)
	case json.Unmarshal(body, &a) == nil && a.Error != nil:
		a.Error.requestID = res.Header.Get("X-Request-Id")
		return a.Error
	}
	return errNotStream
}

// heard calls a function when something arrives.
type heard struct {
	io.Reader
	note func()
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.note()
	}
	return n, err
}
