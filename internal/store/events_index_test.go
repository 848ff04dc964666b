package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/event"
)

// The index has the subjects of each pack, each once, also where SQL reads them from the packs.
func TestTheIndexHasTheSubjectsOfThePacks(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		var batch []event.Event
		for i := range maxPacked + 20 {
			e := noted("acme", fmt.Sprint("agent:ä 日\\n", i%7))
			e.Data = json.RawMessage("{\n\t\"a\":\t\"b\\n\\tc\"}")
			if i%2 == 0 {
				e.Actor = ""
			}
			batch = append(batch, e)
		}
		for _, list := range [][]event.Event{batch, {noted("acme", "task:"+strings.Repeat("x", maxSubject-5))}} {
			if err := s.Events().Append(t.Context(), list...); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]bool{}
		for after := int64(0); ; {
			p, err := s.Events().Page(t.Context(), "acme", event.Query{Filter: everything, After: after, Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range p.Events {
				last := min((e.Seq+maxPacked-1)/maxPacked*maxPacked, maxPacked+20)
				if e.Seq > maxPacked+20 {
					last = e.Seq
				}
				want[fmt.Sprint(last, " ", e.Subject)] = true
			}
			if after = p.Last; after == p.Head {
				break
			}
		}
		if _, err := s.Events().IndexSubjects(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := each(t.Context(), s.eng, func(r rows) error {
			var last int64
			var subject string
			err := r.Scan(&last, &subject)
			got = append(got, fmt.Sprint(last, " ", subject))
			return err
		}, `SELECT last_seq, subject FROM event_subjects WHERE org_id = $1`, "acme"); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) || len(want) != 7+7+1 ||
			slices.ContainsFunc(got, func(entry string) bool { return !want[entry] }) {
			t.Errorf("the index has %q, want %v", got, want)
		}
	})
}

// A damaged pack neither stops the index nor the sweep; parley check reports it.
func TestADamagedPackStopsNothing(t *testing.T) {
	t.Parallel()
	eachEngine(t, Options{}, func(t *testing.T, s *Store) {
		if err := s.Events().Append(t.Context(), noted("acme", "agent:a")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Events().IndexSubjects(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		damage := func(indexed int) {
			t.Helper()
			if err := s.eng.write(t.Context(), func(x *tx) error {
				x.exec(`UPDATE events SET data = '' WHERE org_id = 'acme'`)
				x.exec(`UPDATE event_heads SET indexed = $1 WHERE org_id = 'acme'`, indexed)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		damage(0)
		if _, err := s.Events().IndexSubjects(t.Context(), "acme"); err != nil {
			t.Errorf("IndexSubjects: %v", err)
		}
		damage(1)
		if n, err := s.Events().Expire(t.Context(), time.Now().Add(time.Hour)); err != nil || n == 0 {
			t.Errorf("Expire = %d, %v, want the event of the damaged pack", n, err)
		}
	})
}
