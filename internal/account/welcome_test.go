package account

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

var arrivedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func user(id string, edit ...func(*Credentials)) *Credentials {
	c := &Credentials{Member: identity.Member{Principal: identity.Principal{Org: "main", Kind: identity.User, ID: id}, Name: id}}
	for _, e := range edit {
		e(c)
	}
	return c
}

func withPassword(c *Credentials) { c.Hash = "h" }
func disabled(c *Credentials)     { c.Member.Disabled = true }
func asAdmin(c *Credentials)      { c.Member.Admin = true }

func TestWelcome(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	acme := func(edit ...func(*Arrival)) Arrival {
		a := Arrival{
			Org: "main", Issuer: "https://acme", Subject: "s1", Provider: "Acme", User: "ada", Name: "Ada",
			Label: "ada@acme.example",
		}
		for _, e := range edit {
			e(&a)
		}
		return a
	}
	create := func(a *Arrival) { a.Create = true }
	nameless := func(a *Arrival) { a.User, a.NoUser = "", "it has no name" }
	barred := func(a *Arrival) { a.Barred = "not you" }
	adminBy := func(v *bool) func(*Arrival) { return func(a *Arrival) { a.Admin = v } }
	here, there := Identity{Issuer: "https://acme", Subject: "s0"}, Identity{Issuer: "https://other", Subject: "s9"}
	open := &identity.Invitation{
		ID: "inv-1", Org: "main", User: "ada", Name: "Ada L.", Admin: true,
		ExpiresAt: arrivedAt.Add(time.Hour),
	}
	late := &identity.Invitation{ID: "inv-1", Org: "main", User: "ada", Name: "Ada L.", ExpiresAt: arrivedAt}
	foreign := &identity.Invitation{ID: "inv-1", Org: "other", User: "ada", Name: "Ada L.", ExpiresAt: arrivedAt.Add(time.Hour)}
	invited, linked := Proof{Invitation: identity.Hash{1}}, Proof{Link: identity.Hash{1}}
	link := &Link{Org: "main", User: "ada"}

	for _, c := range []struct {
		name  string
		who   Arrival
		by    Proof
		scene Scene
		want  string // what happens, or the code of the refusal
	}{
		{"known", acme(), Proof{}, Scene{Linked: "bob", Account: user("bob", withPassword)}, "bob: login"},
		{"known without a name", acme(nameless), Proof{}, Scene{Linked: "bob", Account: user("bob")}, "bob: login"},
		{"known and disabled", acme(), Proof{}, Scene{Linked: "bob", Account: user("bob", disabled)}, "account.disabled"},
		{
			"known, but not one of those who may", acme(barred),
			Proof{},
			Scene{Linked: "bob", Account: user("bob")},
			"account.barred",
		},
		{"invited, but not one of those who may", acme(barred), invited, Scene{Invitation: open}, "account.barred"},
		{"no name", acme(nameless, create), Proof{}, Scene{}, "account.no_name"},
		{"nobody of that name", acme(), Proof{}, Scene{}, "account.unknown_person"},
		{"nobody of that name, made", acme(create), Proof{}, Scene{}, "ada: create connect member.create identity.link login"},
		{"a name without a way in", acme(), Proof{}, Scene{Account: user("ada")}, "ada: connect identity.link login"},
		{"a name that is disabled", acme(), Proof{}, Scene{Account: user("ada", disabled)}, "account.disabled"},
		{
			"a name that is disabled and has a password", acme(),
			Proof{},
			Scene{Account: user("ada", disabled, withPassword)},
			"account.disabled",
		},
		{"a name with a password", acme(create), Proof{}, Scene{Account: user("ada", withPassword)}, "account.has_password"},
		{
			"a name with another subject here", acme(),
			Proof{},
			Scene{Account: user("ada"), Identities: []Identity{here}},
			"account.other_identity",
		},
		{
			"a name with another provider", acme(),
			Proof{},
			Scene{Account: user("ada"), Identities: []Identity{there}},
			"account.has_identity",
		},
		{"an admin's name", acme(), Proof{}, Scene{Account: user("ada", asAdmin)}, "account.is_admin"},
		{
			"an admin's name, no admin elsewhere", acme(adminBy(&no)),
			Proof{},
			Scene{Account: user("ada", asAdmin), Admins: 1},
			"account.is_admin",
		},
		{
			"an admin's name, admin elsewhere", acme(adminBy(&yes)),
			Proof{},
			Scene{Account: user("ada", asAdmin)},
			"ada: connect admin identity.link login",
		},

		{
			"made an admin", acme(adminBy(&yes)),
			Proof{},
			Scene{Linked: "ada", Account: user("ada")},
			"ada: update admin member.update login",
		},
		{
			"made an admin when new", acme(create, adminBy(&yes)),
			Proof{},
			Scene{},
			"ada: create connect admin member.create identity.link member.update login",
		},
		{
			"an admin no more", acme(adminBy(&no)),
			Proof{},
			Scene{Linked: "ada", Account: user("ada", asAdmin), Admins: 1},
			"ada: update member.update login",
		},
		{
			"the last admin stays", acme(adminBy(&no)),
			Proof{},
			Scene{Linked: "ada", Account: user("ada", asAdmin)},
			"ada: admin member.update(identity.last_admin) login",
		},
		{"still an admin", acme(adminBy(&yes)), Proof{}, Scene{Linked: "ada", Account: user("ada", asAdmin)}, "ada: admin login"},
		{"an admin of our own", acme(), Proof{}, Scene{Linked: "ada", Account: user("ada", asAdmin)}, "ada: admin login"},

		{
			"invited", acme(nameless), invited,
			Scene{Invitation: open},
			"ada: create connect invitation admin invitation.accept identity.link login",
		},
		{
			"invited as an admin, none elsewhere", acme(adminBy(&no)), invited,
			Scene{Invitation: open},
			"ada: create connect invitation invitation.accept identity.link member.update login",
		},
		{"unknown invitation", acme(create), invited, Scene{}, "identity.bad_invitation"},
		{"expired invitation", acme(), invited, Scene{Invitation: late}, "identity.bad_invitation"},
		{"another org's invitation", acme(), invited, Scene{Invitation: foreign}, "identity.bad_invitation"},
		{
			"invited, and known", acme(), invited,
			Scene{Invitation: open, Linked: "bob", Account: user("bob")},
			"account.identity_taken",
		},
		{
			"invited, and the name is taken", acme(), invited,
			Scene{Invitation: open, Account: user("ada")},
			"identity.principal_exists",
		},

		{
			"a link", acme(), linked,
			Scene{Link: link, Account: user("ada", withPassword, asAdmin)},
			"ada: connect link admin identity.link login",
		},
		{"a link of oneself", acme(), linked, Scene{Link: link, Linked: "ada", Account: user("ada")}, "ada: link login"},
		{
			"a link, and known as another", acme(), linked,
			Scene{Link: link, Linked: "bob", Account: user("bob")},
			"account.identity_taken",
		},
		{
			"a link, and another subject", acme(), linked,
			Scene{Link: link, Account: user("ada"), Identities: []Identity{here}},
			"account.other_identity",
		},
		{"a link of somebody disabled", acme(), linked, Scene{Link: link, Account: user("ada", disabled)}, "account.disabled"},
		{"a used link", acme(create), linked, Scene{}, "account.bad_link"},
		{
			"another org's link", acme(), linked,
			Scene{Link: &Link{Org: "other", User: "ada"}, Account: user("ada")},
			"account.bad_link",
		},

		{"connect", acme(nameless), Proof{User: "bob"}, Scene{Account: user("bob", withPassword)}, "bob: connect identity.link"},
		{
			"connect beside another provider", acme(),
			Proof{User: "bob"},
			Scene{Account: user("bob"), Identities: []Identity{there}},
			"bob: connect identity.link",
		},
		{"connect again", acme(), Proof{User: "bob"}, Scene{Linked: "bob", Account: user("bob")}, "bob:"},
		{
			"connect what is another's", acme(),
			Proof{User: "bob"},
			Scene{Linked: "ada", Account: user("ada")},
			"account.identity_taken",
		},
		{
			"connect a second", acme(),
			Proof{User: "bob"},
			Scene{Account: user("bob"), Identities: []Identity{here}},
			"account.other_identity",
		},
		{"connect when disabled", acme(), Proof{User: "bob"}, Scene{Account: user("bob", disabled)}, "account.disabled"},
		{
			"connecting changes no role", acme(adminBy(&no)),
			Proof{User: "bob"},
			Scene{Account: user("bob", asAdmin), Admins: 1},
			"bob: connect admin identity.link",
		},
	} {
		out, err := welcome(c.who, c.by, c.scene, arrivedAt)
		got := ""
		if err != nil {
			got = errs.As(err).Code
			if cmp.Diff(Outcome{}, out, cmpopts.IgnoreUnexported(Outcome{})) != "" {
				t.Errorf("%s: refused, and something is done: %+v", c.name, out)
			}
		} else {
			got = tell(out)
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// tell says what an outcome does, in one line.
func tell(o Outcome) string {
	words := []string{o.Member.ID + ":"}
	for _, f := range []struct {
		set  bool
		word string
	}{
		{o.Create, "create"},
		{o.Update, "update"},
		{o.Connect, "connect"},
		{o.UseInvitation, "invitation"},
		{o.UseLink, "link"},
		{o.Member.Admin, "admin"},
	} {
		if f.set {
			words = append(words, f.word)
		}
	}
	for _, n := range o.notes {
		word := string(n.action)
		if n.code != "" {
			word += "(" + n.code + ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestNobodyDisconnectsTheLastWay(t *testing.T) {
	t.Parallel()
	one, two := []Identity{{Issuer: "a"}}, []Identity{{Issuer: "a"}, {Issuer: "b"}}
	for _, c := range []struct {
		c    Credentials
		list []Identity
		ok   bool
	}{
		{Credentials{}, one, false},
		{Credentials{Hash: "h"}, one, true},
		{Credentials{}, two, true},
	} {
		if err := mayDisconnect(c.c, c.list, "Acme"); (err == nil) != c.ok {
			t.Error(c.c.Hash, len(c.list), err)
		}
	}
}
