package rpcpool

import "time"

// This file lets the stress tests, which are users like any other, see what stands
// against RPCs and proxies. It must not be used to change anything.

// Standing is what stands against an RPC or a proxy.
type Standing struct {
	Failures int       // in a row
	Until    time.Time // the end of the cooldown; zero without failures
}

func standingOf(l *ledger) Standing {
	n, until := l.standing()
	return Standing{n, until}
}

// Standings gives what stands against each RPC of the handle, by URL.
func (c *Chain) Standings() map[string]Standing {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	all := map[string]Standing{}
	if c.s.ring != nil {
		for _, e := range c.s.ring.endpoints {
			all[e.url] = standingOf(&e.health)
		}
	}
	return all
}

// Unsettled counts what the handle keeps for calls that are running: failures that
// may be taken back, and steps of the cursor.
func (c *Chain) Unsettled() int {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	n := len(c.s.moves)
	if c.s.ring != nil {
		for _, e := range c.s.ring.endpoints {
			for _, group := range e.health.open {
				n += len(group.failures)
			}
		}
	}
	return n
}

// ProxyStandings gives what stands against each proxy, in the order of Config.Proxies.
func (p *Pool) ProxyStandings() []Standing {
	p.s.proxies.mu.Lock()
	defer p.s.proxies.mu.Unlock()
	var all []Standing
	for _, each := range p.s.proxies.proxies {
		all = append(all, standingOf(&each.health))
	}
	return all
}

// QueuedReports gives how many reports wait, and how many were lost.
func (p *Pool) QueuedReports() (waiting int, lost uint64) {
	p.s.reports.mu.Lock()
	defer p.s.reports.mu.Unlock()
	return len(p.s.reports.queue), p.s.reports.lost
}

// MaxQueuedReports is the bound of the queue.
const MaxQueuedReports = maxQueuedReports

// CooldownAfter is the cooldown after n failures in a row.
func CooldownAfter(n int) time.Duration { return cooldownAfter(n) }
