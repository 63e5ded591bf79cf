package rpcpool_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// ownDirectory is a user's Directory.
type ownDirectory struct {
	rpcs   func() (*rpcpool.List, error)
	report func(rpcpool.Report) error
}

func (d *ownDirectory) RPCs(context.Context, string) (*rpcpool.List, error) { return d.rpcs() }

func (d *ownDirectory) Report(_ context.Context, report rpcpool.Report) error {
	if d.report == nil {
		return nil
	}
	return d.report(report)
}

// What a Directory of the user's own says is judged as the pool's answers are, and
// its panics are errors (rule A2.4).
func TestDirectoryOfTheUsersOwn(t *testing.T) {
	good := func(w *rpcpooltest.World) *rpcpool.List {
		return &rpcpool.List{Key: "eip155:1", RPCs: []rpcpool.RPC{{URL: w.Node("r1").URL()}}}
	}
	for name, c := range map[string]struct {
		answer func(list *rpcpool.List) (*rpcpool.List, error)
		status int // of the *PoolAPIError; -1 where the call is served
	}{
		"a list":               {func(l *rpcpool.List) (*rpcpool.List, error) { return l, nil }, -1},
		"a list with an error": {func(l *rpcpool.List) (*rpcpool.List, error) { return l, errors.New("from before") }, -1},
		"nothing":              {func(*rpcpool.List) (*rpcpool.List, error) { return nil, nil }, 0},
		"no key":               {func(l *rpcpool.List) (*rpcpool.List, error) { l.Key = ""; return l, nil }, 0},
		"an error":             {func(*rpcpool.List) (*rpcpool.List, error) { return nil, errors.New("down") }, 0},
		"a panic":              {func(*rpcpool.List) (*rpcpool.List, error) { panic("oops") }, 0},
		"a refusal": {func(*rpcpool.List) (*rpcpool.List, error) {
			return nil, &rpcpool.PoolAPIError{StatusCode: 404, Reason: "unknown chain"}
		}, 404},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				directory := &ownDirectory{rpcs: func() (*rpcpool.List, error) { return c.answer(good(w)) }}
				pool := open(t, w, func(cfg *rpcpool.Config) { cfg.Directory = directory })
				_, err := pool.Chain("1").Call(t.Context(), "eth_blockNumber")
				if c.status < 0 {
					require.NoError(t, err)
					return
				}
				var api *rpcpool.PoolAPIError
				require.ErrorAs(t, err, &api)
				require.Equal(t, c.status, api.StatusCode)
			})
		})
	}
}

// Rule A1.4: the pool is called directly and never through a proxy; its key goes nowhere
// else, and whoever sends the client elsewhere isn't followed; a call takes 10 s at most.
func TestPoolIsCalledDirectly(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.ProxyAt("p1", "http://user-p:word-p@p1.test:3128")
		r := w.Node("r1")
		other := rpcpooltest.NewPoolAPI(w.Network, "http://other.test", w.Pool.Key())
		w.List("1", r)
		other.Lists("2", rpcpooltest.PoolList("eip155:2", r))
		w.Pool.Lists("2", rpcpooltest.PoolStatus(307).Header("Location", other.URL()+"/v1/chains/2/rpcs?transport=http"))
		w.Pool.Lists("3", rpcpooltest.PoolHang())
		pool := open(t, w)
		_, err := pool.Chain("1").Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
		require.Empty(t, r.Requests()[0].Header.Get("X-Api-Key"))
		require.Contains(t, w.Network.Dials(), w.Pool.Addr())

		var unavailable *rpcpool.PoolAPIError
		_, err = pool.Chain("2").Call(t.Context(), "eth_blockNumber")
		require.ErrorAs(t, err, &unavailable)
		require.Equal(t, 307, unavailable.StatusCode)
		require.NotContains(t, w.Network.Dials(), other.Addr())
		require.Empty(t, other.Asked())

		began := time.Now()
		_, err = pool.Chain("3").Call(t.Context(), "eth_blockNumber")
		require.ErrorAs(t, err, &unavailable)
		require.Equal(t, 10*time.Second, time.Since(began))
		for _, e := range w.Network.Exchanges() {
			require.NotContains(t, []string{w.Pool.Addr(), other.Addr()}, e.Target)
		}
	})
}

// A Directory whose Report panics harms nothing.
func TestDirectoryWhoseReportPanics(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		list := &rpcpool.List{Key: "eip155:1", RPCs: []rpcpool.RPC{
			{URL: w.Node("r1", rpcpooltest.Status(500)).URL()}, {URL: w.Node("r2").URL()},
		}}
		pool := open(t, w, func(cfg *rpcpool.Config) {
			cfg.Directory = &ownDirectory{
				rpcs:   func() (*rpcpool.List, error) { return list, nil },
				report: func(rpcpool.Report) error { panic("oops") },
			}
		})
		_, err := pool.Chain("1").Call(t.Context(), "eth_blockNumber")
		require.NoError(t, err)
		require.NoError(t, pool.Close())
	})
}

// A Directory that doesn't heed its context holds up neither calls, for longer than
// the 10 s that a list may take, nor Close (rules A2.2, A8).
func TestDirectoryThatHangs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		free := make(chan struct{})
		directory := &ownDirectory{rpcs: func() (*rpcpool.List, error) { <-free; return nil, errors.New("late") }}
		pool := open(t, w, func(cfg *rpcpool.Config) { cfg.Directory = directory })
		start := time.Now()
		_, err := pool.Chain("1").Call(t.Context(), "eth_blockNumber")
		var api *rpcpool.PoolAPIError
		require.ErrorAs(t, err, &api)
		require.Equal(t, 10*time.Second, time.Since(start))

		interrupted := make(chan error)
		go func() {
			_, err := pool.Chain("2").Call(t.Context(), "eth_blockNumber")
			interrupted <- err
		}()
		time.Sleep(time.Second)
		start = time.Now()
		require.NoError(t, pool.Close())
		require.ErrorIs(t, <-interrupted, rpcpool.ErrClosed)
		require.Zero(t, time.Since(start))
		close(free)
	})
}

// An RPC that leaves the list and returns within one call is the same RPC for it: it
// isn't reported when it served, and reported once when it didn't (rule A8).
func TestRPCThatLeavesTheListAndReturns(t *testing.T) {
	for _, serves := range []bool{true, false} {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			w.Proxy("p1")
			fails := rpcpooltest.Status(500).Delay(8 * time.Second)
			if serves {
				fails = fails.Times(1)
			}
			r1, r2 := w.Node("r1", fails), w.Node("r2", rpcpooltest.Status(500).Delay(8*time.Second))
			list := func(node *rpcpooltest.Node) rpcpooltest.PoolReply { return rpcpooltest.PoolList("eip155:1", node) }
			w.Pool.Lists("1", list(r1).Times(1), list(r2).Times(1), list(r1))
			pool := open(t, w, func(c *rpcpool.Config) { c.MaxRounds = 3 })
			_, err := pool.Chain("1").Call(t.Context(), "eth_blockNumber")
			require.Equal(t, serves, err == nil)
			require.NoError(t, pool.Close())
			var reported []string
			for _, report := range w.Pool.Reports() {
				reported = append(reported, report.URL)
			}
			want := []string{r2.URL()}
			if !serves {
				want = append(want, r1.URL())
			}
			require.ElementsMatch(t, want, reported)
		})
	}
}
