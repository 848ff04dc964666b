package internal_test

import (
	"context"
	"go/ast"
	"go/token"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/proposal"
)

// proofs are what a service method can ask for: an Access, or what a service made of one
// after it checked more.
var proofs = []string{"identity.Access", "dispatch.Call", "dispatch.Post"}

// withoutProof lists the types, and the methods, that take a context and ask for no proof,
// with the reason.
var withoutProof = []struct {
	why   string
	names []string
}{
	{"the operator's: no transport has it (see TestOnlyTheOperatorHasItsServices)", []string{
		"identity.Operator", "agent.Operator",
	}},
	{"finds out who the caller is, before there is anything to authorize", []string{"identity.Authenticator"}},
	{"no service: it holds no data of an org", []string{"budget.Account", "dispatch.Echo", "identity.AdminRights"}},
	{"reads a task's log for package dispatch, which has authorized the caller", []string{"stream.Hub", "stream.Topic"}},
	{"writes what was refused, which is known without an Access", []string{"identity.Auditor"}},
	{"the token of an invitation or of a link is the proof", []string{
		"identity.OrgAdmin.Invitation", "identity.OrgAdmin.Accept",
		"account.Accounts.Link", "account.Accounts.UseLink", "account.Accounts.Join",
	}},
	{"makes the proof of its caller", []string{"dispatch.Tasks.Reach", "dispatch.Tasks.Still", "dispatch.Workers.Serve"}},
	{"a loop of the server, for all orgs", []string{
		"dispatch.Service.Run", "dispatch.Service.Sweep", "dispatch.Service.Hint", "dispatch.Service.HintAll",
	}},
	{"encodes what its caller has read already", []string{"dispatch.Tasks.EncodeEvent", "dispatch.Tasks.EncodeTask"}},
	{"cards show it to anybody", []string{
		"dispatch.Workers.Presence", "dispatch.Workers.Presences", "agent.Registry.Page", "agent.Registry.Profile",
	}},
	{"a look-up of another service, which has authorized the caller, or of a public card", []string{
		"agent.Registry.Reach", "agent.Registry.Own", "agent.Registry.Reachable",
	}},
	{"signs people in, or out", []string{
		"account.Accounts.Login", "account.Accounts.Resume", "account.Accounts.Joined", "account.Accounts.Arrive",
		"account.Accounts.Members", "account.Accounts.Open", "account.Accounts.HashPassword",
		"account.Accounts.Logout", "account.Accounts.LogoutEverywhere",
	}},
	{"a person's own account, which spans orgs: the session is the proof", []string{
		"account.Accounts.ChangePassword", "account.Accounts.HasPassword", "account.Accounts.CheckOwnPassword",
		"account.Accounts.Ways", "account.Accounts.Disconnect", "account.Accounts.Memberships", "account.Accounts.OrgNames",
		"account.Accounts.LinkMembership", "account.Accounts.UnlinkMembership",
	}},
	{"the operator's, and no transport calls it", []string{"account.Accounts.NewLink", "account.Accounts.SetPassword"}},
	{"OAuth: a client, a code or a token is the proof, and what it may have is decided from the grant", []string{
		"oauth.Service.Register", "oauth.Service.Describe", "oauth.Service.Client", "oauth.Service.ClientFor",
		"oauth.Service.Vouched", "oauth.Service.KeyClient", "oauth.Service.Offer", "oauth.Service.Create",
		"oauth.Service.Grant", "oauth.Service.GrantByCode", "oauth.Service.GrantByRefresh", "oauth.Service.Use",
		"oauth.Service.Revoke",
		"oauth.Service.TokenScopes", "oauth.Service.Issue", "oauth.Service.Token", "oauth.Service.RevokeToken",
		"oauth.Service.CallerByToken",
	}},
}

// accepted lists the actions that a method takes an Access for. A read of one record also
// takes that of its change: a conditional change reads the version first.
var accepted = map[string][]identity.Action{
	"proposal.Proposals.Submit":       {identity.SubmitProposal},
	"proposal.Proposals.Get":          {identity.ReadProposal, identity.ChangeProposal},
	"proposal.Proposals.List":         {identity.ListProposals},
	"proposal.Proposals.Counts":       {identity.ListProposals},
	"proposal.Proposals.Groups":       {identity.ListProposals},
	"proposal.Proposals.Similar":      {identity.ListProposals},
	"proposal.Proposals.DataVersion":  {identity.ListProposals},
	"proposal.Proposals.SimilarToOne": {identity.ReadProposal},
	"proposal.Proposals.Votes":        {identity.ReadProposal},
	"proposal.Proposals.History":      {identity.ReadProposal},
	"proposal.Proposals.Vote":         {identity.VoteOnProposal},
	"proposal.Proposals.WithdrawVote": {identity.VoteOnProposal},
	"proposal.Proposals.Edit":         {identity.ChangeProposal},
	"proposal.Proposals.Resolve":      {identity.ResolveProposal},
	"proposal.Proposals.ResolveAll":   {identity.ResolveProposal},
	"proposal.Proposals.Notes":        {identity.ResolveProposal},
	"proposal.Proposals.CreateNote":   {identity.ManageNotes},
	"proposal.Proposals.DeleteNote":   {identity.ManageNotes},

	"followup.Followups.Create": {identity.CreateFollowup},
	"followup.Followups.Get":    {identity.ReadFollowup, identity.ChangeFollowup},
	"followup.Followups.List":   {identity.ListFollowups},
	"followup.Followups.Change": {identity.ChangeFollowup},

	"friction.Frictions.Report":       {identity.ReportFriction},
	"friction.Frictions.List":         {identity.ReadFriction},
	"friction.Frictions.Get":          {identity.ReadFriction},
	"friction.Frictions.Threshold":    {identity.ReadFriction},
	"friction.Frictions.SetThreshold": {identity.ManageFriction},

	"agent.Registry.Create":     {identity.ManageAgents},
	"agent.Registry.Update":     {identity.ManageAgents},
	"agent.Registry.Visible":    {identity.ReadAgents},
	"agent.Registry.Get":        {identity.ReadAgents, identity.ManageAgents},
	"agent.Registry.HiddenFrom": {identity.CallAgent},

	"dispatch.Tasks.OrgTasks":      {identity.ReadTasks},
	"dispatch.Tasks.OrgTask":       {identity.ReadTasks},
	"dispatch.Tasks.OrgTaskWith":   {identity.ReadTasks},
	"dispatch.Tasks.OrgArtifact":   {identity.ReadTasks},
	"dispatch.Tasks.OrgPushes":     {identity.ReadTasks},
	"dispatch.Tasks.OrgTaskPushes": {identity.ReadTasks},
	"dispatch.Tasks.Recall":        {identity.ChangeFollowup},
	"dispatch.Tasks.RetryPush":     {identity.ReadTasks},
	"dispatch.Workers.Connection":  {identity.ManageAgents},
	"dispatch.Workers.LastSeen":    {identity.ManageAgents},

	"identity.OrgAdmin.Self":             {identity.ReadSelf},
	"identity.OrgAdmin.Org":              {identity.ReadSelf},
	"identity.OrgAdmin.OwnKeys":          {identity.ManageOwnCredentials},
	"identity.OrgAdmin.OwnKey":           {identity.ManageOwnCredentials},
	"identity.OrgAdmin.CreateOwnKey":     {identity.ManageOwnCredentials},
	"identity.OrgAdmin.RotateOwnKey":     {identity.ManageOwnCredentials},
	"identity.OrgAdmin.RevokeOwnKey":     {identity.ManageOwnCredentials},
	"identity.OrgAdmin.Audit":            {identity.ReadAudit},
	"identity.OrgAdmin.Keys":             {identity.ReadKeys},
	"identity.OrgAdmin.Key":              {identity.ReadKeys, identity.ManageKeys},
	"identity.OrgAdmin.CreateKey":        {identity.ManageKeys},
	"identity.OrgAdmin.RevokeKey":        {identity.ManageKeys},
	"identity.OrgAdmin.RotateKey":        {identity.ManageKeys},
	"identity.OrgAdmin.Members":          {identity.ReadMembers},
	"identity.OrgAdmin.Member":           {identity.ReadMembers, identity.ManageMembers},
	"identity.OrgAdmin.CreateMember":     {identity.ManageMembers},
	"identity.OrgAdmin.UpdateMember":     {identity.ManageMembers},
	"identity.OrgAdmin.Invitations":      {identity.ReadMembers},
	"identity.OrgAdmin.Invite":           {identity.ManageMembers},
	"identity.OrgAdmin.RevokeInvitation": {identity.ManageMembers},

	"account.Accounts.ResetLink": {identity.ManageMembers},

	"oauth.Service.Clients":      {identity.ReadClients},
	"oauth.Service.OrgClient":    {identity.ReadClients, identity.ManageClients},
	"oauth.Service.CreateClient": {identity.ManageClients},
	"oauth.Service.UpdateClient": {identity.ManageClients},
	"oauth.Service.RotateClient": {identity.ManageClients},
	"oauth.Service.DeleteClient": {identity.ManageClients},
	"oauth.Service.Programs":     {identity.ManageOwnCredentials},
	"oauth.Service.EndProgram":   {identity.ManageOwnCredentials},
}

func TestServiceMethodsAskForAProof(t *testing.T) {
	t.Parallel()
	excepted := map[string]bool{} // false: not used yet
	for _, e := range withoutProof {
		for _, name := range e.names {
			excepted[name] = false
		}
	}
	for _, m := range serviceMethods(t) {
		_, whole := excepted[m.service]
		_, one := excepted[m.name()]
		proven := slices.ContainsFunc(m.params, func(p string) bool { return slices.Contains(proofs, p) })
		switch {
		case whole:
			excepted[m.service] = true
		case one && proven:
			t.Errorf("%s asks for a proof and is still an exception", m.name())
		case one:
			excepted[m.name()] = true
		case !proven:
			t.Errorf("%s takes none of %v: have it take an Access, or say in withoutProof why it needs none", m.name(), proofs)
		}
	}
	for name, used := range excepted {
		if !used {
			t.Errorf("withoutProof lists %s, which is no method that takes a context", name)
		}
	}
}

// A method refuses an Access for an action that it does not name, before anything else. The
// services have no store, so that a method which goes on is noticed.
func TestServicesRefuseAnAccessForAnotherAction(t *testing.T) {
	t.Parallel()
	actions, tried := actionsOf(t), map[string]bool{}
	for _, s := range services() {
		of := reflect.TypeOf(s)
		for i := range of.NumMethod() {
			m := of.Method(i)
			if takesAccess(m.Type) < 0 {
				continue
			}
			name := path.Base(of.Elem().PkgPath()) + "." + of.Elem().Name() + "." + m.Name
			tried[name] = true
			want := accepted[name]
			if len(want) == 0 {
				t.Errorf("say in accepted for which action %s takes an Access", name)
			}
			for _, action := range actions {
				refused, trouble := tryAccess(s, m, accessFor(t, action))
				if should := !slices.Contains(want, action); refused != should {
					t.Errorf("%s with an Access to %q: refused %v; want %v (%v)", name, action, refused, should, trouble)
				}
			}
			if refused, trouble := tryAccess(s, m, identity.Access{}); !refused {
				t.Errorf("%s with the zero Access: %v; want a refusal", name, trouble)
			}
		}
	}
	for _, m := range serviceMethods(t) {
		if slices.Contains(m.params, "identity.Access") && !tried[m.name()] {
			t.Errorf("%s was not tried: add its service to services", m.name())
		}
	}
	for name := range accepted {
		if !tried[name] {
			t.Errorf("accepted lists %s, which is no method that takes an Access", name)
		}
	}
}

// services are all services that take an Access, without a store.
func services() []any {
	now, newID := time.Now, func(prefix string) string { return prefix + "1" }
	tasks := dispatch.New(dispatch.Options{Stores: dispatch.Stores{Stock: noStock{}, Pushes: noPushes{}}, Now: now, NewID: newID})
	return []any{
		proposal.New(nil, now, newID),
		followup.New(nil, nil, now, newID, nil),
		friction.New(nil, now, newID, proposal.Check),
		agent.NewRegistry(nil, now),
		tasks.Tasks, tasks.Workers,
		identity.NewOrgAdmin(nil, nil, nil, now, newID),
		account.New(nil, nil, nil, now),
		oauth.New(nil, nil, now, newID, oauth.Lifetimes{}),
	}
}

// noStock and noPushes are stores that panic.
type (
	noStock  struct{ dispatch.Stock }
	noPushes struct{ dispatch.PushStore }
)

// takesAccess is which parameter of a method is the Access; -1: none.
func takesAccess(method reflect.Type) int {
	for i := range method.NumIn() {
		if method.In(i) == reflect.TypeFor[identity.Access]() {
			return i
		}
	}
	return -1
}

// tryAccess calls a method with an Access, and reports whether it was refused as one for
// another action. trouble is what happened otherwise: another error, or the panic of a
// method that went on without a store.
func tryAccess(s any, m reflect.Method, a identity.Access) (refused bool, trouble any) {
	defer func() {
		if p := recover(); p != nil {
			refused, trouble = false, p
		}
	}()
	in := []reflect.Value{reflect.ValueOf(s), reflect.ValueOf(context.Background())}
	for i := 2; i < m.Type.NumIn(); i++ {
		in = append(in, reflect.Zero(m.Type.In(i)))
	}
	in[takesAccess(m.Type)] = reflect.ValueOf(a)
	out := m.Func.Call(in)
	err, _ := out[len(out)-1].Interface().(error)
	return err != nil && errs.As(err).Code == "auth.wrong_action", err
}

func accessFor(t *testing.T, action identity.Action) identity.Access {
	t.Helper()
	ann := identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}
	a, err := identity.Authorize(&identity.Caller{Principal: ann, Scopes: identity.AllScopes}, "acme", action)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The operator's services ask for no proof, so nothing that serves a client may have them.
func TestOnlyTheOperatorHasItsServices(t *testing.T) {
	t.Parallel()
	may := []string{"internal/app", "internal/cli", "internal/orgtest", "bench"}
	found := 0
	for _, f := range goFiles(t) {
		if f.isTest() || f.pkg == "internal/store/storetest" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Operator" && sel.Sel.Name != "NewOperator" {
				return true
			}
			if of, ok := sel.X.(*ast.Ident); ok && (of.Name == "identity" || of.Name == "agent") {
				if found++; !slices.Contains(may, f.pkg) {
					t.Errorf("%s uses %s.%s", f.path, of.Name, sel.Sel.Name)
				}
			}
			return true
		})
	}
	if found == 0 {
		t.Error("found no use at all: the test looks for the wrong names")
	}
}

// method is a method of a service.
type method struct {
	service, method string
	params          []string // types, each with its package
}

func (m *method) name() string { return m.service + "." + m.method }

// serviceMethods are the exported methods of exported domain types that take a context: what
// reads or changes something.
func serviceMethods(t *testing.T) []method {
	t.Helper()
	var out []method
	for _, f := range goFiles(t) {
		if f.isTest() || !slices.Contains(domain, f.pkg) {
			continue
		}
		pkg := f.syntax.Name.Name
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || !fn.Name.IsExported() {
				continue
			}
			m := method{service: typeName(pkg, fn.Recv.List[0].Type), method: fn.Name.Name}
			for _, p := range fn.Type.Params.List {
				m.params = append(m.params, typeName(pkg, p.Type))
			}
			exported := ast.IsExported(strings.TrimPrefix(m.service, pkg+"."))
			if exported && slices.Contains(m.params, "context.Context") {
				out = append(out, m)
			}
		}
	}
	if len(out) < len(accepted) {
		t.Fatalf("found %d service methods; want %d at least", len(out), len(accepted))
	}
	return out
}

// typeName is the name of a type with its package; a pointer is as what it points to.
func typeName(pkg string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(pkg, e.X)
	case *ast.Ident:
		return pkg + "." + e.Name
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok {
			return of.Name + "." + e.Sel.Name
		}
	}
	return ""
}

// actionsOf reads the actions from the source: a list in the program would be for this test alone.
func actionsOf(t *testing.T) []identity.Action {
	t.Helper()
	var out []identity.Action
	for _, f := range goFiles(t) {
		if f.isTest() || f.pkg != "internal/identity" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || typeName("identity", spec.Type) != "identity.Action" {
				return true
			}
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					s, _ := strconv.Unquote(lit.Value) // the parser has checked it
					out = append(out, identity.Action(s))
				}
			}
			return true
		})
	}
	if len(out) < 2 {
		t.Fatal("found no actions")
	}
	return out
}
