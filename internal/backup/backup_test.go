package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

var header = Header{Version: "1.2.3", Schema: 7, Engine: "sqlite", CreatedAt: time.Date(2026, 11, 17, 1, 2, 3, 0, time.UTC)}

// difficult are values that a text format may lose.
var difficult = []any{
	int64(0), int64(-1), int64(math.MaxInt64), int64(math.MinInt64), "", "a", "\x00", "\x00\x01\x1f\x7f", "\n\r\t", `"`, `\`,
	`\\"`, `ends with \`, "ä 中 🐦 \u2028", "<script>&", "\xff\xfe", "a\xc3", `{"base64":"AA=="}`, "[1,2]", strings.Repeat(`\"`, 200_000),
}

func written(t testing.TB, tables map[string][][]any, order ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, header)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range order {
		if err := w.Table(Table{name, []string{"id", "value"}}); err != nil {
			t.Fatal(err)
		}
		for _, row := range tables[name] {
			if err := w.Row(row); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read returns the tables of a back-up.
func read(data []byte) (map[string][][]any, Summary, error) {
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, Summary{}, err
	}
	defer r.Close()
	out := map[string][][]any{}
	for {
		table, err := r.NextTable()
		if errors.Is(err, io.EOF) {
			return out, r.Summary(), nil
		}
		if err != nil {
			return nil, Summary{}, err
		}
		out[table.Name] = nil
		for {
			row, err := r.Row()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, Summary{}, err
			}
			out[table.Name] = append(out[table.Name], append([]any(nil), row...))
		}
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	want := map[string][][]any{"empty": nil, "full": nil}
	for i, v := range difficult {
		want["full"] = append(want["full"], []any{int64(i), v})
	}
	data := written(t, want, "empty", "full")
	got, summary, err := read(data)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %.300v, %v; want %.300v", got, err, want)
	}
	if n := int64(len(difficult)); summary.Rows != n || summary.Tables["full"] != n || len(summary.SHA256) != 64 {
		t.Errorf("summary = %+v, want %d rows", summary, n)
	}
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want1 := header
	want1.Format = 1
	if !reflect.DeepEqual(r.Header(), want1) {
		t.Errorf("header = %+v, want %+v", r.Header(), want1)
	}
	seen := ""
	if err := r.Verify(func(table string, rows int64) { seen += fmt.Sprint(table, rows, " ") }); err != nil ||
		seen != fmt.Sprintf("empty0 full%d ", len(difficult)) || r.Summary().Rows != int64(len(difficult)) {
		t.Errorf("verified %q, %v", seen, err)
	}
}

// A back-up that ends anywhere, or of which one byte has another value, is refused.
func TestDamageIsNoticed(t *testing.T) {
	t.Parallel()
	whole := written(t, map[string][][]any{
		"a": {{int64(1), "one"}, {int64(2), "two"}}, "b": {{int64(3), strings.Repeat("three ", 50)}},
	}, "a", "b")
	for n := range whole {
		if got, _, err := read(whole[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are read as %v", n, len(whole), got)
		}
		changed := bytes.Clone(whole)
		for _, bit := range []byte{1, 0x80} {
			changed[n] = whole[n] ^ bit
			if got, s, err := read(changed); err == nil {
				// The frame header has bits without a meaning for its contents.
				want, ws, _ := read(whole)
				if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(s, ws) {
					t.Fatalf("byte %d with bit %#x is read as %v", n, bit, got)
				}
			}
		}
	}
	if _, _, err := read(append(bytes.Clone(whole), whole...)); err == nil {
		t.Error("two back-ups in one file are read, want an error")
	}
}

// Text that was changed and compressed again does not match its checksum.
func TestRefusals(t *testing.T) {
	t.Parallel()
	plain := unzip(t, written(t, map[string][][]any{"a": {{int64(1), "one"}, {int64(2), "two"}}}, "a"))
	for want, text := range map[string]string{
		"checksum":           strings.Replace(plain, `"one"`, `"ono"`, 1),
		"do not match":       strings.Replace(plain, "[1,\"one\"]\n", "", 1),
		"was cut short":      plain[:strings.Index(plain, `{"end"`)],
		"in the table a, af": plain[:strings.Index(plain, `[2,`)],
		"is malformed":       strings.Replace(plain, `[1,"one"]`, `[1,"one"`, 1),
		"row 1 of a":         strings.Replace(plain, `[1,"one"]`, `[1]`, 1),
		"row 2 of a":         strings.Replace(plain, `[2,`, `[2.5,`, 1),
		"twice":              strings.Replace(plain, `{"end"`, `{"table":"a","columns":["x"]}`+"\n"+`{"end"`, 1),
		"after row 2":        strings.Replace(plain, `{"end"`, `{"other"`, 1),
		"follows its end":    plain + "[]\n",
		"format 9":           strings.Replace(plain, `{"parley_backup":1`, `{"parley_backup":9`, 1),
		"made by parley 1.2": strings.Replace(plain, `{"parley_backup":1`, `{"parley_backup":2`, 1),
		"not a back-up":      "{}\n" + plain,
		"not a back-up of":   strings.Repeat("x", 1000) + "\n",
		"is empty or was":    "",
	} {
		if got, _, err := read(zip(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("read %v, %v; want an error with %q", got, err, want)
		}
	}
	for _, text := range []string{"x", "SQLite format 3\x00", strings.Repeat("\x00", 5000)} {
		if _, err := NewReader(strings.NewReader(text)); err == nil {
			t.Errorf("%.20q is a back-up, want an error", text)
		}
	}
	broken := errors.New("the disk fails")
	if _, err := NewReader(io.MultiReader(bytes.NewReader(zip(t, plain)[:4]), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("an error of the file is %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestWriterRefusals(t *testing.T) {
	t.Parallel()
	w, err := NewWriter(io.Discard, header)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Table(Table{"a", []string{"id"}}); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"too many values": w.Row([]any{int64(1), int64(2)}),
		"another type":    w.Row([]any{1.5}),
		"table again":     w.Table(Table{"a", nil}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	w.Abort()
}

// FuzzReader: whatever the text, a reader ends with an error or has read rows that fit their table.
func FuzzReader(f *testing.F) {
	plain := unzip(f, written(f, map[string][][]any{"a": {{int64(1), "one"}, {int64(2), "\xff"}}}, "a"))
	f.Add(plain)
	f.Add(strings.Replace(plain, `"one"`, `"\`, 1))
	f.Fuzz(func(t *testing.T, text string) {
		got, s, err := read(zip(t, text))
		if err != nil {
			return
		}
		n := int64(0)
		for _, rows := range got {
			n += int64(len(rows))
		}
		if n != s.Rows {
			t.Errorf("%d rows were read of %d", n, s.Rows)
		}
	})
}

func zip(t testing.TB, text string) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll([]byte(text), nil)
}

func unzip(t testing.TB, data []byte) string {
	t.Helper()
	r, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := r.DecodeAll(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
