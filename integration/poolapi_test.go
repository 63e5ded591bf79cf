package integration

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const apiKey = "integration-api-key"

// poolAPI is the pool service: lists per chain, best first, and the reports that
// came in. It is reached by a name, since the proxies of the environment would
// spare an address of loopback anyway (rule A1.3).
type poolAPI struct {
	t      *testing.T
	server *http.Server
	url    string

	mu      sync.Mutex
	lists   map[string][]string // chain's reference: URLs of RPCs
	height  uint64              // of every RPC
	reports []report
}

type report struct {
	Chain, URL, Error, Detail string
}

func newPoolAPI(t *testing.T, lists map[string][]string) *poolAPI {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	api := &poolAPI{t: t, url: "http://" + net.JoinHostPort(poolHost, port), lists: lists, height: 1}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/chains/{chain}/rpcs", api.serveList)
	mux.HandleFunc("POST /v1/report", api.takeReport)
	api.server = &http.Server{Handler: mux}
	go api.server.Serve(listener)
	t.Cleanup(func() { api.server.Close() })
	return api
}

func (api *poolAPI) serveList(w http.ResponseWriter, r *http.Request) {
	assert.Equal(api.t, apiKey, r.Header.Get("X-API-Key"))
	assert.Equal(api.t, "http", r.URL.Query().Get("transport"))
	api.mu.Lock()
	urls, known := api.lists[r.PathValue("chain")]
	height := api.height
	api.mu.Unlock()
	if !known {
		http.Error(w, `{"error":"unknown chain"}`, http.StatusNotFound)
		return
	}
	rpcs := []any{}
	for i, u := range urls {
		rpcs = append(rpcs, map[string]any{
			"url": u, "score": 100 - i, "height": height,
			"caps": map[string]any{"send_tx": true, "logs": 10000, "archive": "full"},
		})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"chain": map[string]any{"key": chainKey(r.PathValue("chain"))}, "rpcs": rpcs,
	})
}

// setHeight has the lists say another height, as a pool does that looks at the RPCs.
func (api *poolAPI) setHeight(height uint64) {
	api.mu.Lock()
	defer api.mu.Unlock()
	api.height = height
}

func chainKey(ref string) string { return "eip155:" + strings.TrimPrefix(ref, "eip155:") }

func (api *poolAPI) takeReport(w http.ResponseWriter, r *http.Request) {
	assert.Equal(api.t, apiKey, r.Header.Get("X-API-Key"))
	var taken report
	if !assert.NoError(api.t, json.NewDecoder(r.Body).Decode(&taken)) {
		return
	}
	api.mu.Lock()
	api.reports = append(api.reports, taken)
	api.mu.Unlock()
}

// complaints gives the reports as "URL kind", in the order of their arrival. Only
// after Pool.Close, which delivers what is queued, is the list complete.
func (api *poolAPI) complaints() []string {
	api.mu.Lock()
	defer api.mu.Unlock()
	list := []string{}
	for _, r := range api.reports {
		list = append(list, r.URL+" "+r.Error)
	}
	return list
}
