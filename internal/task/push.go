package task

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/text"
)

// PushConfig says where the events of one task are to be sent, as its sender wants it.
type PushConfig struct {
	ID     string // chosen by the sender, or ours
	TaskID string // the sender's id of the task
	URL    string
	Token  string // sent along, so that the receiver knows who it is
	// Scheme and Credentials are the Authorization header that the receiver wants.
	Scheme      string
	Credentials string
	Form        PushForm
	CreatedAt   time.Time
}

// PushForm is the form in which events are pushed: that of the dialect in which
// the sender asked for it.
type PushForm string

// The forms of pushes.
const (
	PushV1  PushForm = "1.0" // every event as it happens
	PushV03 PushForm = "0.3" // the whole task after every event
)

// PushSet says what setting a configuration would do.
type PushSet struct {
	New    bool // there is none with this id
	Replay bool // events that happened before are pushed
}

// Bounds of configurations; sizes in bytes.
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

// ErrPushLimit refuses one configuration too many.
var ErrPushLimit = errs.New(errs.Invalid, "task.push_too_many", "the task has %d push configurations already; delete one first", MaxPushes)

// Receiver is where a configuration's pushes go, without what may be secret in the
// address.
func (p *PushConfig) Receiver() string {
	u, err := url.Parse(p.URL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

// Check refuses a configuration that cannot be kept.
func (p *PushConfig) Check() []errs.Field {
	f := CheckID("id", p.ID)
	if msg := badPushURL(p.URL); msg != "" {
		f = append(f, field("url", msg))
	}
	secret := func(name, value string) {
		if (text.Rule{Form: text.Plain, MaxBytes: maxPushSecret}).Check(value) != "" {
			f = append(f, field(name, fmt.Sprintf("must have at most %d bytes and no control characters", maxPushSecret)))
		}
	}
	secret("token", p.Token)
	secret("credentials", p.Credentials)
	switch {
	case p.Scheme == "" && p.Credentials != "":
		f = append(f, field("scheme", "is required with credentials, for example Bearer"))
	case len(p.Scheme) > maxPushScheme || strings.ContainsFunc(p.Scheme, notHTTPToken):
		f = append(f, field("scheme",
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
		return "must be an absolute address that starts with https:// (or http://) and names a host"
	case u.User != nil || strings.Contains(s, "#"):
		return "must have neither user nor fragment"
	}
	return ""
}

func notHTTPToken(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(httpTokenChars, r)
}
