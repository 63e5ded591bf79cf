package rpcpoolotel_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// recorder keeps all bytes that the client sends: to proxies and so to RPCs, which speak
// plain HTTP here, and to the pool service.
type recorder struct {
	mu   sync.Mutex // protects sent
	sent bytes.Buffer
}

type recordedConn struct {
	net.Conn
	to *recorder
}

func (c recordedConn) Write(b []byte) (int, error) {
	c.to.mu.Lock()
	c.to.sent.Write(b)
	c.to.mu.Unlock()
	return c.Conn.Write(b)
}

// everyWay makes calls of all kinds.
func everyWay(ctx context.Context, t *testing.T, pool *rpcpool.Pool) {
	t.Helper()
	chain := pool.Chain("1")
	_, err := chain.Call(ctx, "eth_call")
	require.NoError(t, err)
	require.NoError(t, chain.BatchCallContext(ctx, []rpcpool.BatchElem{{Method: "eth_chainId"}, {Method: "eth_gasPrice"}}))
	_, err = chain.GetLogsChunked(ctx, rpcpool.LogFilter{FromBlock: 1, ToBlock: 10})
	require.NoError(t, err)
	require.NoError(t, chain.Run(ctx, func(ctx context.Context, url string, client *http.Client) error {
		return post(ctx, client, url)
	}))
	require.NoError(t, post(ctx, chain.HTTPClient(), "http://label"))
	_, err = pool.Chain("1", rpcpool.WithHedge(rpcpool.Hedge{MaxExtra: 1, Delay: time.Millisecond})).Call(ctx, "eth_getBalance")
	require.NoError(t, err)
}

func post(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_call"}`))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// headersOf gives the names of all headers that RPCs were sent.
func headersOf(nodes ...*rpcpooltest.Node) (names []string) {
	for _, node := range nodes {
		for _, request := range node.Requests() {
			for name := range request.Header {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Nothing of a trace leaves the program, also where it has set propagators for everything
// and has baggage: RPCs get the headers that they get without a hook, and the trace's id is
// in no byte that is sent to anybody.
func TestNoTraceIsSent(t *testing.T) {
	before := otel.GetTextMapPropagator()
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	defer otel.SetTextMapPropagator(before)
	headers := map[bool][]string{}
	for _, hooked := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *watched) {
			w.Proxy("p1")
			w.ProxyAt("p2", "http://user:password@p2.test:3128")
			r1 := w.Node("r1", rpcpooltest.Logs().Method("eth_getLogs"), rpcpooltest.Status(500).Times(2), rpcpooltest.Result("0x1"))
			r2 := w.Node("r2", rpcpooltest.Logs().Method("eth_getLogs"))
			w.List("1", r1, r2)
			record := &recorder{}
			pool := w.open(t, func(cfg *rpcpool.Config) {
				dial := cfg.DialContext
				cfg.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := dial(ctx, network, addr)
					return recordedConn{conn, record}, err
				}
				if !hooked {
					cfg.Hooks = nil
				}
			})
			ctx, parent := w.tracer.Start(t.Context(), "bot")
			member, err := baggage.NewMember("strategy", "sandwich-7")
			require.NoError(t, err)
			bag, err := baggage.New(member)
			require.NoError(t, err)
			everyWay(baggage.ContextWithBaggage(ctx, bag), t, pool)
			parent.End()
			time.Sleep(time.Minute) // reports are sent
			headers[hooked] = headersOf(r1, r2)
			require.NoError(t, pool.Close())
			record.mu.Lock()
			defer record.mu.Unlock()
			sent := strings.ToLower(record.sent.String())
			require.Contains(t, sent, "post /key-r1", "the record has requests to RPCs")
			require.Contains(t, sent, "get /", "and to the pool service")
			for _, no := range []string{
				"traceparent", "tracestate", "baggage", "b3", "sandwich-7", "uber-trace-id", parent.SpanContext().TraceID().String(),
			} {
				require.NotContains(t, sent, no)
			}
			for _, span := range w.spans.GetSpans() {
				require.NotContains(t, sent, span.SpanContext.SpanID().String())
			}
		})
	}
	require.NotEmpty(t, headers[false])
	require.Equal(t, headers[false], headers[true])
}

// No attribute, name, event or status of a span or metric has anything secret: also where
// RPCs and proxies repeat it in what they say.
func TestNothingSecretIsShown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watched) {
		p1, p2 := w.Proxy("p1", rpcpooltest.ProxyRefuseLogin().Times(1)), w.Proxy("p2")
		said := func(node string) string { // what that node can know
			return fmt.Sprintf("http://%s.test/key-%s key-%s %s %s %s", node, node, node, w.Pool.Key(), p1.URL(), p2.URL())
		}
		w.List("1",
			w.Node("r1", rpcpooltest.Error(-32603, "internal error at "+said("r1"))),
			w.Node("r2", rpcpooltest.Status(503).Text("no account for "+said("r2"))),
			w.Node("r3", rpcpooltest.Error(3, "execution reverted: "+said("r3")).Method("eth_estimateGas"), rpcpooltest.Result("0x1")))
		w.Pool.ScriptReports(rpcpooltest.PoolStatus(500))
		pool := w.open(t)
		_, err := w.hook.Observe(pool)
		require.NoError(t, err)
		const param = "0x5ec2e7000000000000000000000000000000beef"
		_, err = pool.Chain("1").Call(t.Context(), "eth_call", param)
		require.NoError(t, err)
		_, err = pool.Chain("1").Call(t.Context(), "eth_estimateGas", param)
		require.Error(t, err)
		time.Sleep(time.Minute)
		shown := w.everythingShown(t)
		require.Contains(t, shown, "internal error at", "what RPCs say is shown, without the secrets in it")
		require.Contains(t, shown, "execution reverted: http://r3.test***")
		for _, secret := range append(w.Secrets(), param) {
			require.NotContains(t, shown, secret)
		}
	})
}

// everythingShown gives all texts of all spans and metrics.
func (w *watched) everythingShown(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	show := func(attrs []attribute.KeyValue) {
		for _, attr := range attrs {
			fmt.Fprintln(&all, attr.Key, attr.Value.String())
		}
	}
	for _, span := range w.spans.GetSpans() {
		fmt.Fprintln(&all, span.Name, span.Status.Description, span.SpanContext.TraceState())
		show(span.Attributes)
		for _, event := range span.Events {
			fmt.Fprintln(&all, event.Name)
			show(event.Attributes)
		}
	}
	for name, m := range w.collect(t) {
		fmt.Fprintln(&all, name, m.Description)
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, point := range data.DataPoints {
				show(point.Attributes.ToSlice())
			}
		case metricdata.Gauge[int64]:
			for _, point := range data.DataPoints {
				show(point.Attributes.ToSlice())
			}
		case metricdata.Histogram[float64]:
			for _, point := range data.DataPoints {
				show(point.Attributes.ToSlice())
				for _, exemplar := range point.Exemplars {
					show(exemplar.FilteredAttributes)
				}
			}
		default:
			require.Fail(t, fmt.Sprintf("%s is a %T", name, data))
		}
	}
	return all.String()
}
