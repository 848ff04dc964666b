package identity

import (
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/text"
)

// MaxName bounds the name of an org, a member, a key or a client, in characters.
const MaxName = 200

// NameRule is what such a name must be: people see it, and trust it.
var NameRule = text.Rule{Form: text.Name, Max: MaxName}

func nameFields(name string) []errs.Field {
	if problem := NameRule.Check(name); problem != "" {
		return []errs.Field{field("name", problem)}
	}
	return nil
}

func checkName(name string) error { return invalid(nameFields(name)) }
