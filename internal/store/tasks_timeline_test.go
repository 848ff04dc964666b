package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/task"
)

// A timeline says whether rows of the log are missing, whichever bound was reached.
func TestATimelineSaysThatItIsCut(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat("x", maxTimeline/2)
	row := func(lease, text string, ended task.LeaseEnd) string {
		return fmt.Sprintf(`[{"K":"status","State":"working","Message":{"Role":"agent","Parts":[{"Kind":"text","Text":%q}]},`+
			`"Lease":%q,"Attempt":1,"Ended":%q}]`, text, lease, ended)
	}
	short := []string{
		`[{"K":"turn","Message":{"Role":"user","Parts":null}}]`, row("l1", "", ""), row("l1", "", task.LeaseReturned),
	}
	long := []string{row("l1", "", ""), row("l1", wide, task.LeaseReturned), row("l2", wide, ""), row("l2", "", "done")}
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		for name, c := range map[string]struct {
			log          []string
			most, events int
			cut          bool
		}{
			"all rows":       {short, 3, 3, false},
			"too many rows":  {short, 2, 2, true},
			"too many bytes": {long, 100, 2, true},
			"one large row":  {[]string{row("l1", wide+wide, "")}, 100, 1, false},
		} {
			current := task.Task{Org: "a", UID: strings.ReplaceAll(name, " ", "")}
			if err := s.eng.write(t.Context(), func(x *tx) error {
				for i, data := range c.log {
					x.exec(`INSERT INTO task_events (org_id, uid, seq, at, data) VALUES ($1, $2, $3, $4, $5)`,
						current.Org, current.UID, i+1, i+1, data)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			got, cut, err := s.Tasks().Timeline(t.Context(), current, c.most)
			if err != nil || len(got) != c.events || cut != c.cut {
				t.Errorf("%s: %d events, cut = %v, %v; want %d, %v", name, len(got), cut, err, c.events, c.cut)
			}
			if len(got) > 0 && got[len(got)-1].Seq != int64(len(c.log)) {
				t.Errorf("%s: the last event is %+v, want the latest of the log", name, got[len(got)-1])
			}
		}
	})
}
