package rpcpoolprom

import (
	"maps"
	"sync"
	"sync/atomic"
)

// capped is a map with a limit that is read without a lock and nearly never written: a call
// looks series up in it several times.
type capped[K comparable, V any] struct {
	limit int // how many there may be
	full  atomic.Bool

	mu     sync.Mutex // one writer at a time
	values atomic.Pointer[map[K]V]
}

func newCapped[K comparable, V any](limit int) *capped[K, V] {
	c := &capped[K, V]{limit: limit}
	c.values.Store(&map[K]V{})
	c.full.Store(limit == 0)
	return c
}

// get gives what stands under the key, makes it where there is nothing and room for it, and
// else gives the spare.
func (c *capped[K, V]) get(key K, create func() V, spare V) V {
	if v, ok := (*c.values.Load())[key]; ok {
		return v
	}
	if c.full.Load() {
		return spare
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := *c.values.Load()
	if v, ok := old[key]; ok {
		return v
	}
	if len(old) >= c.limit {
		return spare
	}
	next := maps.Clone(old)
	v := create()
	next[key] = v
	c.values.Store(&next)
	c.full.Store(len(next) >= c.limit)
	return v
}

// all gives what there is at the moment; it isn't to be changed.
func (c *capped[K, V]) all() map[K]V { return *c.values.Load() }

// remove takes out those for which gone says so, and calls drop for each meanwhile: nobody
// makes it anew before that is done.
func (c *capped[K, V]) remove(gone func(K) bool, drop func(K)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := *c.values.Load()
	next := maps.Clone(old)
	for key := range old {
		if gone(key) {
			delete(next, key)
			drop(key)
		}
	}
	if len(next) < len(old) {
		c.values.Store(&next)
		c.full.Store(len(next) >= c.limit)
	}
}
