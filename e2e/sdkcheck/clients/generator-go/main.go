// The client that openapi-generator makes for Go, used.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"parley.example/sdkcheck/client"
)

func main() {
	config := client.NewConfiguration()
	config.Servers = client.ServerConfigurations{{URL: os.Getenv("PARLEY_URL")}}
	api := client.NewAPIClient(config).ProposalsAPI
	ctx := context.WithValue(context.Background(), client.ContextAccessToken, os.Getenv("PARLEY_KEY"))
	for i := range 3 {
		made, _, err := api.SubmitProposal(ctx, "main").ProposalSubmission(client.ProposalSubmission{
			Title: fmt.Sprintf("Retry webhooks %d", i), Category: "reliability",
			Problem: "A delivery that fails once is lost.", SuggestedFix: "Retry it.",
		}).Execute()
		if err != nil || made.Status != "open" {
			log.Fatal(err, made)
		}
	}
	fmt.Println("ok submit")

	first, _, err := api.ListProposals(ctx, "main").Limit(2).Execute()
	if err != nil || len(first.Proposals) != 2 || first.Total != 3 || first.GetNextCursor() == "" {
		log.Fatal("the first page: ", err, first)
	}
	fmt.Println("ok list")

	second, _, err := api.ListProposals(ctx, "main").Limit(2).Page(2).Execute()
	if err != nil || len(second.Proposals) != 1 || second.GetNextCursor() != "" || second.Proposals[0].Id == first.Proposals[0].Id {
		log.Fatal("the second page: ", err, second)
	}
	fmt.Println("ok page")

	again, _, err := api.ListProposals(ctx, "main").Limit(2).Cursor(first.GetNextCursor()).Execute()
	if err != nil || len(again.Proposals) != 1 || again.Proposals[0].Id != second.Proposals[0].Id {
		log.Fatal("the second page by cursor: ", err, again)
	}
	fmt.Println("ok cursor")
}
