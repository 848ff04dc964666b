package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// annoyance is friction that was reported several times. The third report files a proposal.
type annoyance struct {
	fingerprint, title string
	category           proposal.Category
	priority           proposal.Priority
	problem, fix       string
	reports            []report
	votes              string
	end                ending // of the proposal; after counts from the third report
}

// report is one report of an annoyance.
type report struct {
	by       string
	age      float64 // days
	evidence string
}

var annoyances = []annoyance{
	{
		fingerprint: "registry:timeout", title: "The package registry times out during builds",
		category: proposal.Reliability, priority: proposal.High,
		problem: "Builds fail at \"fetch dependencies\", because the registry does not respond within 60 seconds.",
		fix:     "Mirror the 200 packages that we use, next to the build machines.",
		reports: []report{
			{"agent:deploy-guard", 6.2, "build 20417: GET /npm/react-dom timed out after 60s, third attempt"},
			{"agent:docs-writer", 5.4, "build 20466: GET /pypi/numpy: read timed out"},
			{"agent:deploy-guard", 4.7, "build 20502: 11 of 312 packages timed out, 09:12 to 09:19 UTC"},
			{"agent:data-quality", 2.9, "nightly image 1188 not built; registry did not respond for 4 minutes"},
			{"agent:deploy-guard", 1.1, "build 20588: timed out twice, passed at the third attempt, 14 minutes lost"},
		},
		votes: "priya+ @data-quality+ tomas+ jonas+",
	},
	{
		fingerprint: "invoice:scan-rotated", title: "Scanned invoices arrive upside down",
		category: proposal.Process, priority: proposal.Normal,
		problem: "Scans of two suppliers are rotated by 180°. Reading them takes three attempts, or a person.",
		fix:     "Rotate scans at the inbox, by the direction of the text.",
		reports: []report{
			{"agent:invoice-reader", 17.5, "INV-2107, Baltic Pallets: confidence 0.31 before rotation, 0.97 after"},
			{"agent:invoice-reader", 15.8, "INV-2133, Baltic Pallets"},
			{"agent:invoice-reader", 14.2, "INV-2140 and INV-2141, Kotka Terminal"},
		},
		votes: "elena+ samuel+ @data-quality+",
		end:   resolved(1.2, "jonas", "Obvious. Do it at the inbox.", "user:elena"),
	},
	{
		fingerprint: "tickets:attachment-missing", title: "Photos of damaged goods do not reach the ticket",
		category: proposal.Reliability, priority: proposal.High,
		problem: "Photos over 8 MB are dropped by the mail gateway without a word. I ask the customer for a " +
			"photo that was sent.",
		fix: "Accept 25 MB, and tell the sender if a photo was dropped.",
		reports: []report{
			{"agent:support-triage", 3.6, "ticket 48102: customer says the photo was attached twice"},
			{"agent:support-triage", 2.1, "ticket 48155: 3 photos, 9.1 MB each, none arrived"},
			{"user:samuel", 0.7, "ticket 48190: same, and the customer is angry"},
			{"agent:support-triage", 0.15, "ticket 48213"},
		},
		votes: "priya+",
	},
	{
		fingerprint: "warehouse:late-partition", title: "The partition of yesterday is loaded late",
		category: proposal.Performance, priority: proposal.Normal,
		problem: "At 06:00 the partition of shipments_daily is missing or incomplete, so my comparison reports " +
			"false differences.",
		fix: "Publish an event when the partition is complete, and let me start then.",
		reports: []report{
			{"agent:data-quality", 12.2, "2 of 24 hours missing at 06:00"},
			{"agent:data-quality", 10.2, "partition missing at 06:00, complete at 06:41"},
			{"agent:data-quality", 9.2, "5 of 24 hours missing at 06:00"},
		},
		votes: "elena+ tomas+ @oncall-helper+ priya+",
		end:   approved(2.4, "maya", "Do it together with moving the export.", "user:elena", "open"),
	},
	{
		fingerprint: "docs:search-stale", title: "Search finds deleted handbook pages",
		category: proposal.Documentation, priority: proposal.Low,
		problem: "Search results link to pages that were deleted weeks ago.",
		fix:     "Remove a page from the index when it is deleted.",
		reports: []report{
			{"agent:support-triage", 8.8, "3 of the first 10 results for \"refund\" are 404"},
			{"agent:oncall-helper", 8.1, "runbook geo-cache-v1 was deleted in September"},
			{"user:noah", 7.2, "first result for \"pallet deposit\" is gone"},
		},
		votes: "@docs-writer+ noah+",
	},
	{
		fingerprint: "ci:flaky-quote-test", title: "The test of quote rounding fails now and then",
		category: proposal.Reliability, priority: proposal.Low,
		problem: "TestQuoteRounding fails in one of forty runs, and passes when repeated.",
		reports: []report{
			{"agent:deploy-guard", 2.4, "build 20561: got 19.99, want 20.00"},
			{"agent:deploy-guard", 0.5, "build 20604: got 20.01, want 20.00"},
		},
	},
	{
		fingerprint: "contracts:scanned-fax", title: "Contracts are faxes of faxes",
		category: proposal.Process, priority: proposal.Low,
		problem: "The annexes of two carrier contracts are unreadable.",
		reports: []report{{"user:aiko", 4.4, "Nordhaul 2019, annex B"}},
	},
}

// addFriction adds the reports of an annoyance to the timeline, and the story of its proposal.
func (s *seeding) addFriction(a *annoyance) {
	filed := &filedProposal{title: a.title}
	var submitted time.Time // by the report that reaches the threshold
	for n, r := range a.reports {
		at := s.line.before(s.line.ago(days(r.age)))
		if n == friction.DefaultThreshold-1 {
			submitted = at
		}
		s.by(r.by, at, "report friction "+a.fingerprint, identity.ReportFriction,
			func(ctx context.Context, access identity.Access) error {
				out, err := s.Frictions.Report(ctx, access, friction.Report{
					Fingerprint: a.fingerprint, Title: a.title, Category: string(a.category), Problem: a.problem,
					SuggestedFix: a.fix, Evidence: r.evidence, Priority: string(a.priority),
				})
				if out.Filed {
					filed.id = out.Friction.ProposalID
				}
				return err
			})
	}
	if submitted.IsZero() {
		return
	}
	s.addVotes(filed, submitted, a.votes, nil, a.end)
	s.addEnding(filed, submitted, a.end)
}

// filedProposal is a proposal that a step of the timeline creates for later ones.
type filedProposal struct{ title, id, followup string }

func (p *filedProposal) String() string { return fmt.Sprintf("proposal %q", p.title) }
