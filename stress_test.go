package rpcpool_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// crowd is a shape of load.
type crowd struct {
	name     string
	mode     rpcpool.Mode
	handles  int
	callers  int
	calls    int           // of each caller
	between  time.Duration // at most so long between two calls of a caller
	perPhase time.Duration // how long a node keeps a fault
	timeout  time.Duration
}

// storm is a world in which everything fails now and then.
type storm struct {
	crowd
	w       *rpcpooltest.World
	pool    *rpcpool.Pool
	chains  []*rpcpool.Chain
	refs    []string
	proxies []*rpcpooltest.Proxy
	nodes   []*rpcpooltest.Node

	answered, failed atomic.Int64
}

// chance gives a source of random numbers for one goroutine.
func chance(seed, who int) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), uint64(who))) }

// newStorm makes the world, healthy at first.
func newStorm(t *testing.T, w *rpcpooltest.World, c crowd) *storm {
	s := &storm{crowd: c, w: w}
	s.proxies = []*rpcpooltest.Proxy{
		w.Proxy("p1"), w.ProxyAt("p2", "http://user-p2:word-p2@p2.test:8080"), w.Proxy("p3"),
	}
	for i := range 8 {
		name := fmt.Sprintf("r%d", i+1)
		scheme := "http"
		if i == 2 {
			scheme = "https"
		}
		s.nodes = append(s.nodes, w.NodeAt(name, fmt.Sprintf("%s://%s.test/key-%s", scheme, name, name)))
	}
	check := w.Node("check")
	s.pool = open(t, w, func(cfg *rpcpool.Config) {
		cfg.Mode = c.mode
		cfg.Timeout = c.timeout
		cfg.RefreshInterval = 5 * time.Second
		cfg.ProxyCheckURL = check.URL()
	})
	for i := range c.handles {
		s.refs = append(s.refs, fmt.Sprint(1000+i))
		s.chains = append(s.chains, s.pool.Chain(s.refs[i]))
		w.List(s.refs[i], s.nodes...)
	}
	return s
}

// flap has every node go through faults, each at another time than its neighbour.
func (s *storm) flap() {
	faults := []rpcpooltest.Reply{
		rpcpooltest.Result("0x1"), rpcpooltest.Status(500), rpcpooltest.Result("0x1"),
		rpcpooltest.RateLimited(0), rpcpooltest.Result("0x1"), rpcpooltest.Reset(),
		rpcpooltest.Result("0x1").Delay(s.timeout / 3), rpcpooltest.Hang(),
		rpcpooltest.Result("0x1"), rpcpooltest.Error(-32601, "the method doesn't exist"),
		rpcpooltest.Result("0x1"), rpcpooltest.Truncated(), rpcpooltest.Garbage(),
	}
	began := time.Now()
	for i, node := range s.nodes {
		node.Script(rpcpooltest.Handle(func(rpcpooltest.Request) rpcpooltest.Reply {
			phase := int(time.Since(began) / s.perPhase)
			return faults[(phase+5*i)%len(faults)]
		}))
	}
}

// meddle kills and revives proxies, changes lists and disturbs the pool API until ctx
// ends, then heals everything.
func (s *storm) meddle(ctx context.Context, t *testing.T, every time.Duration) {
	r := chance(1, -1)
	for {
		timer := time.NewTimer(time.Duration(r.Int64N(int64(every))))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			s.heal()
			return
		}
		waiting, _ := s.pool.QueuedReports()
		assert.LessOrEqual(t, waiting, rpcpool.MaxQueuedReports)
		switch p := s.proxies[r.IntN(len(s.proxies))]; r.IntN(8) {
		case 0:
			p.Kill()
		case 1:
			p.Script(rpcpooltest.ProxyBlackHole().Times(5), rpcpooltest.ProxyGarbage().Times(2))
		case 2, 3:
			p.Script()
			p.Revive()
		case 4:
			s.w.Pool.Kill()
		case 5, 6:
			s.w.Pool.Revive()
			s.shuffleLists(r)
		case 7:
			ref := s.refs[r.IntN(len(s.refs))]
			s.w.Pool.Lists(ref, []rpcpooltest.PoolReply{
				rpcpooltest.PoolStatus(500), rpcpooltest.PoolGarbage(), rpcpooltest.PoolReset(), rpcpooltest.PoolList("eip155:" + ref),
			}[r.IntN(4)])
		}
	}
}

// shuffleLists gives every handle some of the nodes, in another order, and entries
// that can't be used.
func (s *storm) shuffleLists(r *rand.Rand) {
	for _, ref := range s.refs {
		entries := []any{"not an RPC", map[string]any{"url": "ws://" + ref + ".test/x"}}
		for _, i := range r.Perm(len(s.nodes))[:3+r.IntN(len(s.nodes)-3)] {
			entries = append(entries, s.nodes[i], s.nodes[i])
		}
		s.w.Pool.Lists(ref, rpcpooltest.PoolList("eip155:"+ref, entries...))
	}
}

func (s *storm) heal() {
	for _, node := range s.nodes {
		node.Script()
	}
	for _, p := range s.proxies {
		p.Script()
		p.Revive()
	}
	s.w.Pool.Revive()
	for _, ref := range s.refs {
		s.w.List(ref, s.nodes...)
	}
}

// rage has the crowd call while everything flaps, and gives when all have done so.
func (s *storm) rage(t *testing.T, meddleEvery time.Duration) {
	s.flap()
	ctx, calm := context.WithCancel(context.Background())
	var meddler, callers sync.WaitGroup
	meddler.Go(func() { s.meddle(ctx, t, meddleEvery) })
	for i := range s.callers {
		callers.Go(func() { s.caller(t, i) })
	}
	callers.Wait()
	calm()
	meddler.Wait()
}

// caller makes one caller's calls.
func (s *storm) caller(t *testing.T, who int) {
	r := chance(2, who)
	for range s.calls {
		if s.between > 0 {
			pause(time.Duration(r.Int64N(int64(s.between))))
		}
		ctx, cancel := context.WithCancel(context.Background())
		switch r.IntN(6) {
		case 0:
			ctx, cancel = context.WithTimeout(ctx, time.Duration(r.Int64N(int64(2*s.timeout))))
		case 1:
			time.AfterFunc(time.Duration(r.Int64N(int64(2*s.timeout))), cancel)
		}
		err := callSomehow(ctx, s.chains[r.IntN(len(s.chains))], r.IntN(12))
		if err == nil {
			s.answered.Add(1)
		} else {
			s.failed.Add(1)
			checkLibraryError(t, ctx, err)
		}
		cancel()
	}
}

// pause waits without time.Sleep, which loopback tests must not use.
func pause(d time.Duration) { <-time.NewTimer(d).C }

// callSomehow makes a call in one of the ways that there are.
func callSomehow(ctx context.Context, c *rpcpool.Chain, how int) error {
	switch how {
	case 0:
		return c.Run(ctx, func(ctx context.Context, url string, client *http.Client) error {
			body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"x_run","params":[]}`)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/json")
			res, err := client.Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if _, err := io.Copy(io.Discard, res.Body); err != nil {
				return err
			}
			if res.StatusCode != http.StatusOK {
				return &rpcpool.HTTPError{StatusCode: res.StatusCode}
			}
			return nil
		})
	case 1:
		_, err := c.GetLogsChunked(ctx, rpcpool.LogFilter{FromBlock: 1, ToBlock: 2500}, rpcpool.Concurrency(3))
		if _, malformed := errors.AsType[*rpcpool.MalformedResponseError](err); malformed {
			return nil // the nodes' "0x1" is no list of logs
		}
		return err
	case 2:
		_, err := c.Call(ctx, "eth_sendTransaction", map[string]any{})
		return err
	}
	_, err := c.Call(ctx, "eth_blockNumber")
	return err
}

// checkLibraryError checks that an error is one of the library's own, and the
// caller's end only where its context has ended.
func checkLibraryError(t *testing.T, ctx context.Context, err error) {
	var own rpcpool.Error
	assert.ErrorAs(t, err, &own, "%T", err)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		// The deadline is what counts: the context's own timer may fire a moment later.
		deadline, has := ctx.Deadline()
		assert.True(t, ctx.Err() != nil || has && !time.Now().Before(deadline), "nobody ended this call: %v", err)
	}
	assert.NotErrorIs(t, err, rpcpool.ErrClosed, "nobody closed the pool")
}

// checkDials checks that nothing but proxies and the pool API was ever dialled, and
// that nothing was done against the rules.
func (s *storm) checkDials(t *testing.T) {
	allowed := map[string]bool{s.w.Pool.Addr(): true}
	for _, p := range s.proxies {
		allowed[p.Addr()] = true
	}
	for _, addr := range s.w.Network.Dials() {
		if !allowed[addr] {
			t.Errorf("%s was dialled", addr)
		}
	}
	require.Empty(t, s.w.Network.Breaches())
}

// libraryStacks gives the stacks of goroutines that are the library's, or net/http's
// for it.
func libraryStacks() (left []string) {
	stacks := make([]byte, 16<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		for _, frame := range []string{"bomzrpc/rpcpool.(*", "net/http.(*persistConn)", "net/http.(*Transport)", "rpcpool/internal/proxydial."} {
			if strings.Contains(stack, frame) {
				left = append(left, stack)
				break
			}
		}
	}
	return left
}

// However many callers, handles and faults: every call ends with a result or an error
// of the library's, nothing but proxies and the pool is dialled, and when everything
// has healed and the cooldowns have passed nothing is held against anybody, and one
// call for each RPC finds each of them. After Close nothing is left (rule F4).
func TestStormLeavesNothingBehind(t *testing.T) {
	for _, c := range []crowd{
		{name: "64 callers, one handle, sticky", mode: rpcpool.Sticky, handles: 1, callers: 64, calls: 20},
		{name: "64 callers, 10 handles, round robin", mode: rpcpool.RoundRobin, handles: 10, callers: 64, calls: 15},
		{name: "1000 callers, one handle, round robin", mode: rpcpool.RoundRobin, handles: 1, callers: 1000, calls: 2},
		{name: "1000 callers, 20 handles, sticky", mode: rpcpool.Sticky, handles: 20, callers: 1000, calls: 1},
	} {
		c.between, c.perPhase, c.timeout = 5*time.Minute, 7*time.Second, 2*time.Second
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				s := newStorm(t, w, c)
				s.rage(t, 20*time.Second)
				require.Equal(t, int64(c.callers*c.calls), s.answered.Load()+s.failed.Load())
				require.Positive(t, s.answered.Load())
				require.Positive(t, s.failed.Load())
				t.Logf("%d calls answered, %d not", s.answered.Load(), s.failed.Load())

				time.Sleep(rpcpool.CooldownAfter(100) + time.Second) // the longest there is; marks last 600 s
				for _, chain := range s.chains {
					s.checkHealed(t, chain)
				}
				s.checkDials(t)
				require.NoError(t, s.pool.Close())
				synctest.Wait()
				require.Zero(t, w.Network.OpenConns())
				require.Zero(t, w.Network.PendingDials())
				require.Empty(t, libraryStacks())
			})
		})
	}
}

// checkHealed checks that nothing is held against any RPC or proxy any more, after the
// longest cooldown in a bubble.
func (s *storm) checkHealed(t *testing.T, chain *rpcpool.Chain) {
	require.Zero(t, chain.Unsettled(), "no call is running")
	before := map[string]int{}
	for _, node := range s.nodes {
		before[node.Name()] = len(node.Requests())
	}
	for range s.nodes {
		result, err := chain.Call(within(t, time.Minute), "eth_blockNumber")
		require.NoError(t, err)
		require.JSONEq(t, `"0x1"`, string(result))
	}
	total := 0
	for _, node := range s.nodes {
		n := len(node.Requests()) - before[node.Name()]
		total += n
		if s.mode == rpcpool.RoundRobin {
			require.Equal(t, 1, n, "each RPC is asked once, %s", node.Name())
		}
	}
	require.Equal(t, len(s.nodes), total, "no call needed a second attempt")
	now := time.Now()
	for url, standing := range chain.Standings() {
		require.False(t, now.Before(standing.Until), "%s cools until %v", url, standing.Until)
		if s.mode == rpcpool.RoundRobin {
			require.Zero(t, standing, "%s has answered", url)
		}
	}
	for _, standing := range s.pool.ProxyStandings() {
		require.False(t, now.Before(standing.Until))
	}
}
