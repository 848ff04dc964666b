// Command webhook-go receives the events of a webhook and prints them.
//
//	WEBHOOK_SECRET=whsec_… go run ./examples/webhook-go 127.0.0.1:9010
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	verifier, err := standardwebhooks.NewWebhook(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	var seen sync.Map // a real receiver keeps the ids in its database
	receive := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || verifier.Verify(body, r.Header) != nil {
			http.Error(w, "the signature is wrong", http.StatusUnauthorized)
			return
		}
		var event struct{ Type, Subject, Actor string }
		if err := json.Unmarshal(body, &event); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if _, repeated := seen.LoadOrStore(r.Header.Get("webhook-id"), true); !repeated {
			fmt.Println(event.Type, event.Subject, event.Actor)
		}
		w.WriteHeader(http.StatusNoContent)
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("receiving at http://%s/\n", listener.Addr())
	log.Fatal(http.Serve(listener, http.HandlerFunc(receive)))
}
