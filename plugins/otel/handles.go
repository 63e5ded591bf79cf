package rpcpoolotel

import (
	"maps"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"

	"github.com/bomzrpc/rpcpool"
)

// otherHandle is rpcpool.chain, and rpcpool.policy, of what is measured together.
const otherHandle = "other"

// firsts is a set that takes what comes first, up to a limit, and keeps it: what is in it once
// stays, what found it full never comes in, so that a counter goes down where it went up. It
// is read without a lock and nearly never written.
type firsts[K comparable] struct {
	limit int

	mu   sync.Mutex // one writer at a time
	kept atomic.Pointer[map[K]bool]
}

func newFirsts[K comparable](limit int) *firsts[K] {
	f := &firsts[K]{limit: limit}
	f.kept.Store(&map[K]bool{})
	return f
}

// has takes the key in if there is room, and tells whether it is in.
func (f *firsts[K]) has(key K) bool {
	kept := *f.kept.Load()
	if kept[key] || len(kept) >= f.limit {
		return kept[key]
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	kept = *f.kept.Load()
	if kept[key] || len(kept) >= f.limit {
		return kept[key]
	}
	next := maps.Clone(kept)
	next[key] = true
	f.kept.Store(&next)
	return true
}

// isOwn tells whether a handle is measured by itself. One whose reference isn't UTF-8 never
// is: an exporter would lose with it all that it sends at once.
func (h *Hook) isOwn(labels rpcpool.ChainLabels) bool {
	return utf8.ValidString(labels.Chain) && h.handles.has(labels)
}

// withHandle adds, for metrics, which handle something is of.
func (h *Hook) withHandle(attrs []attribute.KeyValue, labels rpcpool.ChainLabels) []attribute.KeyValue {
	return h.withRPC(attrs, labels, "")
}

// withRPC adds, for metrics, which RPC of which handle something is of. The RPCs of the
// others have no name: the lists of references without end may have hosts without end.
func (h *Hook) withRPC(attrs []attribute.KeyValue, labels rpcpool.ChainLabels, rpc string) []attribute.KeyValue {
	if !h.isOwn(labels) {
		return append(attrs, keyChain.String(otherHandle), keyPolicy.String(otherHandle))
	}
	return withServer(withLabels(attrs, labels), rpc)
}

// withListed is withRPC for what is known by the key of a list.
func (h *Hook) withListed(attrs []attribute.KeyValue, key, rpc string) []attribute.KeyValue {
	if !utf8.ValidString(key) || !h.lists.has(key) {
		return append(attrs, keyChain.String(otherHandle))
	}
	return withServer(append(attrs, keyChain.String(key)), rpc)
}
