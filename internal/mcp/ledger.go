package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"
)

// ledger forwards messages, one per line, and counts the calls without a response. Its input ends
// only when all calls have one, so that every piped call gets its response.
type ledger struct {
	ctx context.Context // of the whole connection
	in  *bufio.Reader
	out io.Writer

	rest []byte // of a line that was partly read

	mu       sync.Mutex
	open     int
	streams  map[string]bool // ids of calls that have no response before their stream ends
	answered chan struct{}   // closed and replaced by every response
	written  []byte          // an unfinished line
}

func newLedger(ctx context.Context, in io.Reader, out io.Writer) *ledger {
	return &ledger{
		ctx: ctx, in: bufio.NewReader(in), out: out, answered: make(chan struct{}), streams: map[string]bool{},
	}
}

// Read implements io.Reader.
func (l *ledger) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		line, err := l.in.ReadSlice('\n')
		l.rest = append(l.rest[:0], line...)
		for err == bufio.ErrBufferFull && len(l.rest) <= MaxBody {
			line, err = l.in.ReadSlice('\n')
			l.rest = append(l.rest, line...)
		}
		if len(l.rest) == 0 {
			return 0, l.end(err)
		}
		l.called(parse(l.rest))
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// called counts a call. A stream of notifications does not keep the input open.
func (l *ledger) called(m message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(m.ID) == 0 || m.Method == "":
	case m.Method == listenMethod:
		l.streams[string(m.ID)] = true
	default:
		l.open++
	}
}

// end waits until every call has a response.
func (l *ledger) end(err error) error {
	for {
		l.mu.Lock()
		open, answered := l.open, l.answered
		l.mu.Unlock()
		if open <= 0 {
			return err
		}
		select {
		case <-answered:
		case <-l.ctx.Done():
			return err
		}
	}
}

// Write implements io.Writer.
func (l *ledger) Write(p []byte) (int, error) {
	n, err := l.out.Write(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written = append(l.written, p[:n]...)
	for {
		i := bytes.IndexByte(l.written, '\n')
		if i < 0 {
			return n, err
		}
		l.wrote(parse(l.written[:i]))
		l.written = l.written[i+1:]
	}
}

// Close implements io.Closer. The owners of the streams close them.
func (l *ledger) Close() error { return nil }

// wrote counts a response. The caller holds mu.
func (l *ledger) wrote(m message) {
	switch {
	case len(m.ID) == 0 || m.Method != "":
	case l.streams[string(m.ID)]:
		delete(l.streams, string(m.ID))
	default:
		l.open--
		close(l.answered)
		l.answered = make(chan struct{})
	}
}

// message is what the ledger needs of a message: a call has both members, a response no method.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

func parse(line []byte) (m message) {
	if json.Unmarshal(line, &m) != nil {
		return message{}
	}
	return m
}
