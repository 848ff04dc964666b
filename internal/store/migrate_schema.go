package store

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// moreSchema holds migrations beyond the released ones: of each a form feed, the line of its name,
// and its text. Only the linker sets it, for the builds that act as newer versions in the test of rolling
// upgrades; see e2e/upgrade_test.go.
var moreSchema string

// schemaFile is the text of one migration. Its first line says whether programs that do not
// know the migration may continue to use the store:
//
//	-- compatible: yes
//	-- compatible: no
type schemaFile struct{ name, text string }

// Step describes one migration.
type Step struct {
	Number     int
	Name       string
	Compatible bool // programs without it may continue to read and write
}

// migration is a migration for one engine.
type migration struct {
	Step
	statements []string
}

// schemaFiles returns all migrations of this program, in order.
func schemaFiles() ([]schemaFile, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var out []schemaFile
	for i, name := range names { // Glob sorts
		number, err := strconv.Atoi(strings.SplitN(strings.TrimPrefix(name, "migrations/"), "_", 2)[0])
		if err != nil || number != i+1 {
			return nil, fmt.Errorf("%s: migrations must be numbered 0001, 0002 and so on without gaps", name)
		}
		text, err := fs.ReadFile(migrationFiles, name)
		if err != nil {
			return nil, err
		}
		out = append(out, schemaFile{strings.TrimPrefix(name, "migrations/"), string(text)})
	}
	for _, more := range strings.Split(moreSchema, "\f")[1:] {
		name, text, _ := strings.Cut(more, "\n")
		out = append(out, schemaFile{name, text})
	}
	return out, nil
}

// migrations parses the files for this engine. Their order gives their numbers.
func (d *dialect) migrations(files []schemaFile) ([]migration, error) {
	out := make([]migration, 0, len(files))
	for i, f := range files {
		compatible, err := f.compatible()
		if err != nil {
			return nil, err
		}
		out = append(out, migration{Step{i + 1, f.name, compatible}, d.statementsOf(f.text)})
	}
	return out, nil
}

func (f schemaFile) compatible() (bool, error) {
	first, _, _ := strings.Cut(f.text, "\n")
	switch strings.TrimSpace(first) {
	case "-- compatible: yes":
		return true, nil
	case "-- compatible: no":
		return false, nil
	}
	return false, fmt.Errorf("migration %s: first line is %q; it must be \"-- compatible: yes\" or \"-- compatible: no\"",
		f.name, first)
}

// statementsOf selects the blocks of this engine and splits them at semicolons that end a line, except
// within a body between $$.
func (d *dialect) statementsOf(text string) []string {
	text = strings.NewReplacer("{{rowid}}", d.rowid, "{{without_rowid}}", d.withoutRowid).Replace(text)
	block := "all"
	var kept strings.Builder
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(trimmed, "-- @"); ok {
			block = name
		}
		if !strings.HasPrefix(trimmed, "--") && (block == "all" || block == d.name) {
			kept.WriteString(line)
		}
	}
	var out []string
	body := ""
	for s := range strings.SplitSeq(kept.String(), ";\n") {
		if s = body + s; strings.Count(s, "$$")%2 == 1 {
			body = s + ";\n"
			continue
		}
		body = ""
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
