package store_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/rest"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/task"
)

type everybody struct{}

func (everybody) Target(_ context.Context, _, id string) (dispatch.Target, *dispatch.Target, error) {
	return dispatch.Target{ID: id, Org: "main", Public: true}, nil, nil
}

func (everybody) Own(_ context.Context, org, id string) (dispatch.Target, error) {
	return dispatch.Target{ID: id, Org: org, Public: true}, nil
}

// BenchmarkTask runs the whole life of a task without HTTP:
// `go test ./internal/store -run - -bench Task`
func BenchmarkTask(b *testing.B) {
	for _, engine := range []string{"sqlite", "postgres"} {
		b.Run(engine, func(b *testing.B) {
			o := store.Options{Dir: b.TempDir(), Records: rest.Records{}}
			if engine == "postgres" {
				o = store.Options{URL: pgtest.URL(b), Records: rest.Records{}}
			}
			s, err := store.Open(b.Context(), o)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = s.Close() })
			createMain(b, s)
			var ids atomic.Int64
			tasks := dispatch.New(dispatch.Options{
				Stores: s.DispatchStores(), Directory: everybody{}, Now: func() time.Time { return time.Now().UTC() }, Node: "here",
				NewID: func(prefix string) string { return fmt.Sprintf("%s%026d", prefix, ids.Add(1)) },
			})
			tasks.Host(dispatch.Target{ID: "echo", Org: "main"}, dispatch.Echo{}, dispatch.Hosting{})
			ctx, cancel := context.WithCancel(context.Background())
			ran := make(chan struct{})
			go func() { tasks.Run(ctx); close(ran) }()
			b.Cleanup(func() { cancel(); <-ran })
			ann := identity.Principal{Org: "main", Kind: identity.User, ID: "ann"}
			caller := &identity.Caller{Principal: ann, Scopes: identity.AllScopes}
			call, err := tasks.Reach(ctx, caller, "echo")
			if err != nil {
				b.Fatal(err)
			}
			m := task.Message{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: "hello there"}}}
			var n atomic.Int64
			b.Run("send to completed", func(b *testing.B) {
				b.SetParallelism(32)
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						t, err := tasks.Send(ctx, call, dispatch.SendRequest{ID: fmt.Sprint("t", n.Add(1)), Message: m}, 30*time.Second)
						if err != nil || t.State != task.Completed {
							b.Errorf("state = %s, %v, want completed", t.State, err)
							return
						}
					}
				})
			})
			made := n.Load()
			b.Run("get", func(b *testing.B) {
				b.SetParallelism(32)
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := tasks.Get(ctx, call, fmt.Sprint("t", n.Add(1)%made+1), task.All); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		})
	}
}
