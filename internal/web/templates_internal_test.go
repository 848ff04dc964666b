package web

import (
	"bytes"
	"compress/gzip"
	"errors"
	"html/template"
	"io"
	"strings"
	"testing"
	"time"
)

// TestAllTemplatesParse finds mistakes in templates, which the server parses at their first use. Executing
// one without data also checks that its output can be escaped.
func TestAllTemplatesParse(t *testing.T) {
	t.Parallel()
	files, err := loadAssets()
	if err != nil {
		t.Fatal(err)
	}
	all, err := newTemplates(files, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if len(all.pages) < 30 {
		t.Errorf("found %d pages", len(all.pages))
	}
	for name := range all.pages {
		page, err := all.page(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if page.Lookup("main") == nil {
			t.Errorf("%s: the page does not define main", name)
		}
		checkEscapes(t, name, page)
	}
	sign, err := all.sign()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range sign.Templates() {
		if part.Tree != nil && !strings.HasSuffix(part.Name(), ".html") {
			checkEscapes(t, "sign: "+part.Name(), part)
		}
	}
	if _, err := all.page("nope"); err == nil {
		t.Error("an unknown page has a template")
	}
}

func checkEscapes(t *testing.T, name string, page *template.Template) {
	t.Helper()
	var wrong *template.Error
	if err := page.Execute(io.Discard, nil); errors.As(err, &wrong) {
		t.Errorf("%s: %v", name, err)
	}
}

func TestCompressedFilesHaveTheContent(t *testing.T) {
	t.Parallel()
	files, err := loadAssets()
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range files.byName {
		z, err := gzip.NewReader(bytes.NewReader(file.compressed()))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, file.plain) {
			t.Errorf("%s: %v, or another content", name, err)
		}
	}
}
