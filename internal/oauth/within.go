package oauth

import "github.com/parley-dev/parley/internal/identity"

// Within returns the scopes that a person may have. Restrictions to agents are kept, unless
// no right is left.
func Within(m identity.Member, scopes identity.Scopes) identity.Scopes {
	rights, only := agents(scopes)
	entitled := Entitled(m)
	var kept identity.Scopes
	for _, r := range rights {
		if entitled.Has(r) {
			kept = append(kept, r)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return append(kept, only...)
}
