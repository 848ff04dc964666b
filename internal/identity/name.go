package identity

import (
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/text"
)

// MaxName is the length limit of the name of an org, member, key or client, in characters.
const MaxName = 200

// NameRule is the rule for such a name. It is strict because people trust what they see.
var NameRule = text.Rule{Form: text.Name, Max: MaxName}

func nameFields(name string) []errs.Field {
	if problem := NameRule.Check(name); problem != "" {
		return []errs.Field{errs.NewField("name", problem)}
	}
	return nil
}

func checkName(name string) error { return invalid(nameFields(name)) }
