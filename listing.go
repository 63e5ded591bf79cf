package rpcpool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"
)

// minRefetch is how old a list must be to be fetched anew between rounds, so that
// a bot whose RPCs are all cooling doesn't turn each call into one of the pool's
// (rule A4.3).
const minRefetch = 5 * time.Second

// listFetch is one request for a chain's list, shared by all calls that need it.
type listFetch struct {
	done chan struct{} // closed when the list was taken over, or err is set
	err  error         // why there is no list; nil where there is one
}

// ensureList sees to it that the handle has a list that isn't older than maxAge.
// A list in memory is never given up: where the pool can't say better, it stays.
func (c *chainState) ensureList(ctx context.Context, maxAge time.Duration) error {
	fetch := c.startFetch(maxAge)
	if fetch == nil {
		return nil
	}
	var patience <-chan time.Time
	if c.hasRPCs() { // an old list is better than no time left to use the new one
		var stop func()
		patience, stop = halfOfWhatIsLeft(ctx)
		defer stop()
	}
	select {
	case <-fetch.done:
		return fetch.err
	case <-patience:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startFetch gives the fetch to wait for, or nil where the list will do. Ages
// count from the end of the last fetch, also of a failed one (rule A2.2).
func (c *chainState) startFetch(maxAge time.Duration) *listFetch {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ring != nil {
		if len(c.ring.endpoints) == 0 {
			maxAge = minRefetch
		}
		if time.Since(c.fetchedAt) < maxAge {
			return nil
		}
	}
	if c.fetch == nil {
		fetch := &listFetch{done: make(chan struct{})}
		if !c.pool.start(func() { c.runFetch(fetch) }) {
			return &listFetch{done: closedChannel, err: ErrClosed}
		}
		c.fetch = fetch
		c.pool.sharing.join()
	}
	return c.fetch
}

var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// runFetch asks for the list and takes over what comes of it. It belongs to the
// pool, not to a caller: one caller's end doesn't end it for the others.
func (c *chainState) runFetch(fetch *listFetch) {
	began := time.Now()
	got, whyNot := c.fetchList(c.pool.working)
	event := ListEvent{ChainLabels: c.labels(), Source: c.pool.directorySource(), Duration: time.Since(began)}
	if c.pool.working.Err() != nil {
		whyNot = ErrClosed
	}
	list, err := c.settleOnList(got, whyNot, c.hasRPCs())
	switch {
	case list == nil && err == nil:
		event.Source = ListFromMemory
	case list == nil:
		event.Source = ListFromNowhere
	case list != got:
		event.Source = ListFromCache
	}

	c.mu.Lock()
	var dropped []string
	var back []*endpoint
	switch {
	case list != nil:
		expelled := c.expelled()
		dropped = c.replaceRing(list)
		back = slices.DeleteFunc(expelled, func(e *endpoint) bool { return e.expelled || e.pos < 0 })
	case err != nil:
		c.ring = nil // an empty one: the next call asks again
	}
	c.fetchedAt = time.Now()
	c.fetch = nil
	if c.ring != nil {
		event.RPCs = len(c.ring.endpoints)
	}
	c.mu.Unlock()

	c.pool.tellList(&event, whyNot)
	for _, e := range back {
		c.tellCooldown(context.Background(), e, CooldownEvent{Change: RPCBack})
	}
	for _, entry := range dropped {
		c.log().Debug("rpcpool: entry of the list dropped", keyChain, c.ref, keyEntry, entry)
	}
	fetch.err = err
	close(fetch.done)
}

// expelled gives the RPCs that are left out until the list changes. The caller holds c.mu.
func (c *chainState) expelled() (all []*endpoint) {
	if c.ring != nil {
		for _, e := range c.ring.endpoints {
			if e.expelled {
				all = append(all, e)
			}
		}
	}
	return all
}

// fetchList fetches the list within the time that one request to the pool has.
func (c *chainState) fetchList(ctx context.Context) (*List, error) {
	ctx, cancel := context.WithTimeout(ctx, poolTimeout)
	defer cancel()
	list, err := c.pool.askDirectory(ctx, c.ref)
	if err == nil && (list == nil || list.Key == "") {
		return nil, &PoolAPIError{Chain: c.ref, Reason: "the directory gave a list without a key"}
	}
	return list, err
}

// settleOnList decides by what the pool said, and by what is in memory and in the
// cache, which list to go on with (rule A2.4). A nil list without an error means
// that the one in memory is kept.
func (c *chainState) settleOnList(list *List, err error, kept bool) (*List, error) {
	switch {
	case errors.Is(err, ErrClosed):
		if kept {
			return nil, nil
		}
		return nil, ErrClosed
	case err == nil && usable(list):
		c.writeCache(list)
		return list, nil
	case list != nil && usable(list):
		c.log().Warn("rpcpool: the directory has trouble, using the list that it had before", keyChain, c.ref, keyError, c.shown(err))
		return list, nil
	case kept && err == nil:
		c.log().Warn("rpcpool: the pool lists no RPC any more, keeping the list in memory", keyChain, c.ref)
		return nil, nil
	case kept:
		c.log().Warn("rpcpool: the list can't be refreshed, keeping the one in memory", keyChain, c.ref, keyError, c.shown(err))
		return nil, nil
	case err == nil:
		if old := c.readCache("the pool lists no RPC"); old != nil {
			return old, nil
		}
		return list, nil
	case refused(err):
		return nil, err
	}
	if old := c.readCache("the pool is unavailable"); old != nil {
		return old, nil
	}
	return nil, c.unreachable(err)
}

// usable tells whether a list has an RPC that can be asked at all.
func usable(list *List) bool {
	for i := range list.RPCs {
		if newEndpoint(list.RPCs[i].URL) != nil {
			return true
		}
	}
	return false
}

// refused tells whether the pool refused the request: the caller's mistake, not
// an outage that an old file should hide.
func refused(err error) bool {
	api, ok := errors.AsType[*PoolAPIError](err)
	if !ok {
		return false
	}
	switch api.StatusCode {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound:
		return true
	}
	return false
}

// unreachable is the error where neither the pool nor the cache gave a list.
func (c *chainState) unreachable(err error) error {
	api := &PoolAPIError{Chain: c.ref}
	if said, ok := errors.AsType[*PoolAPIError](err); ok {
		api.StatusCode = said.StatusCode
	}
	api.Reason = "unreachable and no cache for this chain: " + c.shown(err)
	return api
}

// shown is the text of a directory's error without the secrets that are known.
func (c *chainState) shown(err error) string { return c.pool.shownDirectoryError(err) }

func (p *poolState) shownDirectoryError(err error) string {
	if api, ok := errors.AsType[*PoolAPIError](err); ok {
		return p.secrets.Scrub(api.Reason)
	}
	return p.secrets.Scrub(withoutURL(err).Error())
}

func (c *chainState) writeCache(list *List) {
	if !c.pool.cacheLists {
		return
	}
	if err := c.cache.write(list, time.Now()); err != nil {
		c.log().Warn("rpcpool: the list can't be cached; set Config.CacheDir to a folder that can be written",
			keyChain, c.ref, keyFile, c.cache.path, keyError, err.Error())
	}
}

// readCache gives the cached list where it has RPCs, with a warning that says why
// and how old it is; nil where there is none.
func (c *chainState) readCache(why string) *List {
	if !c.pool.cacheLists {
		return nil
	}
	list, savedAt, err := c.cache.read()
	switch {
	case errors.Is(err, errNoCache):
		return nil
	case err != nil:
		c.log().Warn("rpcpool: the cached list can't be used", keyChain, c.ref, keyFile, c.cache.path, keyError, err.Error())
		return nil
	case !usable(list):
		return nil
	}
	c.log().Warn("rpcpool: "+why+", using the cached list", keyChain, c.ref,
		keyAge, time.Since(savedAt).Round(time.Second).String(), keyRPCs, len(list.RPCs))
	return list
}

func (c *chainState) log() *slog.Logger { return c.pool.log }

// callDirectory calls the directory. One of the user's may panic or not heed its
// context: neither must hold up the pool. What it does after the context's end is
// its own affair; the goroutine ends when it returns.
func (p *poolState) callDirectory(ctx context.Context, call func(ctx context.Context) error) error {
	if p.api != nil {
		return call(ctx)
	}
	done := guarded("the directory", func() error { return call(ctx) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		select {
		case err := <-done: // both: the answer counts
			return err
		default:
			return ctx.Err()
		}
	}
}

// guarded runs a function of the user's in a goroutine of its own, which ends when the
// function returns: one that hangs or panics holds up nothing.
func guarded(whose string, run func() error) <-chan error {
	ended := make(chan error, 1)
	go func() {
		defer func() {
			if fault := recover(); fault != nil {
				ended <- fmt.Errorf("%s panicked: %v", whose, fault)
			}
		}()
		ended <- run()
	}()
	return ended
}

// askDirectory asks for a list.
func (p *poolState) askDirectory(ctx context.Context, ref string) (*List, error) {
	lists := make(chan *List, 1)
	err := p.callDirectory(ctx, func(ctx context.Context) error {
		list, err := p.directory.RPCs(ctx, ref)
		lists <- list
		return err
	})
	select {
	case list := <-lists:
		return list, err
	default:
		return nil, err
	}
}
