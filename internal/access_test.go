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
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/webhook"
)

// proofs are the parameters that prove an authorization: an Access, or what a service made
// of one after further checks.
var proofs = []string{"identity.Access", "dispatch.Call", "dispatch.Post"}

// withoutData lists the domain packages that hold no data of an org.
var withoutData = []string{
	"internal/budget", "internal/cache", "internal/cursor", "internal/errs", "internal/idempotency", "internal/text",
}

// withoutProof lists the service types and methods that take no proof, with the reason.
var withoutProof = []struct {
	why   string
	names []string
}{
	{"for the operator; no transport has it (see TestOnlyTheOperatorHasItsServices)", []string{
		"identity.Operator", "agent.Operator", "account.Operator",
	}},
	{"is the proof itself", []string{"identity.Access", "dispatch.Call", "dispatch.Post"}},
	{"finds out who the caller is, before anything can be authorized", []string{"identity.Authenticator"}},
	{"holds no data of an org", []string{"dispatch.Echo", "identity.AdminRights"}},
	{"reads and caches the log of a task for package dispatch, which authorizes the caller", []string{
		"stream.Hub", "stream.Topic", "stream.Cache",
	}},
	{"delivers events for package dispatch, which authorizes the caller; its keys name the org", []string{
		"delivery.Service", "delivery.Client",
	}},
	{"finds agents for package dispatch, which authorizes the caller, and for public cards", []string{
		"agent.Directory",
	}},
	{"records refusals, so there may be no Access", []string{"identity.Auditor.Done", "identity.Auditor.Refused"}},
	{"the token of an invitation or of a link is the proof", []string{
		"identity.OrgAdmin.Invitation", "identity.OrgAdmin.Accept",
		"account.Accounts.Link", "account.Accounts.UseLink", "account.Accounts.Join",
	}},
	{"returns the proof", []string{"dispatch.Tasks.Reach", "dispatch.Tasks.Still", "dispatch.Workers.Serve"}},
	{"runs in the background, for all orgs", []string{
		"dispatch.Service.Run", "dispatch.Service.Sweep", "dispatch.Service.Hint", "dispatch.Service.HintAll",
		"dispatch.Service.Stop", "dispatch.Service.Stopping", "dispatch.Service.LeasesExpired",
		"dispatch.Service.CacheStats",
		"event.Service.Run", "event.Service.Changed", "event.Service.ChangedAll",
	}},
	{"runs in the background, for all orgs, and counts for metrics", []string{
		"webhook.Service.Run", "webhook.Service.Changed", "webhook.Service.Counts", "webhook.Service.Stop",
	}},
	{"wires agents that run inside the server", []string{
		"dispatch.Workers.Host", "dispatch.Workers.Unhost", "dispatch.Workers.Limit",
	}},
	{"is the lease of an agent that runs inside the server", []string{"dispatch.Work"}},
	{"returns a setting of the server", []string{"dispatch.Tasks.Pushes", "oauth.Service.Lifetimes"}},
	{"encodes what its caller has read already", []string{"dispatch.Tasks.EncodeEvent", "dispatch.Tasks.EncodeTask"}},
	{"public: cards show the presence of an agent", []string{
		"dispatch.Workers.Presence", "dispatch.Workers.Presences",
	}},
	{"counts the workers that wait on this node; only tests use it", []string{"dispatch.Workers.Waiting"}},
	{"signs people in or out", []string{
		"account.Accounts.Login", "account.Accounts.Resume", "account.Accounts.Joined", "account.Accounts.Arrive",
		"account.Accounts.Members", "account.Accounts.Open", "account.Accounts.HashPassword",
		"account.Accounts.Logout", "account.Accounts.LogoutEverywhere",
	}},
	{"a person's own account, which spans orgs: the session is the proof", []string{
		"account.Accounts.ChangePassword", "account.Accounts.HasPassword", "account.Accounts.CheckOwnPassword",
		"account.Accounts.Ways", "account.Accounts.Disconnect", "account.Accounts.Memberships",
		"account.Accounts.OrgNames", "account.Accounts.LinkMembership", "account.Accounts.UnlinkMembership",
	}},
	{"OAuth: a client, a code or a token is the proof, and the grant decides on the scopes", []string{
		"oauth.Service.Register", "oauth.Service.Describe", "oauth.Service.Client", "oauth.Service.ClientFor",
		"oauth.Service.Vouched", "oauth.Service.KeyClient", "oauth.Service.Offer", "oauth.Service.Create",
		"oauth.Service.Grant", "oauth.Service.GrantByCode", "oauth.Service.GrantByRefresh", "oauth.Service.Use",
		"oauth.Service.Revoke", "oauth.Service.TokenScopes", "oauth.Service.Issue", "oauth.Service.Token",
		"oauth.Service.RevokeToken", "oauth.Service.CallerByToken",
	}},
	{"computes from its arguments and reads nothing", []string{
		"oauth.Service.NewGrantID", "oauth.Service.Secrets", "oauth.Service.Works", "friction.Frictions.Validate",
	}},
}

// accepted lists the actions for which a method accepts an Access. A method that reads one
// record also accepts the action that changes it: a conditional change reads the version
// first.
var accepted = map[string][]identity.Action{
	"proposal.Proposals.Submit":       {identity.SubmitProposal},
	"proposal.Proposals.Get":          {identity.ReadProposal, identity.ChangeProposal},
	"proposal.Proposals.List":         {identity.ListProposals},
	"proposal.Proposals.Pace":         {identity.ListProposals},
	"proposal.Proposals.Counts":       {identity.ListProposals},
	"proposal.Proposals.Groups":       {identity.ListProposals},
	"proposal.Proposals.Similar":      {identity.ListProposals},
	"proposal.Proposals.DataVersion":  {identity.ListProposals, identity.ReadProposal},
	"proposal.Proposals.SeenVersion":  {identity.ListProposals, identity.ReadProposal},
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
	"agent.Registry.Profile":    {identity.ReadAgents, identity.ManageAgents},
	"agent.Registry.HiddenFrom": {identity.CallAgent},
	"agent.Catalogue.Find":      {identity.ReadAgents},
	"agent.Catalogue.Used":      {identity.CallAgent},
	"agent.Catalogue.Callers":   {identity.ManageAgents},

	"dispatch.Tasks.OrgTasks":       {identity.ReadTasks},
	"dispatch.Tasks.OrgTask":        {identity.ReadTasks},
	"dispatch.Tasks.OrgFollow":      {identity.ReadTasks},
	"dispatch.Tasks.OrgTaskWith":    {identity.ReadTasks},
	"dispatch.Tasks.OrgArtifact":    {identity.ReadTasks},
	"dispatch.Tasks.OrgPushes":      {identity.ReadTasks},
	"dispatch.Tasks.Asking":         {identity.ReadEvents},
	"dispatch.Workers.Unattended":   {identity.ReadTasks},
	"dispatch.Tasks.OrgTaskPushes":  {identity.ReadTasks},
	"dispatch.Tasks.Recall":         {identity.ChangeFollowup},
	"dispatch.Tasks.RetryPush":      {identity.ManageAgents},
	"dispatch.Tasks.OrgRerun":       {identity.ManageAgents},
	"dispatch.Workers.Connection":   {identity.ManageAgents},
	"dispatch.Workers.LastSeen":     {identity.ManageAgents},
	"dispatch.Tasks.OrgAttempts":    {identity.ReadTasks},
	"dispatch.Tasks.Failures":       {identity.ReadTasks},
	"dispatch.Tasks.SearchOrgTasks": {identity.ReadTasks},
	"dispatch.Workers.Crews":        {identity.ManageAgents},

	"event.Service.Head":     {identity.ReadEvents},
	"event.Service.ListBack": {identity.ReadEvents},
	"event.Service.List":     {identity.ReadEvents},
	"event.Service.Wait":     {identity.ReadEvents},
	"event.Service.Follow":   {identity.ReadEvents},

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
	"identity.OrgAdmin.Member":           {identity.ReadMembers, identity.ManageMembers, identity.EraseMembers},
	"identity.OrgAdmin.CreateMember":     {identity.ManageMembers},
	"identity.OrgAdmin.UpdateMember":     {identity.ManageMembers},
	"identity.OrgAdmin.EraseMember":      {identity.EraseMembers},
	"identity.OrgAdmin.Invitations":      {identity.ReadMembers},
	"identity.OrgAdmin.Invite":           {identity.ManageMembers},
	"identity.OrgAdmin.RevokeInvitation": {identity.ManageMembers},

	"account.Accounts.ResetLink": {identity.ManageMembers},

	"webhook.Service.Create":         {identity.ManageWebhooks},
	"webhook.Service.List":           {identity.ManageWebhooks},
	"webhook.Service.Get":            {identity.ManageWebhooks},
	"webhook.Service.Update":         {identity.ManageWebhooks},
	"webhook.Service.Delete":         {identity.ManageWebhooks},
	"webhook.Service.Rotate":         {identity.ManageWebhooks},
	"webhook.Service.Ping":           {identity.ManageWebhooks},
	"webhook.Service.Deliveries":     {identity.ManageWebhooks},
	"webhook.Service.Redeliver":      {identity.ManageWebhooks},
	"webhook.Service.RedeliverSince": {identity.ManageWebhooks},

	"oauth.Service.Clients":      {identity.ReadClients},
	"oauth.Service.OrgClient":    {identity.ReadClients, identity.ManageClients},
	"oauth.Service.CreateClient": {identity.ManageClients},
	"oauth.Service.UpdateClient": {identity.ManageClients},
	"oauth.Service.RotateClient": {identity.ManageClients},
	"oauth.Service.DeleteClient": {identity.ManageClients},
	"oauth.Service.Programs":     {identity.ManageOwnCredentials},
	"oauth.Service.EndProgram":   {identity.ManageOwnCredentials},
}

func TestServiceMethodsTakeAProof(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, e := range withoutProof {
		for _, name := range e.names {
			used[name] = false
		}
	}
	for _, m := range serviceMethods(t) {
		_, typeExcepted := used[m.service]
		_, methodExcepted := used[m.name()]
		proven := slices.ContainsFunc(m.params, func(p string) bool { return slices.Contains(proofs, p) })
		switch {
		case typeExcepted:
			used[m.service] = true
		case methodExcepted && proven:
			t.Errorf("%s takes a proof; remove it from withoutProof", m.name())
		case methodExcepted:
			used[m.name()] = true
		case !proven:
			t.Errorf("%s takes none of %v: add an Access, or an exception with a reason to withoutProof", m.name(), proofs)
		}
	}
	for name, ok := range used {
		if !ok {
			t.Errorf("withoutProof lists %s, which is not a method of a service type", name)
		}
	}
}

// An embedded store would give every holder of the service its methods.
func TestServicesEmbedOnlyServices(t *testing.T) {
	t.Parallel()
	types := serviceTypes(t)
	for name, s := range types {
		if excepted(name) {
			continue
		}
		for _, field := range s.embedded {
			if _, ok := types[field]; !ok {
				t.Errorf("%s embeds %s, whose methods are not checked; make it a named field", name, field)
			}
		}
	}
}

// excepted reports whether withoutProof lists a type.
func excepted(service string) bool {
	for _, e := range withoutProof {
		if slices.Contains(e.names, service) {
			return true
		}
	}
	return false
}

// A method refuses an Access for another action before it does anything else. The services
// have no store, so a method that goes on panics.
func TestServicesRefuseAnAccessForAnotherAction(t *testing.T) {
	t.Parallel()
	actions, tried := actionsOf(t), map[string]bool{}
	for _, s := range services() {
		of := reflect.TypeOf(s)
		for i := range of.NumMethod() {
			m := of.Method(i)
			at := takes[identity.Access](m.Type)
			if at < 0 {
				continue
			}
			name := path.Base(of.Elem().PkgPath()) + "." + of.Elem().Name() + "." + m.Name
			tried[name] = true
			want := accepted[name]
			if len(want) == 0 {
				t.Errorf("accepted does not list %s", name)
			}
			for _, action := range actions {
				refused, trouble := tryProof(s, m, at, accessFor(t, action))
				if should := !slices.Contains(want, action); refused != should {
					t.Errorf("%s with an Access to %q: refused %v, want %v (%v)", name, action, refused, should, trouble)
				}
			}
			if refused, trouble := tryProof(s, m, at, identity.Access{}); !refused {
				t.Errorf("%s with the zero Access: got %v, want a refusal", name, trouble)
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
			t.Errorf("accepted lists %s, which is not a method that takes an Access", name)
		}
	}
}

// services returns all services with methods that take an Access, without a store.
func services() []any {
	now, newID := time.Now, func(prefix string) string { return prefix + "1" }
	tasks := dispatch.New(dispatch.Options{
		Stores: dispatch.Stores{Stock: noStock{}, Pushes: noPushes{}}, Now: now, NewID: newID,
	})
	return []any{
		proposal.New(nil, now, newID),
		followup.New(nil, nil, now, newID, nil),
		friction.New(nil, now, newID, proposal.Check),
		agent.NewRegistry(nil, agent.NewDirectory(nil, now), agent.Quotas{}, now),
		agent.NewCatalogue(nil, now),
		tasks.Tasks, tasks.Workers,
		event.NewService(event.Options{Now: now}),
		identity.NewOrgAdmin(identity.OrgAdminOptions{Now: now, NewID: newID}),
		account.New(nil, nil, nil, now),
		oauth.New(oauth.Options{Now: now, NewID: newID}),
		webhook.NewService(webhook.Options{Now: now, NewID: newID}),
	}
}

// noStock and noPushes are stores that panic.
type (
	noStock  struct{ dispatch.Stock }
	noPushes struct{ dispatch.PushStore }
)

// A Call and a Post that no service made are refused like the zero Access.
func TestServicesRefuseTheZeroCallAndPost(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, s := range services() {
		of := reflect.TypeOf(s)
		for i := range of.NumMethod() {
			m := of.Method(i)
			var refused bool
			var trouble any
			if at := takes[dispatch.Call](m.Type); at >= 0 {
				refused, trouble = tryProof(s, m, at, dispatch.Call{})
			} else if at := takes[dispatch.Post](m.Type); at >= 0 {
				refused, trouble = tryProof(s, m, at, dispatch.Post{})
			} else {
				continue
			}
			if tried++; m.Name == "Expected" { // returns a bool and no error: false, without a look at a store
				refused = trouble == nil
			}
			if !refused {
				t.Errorf("%s.%s with the zero proof: %v; want a refusal", of, m.Name, trouble)
			}
		}
	}
	if tried < 15 {
		t.Errorf("tried %d methods; want all that take a Call or a Post", tried)
	}
}

// takes returns which parameter of a method has the type T; -1 if none has.
func takes[T any](method reflect.Type) int {
	for i := range method.NumIn() {
		if method.In(i) == reflect.TypeFor[T]() {
			return i
		}
	}
	return -1
}

// tryProof calls a method with a proof at the given parameter, and reports whether the proof
// was refused as one for another action. trouble is what happened otherwise: another error, or
// the panic of a method that went on without a store.
func tryProof(s any, m reflect.Method, at int, proof any) (refused bool, trouble any) {
	defer func() {
		if p := recover(); p != nil {
			refused, trouble = false, p
		}
	}()
	in := []reflect.Value{reflect.ValueOf(s)}
	for i := 1; i < m.Type.NumIn(); i++ {
		in = append(in, reflect.Zero(m.Type.In(i)))
	}
	if i := takes[context.Context](m.Type); i > 0 {
		in[i] = reflect.ValueOf(context.Background())
	}
	in[at] = reflect.ValueOf(proof)
	out := m.Func.Call(in)
	last := out[len(out)-1]
	if last.Kind() == reflect.Func { // an iterator, whose first value has the error
		for _, err := range last.Seq2() {
			last = err
			break
		}
	}
	if err, _ := last.Interface().(error); err != nil {
		return errs.As(err).Code == "auth.wrong_action", err
	}
	return false, nil
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

// The services of the operator take no proof, so no transport may have them.
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
			if of, ok := sel.X.(*ast.Ident); ok && slices.Contains([]string{"identity", "agent", "account"}, of.Name) {
				if found++; !slices.Contains(may, f.pkg) {
					t.Errorf("%s uses %s.%s", f.path, of.Name, sel.Sel.Name)
				}
			}
			return true
		})
	}
	if found == 0 {
		t.Error("found no use at all: the test looks for wrong names")
	}
}

// service is an exported type of a domain package that has a method with a context, or no
// exported field: other types are records.
type service struct {
	hidden   bool // has no exported field
	active   bool // has a method with a context
	embedded []string
	methods  []method
}

// method is an exported method of a service.
type method struct {
	service, method string
	params          []string // types, each with its package
}

func (m *method) name() string { return m.service + "." + m.method }

// serviceMethods returns the exported methods of all services.
func serviceMethods(t *testing.T) []method {
	t.Helper()
	var out []method
	for _, s := range serviceTypes(t) {
		out = append(out, s.methods...)
	}
	if len(out) < len(accepted) {
		t.Fatalf("found %d service methods, want at least %d", len(out), len(accepted))
	}
	return out
}

// serviceTypes returns the services by name.
func serviceTypes(t *testing.T) map[string]*service {
	t.Helper()
	types := map[string]*service{}
	of := func(name string) *service {
		if types[name] == nil {
			types[name] = &service{}
		}
		return types[name]
	}
	for _, f := range goFiles(t) {
		holdsData := slices.Contains(domain, f.pkg) && !slices.Contains(withoutData, f.pkg) ||
			f.pkg == "internal/delivery" || f.pkg == "internal/webhook"
		if f.isTest() || !holdsData {
			continue
		}
		pkg := f.syntax.Name.Name
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if fields, ok := n.Type.(*ast.StructType); ok && n.Name.IsExported() {
					of(pkg+"."+n.Name.Name).describe(pkg, fields)
				}
			case *ast.FuncDecl:
				if n.Recv == nil || !n.Name.IsExported() {
					return false
				}
				m := method{service: typeName(pkg, n.Recv.List[0].Type), method: n.Name.Name}
				for _, p := range n.Type.Params.List {
					m.params = append(m.params, typeName(pkg, p.Type))
				}
				s := of(m.service)
				s.methods = append(s.methods, m)
				s.active = s.active || slices.Contains(m.params, "context.Context")
				return false
			}
			return true
		})
	}
	for name, s := range types {
		_, local, _ := strings.Cut(name, ".")
		if !ast.IsExported(local) || len(s.methods) == 0 || !s.hidden && !s.active {
			delete(types, name)
		}
	}
	return types
}

// describe reads the fields of a service.
func (s *service) describe(pkg string, fields *ast.StructType) {
	s.hidden = true
	for _, f := range fields.Fields.List {
		if len(f.Names) == 0 {
			s.embedded = append(s.embedded, typeName(pkg, f.Type))
		}
		if slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
			s.hidden = false
		}
	}
}

// typeName returns the name of a type with its package. A pointer has the name of its
// element.
func typeName(pkg string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(pkg, e.X)
	case *ast.IndexExpr:
		return typeName(pkg, e.X)
	case *ast.IndexListExpr:
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

// actionsOf reads the actions from the source. Only this test needs a list of them.
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
