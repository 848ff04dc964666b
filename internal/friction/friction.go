// Package friction holds the rules of reported friction: agents and people say
// that the same thing got in their way again, and when it did so often enough a
// proposal is filed.
//
// What makes two reports the same friction is their fingerprint. Deciding is a
// pure function (decide.go) that a Store runs in a transaction, so that two reports
// at once cannot file two proposals. The package knows no HTTP, no SQL and no
// proposals: it describes the one to be filed as a Draft.
package friction

import (
	"regexp"
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// Friction is what is known of one fingerprint in one org.
type Friction struct {
	Org          string
	Fingerprint  string
	Title        string // title, category, problem and priority as the latest report has them
	Category     string
	Problem      string
	SuggestedFix string // the latest that anybody gave
	Priority     string
	Count        int64 // reports that counted
	ProposalID   string
	FirstAt      time.Time
	LastAt       time.Time
	LastBy       string // a ref
}

// Evidence is one report that counted.
type Evidence struct {
	Seq        int64  // from 1, without gaps
	Reporter   string // a ref
	Occurrence string // the reporter's name for this time; empty: none
	Text       string // empty if there was none, or if it is too old to be kept
	At         time.Time
}

// Draft is the proposal that shall be filed.
type Draft struct {
	Org          string
	ID           string
	Title        string
	Category     string
	Problem      string
	SuggestedFix string
	Priority     string
	By           string // a ref: whose report was the last that was needed
	At           time.Time
}

// Thresholds: how many reports file a proposal. An org may choose another one.
const (
	DefaultThreshold = 3
	MinThreshold     = 2
	MaxThreshold     = 100
	Off              = 0 // reports are kept and counted, and nothing is filed
)

// ThresholdSet is the audit log's name for the change of it.
const ThresholdSet identity.AuditAction = "friction.threshold"

// What is kept of a fingerprint: the evidence of the latest reports, and the
// occurrences of more of them.
const (
	KeepEvidence    = 50
	KeepOccurrences = 1000
)

var pattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._:-]{0,199}$`)

// Pattern is what a fingerprint matches, for documents.
func Pattern() string { return pattern.String() }

// ValidFingerprint reports whether s can be a fingerprint. Anything else is not
// looked up.
func ValidFingerprint(s string) bool { return pattern.MatchString(s) }
