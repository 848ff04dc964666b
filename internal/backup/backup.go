// Package backup is the format of back-ups: all rows of a store, or those of one org, independent of
// the engine.
//
// A back-up is text, one JSON value in each line, compressed with Zstandard. The first line is the
// header. A line with the name and the columns of a table begins each table, followed by its rows as
// arrays of strings and integers. The last line has the number of rows of each table, and the
// SHA-256 of all lines before it. So a reader notices a back-up that was cut short or changed.
package backup

import (
	"errors"
	"fmt"
	"time"
)

// format is the version of the format. Programs refuse a newer one.
const format = 1

// Header is the beginning of a back-up.
type Header struct {
	Format    int       `json:"parley_backup"`
	Version   string    `json:"version"` // of the program that made it
	Schema    int       `json:"schema"`  // number of the last migration of the store
	Engine    string    `json:"engine"`  // of the store: sqlite or postgres
	CreatedAt time.Time `json:"created_at"`
	// Org is set if it has the rows of this org only.
	Org string `json:"org,omitempty"`
	// Keys are the ids of the keys that secrets in it are encrypted under.
	Keys []string `json:"keys,omitempty"`
	// KeyFile is the text of the file with these keys, if it was asked for.
	KeyFile string `json:"key_file,omitempty"`
	// OpenSecrets is the number of secrets that are not encrypted.
	OpenSecrets int64 `json:"open_secrets,omitempty"`
}

// Summary is the end of a back-up.
type Summary struct {
	Tables map[string]int64 `json:"tables"` // rows by table
	Rows   int64            `json:"rows"`
	SHA256 string           `json:"sha256"` // of all lines before, in hexadecimal
}

// Table begins the rows of a table.
type Table struct {
	Name    string   `json:"table"`
	Columns []string `json:"columns"`
}

// bytesValue is a text that is not UTF-8.
type bytesValue struct {
	Base64 []byte `json:"base64"`
}

// end is the last line.
type end struct {
	End bool `json:"end"`
	Summary
}

// errNotOne means that the input is something else.
var errNotOne = errors.New("this is not a back-up of Parley; name a file that \"parley backup\" wrote")

// damaged returns the error about a back-up that cannot be read.
func damaged(format string, args ...any) error {
	return fmt.Errorf("the back-up is damaged: "+format+"; use another one", args...)
}

// maxLine limits a line, which otherwise a damaged back-up could choose. The largest row is a
// message or an artifact of 16 MiB, of which JSON may make six times as much.
const maxLine = 256 << 20
