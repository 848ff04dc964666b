package task

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/text"
)

// Limits bound what one task may hold.
type Limits struct {
	Size   int64 // bytes of all messages and artifacts, as JSON
	Events int64
}

// DefaultLimits are the limits unless the operator sets others.
var DefaultLimits = Limits{Size: 16 << 20, Events: 10_000}

// Bounds of ids and names, in bytes.
const (
	MaxID       = 256
	MaxIDs      = 32 // in a list of them
	MaxName     = 256
	MaxParts    = 1000
	MaxMetadata = 64 << 10
)

func (l Limits) message(size int64) error { return l.grow(0, size) }

// grow refuses a task that would hold too much.
func (l Limits) grow(events, size int64) error {
	if size > l.Size {
		return errs.New(errs.TooLarge, CodeTooLarge, "the task would hold %d bytes; the limit is %d", size, l.Size)
	}
	if events > l.Events {
		return errs.New(errs.TooLarge, CodeTooLarge, "the task would have more than %d events", l.Events)
	}
	return nil
}

// Bytes that a message, an artifact and a part need beside their text, on the wire or
// in memory, whichever is more.
const (
	itemOverhead = 128
	partOverhead = 160
)

// size is about what the message takes as JSON and in memory.
func (m *Message) size() int64 {
	return itemOverhead + partsSize(m.Parts) + textSize(m.ID) + int64(len(m.Metadata)) + listSize(m.Extensions) + listSize(m.References)
}

// size is about what the artifact takes as JSON and in memory.
func (a *Artifact) size() int64 {
	return itemOverhead + partsSize(a.Parts) + textSize(a.ID) + textSize(a.Name) + textSize(a.Description) +
		int64(len(a.Metadata)) + listSize(a.Extensions)
}

// length is the bytes of the message's content. Unlike size it costs nothing.
func (m *Message) length() int64 {
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
		n += partOverhead + textSize(p.Text) + int64(len(p.Data)+(len(p.Bytes)+2)/3*4+len(p.URL)+len(p.Name)+len(p.MediaType)+len(p.Metadata))
	}
	return n
}

// textSize is the length of a JSON string. A control character takes six bytes, so
// that a task could otherwise be six times as large as its limit.
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

// plainWord reports whether none of the first eight bytes needs an escape in JSON. It
// tests all of them at once: large texts are measured several times.
func plainWord(s string) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	quote, slash := w^('"'*ones), w^('\\'*ones)
	control := (w - ' '*ones) & ^w
	return (control|(quote-ones)&^quote|(slash-ones)&^slash)&high == 0
}

// fingerprint tells whether two messages are the same. It leaves out nothing, so
// a retry must repeat the message to the letter.
func (m *Message) fingerprint() string {
	text, err := json.Marshal(m)
	if err != nil {
		return "" // equal to nothing: see decideTurn
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Check refuses a message that cannot be kept. Paths are relative to the message.
func (m *Message) Check() []errs.Field {
	f := checkParts(m.Parts)
	f = append(f, checkID("id", m.ID)...)
	f = append(f, checkObject("metadata", m.Metadata)...)
	f = append(f, checkIDs("extensions", m.Extensions)...)
	f = append(f, checkIDs("references", m.References)...)
	if m.Role != RoleUser && m.Role != RoleAgent {
		f = append(f, field("role", "must be user or agent"))
	}
	return f
}

// Check refuses an artifact that cannot be kept.
func (a *Artifact) Check() []errs.Field {
	f := checkParts(a.Parts)
	f = append(f, checkID("id", a.ID)...)
	f = append(f, checkID("name", a.Name)...)
	f = append(f, checkIDs("extensions", a.Extensions)...)
	return append(f, checkObject("metadata", a.Metadata)...)
}

// checkIDs accepts a list of ids or URIs.
func checkIDs(name string, list []string) (f []errs.Field) {
	if len(list) > MaxIDs {
		return []errs.Field{field(name, fmt.Sprintf("must have at most %d entries", MaxIDs))}
	}
	for i, s := range list {
		if badID(s) {
			f = append(f, errs.Field{Path: errs.At(name, i), Message: idRule})
		}
	}
	return f
}

func checkParts(parts []Part) (f []errs.Field) {
	if len(parts) == 0 {
		return []errs.Field{field("parts", "must have at least one part")}
	}
	if len(parts) > MaxParts {
		return []errs.Field{field("parts", fmt.Sprintf("must have at most %d parts", MaxParts))}
	}
	for i := range parts {
		f = append(f, errs.Under(parts[i].check(), "parts", i)...)
	}
	return f
}

func (p *Part) check() (f []errs.Field) {
	switch p.Kind {
	case TextPart:
		if !text.Storable(p.Text) {
			f = append(f, field("text", text.Unstorable))
		}
	case DataPart:
		if len(p.Data) == 0 || !json.Valid(p.Data) {
			f = append(f, field("data", "must be a JSON value"))
		}
	case FilePart:
		if (len(p.Bytes) == 0) == (p.URL == "") {
			f = append(f, field("file", "must have either bytes or a URL"))
		}
	default:
		f = append(f, field("type", "must be text, data or file"))
	}
	if p.Name != "" {
		f = append(f, checkID("name", p.Name)...)
	}
	if p.MediaType != "" {
		f = append(f, checkID("media_type", p.MediaType)...)
	}
	if len(p.URL) > 4096 || !text.Storable(p.URL) {
		f = append(f, field("url", "must have at most 4096 characters and no NUL"))
	}
	return append(f, checkObject("metadata", p.Metadata)...)
}

func checkID(name, s string) []errs.Field {
	if badID(s) {
		return []errs.Field{field(name, idRule)}
	}
	return nil
}

var idRule = fmt.Sprintf("must have at most %d bytes and no control characters", MaxID)

// badID reports what cannot be an id, a name or a URI of a sender. Senders find their tasks by
// such ids, so no more is refused than ever was: the control characters below U+0020.
func badID(s string) bool {
	return len(s) > MaxID || !text.Storable(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' })
}

// checkObject accepts nothing, or a JSON object.
func checkObject(name string, raw json.RawMessage) []errs.Field {
	if len(raw) == 0 {
		return nil
	}
	if len(raw) > MaxMetadata || raw[0] != '{' || !json.Valid(raw) {
		return []errs.Field{field(name, fmt.Sprintf("must be a JSON object of at most %d bytes", MaxMetadata))}
	}
	return nil
}

func field(name, msg string) errs.Field { return errs.Field{Path: errs.At(name), Message: msg} }

// Lease durations that a worker may ask for.
const (
	DefaultLease = 30 * time.Second
	MinLease     = time.Second
	MaxLease     = time.Hour
)
