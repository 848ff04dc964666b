package store

import (
	"slices"
	"testing"

	"github.com/parley-dev/parley/internal/textindex"
)

func TestWhichSegmentsAreMerged(t *testing.T) {
	t.Parallel()
	const heavy = mergeBytes + 1
	light := func(ids ...int64) (out []segmentRow) {
		for _, id := range ids {
			out = append(out, segmentRow{id: id, state: segmentUsed, docs: 10, bytes: 1000})
		}
		return out
	}
	several := light(1, 2, 3, 4, 5, 6, 7, 8)
	for name, tt := range map[string]struct {
		all  []segmentRow
		want []int64
	}{
		"few":          {light(1, 2, 3), nil},
		"several":      {several, []int64{1, 2, 3, 4, 5, 6, 7, 8}},
		"one is heavy": {append([]segmentRow{{id: 9, state: segmentUsed, docs: 1, bytes: heavy}}, several...), []int64{1, 2, 3, 4, 5, 6, 7, 8}},
		"few beside a heavy one": {
			append([]segmentRow{{id: 9, state: segmentUsed, docs: 1, bytes: heavy}}, light(1, 2)...), nil,
		},
		"two large ones beside a full one": {[]segmentRow{
			{id: 1, state: segmentUsed, docs: largeSegment, bytes: heavy},
			{id: 2, state: segmentUsed, docs: largeSegment, bytes: 1},
			{id: 3, state: segmentUsed, docs: largeSegment, bytes: 1},
		}, []int64{2, 3}},
		"large ones that do not fit": {[]segmentRow{
			{id: 1, state: segmentUsed, docs: textindex.MaxDocs - 1}, {id: 2, state: segmentUsed, docs: textindex.MaxDocs - 1},
		}, nil},
		"half dead": {append(light(1, 2), segmentRow{id: 3, state: segmentUsed, docs: 9, deadDocs: 5}), []int64{3}},
		"replaced":  {[]segmentRow{{id: 3, state: segmentReplaced, docs: 9, deadDocs: 5}}, nil},
	} {
		var got []int64
		for _, s := range toMerge(tt.all) {
			got = append(got, s.id)
		}
		if slices.Sort(got); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got segments %v, want %v", name, got, tt.want)
		}
	}
}
