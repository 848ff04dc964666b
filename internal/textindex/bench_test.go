package textindex

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// BenchmarkSearch searches an index of some segments whose pages are in memory.
func BenchmarkSearch(b *testing.B) {
	const segments, docs = 16, 20_000
	rnd := rand.New(rand.NewPCG(1, 1))
	var views []*View
	for s := range segments {
		list := make([]Doc, docs)
		for i := range list {
			n := s*docs + i
			list[i] = Doc{
				ID: fmt.Sprintf("prop_%020d", n), Title: []string{"all", fmt.Sprint("ref", n)},
				Tags: []string{fmt.Sprint("status:", n%2), fmt.Sprint("by:", n%100)},
			}
			for range 30 {
				list[i].Text = append(list[i].Text, fmt.Sprint("w", rnd.IntN(1+rnd.IntN(20_000))))
			}
		}
		v, err := InMemory(Build(list))
		if err != nil {
			b.Fatal(err)
		}
		views = append(views, v)
	}
	for _, q := range []Query{
		{Prefix: "ref299999"},
		{Prefix: "all"},
		{Prefix: "w"},
		{Prefix: "w17"},
		{Words: []string{"w3", "w5"}, Prefix: "w7"},
		{Words: []string{"ref5000"}},
	} {
		q.Order, q.Hidden = ByRelevance, [2]string{"status:0", "by:2"}
		name := strings.Join(q.Words, "+")
		if q.Prefix != "" {
			name += "+" + q.Prefix + "*"
		}
		b.Run(strings.TrimPrefix(name, "+"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				fresh := make([]*View, len(views))
				for i, v := range views {
					fresh[i] = v.Again()
				}
				s := NewSearch(q, fresh)
				if done, err := s.Match(); !done || err != nil {
					b.Fatal(done, err)
				}
				if _, done, err := s.Pick(nil, 0, 21); !done || err != nil {
					b.Fatal(done, err)
				}
			}
		})
	}
}
