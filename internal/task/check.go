package task

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-dev/parley/internal/errs"
)

// Bounds of ids and names, in bytes.
const (
	MaxID       = 256
	MaxIDs      = 32 // in a list of them
	MaxName     = 256
	MaxParts    = 1000
	MaxMetadata = 64 << 10
)

// Check refuses a message that cannot be kept; at is where it stands in the request.
func (m *Message) Check(at string) []errs.Field {
	f := checkParts(at+"/parts", m.Parts)
	f = append(f, CheckID(at+"/messageId", m.ID)...)
	f = append(f, CheckObject(at+"/metadata", m.Metadata)...)
	f = append(f, CheckIDs(at+"/extensions", m.Extensions)...)
	f = append(f, CheckIDs(at+"/referenceTaskIds", m.References)...)
	if m.Role != RoleUser && m.Role != RoleAgent {
		f = append(f, field(at+"/role", "must be user or agent"))
	}
	return f
}

// Check refuses an artifact that cannot be kept.
func (a *Artifact) Check(at string) []errs.Field {
	f := checkParts(at+"/parts", a.Parts)
	f = append(f, CheckID(at+"/artifact_id", a.ID)...)
	f = append(f, CheckID(at+"/name", a.Name)...)
	f = append(f, CheckIDs(at+"/extensions", a.Extensions)...)
	return append(f, CheckObject(at+"/metadata", a.Metadata)...)
}

// CheckIDs accepts a list of ids or URIs.
func CheckIDs(at string, list []string) (f []errs.Field) {
	if len(list) > MaxIDs {
		return []errs.Field{field(at, fmt.Sprintf("must have at most %d entries", MaxIDs))}
	}
	for i, s := range list {
		f = append(f, CheckID(fmt.Sprintf("%s/%d", at, i), s)...)
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
		f = append(f, CheckID(at+"/name", p.Name)...)
	}
	if p.MediaType != "" {
		f = append(f, CheckID(at+"/mediaType", p.MediaType)...)
	}
	if len(p.URL) > 4096 || badText(p.URL) != "" {
		f = append(f, field(at+"/url", "must have at most 4096 characters and no NUL"))
	}
	return append(f, CheckObject(at+"/metadata", p.Metadata)...)
}

// ValidID reports whether s can be the id of a task or of another thing that senders name.
func ValidID(s string) bool { return s != "" && len(CheckID("", s)) == 0 }

// CheckID refuses a text that cannot be an id; at is where it stands in the request. An
// empty one passes.
func CheckID(at, s string) []errs.Field {
	if len(s) > MaxID || badText(s) != "" || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
		return []errs.Field{field(at, fmt.Sprintf("must have at most %d bytes and no control characters", MaxID))}
	}
	return nil
}

// CheckObject accepts nothing, or a JSON object.
func CheckObject(at string, raw json.RawMessage) []errs.Field {
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

// Validate refuses a report that cannot be kept.
func (r *Report) Validate() error {
	var out []errs.Field
	if r.State != "" && !slices.Contains(ReportableStates, r.State) {
		out = append(out, field("/status", fmt.Sprintf("must be one of %v", ReportableStates)))
	}
	if r.Message != nil {
		out = append(out, r.Message.Check("/message")...)
	}
	if r.Reply && (r.State != Completed || r.Message == nil || len(r.Artifacts) > 0) {
		out = append(out, field("/reply", "goes with the status completed and a message, and without artifacts"))
	}
	for i := range r.Artifacts {
		u := &r.Artifacts[i]
		at := fmt.Sprintf("/artifacts/%d", i)
		out = append(out, u.Artifact.Check(at)...)
		if u.Append && u.Artifact.ID == "" {
			out = append(out, field(at+"/artifact_id", "is required to append to an artifact"))
		}
	}
	if r.Extend < 0 || r.Extend > MaxLease || r.Extend > 0 && r.Extend < MinLease {
		out = append(out, field("/extend_seconds", fmt.Sprintf("must be an integer from %d to %d", MinLease/time.Second, MaxLease/time.Second)))
	}
	if len(out) > 0 {
		return errs.InvalidFields(out...)
	}
	return nil
}
