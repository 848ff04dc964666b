package task

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/text"
)

// Bounds of ids and names, in bytes.
const (
	MaxID       = 256
	MaxIDs      = 32 // in a list of them
	MaxName     = 256
	MaxParts    = 1000
	MaxMetadata = 64 << 10
)

// Check refuses a message that cannot be kept. Paths are relative to the message.
func (m *Message) Check() []errs.Field {
	f := checkParts(m.Parts)
	f = append(f, CheckID("id", m.ID)...)
	f = append(f, CheckObject("metadata", m.Metadata)...)
	f = append(f, CheckIDs("extensions", m.Extensions)...)
	f = append(f, CheckIDs("references", m.References)...)
	if m.Role != RoleUser && m.Role != RoleAgent {
		f = append(f, field("role", "must be user or agent"))
	}
	return f
}

// Check refuses an artifact that cannot be kept.
func (a *Artifact) Check() []errs.Field {
	f := checkParts(a.Parts)
	f = append(f, CheckID("id", a.ID)...)
	f = append(f, CheckID("name", a.Name)...)
	f = append(f, CheckIDs("extensions", a.Extensions)...)
	return append(f, CheckObject("metadata", a.Metadata)...)
}

// CheckIDs accepts a list of ids or URIs.
func CheckIDs(name string, list []string) (f []errs.Field) {
	if len(list) > MaxIDs {
		return []errs.Field{field(name, fmt.Sprintf("must have at most %d entries", MaxIDs))}
	}
	for i, s := range list {
		if BadID(s) {
			f = append(f, errs.Field{Path: errs.At(name, i), Message: IDRule})
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
		f = append(f, CheckID("name", p.Name)...)
	}
	if p.MediaType != "" {
		f = append(f, CheckID("media_type", p.MediaType)...)
	}
	if len(p.URL) > 4096 || !text.Storable(p.URL) {
		f = append(f, field("url", "must have at most 4096 characters and no NUL"))
	}
	return append(f, CheckObject("metadata", p.Metadata)...)
}

// ValidID reports whether s can be the id of a task or of another thing that senders name.
func ValidID(s string) bool { return s != "" && !BadID(s) }

// CheckID refuses a text that cannot be an id, under the name of its field. An empty one
// passes.
func CheckID(name, s string) []errs.Field {
	if BadID(s) {
		return []errs.Field{field(name, IDRule)}
	}
	return nil
}

// IDRule says what an id must be.
var IDRule = fmt.Sprintf("must have at most %d bytes and no control characters", MaxID)

// BadID reports what cannot be an id, a name or a URI of a sender. Senders find their tasks by
// such ids, so no more is refused than ever was: the control characters below U+0020.
func BadID(s string) bool {
	return len(s) > MaxID || !text.Storable(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' })
}

// CheckObject accepts nothing, or a JSON object.
func CheckObject(name string, raw json.RawMessage) []errs.Field {
	if len(raw) == 0 {
		return nil
	}
	if len(raw) > MaxMetadata || raw[0] != '{' || !json.Valid(raw) {
		return []errs.Field{field(name, fmt.Sprintf("must be a JSON object of at most %d bytes", MaxMetadata))}
	}
	return nil
}

func field(name, msg string) errs.Field { return errs.Field{Path: errs.At(name), Message: msg} }

// Validate refuses a report that cannot be kept.
func (r *Report) Validate() error {
	var out []errs.Field
	if r.State != "" && !slices.Contains(ReportableStates, r.State) {
		out = append(out, field("status", fmt.Sprintf("must be one of %v", ReportableStates)))
	}
	if r.Message != nil {
		out = append(out, errs.Under(r.Message.Check(), "message")...)
	}
	if r.Reply && (r.State != Completed || r.Message == nil || len(r.Artifacts) > 0) {
		out = append(out, field("reply", "goes with the status completed and a message, and without artifacts"))
	}
	for i := range r.Artifacts {
		u := &r.Artifacts[i]
		out = append(out, errs.Under(u.Artifact.Check(), "artifacts", i)...)
		if u.Append && u.Artifact.ID == "" {
			out = append(out, errs.Field{Path: errs.At("artifacts", i, "id"), Message: "is required to append to an artifact"})
		}
	}
	if r.Extend < 0 || r.Extend > MaxLease || r.Extend > 0 && r.Extend < MinLease {
		out = append(out, field("extend_seconds", fmt.Sprintf("must be an integer from %d to %d", MinLease/time.Second, MaxLease/time.Second)))
	}
	if len(out) > 0 {
		return errs.InvalidFields(out...)
	}
	return nil
}
