package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"
)

// Reader reads a back-up. What it returns is only certain when NextTable has returned io.EOF: until
// then, the end may show that the back-up was changed.
type Reader struct {
	zip     *zstd.Decoder
	text    *bufio.Reader
	hash    hash.Hash
	header  Header
	read    Summary // of what was read so far
	summary Summary // of the end
	table   Table
	begins  *Table // the table whose first line was read by Row
	over    bool
	line    []byte
	values  []any
}

// NewReader reads the header. It refuses what is not a back-up, and a format that this program does
// not know.
func NewReader(from io.Reader) (*Reader, error) {
	zip, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, err
	}
	r := &Reader{
		zip: zip, text: bufio.NewReaderSize(zip, 128<<10), hash: sha256.New(), read: Summary{Tables: map[string]int64{}},
	}
	if err := r.readHeader(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Reader) readHeader() error {
	line, err := r.next()
	switch {
	case errors.Is(err, zstd.ErrMagicMismatch), errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, errLong):
		return errNotOne
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the back-up is empty or was cut short; use another one")
	case err != nil:
		return err
	case json.Unmarshal(line, &r.header) != nil || r.header.Format == 0:
		return errNotOne
	case r.header.Format > format:
		return fmt.Errorf("the back-up has format %d and was made by parley %s; this program reads format %d, "+
			"so use that version or a newer one", r.header.Format, r.header.Version, format)
	}
	r.hash.Write(line)
	return nil
}

// Header returns the beginning of the back-up.
func (r *Reader) Header() Header { return r.header }

// Summary returns the end of the back-up. It is empty before NextTable has returned io.EOF.
func (r *Reader) Summary() Summary { return r.summary }

// Close releases the memory of the reader.
func (r *Reader) Close() { r.zip.Close() }

// NextTable moves to the next table. Rows of the current one that were not read are skipped. It
// returns io.EOF at the end of a back-up that is complete and unchanged.
func (r *Reader) NextTable() (Table, error) {
	for r.begins == nil && !r.over {
		if _, err := r.Row(); err != nil && !errors.Is(err, io.EOF) {
			return Table{}, err
		}
	}
	if r.over {
		return Table{}, io.EOF
	}
	r.table, r.begins = *r.begins, nil
	if _, known := r.read.Tables[r.table.Name]; known {
		return Table{}, damaged("the table %q is in it twice", r.table.Name)
	}
	r.read.Tables[r.table.Name] = 0
	return r.table, nil
}

// Row returns the next row of the current table, as strings and int64s in the order of the columns,
// and io.EOF at the end of the table. The slice is valid until the next call.
func (r *Reader) Row() ([]any, error) {
	if r.begins != nil || r.over {
		return nil, io.EOF
	}
	line, err := r.next()
	if err != nil {
		return nil, r.explain(err)
	}
	if line[0] == '[' && r.table.Name != "" {
		if r.values, err = parseRow(line, r.values[:0]); err != nil || len(r.values) != len(r.table.Columns) {
			return nil, damaged("row %d of %s is malformed", r.read.Tables[r.table.Name]+1, r.table.Name)
		}
		r.hash.Write(line)
		r.read.Tables[r.table.Name]++
		r.read.Rows++
		return r.values, nil
	}
	var is struct {
		End bool `json:"end"`
		Table
	}
	if err := json.Unmarshal(line, &is); err != nil || is.End == (is.Name != "") {
		return nil, damaged("the line after row %d of %q is malformed", r.read.Tables[r.table.Name], r.table.Name)
	}
	if is.End {
		return nil, r.finish(line)
	}
	r.hash.Write(line)
	r.begins = &is.Table
	return nil, io.EOF
}

// finish compares the last line with what was read.
func (r *Reader) finish(line []byte) error {
	var last end
	if err := json.Unmarshal(line, &last); err != nil {
		return damaged("its last line is malformed")
	}
	r.read.SHA256 = hex.EncodeToString(r.hash.Sum(nil))
	switch _, err := r.next(); {
	case last.SHA256 != r.read.SHA256 || last.Rows != r.read.Rows || !maps.Equal(last.Tables, r.read.Tables):
		return damaged("its contents do not match its checksum")
	case err == nil:
		return damaged("something follows its end")
	case !errors.Is(err, io.EOF):
		return r.explain(err)
	}
	r.over, r.summary = true, last.Summary
	return io.EOF
}

// explain returns the error to show for one of reading.
func (r *Reader) explain(err error) error {
	at := "before its first table"
	if r.table.Name != "" {
		at = fmt.Sprintf("in the table %s, after %d rows", r.table.Name, r.read.Tables[r.table.Name])
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the back-up was cut short: it ends %s; use another one", at)
	case errors.Is(err, zstd.ErrCRCMismatch), errors.Is(err, zstd.ErrDecoderClosed), errors.Is(err, errLong),
		errors.Is(err, zstd.ErrMagicMismatch):
		return damaged("%v %s", err, at)
	}
	var path interface{ Timeout() bool } // errors of files and connections have this method
	if errors.As(err, &path) {
		return err
	}
	return damaged("%v %s", err, at)
}

var errLong = errors.New("a line is too long")

// next returns the next line with its end. It is valid until the next call.
func (r *Reader) next() ([]byte, error) {
	if cap(r.line) > 1<<20 {
		r.line = nil
	}
	r.line = r.line[:0]
	for {
		part, err := r.text.ReadSlice('\n')
		if len(r.line)+len(part) > maxLine {
			return nil, errLong
		}
		if err == nil && len(r.line) == 0 {
			return part, nil
		}
		r.line = append(r.line, part...)
		switch {
		case err == nil:
			return r.line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(r.line) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

var errRow = errors.New("malformed row")

// parseRow parses an array of strings and integers, and appends them to values.
func parseRow(line []byte, values []any) ([]any, error) {
	line = line[1:]
	for {
		if len(line) == 0 {
			return nil, errRow
		}
		n, v, err := parseValue(line)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
		if len(line) <= n {
			return nil, errRow
		}
		sep := line[n]
		line = line[n+1:]
		switch {
		case sep == ',':
		case sep == ']' && string(line) == "\n":
			return values, nil
		default:
			return nil, errRow
		}
	}
}

// parseValue parses the value at the beginning of text and returns its length there.
func parseValue(text []byte) (length int, value any, err error) {
	switch text[0] {
	case '"':
		n := 1 + stringEnd(text[1:])
		if plain := text[1 : n-1]; n > 1 && bytes.IndexByte(plain, '\\') < 0 {
			return n, string(plain), nil
		}
		b, err := jsontext.AppendUnquote(nil, text[:n])
		return n, string(b), err
	case '{':
		n := bytes.IndexByte(text, '}') + 1
		var v bytesValue
		if err := json.Unmarshal(text[:n], &v); err != nil {
			return 0, nil, errRow
		}
		return n, string(v.Base64), nil
	}
	n := bytes.IndexAny(text, ",]")
	if n < 0 {
		return 0, nil, errRow
	}
	i, err := strconv.ParseInt(string(text[:n]), 10, 64)
	return n, i, err
}

// stringEnd returns the length of a JSON string behind its first quote, with the last one.
func stringEnd(text []byte) int {
	for i := 0; ; {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return len(text)
		}
		i += n + 1
		slashes := 0
		for j := i - 2; j >= 0 && text[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
}

// Verify reads to the end, and calls progress after each table.
func (r *Reader) Verify(progress func(table string, rows int64)) error {
	for {
		t, err := r.NextTable()
		if errors.Is(err, io.EOF) {
			return nil
		}
		for err == nil {
			_, err = r.Row()
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		progress(t.Name, r.read.Tables[t.Name])
	}
}
