package identity

import (
	"context"
	"crypto/rand"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/parley-dev/parley/internal/cursor"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/limit"
	"github.com/parley-dev/parley/internal/text"
)

// AuditAction names what was done to who may do what. Packages with credentials of
// their own add actions of their own, named in the same way.
type AuditAction string

// The actions of this package and of package agent.
const (
	OrgCreate        AuditAction = "org.create"
	KeyCreate        AuditAction = "key.create"
	KeyRevoke        AuditAction = "key.revoke"
	KeyRotate        AuditAction = "key.rotate"
	MemberCreate     AuditAction = "member.create"
	MemberUpdate     AuditAction = "member.update"
	MemberDisable    AuditAction = "member.disable"
	MemberEnable     AuditAction = "member.enable"
	InvitationCreate AuditAction = "invitation.create"
	InvitationRevoke AuditAction = "invitation.revoke"
	InvitationAccept AuditAction = "invitation.accept"
	AgentCreate      AuditAction = "agent.create"
	AgentUpdate      AuditAction = "agent.update"
	AgentDisable     AuditAction = "agent.disable"
	AgentEnable      AuditAction = "agent.enable"
)

// AuditOutcome says whether it was done.
type AuditOutcome string

// The outcomes.
const (
	Done    AuditOutcome = "done"
	Refused AuditOutcome = "refused"
)

// AuditEntry is one line of the audit log. It never holds a secret.
type AuditEntry struct {
	Origin
	ID      string
	Org     string
	At      time.Time
	Action  AuditAction
	Target  string // an id or a ref; empty: it had none yet
	Detail  string // what a reader wants to know beside it
	Outcome AuditOutcome
	Code    string // of the refusal
}

// NewEntry makes the entry of something that is about to be done; it is written in
// the same transaction.
func NewEntry(ctx context.Context, at time.Time, org string, action AuditAction, target, detail string) AuditEntry {
	return AuditEntry{
		Origin: OriginOf(ctx), ID: "audit-" + strings.ToLower(rand.Text()), Org: org, At: at, Action: action,
		Target: clipText(target), Detail: clipText(detail), Outcome: Done,
	}
}

// anySecret matches what a caller may have put where a name belongs.
var anySecret = regexp.MustCompile(`parley_[0-9A-Za-z_]{20,}`)

// MaxAuditTarget is the longest target, in characters, that the log can be filtered by. Longer
// ones are not indexed.
const MaxAuditTarget = 500

// maxAuditText bounds what a caller can put into an entry.
const maxAuditText = 1000

func clipText(s string) string {
	s = anySecret.ReplaceAllString(s, "parley_…")
	s = strings.Map(func(r rune) rune {
		if text.Control(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if utf8.RuneCountInString(s) > maxAuditText {
		s = string([]rune(s)[:maxAuditText]) + "…"
	}
	return s
}

// AuditFilter chooses entries, newest first.
type AuditFilter struct {
	Actor    string
	Action   AuditAction
	Target   string    // exactly; longer than MaxAuditTarget: none
	From, To time.Time // From is included, To is not; zero: no bound
	// Before and BeforeID are the last entry of the page before.
	Before   time.Time
	BeforeID string
	Limit    int
}

var auditPages = cursor.Of("audit")

// Cursor is where the page after e begins.
func (f *AuditFilter) Cursor(e *AuditEntry) string {
	return auditPages.At().Time(e.At).Text(e.ID).String()
}

// maxAuditID bounds the id of an entry in a cursor.
const maxAuditID = 100

// Continue makes the filter begin behind a cursor; false: it is none of this list.
func (f *AuditFilter) Continue(after string) bool {
	r := auditPages.Read(after)
	f.Before, f.BeforeID = r.Time(), r.Text()
	return r.Done() && f.BeforeID != "" && len(f.BeforeID) <= maxAuditID && utf8.ValidString(f.BeforeID) &&
		!strings.ContainsRune(f.BeforeID, 0)
}

// Bounds of a page of any list of this package.
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// AuditStore keeps the log. Nothing of it is ever changed or deleted.
type AuditStore interface {
	// Append writes an entry that is part of no other write.
	Append(ctx context.Context, e AuditEntry) error
	List(ctx context.Context, org string, f AuditFilter) ([]AuditEntry, error)
}

// Auditor writes what no other write contains: refusals, and what other packages
// do that changes no row.
type Auditor struct {
	log AuditStore
	now func() time.Time

	refusals *limit.Keyed[string] // by org and actor

	mu      sync.Mutex
	skipped map[string]int // refusals that were not written
}

const (
	// An actor may fill the log with this many refusals at once, and with one more
	// every refusalEvery. How many were left out is said by the next that is not.
	refusalBurst = 20
	refusalEvery = 10 * time.Second
	maxActors    = 10_000
	appendWithin = 2 * time.Second
)

// NewAuditor makes the service.
func NewAuditor(log AuditStore, now func() time.Time) *Auditor {
	return &Auditor{
		log: log, now: now, skipped: map[string]int{},
		refusals: limit.New[string](1/refusalEvery.Seconds(), refusalBurst, maxActors),
	}
}

// Done writes that something was done.
func (a *Auditor) Done(ctx context.Context, org string, action AuditAction, target, detail string) error {
	return a.log.Append(ctx, NewEntry(ctx, a.now(), org, action, target, detail))
}

// Refused writes that something was refused, if the cause is a refusal and the
// actor has not filled the log with them already.
func (a *Auditor) Refused(ctx context.Context, org string, action AuditAction, target string, cause error) error {
	switch errs.KindOf(cause) {
	case errs.Forbidden, errs.Conflict, errs.Invalid:
	default:
		return nil
	}
	e := NewEntry(ctx, a.now(), org, action, target, "")
	e.Outcome, e.Code = Refused, errs.As(cause).Code
	who := e.Actor
	if who == "" {
		who = e.Address
	}
	skipped, ok := a.take(org+"/"+who, e.At)
	if !ok {
		return nil
	}
	if skipped > 0 {
		e.Detail = plural(skipped, "refusal", "refusals") + " before this one not written"
	}
	// The answer is decided; that the caller went away does not make it undone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendWithin)
	defer cancel()
	return a.log.Append(ctx, e)
}

// take uses up one of the refusals that an actor may have written.
func (a *Auditor) take(who string, now time.Time) (skipped int, ok bool) {
	ok = a.refusals.Take(who, 1, now) == 0
	a.mu.Lock()
	defer a.mu.Unlock()
	if !ok {
		if len(a.skipped) >= maxActors {
			clear(a.skipped)
		}
		a.skipped[who]++
		return 0, false
	}
	skipped = a.skipped[who]
	delete(a.skipped, who)
	return skipped, true
}
