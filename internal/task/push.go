package task

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/text"
)

// PushConfig is a sender's request to send the events of one task to a URL.
type PushConfig struct {
	ID     string // chosen by the sender, or generated
	TaskID string // the sender's id of the task
	URL    string
	Token  string // sent along, so that the receiver can verify the origin
	// Scheme and Credentials make up the Authorization header; both may be empty.
	Scheme      string
	Credentials string
	Form        PushForm
	CreatedAt   time.Time
}

// PushForm is the wire format of pushes: that of the dialect in which the sender asked for them.
type PushForm string

// The forms of pushes.
const (
	PushV1  PushForm = "1.0" // every event as it happens
	PushV03 PushForm = "0.3" // the whole task after every event
)

// PushSet describes the effect of setting a configuration.
type PushSet struct {
	New    bool // no configuration with this id exists
	Replay bool // earlier events are pushed
}

// Limits of configurations; sizes in bytes.
const (
	MaxPushes      = 10 // of one task
	maxPushURL     = 2048
	maxPushSecret  = 4096
	maxPushScheme  = 64
	httpTokenChars = "!#$%&'*+-.^_`|~" // beside letters and digits
)

// Error codes of configurations.
const (
	CodePushUnsupported = "task.push_unsupported"
	CodePushNotDead     = "task.push_not_dead"
)

// ErrPushLimit refuses a configuration beyond MaxPushes.
var ErrPushLimit = errs.New(errs.Invalid, "task.push_too_many",
	"the task has %d push configurations already; delete one first", MaxPushes)

// Receiver returns the scheme and host of the URL, which contain no secrets.
func (p *PushConfig) Receiver() string { return text.Origin(p.URL) }

// Check reports what is wrong with a configuration.
func (p *PushConfig) Check() []errs.Field {
	f := CheckID("id", p.ID)
	if msg := badPushURL(p.URL); msg != "" {
		f = append(f, errs.NewField("url", msg))
	}
	secret := func(name, value string) {
		if (text.Rule{Form: text.Plain, MaxBytes: maxPushSecret}).Check(value) != "" {
			f = append(f, errs.NewField(name, fmt.Sprintf("must have at most %d bytes and no control characters", maxPushSecret)))
		}
	}
	secret("token", p.Token)
	secret("credentials", p.Credentials)
	switch {
	case p.Scheme == "" && p.Credentials != "":
		f = append(f, errs.NewField("scheme", "is required with credentials, for example Bearer"))
	case len(p.Scheme) > maxPushScheme || strings.ContainsFunc(p.Scheme, notHTTPToken):
		f = append(f, errs.NewField("scheme",
			fmt.Sprintf("must be the name of an authentication scheme, such as Bearer, of at most %d bytes", maxPushScheme)))
	}
	return f
}

func badPushURL(s string) string {
	if (text.Rule{Form: text.Plain, MaxBytes: maxPushURL}).Check(s) != "" {
		return fmt.Sprintf("must have at most %d bytes and no control characters", maxPushURL)
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return "must be an absolute URL that starts with https:// (or http://) and names a host"
	case u.User != nil || strings.Contains(s, "#"):
		return "must have neither user nor fragment"
	case !text.ValidPort(u.Port()):
		return "must have a port from 1 to 65535"
	}
	return ""
}

func notHTTPToken(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') &&
		!strings.ContainsRune(httpTokenChars, r)
}
