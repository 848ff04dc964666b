package words_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-dev/parley/internal/words"
)

func index(text string) []string {
	var out []string
	words.Index(text, func(t string) { out = append(out, t) })
	return out
}

func TestIndex(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"  --- !? ", nil},
		{"Retry the upload, twice.", []string{"retry", "the", "upload", "twice"}},
		{"Résumé naïve Ångström", []string{"resume", "naive", "angstrom"}},
		{"re\u0301sume\u0301", []string{"resume"}},
		{"STRASSE straße", []string{"strasse", "strasse"}},
		{"ﬁle ｆｕｌｌ ①", []string{"file", "full", "1"}},
		{"Ёлка Ὀδυσσεύς", []string{"елка", "οδυσσευσ"}},
		{"优化", []string{"优", "化", "优化"}},
		{"Go言語2024", []string{"go", "言", "語", "言語", "2024"}},
		{"データ", []string{"デ", "ー", "デー", "タ", "ータ"}},
		{"ﾃﾞｰﾀ", []string{"デ", "ー", "デー", "タ", "ータ"}},
		{"น้ำ", []string{"น\u0e49\u0e4d", "า", "น\u0e49\u0e4dา"}},
		{"데이터베이스를 만든다", []string{"데이터베이스를", "만든다"}},
		{"हिन्दी में", []string{"हिन्दी", "में"}},
		{"ship it 🚀👍🏽", []string{"ship", "it", "🚀", "👍"}},
		{"❤️ 🇩🇪🇫🇷 5€", []string{"❤", "🇩🇪", "🇫🇷", "5", "€"}},
		{"a\xffb", []string{"a", "b"}},
	} {
		if diff := cmp.Diff(c.want, index(c.text)); diff != "" {
			t.Errorf("%q mismatch (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []string
	}{
		{"?!", nil},
		{"Web hook Retr", []string{"web", "hook", "retr"}},
		{"foo bar foo baz", []string{"foo", "bar", "baz"}},
		{"foo bar foo", []string{"foo", "bar", "foo"}},
		{"数据库", []string{"数据", "据库"}},
		{"优", []string{"优"}},
		{"🚀", []string{"🚀"}},
		{strings.Repeat("x", 100), []string{strings.Repeat("x", words.MaxWord)}},
	} {
		if diff := cmp.Diff(c.want, words.Query(c.text)); diff != "" {
			t.Errorf("%q mismatch (-want +got):\n%s", c.text, diff)
		}
	}
}

// A text is found by itself, whatever it consists of, and in any case.
func TestTextIsFoundByItself(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		terms := index(text + " " + strings.ToUpper(text))
		for _, q := range words.Query(text) {
			if !slices.Contains(terms, q) {
				t.Fatalf("%q has no term %q: %q", text, q, terms)
			}
		}
	})
}

func FuzzIndex(f *testing.F) {
	f.Add("Résumé 数据库 🇩🇪\xff")
	f.Fuzz(func(t *testing.T, text string) {
		for _, term := range append(index(text), words.Query(text)...) {
			if term == "" || len(term) > 2*words.MaxWord || !utf8.ValidString(term) || strings.ContainsAny(term, " \x00") {
				t.Errorf("%q yields the term %q", text, term)
			}
		}
	})
}
