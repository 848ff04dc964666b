package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/parley-dev/parley/internal/cache"
)

// flushEvents numbers the events of a batch and queues their packs. It is the end of the writer's
// transaction, and there is no other writer: numbers are given in the order of the commits.
func (w *writer) flushEvents(t *tx) error {
	if len(t.events) == 0 {
		return nil
	}
	all := packs(t.events)
	ends := map[string]int64{} // by org: the number of its events, then the last number that was given
	for _, p := range all {
		ends[p.org] += p.n
	}
	for org, n := range ends {
		var last int64
		// An upsert with RETURNING would cost as much as the insert of a pack.
		found, err := one(context.Background(), w, []any{&last}, `SELECT seq FROM event_heads WHERE org_id = $1`, org)
		if err != nil {
			return err
		}
		if ends[org] = last; found {
			t.exec(`UPDATE event_heads SET seq = $2 WHERE org_id = $1`, org, last+n)
		} else {
			t.exec(`INSERT INTO event_heads (org_id, seq) VALUES ($1, $2)`, org, n)
		}
	}
	for _, p := range all {
		ends[p.org] += p.n
		t.exec(`INSERT INTO events (org_id, last_seq, n, at, types, data) VALUES ($1, $2, $3, $4, $5, $6)`,
			p.org, ends[p.org], p.n, p.at, int64(p.types), w.packer.compress(p.lines))
	}
	return nil
}

// number implements engine. All events have numbers.
func (e *lite) number(context.Context, string) error { return nil }

// packer compresses packs. It keeps its buffers: packs are a large part of the memory that a write
// needs.
type packer struct{ text, stored []byte }

// maxPackerBuffer is the size of a buffer from which it is not kept.
const maxPackerBuffer = 4 * maxPackSize

// compress returns the text of a pack as SQLite stores it. The records in a pack repeat the names
// of their members and much else. What is not written need not be synchronized with the disk either.
func (p *packer) compress(lines []string) []byte {
	p.text = p.text[:0]
	for _, line := range lines {
		p.text = append(p.text, line...)
	}
	p.stored = s2.Encode(p.stored, p.text)
	out := bytes.Clone(p.stored)
	if cap(p.text) > maxPackerBuffer {
		*p = packer{}
	}
	return out
}

// maxPackText limits the text of a pack that is read, which otherwise a damaged file could choose.
const maxPackText = 64 << 20

// expandPack reverses compress.
func expandPack(data []byte) (string, error) {
	n, err := s2.DecodedLen(data)
	if err == nil && n > maxPackText {
		err = errors.New("it is too large")
	}
	if err != nil {
		return "", fmt.Errorf("a stored pack of events is damaged: %w", err)
	}
	buf, _ := packTexts.Get().(*[]byte)
	defer packTexts.Put(buf)
	text, err := s2.Decode(*buf, data)
	if err != nil {
		return "", fmt.Errorf("a stored pack of events is damaged: %w", err)
	}
	if len(text) <= maxPackerBuffer {
		*buf = text
	}
	return string(text), nil
}

// packTexts are buffers of expandPack.
var packTexts = sync.Pool{New: func() any { return new([]byte) }}

// packCache keeps the texts of packs. Readers that follow a log read the same new packs, and a page
// that ends within a pack is followed by one that begins there.
type packCache struct {
	seed  maphash.Seed
	texts *cache.Cache[uint64, cachedPack]
}

// cachedPack is a pack as it is stored, and its text. Only a row with the same bytes gets the text, so
// nothing is to be dropped when rows are deleted or changed.
type cachedPack struct {
	stored []byte
	text   string
}

// maxPackCache limits the bytes of cached packs.
const maxPackCache = 8 << 20

func newPackCache() *packCache {
	return &packCache{maphash.MakeSeed(), cache.New(cache.Options[uint64, cachedPack]{
		Max: maxPackCache, Size: func(_ uint64, p cachedPack) int64 { return int64(cap(p.stored) + len(p.text)) },
		Shards: 4,
	})}
}

// text returns the text of a stored pack, which it keeps.
func (c *packCache) text(stored []byte) (string, error) {
	key := maphash.Bytes(c.seed, stored)
	if p, ok := c.texts.Get(key); ok && bytes.Equal(p.stored, stored) {
		return p.text, nil
	}
	text, err := expandPack(stored)
	if err == nil {
		c.texts.Set(key, cachedPack{stored, text})
	}
	return text, err
}

// scanPack implements engine.
func (e *lite) scanPack(r rows, p *storedPack) error {
	var stored []byte
	err := r.Scan(&p.last, &p.n, &stored)
	if err == nil {
		p.data, err = e.packs.text(stored)
	}
	return err
}
