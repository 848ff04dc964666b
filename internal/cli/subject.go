package cli

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/parley-dev/parley/sdk/client"
)

// subject is what a command is about: an error names it, and a unique prefix of its id
// stands for the id.
type subject struct {
	kind  string  // such as "proposal"; "" for a list, which is about the org
	id    *string // completed in place
	agent string  // of a task; the server tells a missing agent from a missing task
}

// about returns the subject of a command.
func about(kind string, id *string) subject { return subject{kind: kind, id: id} }

// aboutOrg is the subject of commands that list or create.
var aboutOrg = subject{}

// lists says which command shows the ids of each kind.
var lists = map[string]string{
	"agent":      "parley agent list",
	"client":     "parley client list",
	"follow-up":  "parley followup list",
	"friction":   "parley friction list",
	"invitation": "parley invite list",
	"key":        "parley key list",
	"member":     "parley member list",
	"org":        "parley org list",
	"proposal":   "parley proposal list --status all",
	"service":    "parley service list",
	"task":       "parley task list",
	"user":       "parley user list",
	"webhook":    "parley webhook list",
}

// missing says that something was not found, where it was looked for, and what to do. The
// flags are those of the command that helps.
func missing(kind, id, where, flags string) string {
	s := fmt.Sprintf("%s %q not found", kind, id)
	if where != "" {
		s += " " + where
	}
	if command := lists[kind]; command != "" {
		s += fmt.Sprintf("; run %q", command+flags)
	}
	return s
}

// aboutMember returns the subject of a command that takes a reference such as user:ada.
func aboutMember(ref string) subject {
	kind, id, ok := strings.Cut(ref, ":")
	if _, known := lists[kind]; !ok || !known {
		kind, id = "member", ref
	}
	return about(kind, &id)
}

// idKinds lists the ids of each kind, newest first. Kinds without an entry have ids that people
// choose, so that a short one may be whole.
var idKinds = map[string]struct {
	prefix string
	all    func(e *env, c *client.Client) iter.Seq2[string, error]
}{
	"proposal": {"prop-", func(e *env, c *client.Client) iter.Seq2[string, error] {
		all := c.Proposals.All(e.ctx, client.ProposalListParams{Status: "all", Sort: "newest"})
		return idsOf(all, func(p *client.ProposalItem) string { return p.ID })
	}},
	"follow-up": {"fup-", func(e *env, c *client.Client) iter.Seq2[string, error] {
		return idsOf(c.Followups.All(e.ctx, client.FollowupListParams{}), func(f *client.Followup) string { return f.ID })
	}},
	"key": {"key-", func(e *env, c *client.Client) iter.Seq2[string, error] {
		return idsOf(c.Keys.All(e.ctx, client.KeyListParams{}), func(k *client.Key) string { return k.ID })
	}},
	"client": {"client-", func(e *env, c *client.Client) iter.Seq2[string, error] {
		return idsOf(c.OAuthClients.All(e.ctx), func(o *client.OAuthClient) string { return o.ID })
	}},
	"webhook": {"hook-", func(e *env, c *client.Client) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			list, err := c.Webhooks.List(e.ctx)
			if err != nil {
				yield("", err)
				return
			}
			for i := range list {
				if !yield(list[i].ID, nil) {
					return
				}
			}
		}
	}},
	"invitation": {"inv-", func(e *env, c *client.Client) iter.Seq2[string, error] {
		return idsOf(c.Invitations.All(e.ctx), func(i *client.Invitation) string { return i.ID })
	}},
}

func idsOf[T any](all iter.Seq2[T, error], id func(*T) string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for v, err := range all {
			if !yield(id(&v), err) {
				return
			}
		}
	}
}

const (
	idLength  = 26 // of a whole id, after its prefix
	minPrefix = 4  // of those; with fewer every id would match
	// A search ends after so many older ids in a row: ids sort by time.
	searchBeyond = 100
	searchLimit  = 5000
)

// abbreviated reports whether an id with this prefix was cut off.
func abbreviated(id, prefix string) bool {
	rest, ok := strings.CutPrefix(id, prefix)
	return ok && len(rest) >= minPrefix && len(rest) < idLength
}

// complete replaces a prefix of an id by the one id that begins with it. An id that is not
// known stays as it is: the server says that it does not exist.
func (s subject) complete(e *env, r *remote) error {
	kind, known := idKinds[s.kind]
	if !known || !abbreviated(*s.id, kind.prefix) {
		return nil
	}
	id, err := onlyMatch(s.kind, *s.id, kind.all(e, r.Client))
	if err != nil {
		return r.explain(e, aboutOrg, err)
	}
	*s.id = id
	return nil
}

// onlyMatch returns the one id that begins with the prefix, or the prefix itself if none
// does. Several are an error that lists them.
func onlyMatch(kind, prefix string, all iter.Seq2[string, error]) (string, error) {
	var found []string
	n, older := 0, 0
	for id, err := range all {
		if err != nil {
			return "", err
		}
		if n++; n > searchLimit {
			return "", fmt.Errorf("%s %q is abbreviated, and there are too many to search; give the whole id", kind, prefix)
		}
		switch {
		case strings.HasPrefix(id, prefix):
			found = append(found, id)
			older = 0
		case id < prefix:
			older++
		default:
			older = 0
		}
		if older >= searchBeyond {
			break
		}
	}
	switch len(found) {
	case 0:
		return prefix, nil
	case 1:
		return found[0], nil
	}
	slices.Sort(found)
	more := ""
	if len(found) > 10 {
		found, more = found[:10], "\n  …"
	}
	return "", usage("%s %q is ambiguous; it may be\n  %s%s", kind, prefix, strings.Join(found, "\n  "), more)
}

// shortIDs cuts ids that begin with prefix to the shortest prefixes that tell them apart
// and still name the millisecond. Other ids stay whole.
func shortIDs(prefix string, all []string) []string {
	const timestamp = 10 // characters
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	out := make([]string, len(all))
	for i, id := range all {
		out[i] = id
		if rest, ok := strings.CutPrefix(id, prefix); !ok || len(rest) != idLength {
			continue
		}
		n := len(prefix) + timestamp
		at, _ := slices.BinarySearch(sorted, id)
		for _, beside := range []int{at - 1, at + 1} {
			if beside >= 0 && beside < len(sorted) && sorted[beside] != id {
				n = max(n, common(id, sorted[beside])+1)
			}
		}
		out[i] = id[:min(n, len(id))]
	}
	return out
}

// common returns the length of the prefix that two strings share.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
