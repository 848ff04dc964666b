package wire

import (
	"encoding/base64"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/task"
)

// AppendString appends a JSON string.
func AppendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // fails only on invalid UTF-8, which it has replaced then
	return b
}

// AppendTime appends a time in UTC with microseconds.
func AppendTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return append(t.AppendFormat(append(b, '"'), "2006-01-02T15:04:05.000000Z"), '"')
	}
	hour, minute, second := t.Clock()
	b = appendDigits(append(b, '"'), year, 4)
	b = appendDigits(append(b, '-'), int(month), 2)
	b = appendDigits(append(b, '-'), day, 2)
	b = appendDigits(append(b, 'T'), hour, 2)
	b = appendDigits(append(b, ':'), minute, 2)
	b = appendDigits(append(b, ':'), second, 2)
	b = appendDigits(append(b, '.'), t.Nanosecond()/1000, 6)
	return append(b, 'Z', '"')
}

// appendDigits appends the last digits of a number.
func appendDigits(b []byte, n, digits int) []byte {
	b = append(b, "000000"[:digits]...)
	for i := len(b) - 1; digits > 0; i, digits = i-1, digits-1 {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}

// appendMember appends `,"name":"value"` unless the value is empty.
func appendMember(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, `,"`...)
	b = append(b, name...)
	b = append(b, `":`...)
	return AppendString(b, value)
}

// AppendMetadata appends `,"metadata":{…}` unless it is empty.
func AppendMetadata(b, metadata []byte) []byte {
	if len(metadata) == 0 {
		return b
	}
	b = append(b, `,"metadata":`...)
	return append(b, metadata...)
}

// AppendMessage appends a message.
func AppendMessage(b []byte, m *task.Message) []byte { return appendMessage(b, m, false) }

// AppendWorkMessage appends a message for a worker, with the media types of parts. Senders of the
// versions with this form do not expect media types.
func AppendWorkMessage(b []byte, m *task.Message) []byte { return appendMessage(b, m, true) }

func appendMessage(b []byte, m *task.Message, mediaTypes bool) []byte {
	b = append(b, `{"kind":"message","role":"`...)
	b = append(b, m.Role...)
	b = append(b, `","parts":`...)
	b = appendParts(b, m.Parts, mediaTypes)
	b = appendMember(b, "messageId", m.ID)
	b = appendList(b, "extensions", m.Extensions)
	b = appendList(b, "referenceTaskIds", m.References)
	b = AppendMetadata(b, m.Metadata)
	return append(b, '}')
}

// appendList appends `,"name":["value",…]` unless the list is empty.
func appendList(b []byte, name string, values []string) []byte {
	if len(values) == 0 {
		return b
	}
	b = append(b, `,"`...)
	b = append(b, name...)
	b = append(b, `":`...)
	for i, v := range values {
		if i == 0 {
			b = append(b, '[')
		} else {
			b = append(b, ',')
		}
		b = AppendString(b, v)
	}
	return append(b, ']')
}

// AppendMessages appends an array of messages.
func AppendMessages(b []byte, list []task.Message) []byte { return appendMessages(b, list, false) }

// AppendWorkMessages is AppendMessages for a worker.
func AppendWorkMessages(b []byte, list []task.Message) []byte { return appendMessages(b, list, true) }

func appendMessages(b []byte, list []task.Message, mediaTypes bool) []byte {
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMessage(b, &list[i], mediaTypes)
	}
	return append(b, ']')
}

// AppendParts appends an array of parts.
func AppendParts(b []byte, parts []task.Part) []byte { return appendParts(b, parts, false) }

func appendParts(b []byte, parts []task.Part, mediaTypes bool) []byte {
	b = append(b, '[')
	for i := range parts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendPart(b, &parts[i], mediaTypes)
	}
	return append(b, ']')
}

// appendPart writes the kind twice: `type` is its old name, `kind` the newer one.
func appendPart(b []byte, p *task.Part, mediaType bool) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, p.Kind...)
	b = append(b, `","kind":"`...)
	b = append(b, p.Kind...)
	b = append(b, '"')
	b = appendContent(b, p)
	if mediaType {
		b = appendMember(b, "mediaType", p.MediaType)
	}
	b = AppendMetadata(b, p.Metadata)
	return append(b, '}')
}

// appendContent appends the content of a part.
func appendContent(b []byte, p *task.Part) []byte {
	switch p.Kind {
	case task.TextPart:
		b = append(b, `,"text":`...)
		b = AppendString(b, p.Text)
	case task.DataPart:
		b = append(b, `,"data":`...)
		b = append(b, p.Data...)
	case task.FilePart:
		b = append(b, `,"file":`...)
		b = appendFile(b, p)
	}
	return b
}

func appendFile(b []byte, p *task.Part) []byte {
	if p.URL != "" {
		b = append(b, `{"uri":`...)
		b = AppendString(b, p.URL)
	} else {
		b = append(b, `{"bytes":"`...)
		b = base64.StdEncoding.AppendEncode(b, p.Bytes)
		b = append(b, '"')
	}
	b = appendMember(b, "name", p.Name)
	b = appendMember(b, "mimeType", p.MediaType)
	return append(b, '}')
}

// AppendArtifact appends an artifact, with its index unless that is negative.
func AppendArtifact(b []byte, a *task.Artifact, index int) []byte {
	return append(appendArtifact(b, a, index), '}')
}

// AppendArtifactUpdate appends an artifact, or a further chunk of one.
func AppendArtifactUpdate(b []byte, a *task.Artifact, more, last bool) []byte {
	b = appendArtifact(b, a, -1)
	if more {
		b = append(b, `,"append":true`...)
	}
	if last {
		b = append(b, `,"lastChunk":true`...)
	}
	return append(b, '}')
}

func appendArtifact(b []byte, a *task.Artifact, index int) []byte {
	b = append(b, `{"artifactId":`...)
	b = AppendString(b, a.ID)
	kind := a.Type
	if kind == "" && len(a.Parts) > 0 {
		kind = string(a.Parts[0].Kind)
	}
	b = appendMember(b, "type", kind)
	b = appendMember(b, "name", a.Name)
	b = appendMember(b, "description", a.Description)
	b = append(b, `,"parts":`...)
	b = AppendParts(b, a.Parts)
	if index >= 0 {
		b = append(b, `,"index":`...)
		b = strconv.AppendInt(b, int64(index), 10)
	}
	return AppendMetadata(b, a.Metadata)
}

// AppendArtifacts appends an array of artifacts, each with its index.
func AppendArtifacts(b []byte, list []task.Artifact) []byte {
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendArtifact(b, &list[i], i)
	}
	return append(b, ']')
}
