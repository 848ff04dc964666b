// Package friction has the rules for reported friction: agents and people report a recurring
// problem, and after enough reports a proposal is filed.
//
// Reports with the same fingerprint are about the same friction. The decision is a pure function
// (decide.go) that a Store runs in a transaction, so that two concurrent reports cannot file two
// proposals. The package contains no HTTP and no SQL, and knows no proposals: it describes the
// one to file as a Draft.
package friction

import (
	"time"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
)

// Friction is the state of one fingerprint in one org.
type Friction struct {
	Org          string
	Fingerprint  string
	Title        string // title, category, problem and priority come from the latest report
	Category     string
	Problem      string
	SuggestedFix string // the latest one; may be empty
	Priority     string
	Count        int64 // reports, without repetitions
	ProposalID   string
	FirstAt      time.Time
	LastAt       time.Time
	LastBy       string // a ref
}

// Evidence is one counted report.
type Evidence struct {
	Seq        int64  // starts at 1, without gaps
	Reporter   string // a ref
	Occurrence string // the reporter's id of this occurrence; may be empty
	Text       string // empty if there was none, or if it is no longer kept
	At         time.Time
}

// Draft is a proposal to file.
type Draft struct {
	Org          string
	ID           string
	Title        string
	Category     string
	Problem      string
	SuggestedFix string
	Priority     string
	By           string // a ref: the reporter that reached the threshold
	At           time.Time
}

// Thresholds: the number of reports that files a proposal. Each org may set its own.
const (
	DefaultThreshold = 3
	MinThreshold     = 2
	MaxThreshold     = 100
	Off              = 0 // reports are counted, and nothing is filed
)

// ThresholdSet is the action in the audit log.
const ThresholdSet identity.AuditAction = "friction.threshold"

// How many reports of a fingerprint are kept with their evidence, and how many occurrences are
// remembered.
const (
	KeepEvidence    = 50
	KeepOccurrences = 1000
)

const fingerprintPattern = `^[a-z0-9][a-z0-9._:-]{0,199}$`

var fingerprints = text.Pattern(fingerprintPattern)

// Pattern returns the regular expression of fingerprints, for documentation.
func Pattern() string { return fingerprintPattern }

// ValidFingerprint reports whether s has the form of a fingerprint. Others are not looked up.
func ValidFingerprint(s string) bool { return fingerprints().MatchString(s) }
