package wire

import (
	"encoding/base64"
	"strings"

	"github.com/parley-dev/parley/internal/task"
)

// Message reads a message. Members of a dialect are passed to more, which may be nil.
func (r *Reader) Message(m *task.Message, more func(name []byte) bool) bool {
	return r.Object(func(name []byte) bool {
		switch string(name) {
		case "role":
			var role string
			if r.Enum(&role, roleNumbers) {
				m.Role = task.Role(strings.TrimPrefix(strings.ToLower(role), "role_"))
			}
		case "parts":
			m.Parts = r.Parts()
		case "messageId", "message_id":
			r.String(&m.ID)
		case "metadata":
			m.Metadata = r.RawObject()
		case "extensions":
			m.Extensions = r.Strings()
		case "referenceTaskIds", "reference_task_ids":
			m.References = r.Strings()
		case "kind":
			r.skip() // always "message"
		default:
			return more != nil && more(name)
		}
		return true
	})
}

// roleNumbers are the numbers of roles in versions 1.0 and 0.3.
var roleNumbers = map[int32]string{0: "ROLE_UNSPECIFIED", 1: "ROLE_USER", 2: "ROLE_AGENT"}

func (r *Reader) skip() { _ = r.dec.SkipValue() }

// Parts reads an array of parts.
func (r *Reader) Parts() []task.Part {
	var out []task.Part
	r.Array(task.MaxParts, func(int) {
		out = append(out, task.Part{})
		r.part(&out[len(out)-1])
	})
	return out
}

// part reads a part in any of its spellings: the kind is in `type` or `kind`, or follows from the
// other members; a file is an object, or its members are in the part.
func (r *Reader) part(p *task.Part) {
	var sort, text, data, file, null bool
	ok := r.object(func(name []byte) bool {
		switch string(name) {
		case "type", "kind":
			sort = true
			r.partKind(p)
		case "text":
			text = true
			r.String(&p.Text)
		case "data":
			data = true
			p.Data = r.Raw()
		case "file":
			file = true
			r.Object(func(name []byte) bool { return r.fileMember(p, name) })
		case "metadata":
			p.Metadata = r.RawObject()
		case "mediaType":
			r.String(&p.MediaType)
		default:
			if r.Strict || !r.fileMember(p, name) {
				return false
			}
			file = file || p.URL != "" || p.Bytes != nil
		}
		return true
	}, func(name []byte) { null = null || string(name) == `"data"` })
	if !ok {
		return
	}
	if null && !data && (!sort || p.Kind == task.DataPart) { // in ProtoJSON null is a value like any other
		data, p.Data = true, []byte("null")
	}
	if several(text, data, p.URL != "", p.Bytes != nil) {
		r.Fail("must have one content only: text, data, or the bytes or the URL of a file")
		return
	}
	if !sort {
		switch {
		case text:
			p.Kind = task.TextPart
		case data:
			p.Kind = task.DataPart
		case file:
			p.Kind = task.FilePart
		}
	}
	r.checkPart(p, text, data, file)
}

// several reports whether more than one is true.
func several(list ...bool) bool {
	seen := false
	for _, b := range list {
		if b && seen {
			return true
		}
		seen = seen || b
	}
	return false
}

func (r *Reader) partKind(p *task.Part) {
	var s string
	if !r.String(&s) {
		return
	}
	kind := task.PartKind(s)
	switch {
	case kind != task.TextPart && kind != task.DataPart && kind != task.FilePart:
		r.Fail("must be text, data or file")
	case p.Kind != "" && p.Kind != kind:
		r.Fail("type and kind must be the same")
	default:
		p.Kind = kind
	}
}

// checkPart refuses a part that lacks what its kind needs, and removes what other kinds have.
func (r *Reader) checkPart(p *task.Part, text, data, file bool) {
	clean := task.Part{Kind: p.Kind, Metadata: p.Metadata, Name: p.Name, MediaType: p.MediaType}
	switch p.Kind {
	case task.TextPart:
		clean.Text = p.Text
		if !text {
			r.failAt("is required", "text")
		}
	case task.DataPart:
		clean.Data = p.Data
		if !data {
			r.failAt("is required", "data")
		}
	case task.FilePart:
		clean.Bytes, clean.URL = p.Bytes, p.URL
		if !file {
			r.failAt("is required", "file")
		}
	default:
		if !r.Failed() {
			r.failAt("must be text, data or file", "type")
		}
	}
	*p = clean
}

func (r *Reader) fileMember(p *task.Part, name []byte) bool {
	switch string(name) {
	case "name", "filename":
		r.String(&p.Name)
	case "mimeType", "mime_type", "mediaType", "media_type":
		r.String(&p.MediaType)
	case "uri", "url", "fileWithUri", "file_with_uri":
		r.String(&p.URL)
	case "bytes", "raw", "fileWithBytes", "file_with_bytes":
		r.base64(&p.Bytes)
	default:
		return false
	}
	return true
}

// base64 reads bytes in either alphabet, padded or not.
func (r *Reader) base64(dst *[]byte) {
	var s string
	if !r.String(&s) {
		return
	}
	s = strings.TrimRight(s, "=")
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(s, "-_") {
		encoding = base64.RawURLEncoding
	}
	b, err := encoding.DecodeString(s)
	if err != nil {
		r.Fail("must be base64")
		return
	}
	*dst = b
}

// ArtifactUpdate reads an artifact, or a further chunk of one, from a worker.
func (r *Reader) ArtifactUpdate(u *task.ArtifactUpdate) bool {
	a := &u.Artifact
	return r.Object(func(name []byte) bool {
		switch string(name) {
		case "artifact_id":
			r.String(&a.ID)
		case "type":
			r.String(&a.Type)
		case "name":
			r.String(&a.Name)
		case "description":
			r.String(&a.Description)
		case "parts":
			a.Parts = r.Parts()
		case "metadata":
			a.Metadata = r.RawObject()
		case "extensions":
			a.Extensions = r.Strings()
		case "append":
			r.Bool(&u.Append)
		case "last_chunk":
			r.Bool(&u.LastChunk)
			u.More = !u.LastChunk
		default:
			return false
		}
		return true
	})
}
