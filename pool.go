package rpcpool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bomzrpc/rpcpool/internal/redact"
)

// Pool has what all chains of a program share: the proxies, the pool API and the
// connections. A program makes one and keeps it; it is safe for concurrent use.
type Pool struct {
	s *poolState
}

// String gives the number of proxies: nothing else of a pool may be shown.
func (p Pool) String() string {
	if p.s == nil {
		return "rpcpool.Pool(not made by New)"
	}
	return "rpcpool.Pool(" + strconv.Itoa(len(p.s.proxies.proxies)) + " proxies)"
}

// Format prints String under every verb, so that none reaches a pool's secrets.
func (p Pool) Format(s fmt.State, verb rune) { formatText(s, verb, p.String()) }

// poolState is a Pool.
type poolState struct {
	settings
	api *apiDirectory // nil where the user gave a Directory

	// cacheLists: lists are kept on disk. Those of a StaticDirectory are there
	// already, and another program's must not stand in for them.
	cacheLists bool

	sharing *sharing // the part in a fleet; nil: there is none

	requests *budget // what all calls share; nil: no limit
	hooks    *hookSet

	proxies proxyRing
	checks  proxyChecks
	reports reporter
	secrets redact.Secrets // the API key and all logins of proxies
	ids     atomic.Uint64  // the last JSON-RPC id that was given out

	// working ends when Close begins, delivering when it gives up waiting for
	// the reports that are queued.
	working, delivering       context.Context
	stopWorking, stopDelivery context.CancelFunc

	mu         sync.Mutex // protects what follows
	closed     bool
	chains     map[chainKey]*chainState
	background sync.WaitGroup // goroutines of the pool; Add only under mu while not closed

	calls    atomic.Int64  // calls that are running
	shut     atomic.Bool   // closed, readable without the lock
	lastCall chan struct{} // gets a value when a call ends after shut and none is left
	ended    chan struct{} // closed when Close has done its work
}

// chainKey is what makes two handles the same one (rule A4.6): of different policies
// each has a state of its own, so that what one holds against an RPC isn't the other's.
type chainKey struct {
	ref       string
	archive   Archive
	fresh     bool // has a policy, see WithFreshness
	freshness Freshness
	hedged    bool // see WithHedge
	hedge     Hedge
}

// New makes a pool. Nothing is sent before the first call. The error is a
// *ConfigError that names the field which can't be used.
func New(cfg Config) (*Pool, error) {
	resolved, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	p := &poolState{
		settings: *resolved,
		chains:   map[chainKey]*chainState{},
		lastCall: make(chan struct{}, 1),
		ended:    make(chan struct{}),
	}
	p.working, p.stopWorking = context.WithCancel(context.Background())
	p.delivering, p.stopDelivery = context.WithCancel(context.Background())
	p.secrets = redact.Of(p.apiKey)
	if p.shared != nil {
		p.sharing = newSharing(p.shared, p.sharedSecret, p)
		p.secrets = redact.Join(p.secrets, redact.Of(p.sharedSecret))
		p.proxies.sharing = p.sharing
	}
	for _, dial := range p.settings.proxies {
		p.secrets = redact.Join(p.secrets, dial.Secrets())
		p.proxies.add(newProxy(dial, p))
	}
	if p.directory == nil {
		p.api = newAPIDirectory(p.apiURL, p.apiKey, p.dial)
		p.directory = p.api
	}
	if p.maxRequests > 0 {
		p.requests = &budget{places: make(chan struct{}, p.maxRequests)}
	}
	_, static := p.directory.(*StaticDirectory)
	p.cacheLists = !static
	p.checks.pool = p
	p.reports.directory, p.reports.log, p.reports.secrets = p.directory, p.log, p.secrets
	p.hooks = newHookSet(p.hookList, p.log, p.secrets.Scrub)
	p.proxies.hooks, p.reports.hooks = p.hooks, p.hooks
	p.reports.start, p.reports.lifetime, p.reports.call = p.start, p.delivering, p.callDirectory
	return &Pool{p}, nil
}

// ChainOption chooses a property of the handle that [Pool.Chain] gives.
type ChainOption func(*chainKey)

// WithArchive makes the handle use only RPCs that keep old state (rule A3). The
// handle has a list, cursor and cooldowns of its own.
func WithArchive(level Archive) ChainOption {
	return func(key *chainKey) { key.archive = level }
}

// Chain gives the handle for a chain: a chain id such as "8453", a key such as
// "eip155:8453" or "aptos:mainnet", or an alias that the pool knows. Asking again
// gives the same handle. The reference is used as it is written: "8453" and
// "eip155:8453" are two handles with a list and cooldowns each (rule A4.6), so
// write it the same way throughout. Chain never returns nil and sends nothing; an
// empty reference, or one that the pool doesn't know, is an error of the calls.
func (p *Pool) Chain(ref string, opts ...ChainOption) *Chain {
	key := chainKey{ref: ref}
	for _, opt := range opts {
		if opt != nil {
			opt(&key)
		}
	}
	return &Chain{p.s.chain(key)}
}

// ChainID gives the same handle as Chain with the decimal form of id.
func (p *Pool) ChainID(id uint64, opts ...ChainOption) *Chain {
	return p.Chain(strconv.FormatUint(id, 10), opts...)
}

func (p *poolState) chain(key chainKey) *chainState {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.chains[key]
	if c == nil {
		c = newChainState(p, key)
		c.policyName = p.policyName(key)
		p.chains[key] = c
	}
	return c
}

// Chains gives the handles that the program has asked for so far, in the order of their
// references and policies: what an exporter of statistics goes through.
func (p *Pool) Chains() []*Chain {
	handles := p.s.handles()
	all := make([]*Chain, len(handles))
	for i, c := range handles {
		all[i] = &Chain{c}
	}
	slices.SortFunc(all, func(a, b *Chain) int {
		return cmp.Or(strings.Compare(a.Ref(), b.Ref()), strings.Compare(a.Policy(), b.Policy()))
	})
	return all
}

// handles gives the pool's handles.
func (p *poolState) handles() (all []*chainState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.chains {
		all = append(all, c)
	}
	return all
}

// policyName names what a handle that is made now has beyond its reference. The caller
// holds p.mu.
func (p *poolState) policyName(key chainKey) string {
	words := key.policyWords()
	same := 1
	for other := range p.chains {
		if other.ref == key.ref && other.policyWords() == words {
			same++
		}
	}
	if same > 1 {
		words += "#" + strconv.Itoa(same)
	}
	return words
}

// policyWords says in words what a handle has beyond its reference.
func (key *chainKey) policyWords() string {
	var words []string
	if key.archive != ArchiveNone {
		words = append(words, "archive_"+key.archive.String())
	}
	if key.fresh {
		words = append(words, "fresh")
	}
	if key.hedged {
		words = append(words, "hedged")
	}
	return strings.Join(words, "+")
}

// Close ends the pool: calls that are running are interrupted with [ErrClosed],
// as are those made later; reports that are queued get up to 2 s; connections are
// closed. It returns when every goroutine of the pool has ended, and always nil. A
// function given to [Chain.Run] isn't waited for longer than those 2 s, and a method of a
// Directory or SharedView of the user's that still runs isn't waited for.
func (p *Pool) Close() error {
	if p.s.shut.CompareAndSwap(false, true) {
		p.s.close()
		close(p.s.ended)
	}
	<-p.s.ended
	return nil
}

func (p *poolState) close() {
	grace, cancel := context.WithTimeout(context.Background(), reportGrace)
	defer cancel()

	p.stopWorking()
	p.proxies.closeLinks()
	p.waitForCalls(grace)

	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()

	stop := context.AfterFunc(grace, p.stopDelivery)
	p.background.Wait()
	stop()
	p.stopDelivery()
	p.proxies.closeLinks()
	if p.api != nil {
		p.api.close()
	}
}

// waitForCalls waits until the running calls have ended, so that their reports
// are queued, but not longer than the grace allows.
func (p *poolState) waitForCalls(grace context.Context) {
	for p.calls.Load() > 0 {
		select {
		case <-p.lastCall:
		case <-grace.Done():
			return
		}
	}
}

// begin counts a call in; false once the pool is closed.
func (p *poolState) begin() bool {
	p.calls.Add(1)
	if p.shut.Load() {
		p.done()
		return false
	}
	return true
}

// done counts a call out.
func (p *poolState) done() {
	if p.calls.Add(-1) == 0 && p.shut.Load() {
		select {
		case p.lastCall <- struct{}{}:
		default:
		}
	}
}

// start runs a goroutine that belongs to the pool. False where the pool is closed
// and nothing was started.
func (p *poolState) start(run func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.background.Go(run)
	return true
}
