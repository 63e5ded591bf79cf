package rpcpool_test

import (
	"context"
	"errors"
	"testing"

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
