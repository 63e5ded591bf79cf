package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	rpcpoolprom "github.com/bomzrpc/rpcpool/plugins/prometheus"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

const (
	alertsFile    = "../plugins/prometheus/alerts.yml"
	dashboardFile = "../plugins/prometheus/dashboard.json"
)

// A real Prometheus scrapes a bot on its worst day. It takes the rules; every alert fires
// by its expression; every query of the dashboard parses, and has data.
func TestPrometheusTakesTheMetricsAlertsAndDashboard(t *testing.T) {
	t.Parallel()
	// The check after all tests wants to see that names are looked up where the test sees it.
	_, err := net.DefaultResolver.LookupHost(t.Context(), poolHost)
	require.NoError(t, err)
	need(t, "prometheus")
	checked, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", alertsFile).CombinedOutput()
	require.NoError(t, err, "%s", checked)

	day := newWorstDay(t)
	day.goodMorning(t)
	day.serve(t)
	p := &prometheusServer{t: t, url: "http://" + loopback(startVictim(t, "prometheus").port)}
	// What was counted before the first scrape is no increase.
	p.waitFor("the first scrape", func() bool { return p.ready() && len(p.query(`rpcpool_calls_total{chain="1"}`)) > 0 })
	day.everythingFails(t)
	p.waitFor("a scrape of the day's end", func() bool { return len(p.query(`rpcpool_reports_total{change="dropped"} > 0`)) > 0 })

	rules := p.rules()
	require.Len(t, rules, 6)
	for _, rule := range rules {
		assert.NotEmpty(t, p.query(rule.Query), "the alert %s doesn't fire: %s", rule.Name, rule.Query)
	}
	p.waitFor("every alert to be pending or firing", func() bool {
		return !slices.ContainsFunc(p.rules(), func(r alertRule) bool { return r.Health != "ok" || r.State == "inactive" })
	})
	for _, expr := range dashboardQueries(t) {
		assert.NotEmpty(t, p.query(expr), "no data for %s", expr)
	}
	// The RPC that limits the rate is asked through the other proxy as well.
	for class, want := range map[string]float64{"transport": 1, "protocol": 1, "semantic": 1, "rate_limit": 2} {
		got := p.query(fmt.Sprintf(`sum(rpcpool_failures_total{chain="2", class=%q})`, class))
		assert.Equal(t, []float64{want}, got, "what the script caused of %s", class)
	}
}

// worstDay is a bot in memory, without time to lose: its proxies, RPCs and pool API fail by
// script.
type worstDay struct {
	world   *rpcpooltest.World
	metrics *rpcpoolprom.Metrics
	pool    *rpcpool.Pool
	proxies []*rpcpooltest.Proxy
	evm     *rpcpooltest.EVM
	fresh   []*rpcpooltest.Node
	forked  *rpcpooltest.Node
}

// knownFor is how long heads are known: shorter than a test wants to wait.
const knownFor = 50 * time.Millisecond

func newWorstDay(t *testing.T) *worstDay {
	t.Helper()
	w := rpcpooltest.New(t)
	d := &worstDay{world: w, metrics: rpcpoolprom.New(), evm: rpcpooltest.NewEVM(1, 1000)}
	d.proxies = append(d.proxies, w.Proxy("p1"), w.Proxy("p2"))
	for _, name := range []string{"f1", "f2"} {
		d.fresh = append(d.fresh, w.Node(name, d.evm.Serve()))
	}
	d.forked = w.Node("f3", d.evm.Serve(rpcpooltest.ForkedFrom(990)))
	w.List("1", append(d.fresh, d.forked)...)
	// One call meets a failure of each class, and then an answer.
	w.List("2", w.Node("transport", rpcpooltest.Reset().FromStep(1)), w.Node("protocol", rpcpooltest.Status(500).FromStep(1)),
		w.Node("semantic", rpcpooltest.Error(-32000, "required historical state unavailable").FromStep(1)),
		w.Node("limited", rpcpooltest.RateLimited(time.Minute).FromStep(1)), w.Node("good"))
	w.List("3", w.Node("broken", rpcpooltest.Status(500).FromStep(1)))
	w.List("4", w.Node("slow", rpcpooltest.Result("0x1").Delay(time.Second)), w.Node("quick"))
	w.List("5", w.Node("small", rpcpooltest.LogsUpTo(250, rpcpooltest.Error(-32000, "block range too large"))))
	w.Pool.Lists("6", rpcpooltest.PoolStatus(503))
	w.Pool.ScriptReports(rpcpooltest.PoolHang())
	check := w.Node("check")
	cfg := w.Config()
	cfg.Hooks = []rpcpool.Hook{d.metrics}
	cfg.ProxyCheckURL, cfg.Timeout = check.URL(), 5*time.Second
	var err error
	d.pool, err = rpcpool.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { d.pool.Close() })
	d.metrics.Watch(d.pool)
	return d
}

func (d *worstDay) freshChain() *rpcpool.Chain {
	return d.pool.Chain("1", rpcpool.WithFreshness(rpcpool.Freshness{BlockTime: knownFor}))
}

func (d *worstDay) hedgedChain() *rpcpool.Chain {
	return d.pool.Chain("4", rpcpool.WithHedge(rpcpool.Hedge{Delay: time.Millisecond, MaxExtra: 1}))
}

// goodMorning makes every handle, so that its series begin at 0, and a few good calls.
func (d *worstDay) goodMorning(t *testing.T) {
	t.Helper()
	for range 4 {
		_, err := d.freshChain().Call(bounded(t), "eth_getBlockByNumber", "latest", false)
		require.NoError(t, err)
	}
	for _, ref := range []string{"2", "3", "5"} {
		_, err := d.pool.Chain(ref).Call(bounded(t), "eth_chainId")
		require.NoError(t, err)
	}
	_, err := d.hedgedChain().Call(bounded(t), "eth_chainId")
	require.NoError(t, err)
	d.pool.Chain("6")
}

// serve serves the metrics where start.sh has Prometheus look.
func (d *worstDay) serve(t *testing.T) {
	t.Helper()
	port, err := strconv.Atoi(os.Getenv("METRICS_PORT"))
	require.NoError(t, err)
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(d.metrics))
	listener, err := net.Listen("tcp", loopback(port))
	require.NoError(t, err)
	server := &http.Server{Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{})}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
}

func (d *worstDay) everythingFails(t *testing.T) {
	t.Helper()
	d.world.Network.SetStep(1)
	_, err := d.pool.Chain("2").Call(bounded(t), "eth_call", map[string]any{}, "0x1")
	require.NoError(t, err)
	_, err = d.pool.Chain("3").Call(bounded(t), "eth_call")
	require.Error(t, err)
	_, err = d.hedgedChain().Call(bounded(t), "eth_chainId")
	require.NoError(t, err)
	_, err = d.pool.Chain("5").GetLogsChunked(bounded(t), rpcpool.LogFilter{FromBlock: 1, ToBlock: 1000})
	require.NoError(t, err)
	_, err = d.pool.Chain("6").Call(bounded(t), "eth_call")
	require.ErrorAs(t, err, new(*rpcpool.PoolAPIError))

	for _, node := range append(d.fresh, d.forked) {
		node.Script(d.evm.Serve(rpcpooltest.Lagging(10)))
	}
	require.Eventually(t, func() bool { // once the heads from before aren't believed any more
		_, err := d.freshChain().Call(bounded(t), "eth_getBalance", fundedAccount, "latest")
		return errors.As(err, new(*rpcpool.StaleError))
	}, 10*time.Second, 2*knownFor)

	for _, proxy := range d.proxies {
		proxy.Kill()
	}
	_, err = d.pool.Chain("2").Call(bounded(t), "eth_chainId")
	require.ErrorAs(t, err, new(*rpcpool.ProxyError))
	d.pool.Close() // with reports that nobody takes
}

// prometheusServer is the real one.
type prometheusServer struct {
	t   *testing.T
	url string
}

// waitFor asks until the condition holds.
func (p *prometheusServer) waitFor(what string, holds func() bool) {
	p.t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(30 * time.Second); !holds(); <-again.C {
		require.True(p.t, time.Now().Before(deadline), "waited for %s in vain", what)
	}
}

// ready tells whether it is done with starting.
func (p *prometheusServer) ready() bool {
	p.t.Helper()
	resp, err := directClient.Get(p.url + "/-/ready")
	require.NoError(p.t, err)
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// get asks its HTTP API.
func (p *prometheusServer) get(path string, values url.Values, data any) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path+"?"+values.Encode(), http.NoBody)
	require.NoError(p.t, err)
	resp, err := directClient.Do(req)
	require.NoError(p.t, err)
	defer resp.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	require.NoError(p.t, json.NewDecoder(resp.Body).Decode(&answer))
	require.Equal(p.t, "success", answer.Status, "%s: %s", values, answer.Error)
	require.NoError(p.t, json.Unmarshal(answer.Data, data))
}

// query gives the values of an expression.
func (p *prometheusServer) query(expr string) (values []float64) {
	p.t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	p.get("/api/v1/query", url.Values{"query": {expr}}, &data)
	for _, each := range data.Result {
		value, err := strconv.ParseFloat(each.Value[1].(string), 64)
		require.NoError(p.t, err)
		values = append(values, value)
	}
	return values
}

type alertRule struct{ Name, Query, Health, State string }

func (p *prometheusServer) rules() (all []alertRule) {
	p.t.Helper()
	var data struct {
		Groups []struct{ Rules []alertRule }
	}
	p.get("/api/v1/rules", nil, &data)
	for _, group := range data.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

var (
	labelValues = regexp.MustCompile(`^label_values\((.*), \w+\)$`)
	variable    = regexp.MustCompile(`\$\w+`)
)

// dashboardQueries gives the queries of the dashboard's panels and variables, as Grafana
// sends them where all is chosen.
func dashboardQueries(t *testing.T) (queries []string) {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	require.NoError(t, err)
	var dashboard struct {
		Panels     []struct{ Targets []struct{ Expr string } }
		Templating struct {
			List []struct{ Type, Definition string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	for _, v := range dashboard.Templating.List {
		if v.Type == "query" {
			found := labelValues.FindStringSubmatch(v.Definition)
			require.NotNil(t, found, v.Definition)
			queries = append(queries, found[1])
		}
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, target.Expr)
		}
	}
	require.Greater(t, len(queries), 30)
	for i, query := range queries {
		query = strings.ReplaceAll(query, "$__rate_interval", "1m")
		queries[i] = variable.ReplaceAllString(query, ".*")
	}
	return queries
}
