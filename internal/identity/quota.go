package identity

import "github.com/parley-dev/parley/internal/errs"

// Quota limits how many records of a kind an org or a principal may have. The store counts
// them and calls Check in the transaction that adds one.
type Quota struct {
	Most         int  // 0: no limit
	PerPrincipal bool // counts the records of one principal, not of the whole org
	Code         string
	Message      string // format string with Most as its argument
}

// Check returns an error if n records reach the limit.
func (q Quota) Check(n int) error {
	if q.Most <= 0 || n < q.Most {
		return nil
	}
	return errs.New(errs.Conflict, q.Code, q.Message, q.Most)
}

// Quotas limit what the admins of an org can create; 0 means no limit. They do not apply to
// the operator's commands, which do not read the settings of the server.
type Quotas struct {
	OrgKeys       int
	PrincipalKeys int
	Invitations   int
}

func (q Quotas) keys() []Quota {
	return []Quota{
		{
			Most: q.PrincipalKeys, PerPrincipal: true, Code: "quota.keys",
			Message: "the principal has %d keys that work, which is the limit (--max-principal-keys); " +
				"revoke some that are not used",
		},
		{
			Most: q.OrgKeys, Code: "quota.keys",
			Message: "the org has %d keys that work, which is the limit (--max-keys); revoke some that are not used",
		},
	}
}

// rotations allows twice the number of keys, so that keys can be rotated when the limit is
// reached.
func (q Quotas) rotations() []Quota {
	out := q.keys()
	for i := range out {
		out[i].Most *= 2
		out[i].Message = "there are %d keys that work, the replaced ones among them, which is the limit; " +
			"wait until these expire or revoke them"
	}
	return out
}

func (q Quotas) invitations() []Quota {
	return []Quota{{
		Most: q.Invitations, Code: "quota.invitations",
		Message: "the org has %d pending invitations, which is the limit (--max-invitations); " +
			"revoke some, or wait until they expire",
	}}
}
