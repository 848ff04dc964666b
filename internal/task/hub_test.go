package task

import (
	"testing"
)

func TestTopicKeepsAsMuchAsItMayAndNoMore(t *testing.T) {
	t.Parallel()
	big := func(seq int64, n int) Event {
		return Event{Seq: seq, Kind: ArtifactEvent, Artifact: &Artifact{ID: "a", Parts: []Part{{Kind: TextPart, Text: string(make([]byte, n))}}}}
	}
	top := &topic{changed: make(chan struct{})}
	for seq := int64(1); seq <= 10; seq++ {
		top.append([]Event{big(seq, 300<<10)})
	}
	if n := len(top.recent); n == 0 || n > 3 {
		t.Errorf("%d events of 300 KiB are kept in memory", n)
	}
	if _, _, ok := top.after(1); ok {
		t.Error("a reader far behind was not sent to the log")
	}
	if got, _, ok := top.after(9); !ok || len(got) != 1 || got[0].Seq != 10 {
		t.Errorf("the newest event is not at hand: %v, %v", got, ok)
	}
	top.append([]Event{big(11, 2<<20)})
	if len(top.recent) != 0 || top.last != 11 {
		t.Errorf("%d events up to %d are kept after one that is too large", len(top.recent), top.last)
	}
	for seq := int64(12); seq <= 1000; seq++ {
		top.append([]Event{{Seq: seq, Kind: StatusEvent, State: Working}})
	}
	if n := len(top.recent); n < maxRecent || n > 2*maxRecent {
		t.Errorf("%d small events are kept", n)
	}
	if joined := top.append([]Event{{Seq: 1002}}); joined || top.last != 1000 {
		t.Error("an event that does not join on was taken")
	}
}
