package event

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
)

func TestStartAt(t *testing.T) {
	t.Parallel()
	seven := int64(7)
	at := time.Date(2026, 3, 2, 9, 0, 0, 1000, time.UTC)
	for _, c := range []struct {
		after *int64
		since string
		want  Request
	}{
		{nil, "", Request{Start: FromOldest}},
		{nil, "now", Request{Start: FromNow}},
		{nil, "2026-03-02T10:00:00.000001+01:00", Request{Start: FromTime, Since: at}},
		{nil, "2026-03-02T09:00:00.000001999Z", Request{Start: FromTime, Since: at}},
		{&seven, "", Request{Start: AfterNumber, After: 7}},
		{&seven, "now", Request{Start: AfterNumber, After: 7}},
		{&seven, "2026-03-02T10:00:00Z", Request{Start: AfterNumber, After: 7}},
	} {
		var r Request
		if err := r.StartAt(c.after, c.since); err != nil {
			t.Errorf("since %q: %v", c.since, err)
		}
		if diff := cmp.Diff(c.want, r); diff != "" {
			t.Errorf("since %q (-want +got):\n%s", c.since, diff)
		}
	}
	for _, since := range []string{"NOW", "soon", "5m", "2026-03-02", "2026-02-30T10:00:00Z"} {
		var e *errs.Error
		err := new(Request).StartAt(nil, since)
		if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Path.String() != "since" {
			t.Errorf("since %q: %v, want an error about since", since, err)
		}
	}
}
