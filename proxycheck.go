package rpcpool

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/bomzrpc/rpcpool/internal/jsonrpc"
)

const (
	checkChain       = "eip155:1" // whose best RPCs proxies are checked by
	checkTargetCount = 2
	checkListTime    = 3 * time.Second
)

// proxyChecks finds out whether a proxy carries anything at all (rule A7.2).
type proxyChecks struct {
	pool *poolState

	mu      sync.Mutex // protects what follows
	running map[*proxy]*proxyCheck
	targets []*url.URL // what the pool named last
	namedAt time.Time
}

// proxyCheck is one check, shared by all calls that suspect the proxy.
type proxyCheck struct {
	done chan struct{} // closed when dead is known
	dead bool
}

// isDead checks a proxy. A proxy found dead is cooling when this returns, and the
// failed connections through it no longer stand. The error is the caller's end, or that
// its budget has no request left to find out by.
func (c *proxyChecks) isDead(ctx context.Context, p *proxy) (bool, error) {
	check, err := c.join(p, budgetOf(ctx))
	if err != nil {
		return false, err
	}
	patience, stop := halfOfWhatIsLeft(ctx)
	defer stop()
	select {
	case <-check.done:
		return check.dead, nil
	case <-patience:
		return false, errNoPatience
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// join starts a check, for which the budget pays, or gives the one that is running.
func (c *proxyChecks) join(p *proxy, payer *budget) (*proxyCheck, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if check := c.running[p]; check != nil {
		return check, nil
	}
	if err := payer.spend(); err != nil {
		return nil, err
	}
	check := &proxyCheck{done: make(chan struct{})}
	if !c.pool.start(func() { c.run(p, check) }) {
		return nil, ErrClosed
	}
	if c.running == nil {
		c.running = map[*proxy]*proxyCheck{}
	}
	c.running[p] = check
	return check, nil
}

func (c *proxyChecks) run(p *proxy, check *proxyCheck) {
	check.dead = !c.carries(p) && c.pool.working.Err() == nil
	if check.dead {
		c.pool.proxies.bury(p, time.Now(), nil, true)
	}
	c.mu.Lock()
	delete(c.running, p)
	if check.dead {
		c.targets = nil // perhaps they are at fault: ask for others next time
	}
	c.mu.Unlock()
	if check.dead {
		c.pool.log.Warn("rpcpool: proxy failed its check and is left alone for a while; failures through it are undone",
			keyProxy, p.label)
	}
	close(check.done)
}

// carries tells whether any target answers through the proxy. With no target to
// be had it counts as working: no condemnation without evidence.
func (c *proxyChecks) carries(p *proxy) bool {
	ctx, cancel := context.WithTimeout(c.pool.working, c.pool.timeout)
	defer cancel()
	targets := c.findTargets(ctx)
	if len(targets) == 0 {
		return true
	}
	for i, target := range targets {
		if c.answers(ctx, p, target, len(targets)-i) {
			return true
		}
	}
	return false
}

// findTargets gives what to check by: the configured RPC, or the best of those
// that the pool lists, which are remembered for a while.
func (c *proxyChecks) findTargets(ctx context.Context) []*url.URL {
	if c.pool.checkTarget != nil {
		return []*url.URL{c.pool.checkTarget}
	}
	c.mu.Lock()
	targets, age := c.targets, time.Since(c.namedAt)
	c.mu.Unlock()
	if len(targets) > 0 && age < c.pool.refreshInterval {
		return targets
	}
	targets = c.askTargets(ctx)
	c.mu.Lock()
	c.targets, c.namedAt = targets, time.Now()
	c.mu.Unlock()
	return targets
}

func (c *proxyChecks) askTargets(ctx context.Context) (targets []*url.URL) {
	ctx, cancel := context.WithTimeout(ctx, min(checkListTime, c.pool.timeout/2))
	defer cancel()
	began := time.Now()
	list, err := c.pool.askDirectory(ctx, checkChain)
	event := ListEvent{
		ChainLabels: ChainLabels{Chain: checkChain}, Source: c.pool.directorySource(), Duration: time.Since(began), Checks: true,
	}
	if list == nil { // one that comes with an error is one from before
		event.Source, list = ListFromNowhere, &List{}
	}
	for i := range list.RPCs {
		if e := newEndpoint(list.RPCs[i].URL); e != nil {
			event.RPCs++
			if len(targets) < checkTargetCount {
				targets = append(targets, e.target)
			}
		}
	}
	c.pool.tellList(&event, err)
	return targets
}

// answers asks one target, with an equal share of the time that is left for as
// many targets as are left.
func (c *proxyChecks) answers(ctx context.Context, p *proxy, target *url.URL, left int) bool {
	deadline, _ := ctx.Deadline()
	ctx, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
	defer cancel()
	body := jsonrpc.AppendRequest(nil, c.pool.ids.Add(1), methodChainID, []byte(noParams))
	res, _, failed := p.links.roundTrip(ctx, newPost(target), body)
	if failed != nil {
		return false
	}
	defer res.Body.Close()
	answer, _, _ := readLimited(res.Body, maxErrorBody)
	if target.Scheme == "https" {
		return true // the proxy only tunnels: whatever it is, the target said it
	}
	if _, own := proxyPage(res.Header, answer); own && p.dial.AbsoluteForm() {
		return false
	}
	switch res.StatusCode {
	case http.StatusProxyAuthRequired, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return false
	}
	return true
}
