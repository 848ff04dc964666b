package store

import (
	"context"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/proposal"
)

// decisionStart is how many characters of an entry's data are read: From and To come first.
const decisionStart = "80"

// Decisions implements proposal.Store. It reads an index in its order, and looks up each entry and
// its proposal.
func (s Proposals) Decisions(
	ctx context.Context, org string, since time.Time, most int,
) (out []proposal.Decided, more bool, err error) {
	n := 0
	err = each(ctx, s.eng, func(r rows) error {
		n++
		var at, submitted int64
		var data string
		if err := r.Scan(&at, &submitted, &data); err != nil {
			return err
		}
		d := proposal.Decided{At: fromMicros(at), SubmittedAt: fromMicros(submitted)}
		d.Approved = strings.Contains(data, `"To":"`+string(proposal.Approved)+`"`)
		if d.Approved || strings.Contains(data, `"To":"`+string(proposal.Rejected)+`"`) {
			out = append(out, d)
		}
		return nil
	}, `SELECT h.at, p.submitted_at, substr(h.data, 1, `+decisionStart+`) FROM history h`+s.d.by("history_decisions")+`
			JOIN proposals p ON p.org_id = h.org_id AND p.id = h.proposal_id
		WHERE h.org_id = $1 AND h.kind = 'status_changed' AND h.at >= $2
		ORDER BY h.at DESC`+limit(most), org, micros(since))
	return out, n == most, err
}
