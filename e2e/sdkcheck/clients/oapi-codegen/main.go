// The client that oapi-codegen makes, used.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"parley.example/sdkcheck/client"
)

func main() {
	ctx := context.Background()
	api, err := client.NewClientWithResponses(os.Getenv("PARLEY_URL"), client.WithRequestEditorFn(
		func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+os.Getenv("PARLEY_KEY"))
			return nil
		}))
	if err != nil {
		log.Fatal(err)
	}
	for i := range 3 {
		made, err := api.SubmitProposalWithResponse(ctx, "main", &client.SubmitProposalParams{}, client.ProposalSubmission{
			Title: fmt.Sprintf("Retry webhooks %d", i), Category: "reliability",
			Problem: "A delivery that fails once is lost.", SuggestedFix: "Retry it.",
		})
		if err != nil || made.JSON201 == nil || made.JSON201.Status != "open" {
			log.Fatal(err, made)
		}
	}
	fmt.Println("ok submit")

	list := func(p client.ListProposalsParams) *client.ProposalList {
		limit := int64(2)
		p.Limit = &limit
		page, err := api.ListProposalsWithResponse(ctx, "main", &p)
		if err != nil || page.JSON200 == nil {
			log.Fatal(err, page)
		}
		return page.JSON200
	}
	first := list(client.ListProposalsParams{})
	if len(first.Proposals) != 2 || first.Total != 3 || first.NextCursor == nil {
		log.Fatalf("the first page: %+v", first)
	}
	fmt.Println("ok list")

	number := int64(2)
	second := list(client.ListProposalsParams{Page: &number})
	if len(second.Proposals) != 1 || second.NextCursor != nil || second.Proposals[0].Id == first.Proposals[0].Id {
		log.Fatalf("the second page: %+v", second)
	}
	fmt.Println("ok page")

	again := list(client.ListProposalsParams{Cursor: first.NextCursor})
	if len(again.Proposals) != 1 || again.Proposals[0].Id != second.Proposals[0].Id {
		log.Fatalf("the second page by cursor: %+v", again)
	}
	fmt.Println("ok cursor")
}
