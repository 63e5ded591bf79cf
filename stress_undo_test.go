package rpcpool_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// role is how a node of the undo worlds behaves through the proxy that dies, p1, and
// through the other one.
type role string

const (
	sick role = "sick" // answers 500 to everybody: its failures stand
	far  role = "far"  // no connection through either proxy: those through p2 stand
	lost role = "lost" // no connection through p1 only
	held role = "held" // through p1 it keeps the request until the proxy dies
)

func (r role) script(delay time.Duration) []rpcpooltest.Reply {
	switch r {
	case sick:
		return []rpcpooltest.Reply{rpcpooltest.Status(500).Delay(delay)}
	case far:
		return []rpcpooltest.Reply{rpcpooltest.Reset().Delay(delay)}
	case lost:
		return []rpcpooltest.Reply{rpcpooltest.Unreachable().Via("p1").Delay(delay), rpcpooltest.Result("0x2")}
	default:
		return []rpcpooltest.Reply{rpcpooltest.Hang().Via("p1"), rpcpooltest.Result("0x2")}
	}
}

// undoNode is a node and what it is.
type undoNode struct {
	*rpcpooltest.Node
	role  role
	delay time.Duration
}

// undoWorld has calls on several chains, all through p1, which will be found dead.
type undoWorld struct {
	w      *rpcpooltest.World
	p1     *rpcpooltest.Proxy
	pool   *rpcpool.Pool
	chains [][]undoNode
}

func newUndoWorld(t *testing.T, w *rpcpooltest.World, r *rand.Rand, first ...role) *undoWorld {
	u := &undoWorld{w: w, p1: w.Proxy("p1")}
	w.Proxy("p2")
	w.SetKeepAlive(false) // a proxy that turns bad does so for every request
	for c := range 1 + r.IntN(3) {
		u.chains = append(u.chains, u.newChain(c, r, first))
	}
	check := w.Node("check")
	u.pool = open(t, w, func(cfg *rpcpool.Config) {
		cfg.Mode = rpcpool.Mode(r.IntN(2))
		cfg.ProxyCheckURL = check.URL()
	})
	return u
}

// newChain lists nodes such that every call comes to one that holds it, after some of
// the roles in first, without three of its connections failing before: else p1 would
// be suspected before it dies.
func (u *undoWorld) newChain(c int, r *rand.Rand, first []role) []undoNode {
	roles := slices.Clone(first[:r.IntN(len(first)+1)])
	r.Shuffle(len(roles), func(i, j int) { roles[i], roles[j] = roles[j], roles[i] })
	roles = append(roles, held)
	for range 1 + r.IntN(3) { // at least one, through which p1 is found dead
		roles = append(roles, []role{sick, far, lost, held}[r.IntN(4)])
	}
	var nodes []undoNode
	var listed []*rpcpooltest.Node
	for i, each := range roles {
		n := undoNode{role: each, delay: time.Duration(r.IntN(300)) * time.Millisecond}
		n.Node = u.w.Node(fmt.Sprintf("c%d-n%d-%s", c, i, each), each.script(n.delay)...)
		nodes, listed = append(nodes, n), append(listed, n.Node)
	}
	u.w.List(fmt.Sprint(c), listed...)
	return nodes
}

// deaths are the ways in which p1 dies, and what calls may meet before.
var deaths = []struct {
	how   string
	die   func(p *rpcpooltest.Proxy)
	first []role
}{
	{"killed", (*rpcpooltest.Proxy).Kill, []role{sick, far, lost}},
	{"login refused", func(p *rpcpooltest.Proxy) { p.Script(rpcpooltest.ProxyRefuseLogin()) }, []role{sick, far, lost}},
	// It is found dead by a check only. A call that an RPC has answered doesn't check
	// a proxy before three connections have failed, and might end before.
	{"hangs", func(p *rpcpooltest.Proxy) { p.Script(rpcpooltest.ProxyBlackHole()) }, []role{far, lost}},
}

// When a proxy is found dead, the running calls of every chain lose the failed
// connections through it and no other failure: cooldowns are those that follow from
// the failures that stand, and only they are reported (rules A7.3, A7.4). What a call
// had failed on that ended before stays.
func TestDeadProxyTakesBackItsFailuresAndNoOthers(t *testing.T) {
	for _, death := range deaths {
		for seed := range 15 {
			t.Run(fmt.Sprintf("%s/%d", death.how, seed), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
					r := chance(seed, 0)
					u := newUndoWorld(t, w, r, death.first...)
					u.endBefore(t)

					var calls sync.WaitGroup
					for i := range 2 + r.IntN(8) {
						c, start := r.IntN(len(u.chains)), time.Duration(r.IntN(2000))*time.Millisecond
						calls.Go(func() {
							time.Sleep(start)
							// The method tells the calls apart at the nodes.
							result, err := u.pool.Chain(fmt.Sprint(c)).Call(t.Context(), fmt.Sprintf("x_call%d", i))
							require.NoError(t, err)
							require.JSONEq(t, `"0x2"`, string(result))
						})
					}
					time.Sleep(4*time.Second + time.Duration(r.IntN(5000))*time.Millisecond)
					death.die(u.p1)
					calls.Wait()
					time.Sleep(3 * time.Second) // reports arrive
					u.check(t)
				})
			})
		}
	}
}

// endBefore makes, in a bubble, a call that ends while p1 still works, but not without
// a failed connection through it.
func (u *undoWorld) endBefore(t *testing.T) {
	far := u.w.Node("early-far", rpcpooltest.Reset())
	u.w.List("early", far, u.w.Node("early-good"))
	early := u.pool.Chain("early")
	_, err := early.Call(t.Context(), "eth_blockNumber")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.Equal(t, 1, early.Standings()[far.URL()].Failures, "the call had ended")
		require.Equal(t, 1, u.reportsOn(far))
	})
}

// check compares what stands against every node with what came to the node.
func (u *undoWorld) check(t *testing.T) {
	t.Helper()
	for c, nodes := range u.chains {
		chain := u.pool.Chain(fmt.Sprint(c))
		require.Zero(t, chain.Unsettled())
		standings := chain.Standings()
		for _, n := range nodes {
			want, callers := n.standing()
			require.Equal(t, want.Failures, standings[n.URL()].Failures, "failures of %s", n.Name())
			require.Equal(t, want.Until, standings[n.URL()].Until, "cooldown of %s", n.Name())
			require.Equal(t, callers, u.reportsOn(n.Node), "reports on %s", n.Name())
		}
	}
	proxies := u.pool.ProxyStandings()
	require.Positive(t, proxies[0].Failures)
	require.Zero(t, proxies[1])
}

// standing is what must stand against a node, by the requests that it got, and by how
// many calls.
func (n undoNode) standing() (want rpcpool.Standing, callers int) {
	methods := map[string]bool{}
	var last time.Time
	for _, request := range n.Requests() {
		if n.role == sick || n.role == far && request.Via == "p2" {
			want.Failures++
			methods[request.Method] = true
			last = request.Time.Add(n.delay)
		}
	}
	if want.Failures > 0 {
		want.Until = last.Add(rpcpool.CooldownAfter(want.Failures))
	}
	return want, len(methods)
}

func (u *undoWorld) reportsOn(node *rpcpooltest.Node) (n int) {
	for _, report := range u.w.Pool.Reports() {
		if report.URL == node.URL() {
			n++
		}
	}
	return n
}
