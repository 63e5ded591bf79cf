package rpcpool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
)

// stub answers at once, in memory: what a client costs beside it is its own work.
type stub struct{}

func (stub) RoundTrip(req *http.Request) (*http.Response, error) {
	var room [256]byte
	n, err := io.ReadFull(req.Body, room[:req.ContentLength])
	if err != nil {
		return nil, err
	}
	_, rest, _ := bytes.Cut(room[:n], []byte(`"id":`))
	id, _, _ := bytes.Cut(rest, []byte(","))
	body := make([]byte, 0, 64)
	body = append(append(append(body, `{"jsonrpc":"2.0","id":`...), id...), `,"result":"0x13f2a5b"}`...)
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// leanOn is the least that can be done about a transport: a copied request, an envelope
// written by hand, the result cut out of what was read, no deadline.
func leanOn(t testing.TB, transport http.RoundTripper, url string) benchClient {
	template, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
	require.NoError(t, err)
	template.Header.Set("Content-Type", "application/json")
	return func(ctx context.Context) (json.RawMessage, error) {
		body := make([]byte, 0, 96)
		body = strconv.AppendQuote(append(body, `{"jsonrpc":"2.0","id":1,"method":`...), "eth_blockNumber")
		body = append(body, `,"params":[]}`...)
		req := template.WithContext(ctx)
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		res, err := transport.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		raw := make([]byte, res.ContentLength)
		if _, err := io.ReadFull(res.Body, raw); err != nil {
			return nil, err
		}
		_, rest, found := bytes.Cut(raw, []byte(`"result":`))
		if !found || res.StatusCode != http.StatusOK {
			return nil, errors.New("no result")
		}
		return rest[:bytes.IndexAny(rest, ",}")], nil
	}
}

// onStub are the clients on the stub.
func onStub(t testing.TB) map[string]benchClient {
	way := benchWay{proxy: "socks5://p1.test:1080", url: "http://" + benchHost + "/key"}
	pool := way.pool(t, 5)
	rpcpool.UseStub(pool, stub{})
	chain := pool.Chain("1")
	return map[string]benchClient{
		"bare-lean": leanOn(t, stub{}, way.url), "bare-tuned": bareOn(stub{}, way.url),
		"rpcpool": func(ctx context.Context) (json.RawMessage, error) { return chain.Call(ctx, "eth_blockNumber") },
	}
}

// On the stub all clients get the same answer, and the library allocates at most 8 times
// more than the leanest: for a deadline, the choice of an RPC and what is kept about it.
func TestOwnWork(t *testing.T) {
	allocs := map[string]float64{}
	for name, client := range onStub(t) {
		result, err := client(t.Context())
		require.NoError(t, err, name)
		require.Equal(t, `"0x13f2a5b"`, string(result), name)
		allocs[name] = testing.AllocsPerRun(200, func() { _, _ = client(t.Context()) })
	}
	require.LessOrEqual(t, allocs["rpcpool"], allocs["bare-lean"]+8, "%v", allocs)
}

// BenchmarkStub is a call on a transport that costs next to nothing.
func BenchmarkStub(b *testing.B) {
	for name, client := range onStub(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				client.call(b)
			}
		})
	}
}
