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

// Limits of ids and names, in bytes.
const (
	MaxID       = 256
	MaxIDs      = 32 // in a list of them
	MaxName     = 256
	MaxParts    = 1000
	MaxMetadata = 64 << 10
)

// Check reports what is wrong with a message. Paths are relative to the message.
func (m *Message) Check() []errs.Field {
	f := checkParts(m.Parts)
	f = append(f, CheckID("id", m.ID)...)
	f = append(f, CheckObject("metadata", m.Metadata)...)
	f = append(f, CheckIDs("extensions", m.Extensions)...)
	f = append(f, CheckIDs("references", m.References)...)
	if m.Role != RoleUser && m.Role != RoleAgent {
		f = append(f, errs.NewField("role", "must be user or agent"))
	}
	return f
}

// Check reports what is wrong with an artifact. Paths are relative to the artifact.
func (a *Artifact) Check() []errs.Field {
	f := checkParts(a.Parts)
	f = append(f, CheckID("id", a.ID)...)
	f = append(f, checkName("name", a.Name)...)
	f = append(f, CheckIDs("extensions", a.Extensions)...)
	return append(f, CheckObject("metadata", a.Metadata)...)
}

// CheckIDs reports what is wrong with a list of ids or URIs.
func CheckIDs(name string, list []string) (f []errs.Field) {
	if len(list) > MaxIDs {
		return []errs.Field{errs.NewField(name, fmt.Sprintf("must have at most %d entries", MaxIDs))}
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
		return []errs.Field{errs.NewField("parts", "must have at least one part")}
	}
	if len(parts) > MaxParts {
		return []errs.Field{errs.NewField("parts", fmt.Sprintf("must have at most %d parts", MaxParts))}
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
			f = append(f, errs.NewField("text", text.Unstorable))
		}
	case DataPart:
		if len(p.Data) == 0 || !json.Valid(p.Data) {
			f = append(f, errs.NewField("data", "must be a JSON value"))
		}
	case FilePart:
		if (len(p.Bytes) == 0) == (p.URL == "") {
			f = append(f, errs.NewField("file", "must have either bytes or a URL"))
		}
	default:
		f = append(f, errs.NewField("type", "must be text, data or file"))
	}
	f = append(f, checkName("name", p.Name)...)
	f = append(f, checkName("media_type", p.MediaType)...)
	if len(p.URL) > 4096 || !text.Storable(p.URL) {
		f = append(f, errs.NewField("url", "must have at most 4096 characters and no NUL"))
	}
	return append(f, CheckObject("metadata", p.Metadata)...)
}

// ValidID reports whether s can be an id that a sender chose, such as that of a task.
func ValidID(s string) bool { return s != "" && !BadID(s) }

// CheckID reports a text that cannot be an id, under the name of its field. It accepts an empty
// text.
func CheckID(name, s string) []errs.Field {
	if BadID(s) {
		return []errs.Field{errs.NewField(name, IDRule)}
	}
	return nil
}

// IDRule describes a valid id, in words that follow the name of the field.
var IDRule = fmt.Sprintf("must have at most %d bytes and no control characters", MaxID)

// BadID reports whether a text cannot be an id or a URI that a sender chose. Of the control
// characters it refuses only those below U+0020: senders look up their stored tasks by id, and
// a stricter rule would hide tasks that were accepted before.
func BadID(s string) bool {
	return len(s) > MaxID || !text.Storable(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' })
}

// nameRule is the rule for names of files and artifacts, which people see, and for media types.
var nameRule = text.Rule{Form: text.Plain, MaxBytes: MaxName}

func checkName(name, s string) []errs.Field {
	if problem := nameRule.Check(s); problem != "" {
		return []errs.Field{errs.NewField(name, problem)}
	}
	return nil
}

// CheckObject reports a text that is neither empty nor a JSON object.
func CheckObject(name string, raw json.RawMessage) []errs.Field {
	if len(raw) == 0 {
		return nil
	}
	if len(raw) > MaxMetadata || raw[0] != '{' || !json.Valid(raw) {
		return []errs.Field{errs.NewField(name, fmt.Sprintf("must be a JSON object of at most %d bytes", MaxMetadata))}
	}
	return nil
}

// Validate reports every field that is malformed.
func (r *Report) Validate() error {
	var out []errs.Field
	if r.State != "" && !slices.Contains(ReportableStates, r.State) {
		out = append(out, errs.NewField("status", fmt.Sprintf("must be one of %v", ReportableStates)))
	}
	if r.Message != nil {
		out = append(out, errs.Under(r.Message.Check(), "message")...)
	}
	if r.Reply && (r.State != Completed || r.Message == nil || len(r.Artifacts) > 0) {
		out = append(out, errs.NewField("reply", "goes with the status completed and a message, and without artifacts"))
	}
	for i := range r.Artifacts {
		u := &r.Artifacts[i]
		out = append(out, errs.Under(u.Artifact.Check(), "artifacts", i)...)
		if u.Append && u.Artifact.ID == "" {
			out = append(out, errs.Field{
				Path: errs.At("artifacts", i, "id"), Message: "is required to append to an artifact",
			})
		}
	}
	if r.Extend < 0 || r.Extend > MaxLease || r.Extend > 0 && r.Extend < MinLease {
		out = append(out, errs.NewField("extend",
			fmt.Sprintf("must be an integer from %d to %d", MinLease/time.Second, MaxLease/time.Second)))
	}
	if len(out) > 0 {
		return errs.InvalidFields(out...)
	}
	return nil
}
