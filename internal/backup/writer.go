package backup

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"
)

// Writer writes a back-up.
type Writer struct {
	zip     *zstd.Encoder
	text    *bufio.Writer // to zip
	hash    hash.Hash
	summary Summary
	table   Table
	line    []byte
}

// NewWriter begins a back-up.
func NewWriter(to io.Writer, h Header) (*Writer, error) {
	// One processor is enough: a server may need the others.
	zip, err := zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	w := &Writer{
		zip: zip, text: bufio.NewWriterSize(zip, 128<<10), hash: sha256.New(),
		summary: Summary{Tables: map[string]int64{}},
	}
	h.Format, h.CreatedAt = format, h.CreatedAt.UTC()
	return w, w.write(h)
}

// Table begins a table.
func (w *Writer) Table(t Table) error {
	if _, known := w.summary.Tables[t.Name]; known {
		return fmt.Errorf("the table %s was written already", t.Name)
	}
	w.table, w.summary.Tables[t.Name] = t, 0
	return w.write(t)
}

// Row adds a row to the table that was begun. The values are strings and int64s, in the order of the
// columns.
func (w *Writer) Row(values []any) error {
	if len(values) != len(w.table.Columns) {
		return fmt.Errorf("a row of %s has %d values, and the table has %d columns", w.table.Name, len(values),
			len(w.table.Columns))
	}
	b := append(w.line[:0], '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendValue(b, v); err != nil {
			return fmt.Errorf("table %s, column %s: %w", w.table.Name, w.table.Columns[i], err)
		}
	}
	if w.line = append(b, ']', '\n'); len(w.line) > maxLine {
		return fmt.Errorf("a row of the table %s has %d MiB, and a back-up can hold %d", w.table.Name, len(w.line)>>20,
			maxLine>>20)
	}
	w.summary.Tables[w.table.Name]++
	w.summary.Rows++
	err := w.writeLine(w.line)
	if cap(w.line) > 1<<20 {
		w.line = nil
	}
	return err
}

func appendValue(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case string:
		if utf8.ValidString(v) {
			return jsontext.AppendQuote(b, v)
		}
		text, err := json.Marshal(bytesValue{[]byte(v)})
		return append(b, text...), err
	}
	return b, fmt.Errorf("a %T cannot be stored", v)
}

// Close ends the back-up. Without it the back-up is incomplete, and is refused.
func (w *Writer) Close() (Summary, error) {
	w.summary.SHA256 = hex.EncodeToString(w.hash.Sum(nil))
	if err := w.write(end{true, w.summary}); err != nil {
		return w.summary, err
	}
	if err := w.text.Flush(); err != nil {
		return w.summary, err
	}
	return w.summary, w.zip.Close()
}

// Abort releases the memory of a back-up that is not completed.
func (w *Writer) Abort() { w.zip.Reset(nil) }

func (w *Writer) write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.writeLine(append(line, '\n'))
}

func (w *Writer) writeLine(line []byte) error {
	w.hash.Write(line)
	_, err := w.text.Write(line)
	return err
}
