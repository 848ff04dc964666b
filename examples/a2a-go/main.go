// Command a2a-go calls an agent with the official Go SDK and shows what comes of it.
//
//	PARLEY_KEY=… go run ./examples/a2a-go http://127.0.0.1:8080/a2a/echo Hello
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
)

// bearer sends the key with every call.
type bearer struct {
	a2aclient.PassthroughInterceptor
	key string
}

func (b bearer) Before(ctx context.Context, req *a2aclient.Request) (context.Context, any, error) {
	req.ServiceParams["Authorization"] = []string{"Bearer " + b.key}
	return ctx, nil, nil
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: a2a-go ADDRESS TEXT")
	}
	if err := call(context.Background(), os.Args[1], os.Getenv("PARLEY_KEY"), os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func call(ctx context.Context, address, key, text string) error {
	card, err := agentcard.DefaultResolver.Resolve(ctx, address, agentcard.WithRequestHeader("Authorization", "Bearer "+key))
	if err != nil {
		return err
	}
	client, err := a2aclient.NewFromCard(ctx, card, a2aclient.WithCallInterceptors(bearer{key: key}))
	if err != nil {
		return err
	}
	message := a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(text))
	for event, err := range client.SendStreamingMessage(ctx, &a2a.SendMessageRequest{Message: message}) {
		if err != nil {
			return err
		}
		switch e := event.(type) {
		case *a2a.TaskArtifactUpdateEvent:
			for _, part := range e.Artifact.Parts {
				fmt.Println(part.Text())
			}
		case *a2a.TaskStatusUpdateEvent:
			fmt.Fprintln(os.Stderr, e.Status.State)
		}
	}
	return nil
}
