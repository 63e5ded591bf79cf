package rpcpool_test

import (
	"bytes"
	"compress/gzip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// packedAnswer is an answer whose body is packed as it is given, for what no node packs in
// a moment.
func packedAnswer(t *testing.T, body []byte) rpcpooltest.Reply {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write(body)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return rpcpooltest.Body(packed.String()).Header("Content-Encoding", "gzip")
}

// Packed answers are asked for and unpacked, through a tunnel as well as where an HTTP proxy
// carries out the request: results, and errors under whatever status.
func TestPackedAnswers(t *testing.T) {
	for _, proxy := range []string{"socks5://user-p1:word-p1@p1.test:1080", "http://user-p1:word-p1@p1.test:3128"} {
		for _, scheme := range []string{"http", "https"} {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.ProxyAt("p1", proxy)
				reverts := rpcpooltest.Error(3, "execution reverted: no").Gzip()
				node := w.NodeAt("r1", scheme+"://r1.test/key-r1",
					reverts.Method("eth_call"), reverts.WithStatus(400).Method("eth_estimateGas"),
					rpcpooltest.Result(strings.Repeat("z", 100_000)).Gzip())
				w.List("1", node)
				chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxResponseBytes = 200_000 }).Chain("1")
				text, err := rpcpool.CallAs[string](t.Context(), chain, "eth_getCode", someAccount, "latest")
				require.NoError(t, err)
				require.Equal(t, strings.Repeat("z", 100_000), text)
				for _, method := range []string{"eth_call", "eth_estimateGas"} {
					_, err = chain.Call(t.Context(), method, map[string]string{"to": someAccount}, "latest")
					var reverted *rpcpool.RPCError
					require.ErrorAs(t, err, &reverted, method)
					require.Equal(t, "execution reverted: no", reverted.Message)
				}
				for _, q := range node.Requests() {
					assert.Equal(t, "gzip", q.Header.Get("Accept-Encoding"))
				}
			})
		}
	}
}

// MaxResponseBytes bounds what a packed answer is unpacked to, not what comes over the wire:
// a small one that unpacks to much more is the RPC's fault, and is left when so much of it is
// unpacked, with the rest unread.
func TestPackedAnswerThatUnpacksToTooMuch(t *testing.T) {
	const (
		limit  = 1 << 20
		pieces = 64
	)
	body := []byte(`{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("0", pieces*limit) + `"}`)
	bomb := packedAnswer(t, body)
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		bad := w.Node("bad", bomb.Drip(pieces, 100*time.Millisecond))
		w.List("1", bad, w.Node("good"))
		chain := open(t, w, func(cfg *rpcpool.Config) { cfg.MaxResponseBytes, cfg.MaxRounds = limit, 1 }).Chain("1")
		began := time.Now()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := chain.Call(t.Context(), "eth_getCode", someAccount, "latest")
		runtime.ReadMemStats(&after)
		require.NoError(t, err, "the next RPC answers")
		require.LessOrEqual(t, time.Since(began), 500*time.Millisecond, "of 6.4 s that all of it takes to come")
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8*limit))
		stats := chain.Stats()[0]
		require.True(t, stats.Cooling)
		require.Equal(t, uint64(1), stats.Protocol)

		w.List("2", bad)
		_, err = open(t, w, func(cfg *rpcpool.Config) { cfg.MaxResponseBytes, cfg.MaxRounds = limit, 1 }).
			Chain("2").Call(t.Context(), "eth_getCode", someAccount, "latest")
		var nobody *rpcpool.NoHealthyRPCError
		require.ErrorAs(t, err, &nobody)
		require.Len(t, nobody.Attempts, 1)
		require.Equal(t, rpcpool.VerdictRPCFail, nobody.Attempts[0].Verdict)
		require.Equal(t, "the answer is larger than 1048576 bytes", nobody.Attempts[0].Detail)
	})
}
