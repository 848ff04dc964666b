package identity

import (
	"context"
	"crypto/rand"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/cursor"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/limit"
	"github.com/parley-dev/parley/internal/text"
)

// AuditAction is the type of an audit entry, such as "key.create". Other packages define
// further actions.
type AuditAction string

// Actions of this package and of package agent.
const (
	OrgCreate        AuditAction = "org.create"
	OrgImport        AuditAction = "org.import"
	OrgDelete        AuditAction = "org.delete"
	KeyCreate        AuditAction = "key.create"
	KeyRevoke        AuditAction = "key.revoke"
	KeyRotate        AuditAction = "key.rotate"
	MemberCreate     AuditAction = "member.create"
	MemberUpdate     AuditAction = "member.update"
	MemberDisable    AuditAction = "member.disable"
	MemberEnable     AuditAction = "member.enable"
	MemberErase      AuditAction = "member.erase"
	InvitationCreate AuditAction = "invitation.create"
	InvitationRevoke AuditAction = "invitation.revoke"
	InvitationAccept AuditAction = "invitation.accept"
	AgentCreate      AuditAction = "agent.create"
	AgentUpdate      AuditAction = "agent.update"
	AgentDisable     AuditAction = "agent.disable"
	AgentEnable      AuditAction = "agent.enable"
	RetentionDelete  AuditAction = "retention.delete" // the target is a kind of records
)

// AuditOutcome reports whether the action was carried out.
type AuditOutcome string

// The outcomes.
const (
	Done    AuditOutcome = "done"
	Refused AuditOutcome = "refused"
)

// AuditEntry is one entry of the audit log. It never contains a secret.
type AuditEntry struct {
	Origin
	ID      string
	Org     string
	At      time.Time
	Action  AuditAction
	Target  string // id or ref; empty if it did not exist yet
	Detail  string // free text
	Outcome AuditOutcome
	Code    string // error code of a refusal
}

// NewEntry returns the entry of an action. The store writes it in the transaction that
// carries out the action.
func NewEntry(ctx context.Context, at time.Time, org string, action AuditAction, target, detail string) AuditEntry {
	return AuditEntry{
		Origin: OriginOf(ctx), ID: "audit-" + strings.ToLower(rand.Text()), Org: org, At: at, Action: action,
		Target: auditText(target), Detail: auditText(detail), Outcome: Done,
	}
}

// anySecret matches a secret that a caller may have sent in place of a name.
var anySecret = regexp.MustCompile(`parley_[0-9A-Za-z_]{20,}`)

// MaxAuditTarget is the length, in characters, of the longest target that is indexed. The log
// cannot be filtered by a longer one.
const MaxAuditTarget = 500

// maxAuditText bounds the target and the detail of an entry, in characters.
const maxAuditText = 1000

// auditText removes secrets and what a log cannot show from text that a caller may have sent.
func auditText(s string) string {
	return text.Clean(anySecret.ReplaceAllString(s, "parley_…"), maxAuditText)
}

// AuditFilter selects entries, newest first.
type AuditFilter struct {
	Actor    string
	Action   AuditAction
	Target   string    // exact match; longer than MaxAuditTarget matches nothing
	From, To time.Time // From is inclusive, To is exclusive; zero: no bound
	// Before and BeforeID are the time and id of the last entry of the previous page.
	Before   time.Time
	BeforeID string
	Limit    int
}

var auditPages = cursor.Of("audit")

// Cursor returns the cursor of the page that starts after e.
func (f *AuditFilter) Cursor(e *AuditEntry) string {
	return auditPages.At().Time(e.At).Text(e.ID).String()
}

// maxAuditID bounds the id of an entry in a cursor.
const maxAuditID = 100

// Continue makes the filter start after a cursor. It reports whether the cursor is valid.
func (f *AuditFilter) Continue(after string) bool {
	r := auditPages.Read(after)
	f.Before, f.BeforeID = r.Time(), r.Text()
	return r.Done() && f.BeforeID != "" && len(f.BeforeID) <= maxAuditID && text.Storable(f.BeforeID)
}

// Bounds of a page of any list of this package.
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// AuditStore keeps the audit log. Entries are never changed, and deleted only by age. The one exception
// is the entry of a day about what was deleted by age, whose number grows.
type AuditStore interface {
	// Append writes an entry in its own transaction.
	Append(ctx context.Context, e AuditEntry) error
	List(ctx context.Context, org string, f AuditFilter) ([]AuditEntry, error)
}

// Auditor writes the entries that are not part of another write: refusals, and actions of
// other packages that change no row.
type Auditor struct {
	log AuditStore
	now func() time.Time

	refusals *limit.Keyed[string] // by org and actor

	mu      sync.Mutex
	skipped map[string]int // number of refusals that were not written
}

const (
	// refusalBurst refusals of one actor are written at once, and one more every
	// refusalEvery. The next one that is written reports how many were skipped.
	refusalBurst = 20
	refusalEvery = 10 * time.Second
	maxActors    = 10_000
	appendWithin = 2 * time.Second
)

// NewAuditor returns the service.
func NewAuditor(log AuditStore, now func() time.Time) *Auditor {
	return &Auditor{
		log: log, now: now, skipped: map[string]int{},
		refusals: limit.New[string](1/refusalEvery.Seconds(), refusalBurst, maxActors),
	}
}

// Done writes the entry of an action that was carried out.
func (a *Auditor) Done(ctx context.Context, org string, action AuditAction, target, detail string) error {
	return a.log.Append(ctx, NewEntry(ctx, a.now(), org, action, target, detail))
}

// Refused writes the entry of an action that was refused. It writes nothing if the cause is
// not a refusal, or if the actor caused too many already.
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
	// The refusal is recorded even if the client has disconnected.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendWithin)
	defer cancel()
	return a.log.Append(ctx, e)
}

// take reports whether a refusal of the actor may be written, and how many were skipped
// before it.
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
