// Package webhook sends the events of an org to the URLs that its admins choose.
//
// A Webhook is a subscription to the log of its org. Its cursor is the number of the last event
// that was passed: delivered, or not selected by the filter of the webhook.
//
// The way of an event from its commit to a receiver:
//
//  1. A change is committed together with its event. The store then calls Service.Changed with the
//     org (news.go). Nothing is written for the webhook: it is due because its cursor is behind the
//     end of the log. A slow poll finds webhooks whose news was lost, for example in a crash.
//  2. The delivery engine claims webhooks of orgs with news, and webhooks whose time for the next
//     attempt has come. A claim has an end, so that another node takes over after a crash.
//  3. The source (source.go) reads the log after the cursor and yields the events that the webhook
//     selects. Admins see all events, but webhooks never get drafts.
//  4. The engine sends one event after the other, encoded and signed as the webhook says
//     (format.go, sign.go). With the result of an attempt it writes the new cursor, or the time of
//     the next attempt, and an entry of the log of deliveries, in one transaction.
//  5. After GiveUpAfter of failures, or when the receiver responds with 410 Gone, the webhook fails:
//     the same transaction writes the state and an event of the type webhook.failed. When an admin
//     sets the webhook active again, it continues after its cursor.
//
// So each event is delivered at least once, in order, under its own id. The commands of admins are
// in service.go; an attempt that an admin asks for (send.go) is made at once, and does not move the
// cursor. The package contains no SQL.
package webhook

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/text"
)

// Kind is the kind of subscriptions that are webhooks. Key.ID is the id of the webhook.
const Kind delivery.Kind = "webhook"

// GiveUpAfter is how long deliveries of a webhook may fail, without a success, until it is Failed.
const GiveUpAfter = 72 * time.Hour

// Ping is the type of the event that Service.Ping sends. It is not in the log.
const Ping event.Type = "webhook.ping"

// The actions in the audit log.
const (
	AuditCreate    identity.AuditAction = "webhook.create"
	AuditUpdate    identity.AuditAction = "webhook.update"
	AuditDelete    identity.AuditAction = "webhook.delete"
	AuditRotate    identity.AuditAction = "webhook.rotate"
	AuditPing      identity.AuditAction = "webhook.ping"
	AuditRedeliver identity.AuditAction = "webhook.redeliver"
)

// Prefix starts the id of a webhook.
const Prefix = "hook-"

// ValidID reports whether s can be the id of a webhook.
func ValidID(s string) bool {
	rest, ok := strings.CutPrefix(s, Prefix)
	return ok && rest != "" && len(s) <= 64 && !strings.ContainsFunc(rest, notIDChar)
}

func notIDChar(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }

// Webhook is a subscription to the events of an org, with its progress.
type Webhook struct {
	Org, ID     string
	URL         string
	Types       []event.Type // empty: all
	Categories  []string     // of proposals; empty: all. Events about other records pass.
	Priorities  []string     // of proposals, like Categories
	Description string
	State       State
	Format      Format
	PublicKey   string // verifies the Ed25519 signatures
	// OldSecretUntil is when the secret before the last rotation ends; zero if it has ended.
	OldSecretUntil time.Time

	CreatedAt, UpdatedAt time.Time
	CreatedBy            string // a ref
	Version              int64  // grows with each change by an admin

	Cursor, Head  int64 // the last event that was passed; the last event of the log
	Attempts      int   // failed attempts to deliver the event after the cursor
	LastError     string
	LastAttemptAt time.Time
	NextAttemptAt time.Time // zero unless a failed attempt will be repeated
	FailingSince  time.Time // zero if the last attempt was successful
}

// Subject returns the subject of events about the webhook.
func (w *Webhook) Subject() string { return "webhook:" + w.ID }

// Receiver returns the scheme and the host of the URL.
func (w *Webhook) Receiver() string { return text.Origin(w.URL) }

// Creation describes a new webhook.
type Creation struct {
	URL                    string
	Types                  []event.Type
	Categories, Priorities []string
	Description            string
	State                  State  // empty: Active
	Format                 Format // empty: Standard
}

// Edit changes the fields of a webhook that are not nil.
type Edit struct {
	URL                    *string
	Types                  *[]event.Type
	Categories, Priorities *[]string
	Description            *string
	State                  *State
	Format                 *Format
	IfVersion              *int64
}

// Delivery is an entry of the log of deliveries: one attempt.
type Delivery struct {
	ID         string
	EventID    string
	Type       event.Type
	Seq        int64 // 0 for a ping
	At         time.Time
	Attempt    int
	Status     int // of the HTTP response; 0: there was none
	Latency    time.Duration
	Response   string // the first bytes of the response, as one line
	Error      string
	Outcome    delivery.Outcome
	Redelivery bool // an admin asked for it
}

// Bounds of the fields.
const (
	MaxURL         = 2000 // bytes
	MaxDescription = 500  // characters
	MaxDeliveries  = 100  // attempts that are kept for each webhook
)

var descriptionRule = text.Rule{Max: MaxDescription, Form: text.Line}

// check returns what is wrong with a webhook. checkURL refuses URLs that requests must not go to.
func (w *Webhook) check(checkURL func(string) error) error {
	var wrong []errs.Field
	add := func(path errs.Path, format string, args ...any) {
		wrong = append(wrong, errs.Field{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if problem := urlProblem(w.URL, checkURL); problem != "" {
		add(errs.At("url"), "%s", problem)
	}
	if problem := descriptionRule.Check(w.Description); w.Description != "" && problem != "" {
		add(errs.At("description"), "%s", problem)
	}
	if w.State != Active && w.State != Paused && w.State != Failed {
		add(errs.At("state"), "must be %s or %s", Active, Paused)
	}
	if !slices.Contains(Formats, w.Format) {
		add(errs.At("format"), "must be %s, %s or %s", Standard, CloudEvents, Slack)
	}
	if n := len(w.Types); n > len(event.Kinds) {
		add(errs.At("types"), "has %d entries; at most %d are allowed", n, len(event.Kinds))
	} else {
		for i, t := range w.Types {
			if !t.Known() {
				add(errs.At("types", i), "is %q, which is not a type of event", text.Clean(string(t), 100))
			}
		}
	}
	wrong = append(wrong, listFaults("categories", w.Categories, proposal.Categories)...)
	wrong = append(wrong, listFaults("priorities", w.Priorities, proposal.Priorities)...)
	if len(wrong) > 0 {
		return errs.InvalidFields(wrong...)
	}
	return nil
}

func urlProblem(raw string, checkURL func(string) error) string {
	u, err := url.Parse(raw)
	switch {
	case len(raw) > MaxURL:
		return fmt.Sprintf("must have at most %d bytes", MaxURL)
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "must be an absolute URL that starts with https://"
	case strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "must consist of ASCII characters without spaces; escape others with %"
	case u.User != nil:
		return "must not contain a user name or password; receivers verify the signature instead"
	case strings.Contains(raw, "#"): // also an empty one
		return "must not have a fragment (#), which is not sent"
	case !text.ValidPort(u.Port()):
		return "must have a port from 1 to 65535"
	}
	if err := checkURL(raw); err != nil {
		return err.Error()
	}
	return ""
}

// listFaults checks a list of categories or priorities.
func listFaults[T ~string](name string, list []string, known []T) (wrong []errs.Field) {
	if len(list) > len(known) {
		return []errs.Field{errs.NewField(name, fmt.Sprintf("has %d entries; at most %d are allowed", len(list), len(known)))}
	}
	for i, s := range list {
		if !slices.Contains(known, T(s)) {
			var all []string
			for _, k := range known {
				all = append(all, string(k))
			}
			wrong = append(wrong, errs.Field{
				Path:    errs.At(name, i),
				Message: fmt.Sprintf("is %q; must be one of %s", text.Clean(s, 100), strings.Join(all, ", ")),
			})
		}
	}
	return wrong
}

// unique returns the list without repeated entries, in its order; nil if it is empty.
func unique[T ~string](list []T) []T {
	var out []T
	for _, x := range list {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}
