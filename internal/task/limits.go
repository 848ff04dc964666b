package task

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-dev/parley/internal/errs"
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

// Check refuses a message that cannot be kept; at is where it stands in the request.
func (m *Message) Check(at string) []errs.Field {
	f := checkParts(at+"/parts", m.Parts)
	f = append(f, checkID(at+"/messageId", m.ID)...)
	f = append(f, checkObject(at+"/metadata", m.Metadata)...)
	f = append(f, checkIDs(at+"/extensions", m.Extensions)...)
	f = append(f, checkIDs(at+"/referenceTaskIds", m.References)...)
	if m.Role != RoleUser && m.Role != RoleAgent {
		f = append(f, field(at+"/role", "must be user or agent"))
	}
	return f
}

// Check refuses an artifact that cannot be kept.
func (a *Artifact) Check(at string) []errs.Field {
	f := checkParts(at+"/parts", a.Parts)
	f = append(f, checkID(at+"/artifact_id", a.ID)...)
	f = append(f, checkID(at+"/name", a.Name)...)
	f = append(f, checkIDs(at+"/extensions", a.Extensions)...)
	return append(f, checkObject(at+"/metadata", a.Metadata)...)
}

// checkIDs accepts a list of ids or URIs.
func checkIDs(at string, list []string) (f []errs.Field) {
	if len(list) > MaxIDs {
		return []errs.Field{field(at, fmt.Sprintf("must have at most %d entries", MaxIDs))}
	}
	for i, s := range list {
		f = append(f, checkID(fmt.Sprintf("%s/%d", at, i), s)...)
	}
	return f
}

func checkParts(at string, parts []Part) (f []errs.Field) {
	if len(parts) == 0 {
		return []errs.Field{field(at, "must have at least one part")}
	}
	if len(parts) > MaxParts {
		return []errs.Field{field(at, fmt.Sprintf("must have at most %d parts", MaxParts))}
	}
	for i := range parts {
		if len(parts[i].check("")) > 0 { // where it stands is seldom needed
			f = append(f, parts[i].check(fmt.Sprintf("%s/%d", at, i))...)
		}
	}
	return f
}

func (p *Part) check(at string) (f []errs.Field) {
	switch p.Kind {
	case TextPart:
		if msg := badText(p.Text); msg != "" {
			f = append(f, field(at+"/text", msg))
		}
	case DataPart:
		if len(p.Data) == 0 || !json.Valid(p.Data) {
			f = append(f, field(at+"/data", "must be a JSON value"))
		}
	case FilePart:
		if (len(p.Bytes) == 0) == (p.URL == "") {
			f = append(f, field(at+"/file", "must have either bytes or a URL"))
		}
	default:
		f = append(f, field(at+"/type", "must be text, data or file"))
	}
	if p.Name != "" {
		f = append(f, checkID(at+"/name", p.Name)...)
	}
	if p.MediaType != "" {
		f = append(f, checkID(at+"/mediaType", p.MediaType)...)
	}
	if len(p.URL) > 4096 || badText(p.URL) != "" {
		f = append(f, field(at+"/url", "must have at most 4096 characters and no NUL"))
	}
	return append(f, checkObject(at+"/metadata", p.Metadata)...)
}

func checkID(at, s string) []errs.Field {
	if len(s) > MaxID || badText(s) != "" || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
		return []errs.Field{field(at, fmt.Sprintf("must have at most %d bytes and no control characters", MaxID))}
	}
	return nil
}

// checkObject accepts nothing, or a JSON object.
func checkObject(at string, raw json.RawMessage) []errs.Field {
	if len(raw) == 0 {
		return nil
	}
	if len(raw) > MaxMetadata || raw[0] != '{' || !json.Valid(raw) {
		return []errs.Field{field(at, fmt.Sprintf("must be a JSON object of at most %d bytes", MaxMetadata))}
	}
	return nil
}

func badText(s string) string {
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return "must be valid UTF-8 without NUL"
	}
	return ""
}

func field(at, msg string) errs.Field { return errs.Field{In: errs.Body, Name: at, Message: msg} }

// Lease durations that a worker may ask for.
const (
	DefaultLease = 30 * time.Second
	MinLease     = time.Second
	MaxLease     = time.Hour
)
