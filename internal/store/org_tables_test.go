package store

import (
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/pgtest"
)

// Every table is exported with its org, or says why not, on both engines.
func TestEveryTableIsExportedOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, o := range []Options{{Dir: t.TempDir()}, {URL: pgtest.URL(t)}} {
		s := openFor(t, o)
		form := &sqliteForm
		if o.URL != "" {
			form = &postgresForm
		}
		names, err := strs(t.Context(), s.eng, form.tables)
		if err != nil || len(names) < 30 {
			t.Fatalf("%d tables, %v; want more", len(names), err)
		}
		for _, name := range names {
			if strings.HasPrefix(name, "sqlite_") {
				continue
			}
			seen[name] = true
			r, known := orgTables[name]
			columns, err := strs(t.Context(), s.eng, strings.Replace(form.columns, "SELECT name, type", "SELECT name", 1), name)
			if o.URL != "" {
				columns, err = strs(t.Context(), s.eng, `SELECT column_name::text FROM information_schema.columns
					WHERE table_schema = current_schema() AND table_name = $1`, name)
			}
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case !known:
				t.Errorf("%s: say in orgTables which rows belong to an org, or why none does", name)
			case r.of == "" && r.stays == "":
				t.Errorf("%s: no row belongs to an org, and there is no reason", name)
			case r.of == "" && strings.Contains(strings.Join(columns, " "), "org_id"):
				t.Errorf("%s has an org, so its rows must be deleted with it", name)
			case derived[name] && r.stays == "":
				t.Errorf("%s is not copied, so it cannot be exported", name)
			}
		}
	}
	for name := range orgTables {
		if !seen[name] {
			t.Errorf("there is no table %s", name)
		}
	}
}

func TestReplaceWord(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"user:ada":                      "X",
		"by user:ada.":                  "by X.",
		"user:ada, user:ada2, user:ada": "X, user:ada2, X",
		"user:ada.b and superuser:ada":  "user:ada.b and superuser:ada",
		`"user:ada-1" (user:ada)`:       `"user:ada-1" (X)`,
		"other/user:ada, user:ada":      "other/user:ada, X",
		"":                              "",
	} {
		if got := replaceWord(in, "user:ada", "X"); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := replaceWord("Max Maxim Ämax Max", "Max", "Y"); got != "Y Maxim Ämax Y" {
		t.Errorf("got %q", got)
	}
}

func TestReplaceSenders(t *testing.T) {
	t.Parallel()
	text := "1\ttask:1\tacme/user:ada\tadmins\t" +
		`{"sender":"acme/user:ada","note":"{\"sender\":\"acme/user:ada\"}"}` + "\n" + `{"sender":"acme2/user:ada"}`
	got := replaceSenders(text, "acme", "~gone", "salt")
	former := "~gone/user:former-" + pseudonym("salt", "user:ada")
	want := strings.Replace(text, `"acme/user:ada"`, `"`+former+`"`, 1)
	want = strings.Replace(want, "\tacme/user:ada\t", "\t"+former+"\t", 1)
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
