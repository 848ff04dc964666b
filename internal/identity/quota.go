package identity

import "github.com/parley-dev/parley/internal/errs"

// Quota bounds how many of something an org or a principal may have. A store counts and
// asks Check inside of the write that would add one.
type Quota struct {
	Most         int  // 0: no limit
	PerPrincipal bool // of one principal, not of all of the org
	Code         string
	Message      string // a format of Most
}

// Check refuses one more if there are n.
func (q Quota) Check(n int) error {
	if q.Most <= 0 || n < q.Most {
		return nil
	}
	return errs.New(errs.Conflict, q.Code, q.Message, q.Most)
}

// Quotas bound what the admins of an org can make; 0: no limit. They do not bind the
// operator's commands, which do not know the settings of the server.
type Quotas struct {
	OrgKeys       int
	PrincipalKeys int
	Invitations   int
}

func (q Quotas) keys() []Quota {
	return []Quota{
		{
			Most: q.PrincipalKeys, PerPrincipal: true, Code: "quota.keys",
			Message: "the principal has %d keys that work, which is the limit (--max-principal-keys); revoke some that are not used",
		},
		{
			Most: q.OrgKeys, Code: "quota.keys",
			Message: "the org has %d keys that work, which is the limit (--max-keys); revoke some that are not used",
		},
	}
}

// rotations lets each key have a successor beside it: who has all the keys allowed can
// still rotate them.
func (q Quotas) rotations() []Quota {
	out := q.keys()
	for i := range out {
		out[i].Most *= 2
		out[i].Message = "there are %d keys that work, the replaced ones among them, which is the limit; wait until these expire or revoke them"
	}
	return out
}

func (q Quotas) invitations() []Quota {
	return []Quota{{
		Most: q.Invitations, Code: "quota.invitations",
		Message: "the org has %d pending invitations, which is the limit (--max-invitations); revoke some, or wait until they expire",
	}}
}
