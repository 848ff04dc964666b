package task

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/parley-dev/parley/internal/cursor"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// PushConfig says where the events of one task are to be sent, as its sender wants
// it. What is sent follows the task's log by a cursor of its own: nothing is lost
// when the receiver, or this server, is away for a while.
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

// PushState is what becomes of a configuration.
type PushState string

// The states of configurations.
const (
	PushActive PushState = "active"
	PushDone   PushState = "done" // the task is over, and its receiver knows
	PushDead   PushState = "dead" // given up; the cursor stays where it was
)

// PushStates lists every state of a configuration.
var PushStates = []PushState{PushActive, PushDone, PushDead}

// Push is a configuration with what became of it.
type Push struct {
	PushConfig
	Org           string // of the agent
	UID           string // of the task
	SenderOrg     string // of the task's sender, who set the configuration
	Size          int64  // of the task, when the push was claimed
	State         PushState
	Cursor        int64     // the last event that the receiver has
	Head          int64     // the last event there is
	DueAt         time.Time // zero: there is nothing to do
	ClaimedUntil  time.Time
	Attempts      int // to push the event after the cursor
	LastError     string
	LastAttemptAt time.Time
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

// Check refuses a configuration that cannot be kept; at is where it stands in the
// request.
func (p *PushConfig) Check(at string) []errs.Field {
	f := checkID(at+"/id", p.ID)
	if msg := badPushURL(p.URL); msg != "" {
		f = append(f, field(at+"/url", msg))
	}
	secret := func(name, value string) {
		if len(value) > maxPushSecret || badText(value) != "" || strings.ContainsFunc(value, unicode.IsControl) {
			f = append(f, field(at+name, fmt.Sprintf("must have at most %d bytes and no control characters", maxPushSecret)))
		}
	}
	secret("/token", p.Token)
	secret("/authentication/credentials", p.Credentials)
	switch {
	case p.Scheme == "" && p.Credentials != "":
		f = append(f, field(at+"/authentication/scheme", "is required with credentials, for example Bearer"))
	case len(p.Scheme) > maxPushScheme || strings.ContainsFunc(p.Scheme, notHTTPToken):
		f = append(f, field(at+"/authentication/scheme",
			fmt.Sprintf("must be the name of an authentication scheme, such as Bearer, of at most %d bytes", maxPushScheme)))
	}
	return f
}

func badPushURL(s string) string {
	if len(s) > maxPushURL || badText(s) != "" || strings.ContainsFunc(s, unicode.IsControl) {
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

// Pushes reports whether push notifications are turned on.
func (s *Tasks) Pushes() bool { return s.PushURL != nil }

func (s *Tasks) pushable() error {
	if s.PushURL == nil {
		return errs.New(errs.Conflict, CodePushUnsupported, "push notifications are turned off on this server")
	}
	return nil
}

// checkPush refuses a configuration that breaks a rule, or an address that may not
// be used.
func (s *Tasks) checkPush(p *PushConfig, at string) error {
	f := p.Check(at)
	if len(f) == 0 {
		if err := s.PushURL(p.URL); err != nil {
			f = append(f, field(at+"/url", err.Error()))
		}
	}
	if len(f) > 0 {
		return errs.InvalidFields(f...)
	}
	return nil
}

// sendPush is the configuration that comes with a message. Without an id it gets
// one that follows from the address: the next message with the same address, or a
// repeated one, means the same configuration.
func (s *Tasks) sendPush(r *SendRequest) (*PushConfig, error) {
	if r.Push == nil {
		return nil, nil // there is none
	}
	if err := s.pushable(); err != nil {
		return nil, err
	}
	p := *r.Push
	at := "/configuration/taskPushNotificationConfig"
	if p.Form == PushV03 {
		at = "/configuration/pushNotificationConfig"
	}
	if err := s.checkPush(&p, at); err != nil {
		return nil, err
	}
	if p.ID == "" {
		sum := sha256.Sum256([]byte(p.URL))
		p.ID = "push-" + hex.EncodeToString(sum[:13])
	}
	p.Form, p.CreatedAt = cmp.Or(p.Form, PushV1), s.Now()
	return &p, nil
}

// SetPush makes a configuration, or replaces the one with the same id. A new one
// gets the events from now on; if the task is over, it gets the last one.
func (s *Tasks) SetPush(ctx context.Context, c Call, taskID string, p PushConfig) (PushConfig, error) {
	if err := s.pushable(); err != nil {
		return PushConfig{}, err
	}
	if len(checkID("", taskID)) > 0 || taskID == "" {
		return PushConfig{}, errs.ErrNotFound
	}
	if err := s.checkPush(&p, ""); err != nil {
		return PushConfig{}, err
	}
	if p.ID == "" {
		p.ID = s.NewID("push-")
	}
	p.Form, p.CreatedAt = cmp.Or(p.Form, PushV1), s.Now()
	c, err := s.Aim(ctx, c, taskID)
	if err != nil {
		return PushConfig{}, err
	}
	guard := s.newPushGuard(ctx, c.sender)
	change, err := s.Store.UpdateTaskByKey(ctx, s.key(c, taskID), 0, func(cur Current) (Change, error) {
		return Change{Task: cur.Task, Push: &p, PushGuard: guard.of(&cur.Task)}, nil
	})
	guard.end(err)
	if err != nil {
		return PushConfig{}, err
	}
	s.publish(change)
	return *change.Push, nil
}

// GetPush returns a configuration of a task of the caller's.
func (s *Tasks) GetPush(ctx context.Context, c Call, taskID, id string) (PushConfig, error) {
	list, err := s.ListPush(ctx, c, taskID)
	if err != nil {
		return PushConfig{}, err
	}
	for _, p := range list {
		if p.ID == id {
			return p, nil
		}
	}
	return PushConfig{}, errs.ErrNotFound
}

// ListPush returns the configurations of a task of the caller's, ordered by id.
func (s *Tasks) ListPush(ctx context.Context, c Call, taskID string) ([]PushConfig, error) {
	if err := s.pushable(); err != nil {
		return nil, err
	}
	t, err := s.Get(ctx, c, taskID, Content{})
	if err != nil {
		return nil, err
	}
	list, err := s.Store.TaskPushes(ctx, t.Org, t.UID)
	out := make([]PushConfig, len(list))
	for i := range list {
		out[i] = list[i].PushConfig
	}
	return out, err
}

// DeletePush deletes a configuration of a task of the caller's, if it is there.
func (s *Tasks) DeletePush(ctx context.Context, c Call, taskID, id string) error {
	if err := s.pushable(); err != nil {
		return err
	}
	t, err := s.Get(ctx, c, taskID, Content{})
	if err != nil || len(checkID("", id)) > 0 {
		return err
	}
	return s.Store.DeletePush(ctx, t.Org, t.UID, id)
}

// PushFilter selects configurations of an org's agents.
type PushFilter struct {
	Org   string
	State PushState // empty: any
	// Before continues a list, newest task first: the uid and the id of the last one.
	Before, BeforeID string
	Limit            int
}

var pushPages = cursor.Of("push configurations")

// Cursor is where the page after p begins.
func (f *PushFilter) Cursor(p *Push) string { return pushPages.At().Text(p.UID).Text(p.ID).String() }

// Continue makes the filter begin behind a cursor; false: it is none of this list.
func (f *PushFilter) Continue(after string) bool {
	r := pushPages.Read(after)
	f.Before, f.BeforeID = r.Text(), r.Text()
	return r.Done() && ValidUID(f.Before) && ValidPushID(f.BeforeID)
}

// OrgPushes lists the configurations of the tasks of the org's agents; for admins.
func (s *Tasks) OrgPushes(ctx context.Context, a identity.Access, f PushFilter) ([]Push, error) {
	if err := a.May(identity.ReadTasks); err != nil {
		return nil, err
	}
	f.Org = a.Org()
	return s.Store.Pushes(ctx, f)
}

// OrgTaskPushes lists the configurations of one task; for admins.
func (s *Tasks) OrgTaskPushes(ctx context.Context, a identity.Access, uid string) ([]Push, error) {
	if err := a.May(identity.ReadTasks); err != nil {
		return nil, err
	}
	if !ValidUID(uid) {
		return nil, errs.ErrNotFound
	}
	if _, err := s.Store.TaskRow(ctx, a.Org(), uid); err != nil {
		return nil, err
	}
	return s.Store.TaskPushes(ctx, a.Org(), uid)
}

// ValidPushID reports whether s can be the id of a configuration.
func ValidPushID(s string) bool { return s != "" && len(checkID("", s)) == 0 }

// RetryPush makes a dead configuration due again; for admins.
func (s *Tasks) RetryPush(ctx context.Context, a identity.Access, uid, id string) (Push, error) {
	if err := a.May(identity.ReadTasks); err != nil {
		return Push{}, err
	}
	if !ValidUID(uid) || !ValidPushID(id) {
		return Push{}, errs.ErrNotFound
	}
	t, err := s.Store.TaskRow(ctx, a.Org(), uid)
	if err != nil {
		return Push{}, err
	}
	guard := pushGuard{s: s, who: a.Principal()}
	p, err := s.Store.UpdatePush(ctx, a.Org(), uid, id, func(p Push, clock time.Time) (Push, error) {
		if p.State != PushDead {
			return p, errs.New(errs.Conflict, CodePushNotDead, "the push configuration is %s; only a dead one can be retried", p.State)
		}
		guard.undo() // of a write that is run again
		if err := guard.replay(t.Size); err != nil {
			return p, err
		}
		p.State, p.Attempts, p.DueAt, p.ClaimedUntil = PushActive, 0, clock, time.Time{}
		return p, nil
	})
	if err != nil {
		guard.undo()
		return p, err
	}
	s.pusher.nudge()
	p.TaskID = t.ID
	return p, nil
}
