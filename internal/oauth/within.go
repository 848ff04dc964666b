package oauth

import "github.com/parley-dev/parley/internal/identity"

// Within is what of the scopes a person may have. Restrictions to agents stay; of
// nothing they are nothing.
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
