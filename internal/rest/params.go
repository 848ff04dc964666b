package rest

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
)

// maxParamErrors limits the number of reported parameter errors.
const maxParamErrors = 32

// checkParameters checks a request against the documented parameters, so that the OpenAPI
// document matches what is enforced.
func checkParameters(known []*huma.Param, r *http.Request) error {
	var fields []httpx.Part
	for _, p := range known {
		if p.In == "header" && p.Name == idempotencyHeader {
			if msg := checkHeader(r.Header.Values(p.Name)); msg != "" {
				fields = append(fields, httpx.Part{In: httpx.Header, Name: p.Name, Message: msg})
			}
		}
	}
	if r.URL.RawQuery != "" {
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			return errs.New(errs.Malformed, "request.malformed",
				"the query string is malformed: escape percent signs as %%25 and semicolons as %%3B")
		}
		for _, name := range slices.Sorted(maps.Keys(query)) {
			if msg := checkParameter(known, name, query[name]); msg != "" {
				fields = append(fields, httpx.Part{In: httpx.Query, Name: clip(name), Message: msg})
			}
		}
	}
	if len(fields) > 0 {
		return httpx.InvalidParts(fields[:min(len(fields), maxParamErrors)]...)
	}
	return nil
}

func checkHeader(values []string) string {
	switch {
	case len(values) > 1:
		return "must be given once"
	case len(values) == 1 && values[0] == "":
		return "must not be empty"
	}
	return ""
}

func checkParameter(known []*huma.Param, name string, values []string) string {
	var p *huma.Param
	var names []string
	for _, k := range known {
		if k.In == "query" {
			names = append(names, k.Name)
			if k.Name == name {
				p = k
			}
		}
	}
	switch {
	case p == nil && len(names) == 0:
		return "is not a parameter of this operation, which takes none"
	case p == nil:
		return "is not a parameter of this operation, which takes " + strings.Join(names, ", ")
	case len(values) > 1:
		return "must be given once"
	case values[0] == "":
		return "must not be empty; leave it out instead"
	case p.Schema.Type == huma.TypeInteger:
		return checkInteger(p.Schema, values[0])
	case p.Schema.Type == huma.TypeBoolean && values[0] != "true" && values[0] != "false":
		return "must be true or false"
	}
	return checkString(p.Schema, values[0])
}

func checkInteger(s *huma.Schema, v string) string {
	n, err := strconv.ParseInt(v, 10, 64)
	below := err == nil && s.Minimum != nil && float64(n) < *s.Minimum
	above := err == nil && s.Maximum != nil && float64(n) > *s.Maximum
	switch {
	case s.Minimum != nil && s.Maximum != nil && (err != nil || below || above):
		return fmt.Sprintf("must be an integer between %.0f and %.0f", *s.Minimum, *s.Maximum)
	case s.Minimum != nil && (err != nil || below):
		return fmt.Sprintf("must be an integer of at least %.0f, and not beyond the largest page", *s.Minimum)
	case err != nil:
		return "must be an integer"
	}
	return ""
}

func checkString(s *huma.Schema, v string) string {
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, any(v)) {
		names := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			names[i] = fmt.Sprint(e)
		}
		return fmt.Sprintf("must be one of %s; it is %q", strings.Join(names, ", "), clip(v))
	}
	if s.MaxLength != nil && utf8.RuneCountInString(v) > *s.MaxLength {
		return fmt.Sprintf("must have at most %d characters", *s.MaxLength)
	}
	return ""
}

// clip shortens a value of the caller for use in an error message.
func clip(s string) string {
	if utf8.RuneCountInString(s) > 40 {
		return string([]rune(s)[:40]) + "…"
	}
	return s
}
