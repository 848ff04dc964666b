package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/event"
)

// State says whether a webhook gets events.
type State string

// The states.
const (
	Active State = "active"
	Paused State = "paused" // by an admin
	Failed State = "failed" // given up after days of failures; Active resumes where it stopped
)

// States lists all states.
var States = []State{Active, Paused, Failed}

// Format is the form of the requests.
type Format string

// The formats.
const (
	Standard    Format = "standard"    // the payload that Standard Webhooks recommends
	CloudEvents Format = "cloudevents" // CloudEvents 1.0, structured JSON
	Slack       Format = "slack"       // a line of text for Slack, Mattermost and Discord
)

// Formats lists all formats.
var Formats = []Format{Standard, CloudEvents, Slack}

const (
	contentJSON        = "application/json"
	contentCloudEvents = "application/cloudevents+json; charset=utf-8"

	// typePrefix makes types unique among the sources of CloudEvents.
	typePrefix = "dev.parley."
)

// Encode returns an event as the body of a request. base is the public URL of the server, without
// a trailing slash. The body depends on nothing else, so it is the same in every attempt.
func Encode(f Format, e *event.Event, base string) (contentType string, body []byte) {
	switch f {
	case CloudEvents:
		return contentCloudEvents, encodeCloudEvent(e, base)
	case Slack:
		return contentJSON, encodeLine(e, base)
	default:
		return contentJSON, encodeStandard(e)
	}
}

// encodeStandard returns the members that Standard Webhooks names, and then what else an event
// has. The id is in the header webhook-id.
func encodeStandard(e *event.Event) []byte {
	b := make([]byte, 0, len(e.Data)+300)
	b = appendMember(append(b, '{'), "type", string(e.Type))
	b = appendMember(append(b, ','), "timestamp", stamp(e.At))
	b = appendData(append(b, ','), e)
	b = appendMember(append(b, ','), "subject", e.Subject)
	b = appendMember(append(b, ','), "actor", e.Actor)
	if e.Seq > 0 { // a ping is not in the log
		b = fmt.Appendf(b, `,"seq":%d`, e.Seq)
	}
	return fmt.Appendf(b, `,"version":%d}`, e.Version)
}

// encodeCloudEvent returns a CloudEvent. Names of extensions have only lower-case letters and
// digits. "sequence" is the extension of that name; its values are compared as strings, so they
// have leading zeros.
func encodeCloudEvent(e *event.Event, base string) []byte {
	b := make([]byte, 0, len(e.Data)+500)
	b = append(b, `{"specversion":"1.0",`...)
	b = appendMember(b, "id", e.ID)
	b = appendMember(append(b, ','), "source", join(base, "api", "v1", "orgs", e.Org))
	b = appendMember(append(b, ','), "type", typePrefix+string(e.Type))
	if e.Subject != "" { // an empty subject is not allowed
		b = appendMember(append(b, ','), "subject", e.Subject)
	}
	b = appendMember(append(b, ','), "time", stamp(e.At))
	b = appendMember(append(b, ','), "datacontenttype", contentJSON)
	if e.Seq > 0 {
		b = fmt.Appendf(b, `,"sequence":"%019d"`, e.Seq)
	}
	if e.Actor != "" {
		b = appendMember(append(b, ','), "actor", e.Actor)
	}
	b = fmt.Appendf(b, `,"dataversion":%d`, e.Version)
	b = appendData(append(b, ','), e)
	return append(b, '}')
}

// stamp writes a time as REST does.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// join returns a URL with escaped path segments.
func join(base string, segments ...string) string {
	var b strings.Builder
	b.WriteString(base)
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// appendMember appends a member with a string value. The name must not need escapes.
func appendMember(b []byte, name, value string) []byte {
	b = append(append(append(b, '"'), name...), '"', ':')
	var quoted bytes.Buffer
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false) // keeps links readable
	_ = enc.Encode(value)    // cannot fail for a string
	return append(b, bytes.TrimSuffix(quoted.Bytes(), []byte{'\n'})...)
}

// appendData appends the data as it is: it is JSON already.
func appendData(b []byte, e *event.Event) []byte {
	b = append(b, `"data":`...)
	if len(e.Data) == 0 {
		return append(b, "null"...)
	}
	return append(b, e.Data...)
}
