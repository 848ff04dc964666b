package metadata

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestMembersThatStayKeepTheirText(t *testing.T) {
	t.Parallel()
	for object, want := range map[string]string{
		"":                                     `{}`,
		" ":                                    `{}`,
		`{}`:                                   `{}`,
		`{"parley.dev/x":1}`:                   `{}`,
		`{"b":1.50,"parley.dev/x":{},"a":"é"}`: `{"b":1.50,"a":"é"}`,
		`{"a":1,"a":2}`:                        `{"a":1,"a":2}`,
	} {
		var w Writer
		err := Each([]byte(object), func(name string, value jsontext.Value) error {
			if name == "parley.dev/x" {
				return nil
			}
			return w.Add(name, value)
		})
		if err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		if got, err := w.End(); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", object, got, err, want)
		}
	}
}

func TestMember(t *testing.T) {
	t.Parallel()
	for object, want := range map[string]string{
		"":                            "",
		`{"x":{"parley.dev/x":1}}`:    "",
		`{"y":"parley.dev/x"}`:        "",
		`{"parley.dev/x": {"a": 1}}`:  `{"a": 1}`,
		`{"parley.dev/\u0078":[1,2]}`: `[1,2]`,
	} {
		if got, err := Member([]byte(object), "parley.dev/x"); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", object, got, err, want)
		}
	}
	for _, object := range []string{`["parley.dev"]`, `"parley.dev"`, `{"parley.dev/x":`} {
		if _, err := Member([]byte(object), "parley.dev/x"); err == nil {
			t.Errorf("%s: no error", object)
		}
	}
}
