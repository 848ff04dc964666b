// Package client is a client of the Parley server: its REST API under /api/v1 and, by A2A, its
// agents.
//
//	c, err := client.New(client.Config{URL: "https://parley.example", Key: os.Getenv("PARLEY_KEY")})
//	if err != nil {
//		return err
//	}
//	p, err := c.Proposals.Submit(ctx, client.ProposalSubmission{
//		Title: "Retry the deploy step", Category: client.Reliability,
//		Problem: "It fails on a busy registry.", SuggestedFix: "Retry it three times.",
//	})
//
// Operations are grouped by resource: c.Proposals, c.Followups, c.Friction, c.Agents,
// c.Members, c.Keys and so on. c.Agent("scout") calls an agent, and c.Worker("scout")
// works for one; package worker builds on the latter and is what most agents want.
//
// A Client is safe for concurrent use. Use one for the whole program: it keeps
// connections.
//
// # Org
//
// Most operations belong to an org. The client asks the server once to which org its
// key belongs; set Config.Org to save the request.
//
// # Errors
//
// A request that the server refuses returns an [*Error], one that gets no response a
// [*ConnectionError]:
//
//	var refused *client.Error
//	if errors.As(err, &refused) && refused.Code == "proposal.transition_not_allowed" {
//		fmt.Println("possible now:", refused.Allowed)
//	}
//
// # Retries
//
// The client repeats a request after 429, 502, 503, 504 and lost connections, with
// growing random pauses, if a repetition cannot do anything twice. That holds for reads,
// for sends of tasks, and for every POST and PATCH of the REST API, which the client
// gives an Idempotency-Key. Other requests are repeated only if the server certainly did
// not carry them out. Retry-After is honoured. [Retry] sets the bounds.
//
// # Lists
//
// List returns one page, All iterates over all pages:
//
//	for p, err := range c.Proposals.All(ctx, client.ProposalListParams{Status: "all"}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(p.ID, p.Title)
//	}
//
// # Streams
//
// Stream sends a task and iterates over its events, Subscribe follows a task that was
// sent before. A stream survives broken connections and restarts of the server: it
// continues after the last event, so that each event comes once and in order.
//
//	params := client.SendParams{Message: client.NewMessage(client.Text("Hello"))}
//	for event, err := range c.Agent("scout").Stream(ctx, params) {
//		if err != nil {
//			return err
//		}
//		if event.Status != nil {
//			fmt.Println(event.Status.State)
//		}
//	}
//
// # Events
//
// Events returns the numbered events of the org, FollowEvents iterates over them as they happen. A
// program that keeps the number of the last event misses none:
//
//	for event, err := range c.FollowEvents(ctx, client.EventsOptions{After: &last}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(event.Type, event.Subject)
//		last = event.Seq
//	}
//
// # Compatibility
//
// Unknown members of responses are ignored. [WithQuery], [WithBody] and [WithResponse] give access
// to features of the server that this version of the package does not have.
package client
