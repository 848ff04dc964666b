package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// silence is how long a stream may be silent. The server sends a comment every 15 seconds, so the
// connection is broken after three missing ones.
const silence = 45 * time.Second

// sseReader reads server-sent events.
type sseReader struct {
	lines *bufio.Scanner
	max   int
	retry time.Duration // how long the server wants the client to wait before it reconnects
}

func newSSEReader(r io.Reader, maxEvent int64) *sseReader {
	s := &sseReader{lines: bufio.NewScanner(r), max: int(maxEvent)}
	s.lines.Buffer(nil, s.max)
	return s
}

// sseEvent is a server-sent event. An event without data only sets the position of the stream.
type sseEvent struct {
	id, name string
	data     []byte
}

// next returns the next event with data or an id, or io.EOF at the end. An unfinished event is
// dropped, as the standard requires.
func (s *sseReader) next() (e sseEvent, err error) {
	for s.lines.Scan() {
		line := s.lines.Bytes()
		if len(line) == 0 {
			if e.data != nil || e.id != "" {
				return e, nil
			}
			e = sseEvent{}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id":
			e.id = string(value)
		case "event":
			e.name = string(value)
		case "data":
			if e.data != nil {
				e.data = append(e.data, '\n')
			}
			if e.data = append(e.data, value...); len(e.data) > s.max {
				return sseEvent{}, s.tooLarge()
			}
		case "retry":
			if ms, err := strconv.Atoi(string(value)); err == nil && ms >= 0 {
				s.retry = time.Duration(min(ms, 1<<30)) * time.Millisecond
			}
		}
	}
	switch err := s.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return sseEvent{}, s.tooLarge()
	case err != nil:
		return sseEvent{}, err
	}
	return sseEvent{}, io.EOF
}

func (s *sseReader) tooLarge() error {
	return fmt.Errorf("an event is larger than %d bytes; see Config.MaxResponse", s.max)
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
