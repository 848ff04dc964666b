package task

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/parley-dev/parley/internal/errs"
)

// Limits limit the content of one task.
type Limits struct {
	Size   int64 // bytes of all messages and artifacts, as JSON
	Events int64
}

// DefaultLimits are the default limits.
var DefaultLimits = Limits{Size: 16 << 20, Events: 10_000}

func (l Limits) message(size int64) error { return l.grow(0, size) }

// grow refuses a task that would exceed the limits.
func (l Limits) grow(events, size int64) error {
	if size > l.Size {
		return errs.New(errs.TooLarge, CodeTooLarge, "the task would hold %d bytes; the limit is %d", size, l.Size)
	}
	if events > l.Events {
		return errs.New(errs.TooLarge, CodeTooLarge, "the task would have more than %d events", l.Events)
	}
	return nil
}

// Overhead of a message or an artifact, and of a part, in bytes: the larger of the overhead on
// the wire and in memory.
const (
	itemOverhead = 128
	partOverhead = 160
)

// Size estimates the size of the message as JSON and in memory.
func (m *Message) Size() int64 {
	return itemOverhead + partsSize(m.Parts) + textSize(m.ID) + int64(len(m.Metadata)) +
		listSize(m.Extensions) + listSize(m.References)
}

// size estimates the size of the artifact as JSON and in memory.
func (a *Artifact) size() int64 {
	return itemOverhead + partsSize(a.Parts) + textSize(a.ID) + textSize(a.Name) + textSize(a.Description) +
		int64(len(a.Metadata)) + listSize(a.Extensions)
}

// Length returns the size of the message's content in bytes. It is cheaper than Size.
func (m *Message) Length() int64 {
	if m == nil {
		return 0
	}
	return partsLength(m.Parts)
}

func partsLength(parts []Part) (n int64) {
	for i := range parts {
		n += int64(len(parts[i].Text) + len(parts[i].Data) + len(parts[i].Bytes))
	}
	return n
}

func listSize(list []string) (n int64) {
	for _, s := range list {
		n += textSize(s)
	}
	return n
}

func partsSize(parts []Part) (n int64) {
	for i := range parts {
		p := &parts[i]
		rest := len(p.Data) + (len(p.Bytes)+2)/3*4 + len(p.URL) + len(p.Name) + len(p.MediaType) + len(p.Metadata)
		n += partOverhead + textSize(p.Text) + int64(rest)
	}
	return n
}

// textSize returns the length of a text as a JSON string. A control character takes six bytes
// there, so a task could otherwise be six times as large as its limit.
func textSize(s string) int64 {
	n := len(s)
	for i := 0; i < len(s); i++ {
		for len(s)-i >= 8 && plainWord(s[i:]) {
			i += 8
		}
		if i == len(s) {
			break
		}
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '\n' || c == '\t' || c == '\r':
			n++
		case c < ' ':
			n += 5
		}
	}
	return int64(n)
}

// plainWord reports whether none of the first eight bytes needs an escape in JSON. It tests them
// all at once, because large texts are measured several times.
func plainWord(s string) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	quote, slash := w^('"'*ones), w^('\\'*ones)
	control := (w - ' '*ones) & ^w
	return (control|(quote-ones)&^quote|(slash-ones)&^slash)&high == 0
}

// fingerprint returns a hash of the whole message. A retry must repeat the message exactly.
func (m *Message) fingerprint() string {
	text, err := json.Marshal(m)
	if err != nil {
		return "" // never equal, see DecideTurn
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Size estimates the size of the event as JSON, in bytes.
func (e *Event) Size() (n int64) {
	if e.Message != nil {
		n += e.Message.Size()
	}
	if e.Artifact != nil {
		n += e.Artifact.size()
	}
	return n + listSize(e.OutputModes) + int64(len(e.Metadata))
}

// rowSize estimates the size of a task without messages and artifacts.
const rowSize = 1 << 10

// Footprint estimates the size of the whole task in memory.
func (t *Task) Footprint() int64 { return t.Size + rowSize }
