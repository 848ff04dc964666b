// Package errstest shows the parts of an error that tables of rules compare. It knows no rules.
package errstest

import "github.com/parley-dev/parley/internal/errs"

// Code returns the code of a refusal, or "" without an error.
func Code(err error) string {
	if err == nil {
		return ""
	}
	return errs.As(err).Code
}

// Fields returns the paths of the fields that a refusal is about.
func Fields(err error) []string {
	if err == nil {
		return nil
	}
	var out []string
	for _, f := range errs.As(err).Fields {
		out = append(out, f.Path.String())
	}
	return out
}
