package store

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-dev/parley/internal/task"
)

// reflected is what encodeRow does, with encoding/json.
func reflected(t *testing.T, events []task.Event) string {
	t.Helper()
	stored := make([]storedEvent, len(events))
	for i := range events {
		stored[i] = storedEvent{events[i].Kind, events[i]}
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(stored); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// fill sets every exported field of v, also in structs and lists, to what next returns. Then no field
// is forgotten by an encoder that names each.
func fill(v reflect.Value, next func() string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), next)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), next)
		}
	case reflect.Slice:
		switch v.Interface().(type) {
		case json.RawMessage:
			v.SetBytes([]byte(`{ "a": [1, "` + next() + `"] }`))
		case []byte:
			v.SetBytes([]byte(next()))
		default:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0), next)
			fill(v.Index(1), next)
		}
	case reflect.String:
		v.SetString(next())
	case reflect.Bool:
		v.SetBool(next() != "")
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(len(next())))
	default:
		panic("fill " + v.Type().String())
	}
}

func filled(next func() string) task.Event {
	e := task.Event{}
	v := reflect.ValueOf(&e).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("json") != "-" {
			fill(v.Field(i), next)
		}
	}
	e.Kind, e.Seq, e.At = task.ArtifactEvent, 7, time.UnixMicro(1_700_000_000_000_000).UTC()
	return e
}

func TestARowHasEveryFieldOfItsEvents(t *testing.T) {
	t.Parallel()
	all := filled(func() string { return `a \"b\" \\ <c> & é 数` })
	status := task.Event{Kind: task.StatusEvent, State: task.Completed, Lease: "a \"b\" \x00\n\x7f"}
	empty := task.Event{Kind: task.TurnEvent, Message: &task.Message{Parts: []task.Part{}}, Artifact: &task.Artifact{}}
	for _, events := range [][]task.Event{{all}, {status}, {empty}, {status, all, empty}} {
		row, err := encodeRow(events)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(reflected(t, events), row.data); diff != "" {
			t.Errorf("the text of %d events (-encoding/json +got):\n%s", len(events), diff)
		}
	}
}

func TestARowDecodesToItsEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		events := make([]task.Event, rapid.IntRange(1, 3).Draw(rt, "events"))
		for i := range events {
			text := rapid.OneOf(rapid.StringMatching(`[a-z]{0,3}`), rapid.String())
			events[i] = filled(func() string {
				s, err := json.Marshal(text.Draw(rt, "text"))
				if err != nil {
					rt.Fatal(err)
				}
				return string(s[1 : len(s)-1]) // also valid inside of raw values
			})
			events[i].Seq = int64(i + 1)
		}
		row, err := encodeRow(events)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := row.decode()
		if err != nil {
			rt.Fatal(err)
		}
		want := logRow{row.seq, row.at, reflected(t, events)}
		if events, err = want.decode(); err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(events, got); diff != "" {
			rt.Fatalf("-encoding/json +got:\n%s", diff)
		}
	})
}

func TestARawValueThatIsNotJSONIsRefused(t *testing.T) {
	t.Parallel()
	bad := task.Event{Kind: task.TurnEvent, Metadata: []byte(`{"a":`)}
	if _, err := encodeRow([]task.Event{bad}); err == nil {
		t.Error("encodeRow took metadata that is not valid JSON")
	}
	if row, err := encodeRow([]task.Event{{Kind: task.TurnEvent}}); err != nil || row.data != `[{"K":"turn"}]` {
		t.Errorf("after it: %q, %v", row.data, err)
	}
}
