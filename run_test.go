package rpcpool_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

const blockNumberRequest = `{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}`

// An SDK that hides what happened still fails over: its own error is judged by the
// last exchange of the client. After a good answer, or a 404, it is its own (A10).
func TestRunJudgesAnSDKsErrorByTheLastExchange(t *testing.T) {
	own := errors.New("the SDK says that something went wrong")
	for name, c := range map[string]struct {
		reply   rpcpooltest.Reply
		verdict rpcpool.Verdict // "" where the error is the function's own
	}{
		"ok":        {rpcpooltest.Result("0x1"), ""},
		"404":       {rpcpooltest.Status(404), ""},
		"400":       {rpcpooltest.Status(400), ""},
		"302":       {rpcpooltest.Status(302).Header("Location", "http://elsewhere.test/"), ""},
		"401":       {rpcpooltest.Status(401), rpcpool.VerdictIPBlocked},
		"403":       {rpcpooltest.Status(403), rpcpool.VerdictIPBlocked},
		"429":       {rpcpooltest.Status(429), rpcpool.VerdictIPBlocked},
		"408":       {rpcpooltest.Status(408), rpcpool.VerdictRPCFail},
		"500":       {rpcpooltest.Status(500), rpcpool.VerdictRPCFail},
		"503":       {rpcpooltest.Status(503), rpcpool.VerdictRPCFail},
		"reset":     {rpcpooltest.Reset(), rpcpool.VerdictConnFail},
		"hang":      {rpcpooltest.Hang(), rpcpool.VerdictConnFail},
		"truncated": {rpcpooltest.Truncated(), rpcpool.VerdictConnFail},
		"too large": {rpcpooltest.Big(3000), rpcpool.VerdictRPCFail},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				r1, r2 := w.Node("r1", c.reply), w.Node("r2")
				w.List("1", r1, r2)
				pool := open(t, w, func(c *rpcpool.Config) { c.MaxResponseBytes = 1000 })
				calls := 0
				text, err := rpcpool.RunAs(t.Context(), pool.Chain("1"), func(ctx context.Context, url string, client *http.Client) (string, error) {
					calls++
					res, err := client.Post(url, "application/json", strings.NewReader(blockNumberRequest))
					if err != nil {
						return "", own
					}
					defer res.Body.Close()
					body, err := io.ReadAll(res.Body)
					if err != nil || !strings.Contains(url, "r2") {
						return "partial", own
					}
					return string(body), nil
				})
				if c.verdict == "" {
					require.ErrorIs(t, err, own)
					require.Empty(t, text)
					require.Equal(t, 1, calls)
					require.NoError(t, pool.Close())
					require.Empty(t, w.Pool.Reports())
					return
				}
				require.NoError(t, err)
				require.Contains(t, text, "0x1")
				require.Equal(t, 2, calls, "one RPC after the other")
			})
		})
	}
}

// The error types of this library that the function returns are judged like an
// answer's, also when they are wrapped; what the caller gets is the function's own.
func TestRunJudgesReturnedErrors(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		calls int
	}{
		"revert":          {&rpcpool.RPCError{Code: 3, Message: "execution reverted"}, 1},
		"node fault":      {&rpcpool.RPCError{Code: -32603, Message: "internal error"}, 2},
		"unknown method":  {&rpcpool.RPCError{Code: -32601, Message: "method not found"}, 2},
		"bad request":     {&rpcpool.HTTPError{StatusCode: 400}, 1},
		"server error":    {&rpcpool.HTTPError{StatusCode: 502}, 2},
		"not found":       {&rpcpool.HTTPError{StatusCode: 404}, 2},
		"of the function": {errors.New("mine"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				w.List("1", w.Node("r1"), w.Node("r2"))
				calls := 0
				returned := fmt.Errorf("wrapped: %w", c.err)
				err := open(t, w).Chain("1").Run(t.Context(), func(context.Context, string, *http.Client) error {
					if calls++; calls == 1 {
						return returned
					}
					return nil
				})
				require.Equal(t, c.calls, calls)
				if c.calls == 1 {
					require.Same(t, returned, err)
				} else {
					require.NoError(t, err)
				}
			})
		})
	}
}

// That a Run's RPC doesn't serve some method says nothing of the next Run, which
// may use another one.
func TestRunUnsupportedMethodMarksNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		r1 := w.Node("r1")
		w.List("1", r1)
		chain := open(t, w).Chain("1")
		fail := true
		run := func(context.Context, string, *http.Client) error {
			if fail {
				return &rpcpool.RPCError{Code: -32601, Message: "method not found"}
			}
			return nil
		}
		var none *rpcpool.NoHealthyRPCError
		require.ErrorAs(t, chain.Run(t.Context(), run), &none)
		fail = false
		require.NoError(t, chain.Run(t.Context(), run))
	})
}

// The client works through the attempt's proxy, for any URL, whatever context the
// function gives it; it follows no redirect, and refuses once the function returned.
func TestRunClientIsBoundToItsAttempt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		p := w.Proxy("p1")
		r := w.Node("r1", rpcpooltest.Status(307).Header("Location", "http://elsewhere.test/").Times(1), rpcpooltest.Hang())
		r.AllowREST()
		w.List("1", r)
		var kept *http.Client
		err := open(t, w).Chain("1").Run(t.Context(), func(ctx context.Context, url string, client *http.Client) error {
			kept = client
			res, err := client.Get(url + "/v1")
			require.NoError(t, err)
			require.Equal(t, 307, res.StatusCode)
			require.NoError(t, res.Body.Close())

			_, err = client.Get("ftp://r1.test/")
			require.ErrorContains(t, err, "http and https")

			start := time.Now()
			_, err = client.Get(url) // without ctx: it ends with the attempt all the same
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, 15*time.Second, time.Since(start))
			return nil
		})
		require.NoError(t, err)
		_, err = kept.Get(r.URL())
		require.ErrorContains(t, err, "after the function")
		nothingLeft(t, w, p)
		for _, dialled := range w.Network.Dials() {
			require.Contains(t, []string{p.Addr(), w.Pool.Addr()}, dialled)
		}
	})
}

// A function that panics does so through Run, and what its call found out before is
// settled and reported (rule A8); nil is refused.
func TestRunPanicsAndNil(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Status(500)), w.Node("r2"))
		pool := open(t, w)
		require.PanicsWithValue(t, "mine", func() {
			_ = pool.Chain("1").Run(t.Context(), func(_ context.Context, url string, client *http.Client) error {
				res, err := client.Post(url, "application/json", strings.NewReader(blockNumberRequest))
				require.NoError(t, err)
				require.NoError(t, res.Body.Close())
				if res.StatusCode != http.StatusOK {
					return &rpcpool.HTTPError{StatusCode: res.StatusCode}
				}
				panic("mine")
			})
		})
		var request *rpcpool.RequestError
		require.ErrorAs(t, pool.Chain("1").Run(t.Context(), nil), &request)
		require.NoError(t, pool.Close())
		synctest.Wait()
		require.Len(t, w.Pool.Reports(), 1)
	})
}

// An error of the function's own after a complete answer is its own, however long it
// took (rule A10).
func TestRunOwnErrorAfterItsTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1"), w.Node("r2"))
		own, calls := errors.New("mine"), 0
		err := open(t, w).Chain("1").Run(t.Context(), func(_ context.Context, url string, client *http.Client) error {
			calls++
			res, err := client.Post(url, "application/json", strings.NewReader(blockNumberRequest))
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			time.Sleep(20 * time.Second)
			return own
		})
		require.Same(t, own, err)
		require.Equal(t, 1, calls)
	})
}

// A POST on a kept connection that turns out to be dead is nobody's failure: the
// function is called once more, and nothing under it repeats the request (rules
// A5.3, C3).
func TestRunOnAnIdleConnectionThatDied(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.SetKeepAlive(true)
		r := w.Node("r1")
		w.List("1", r)
		pool := open(t, w)
		calls := 0
		ask := func() error {
			return pool.Chain("1").Run(t.Context(), func(_ context.Context, url string, client *http.Client) error {
				calls++
				res, err := client.Post(url, "application/json", strings.NewReader(blockNumberRequest))
				if err != nil {
					return err
				}
				defer res.Body.Close()
				_, err = io.Copy(io.Discard, res.Body)
				return err
			})
		}
		require.NoError(t, ask())
		r.Script(rpcpooltest.Reset().Times(1))
		require.NoError(t, ask())
		require.Equal(t, 3, calls)
		require.Len(t, r.Requests(), 3)
		require.NoError(t, pool.Close())
		require.Empty(t, w.Pool.Reports())
	})
}

// A nil option is passed over, wherever options are taken.
func TestNilOptions(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		w.List("1", w.Node("r1", rpcpooltest.Logs()))
		chain := open(t, w).Chain("1", nil)
		require.NotNil(t, chain.HTTPClient(nil))
		require.NoError(t, chain.Run(t.Context(), func(context.Context, string, *http.Client) error { return nil }, nil))
		_, err := chain.GetLogsChunked(t.Context(), rpcpool.LogFilter{FromBlock: 1, ToBlock: 2}, nil)
		require.NoError(t, err)
		_, err = chain.WaitReceipt(t.Context(), "0x", nil)
		require.Error(t, err)
	})
}
