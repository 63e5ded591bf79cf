package rpcpooltest

import (
	"encoding/json"
	"net/http"
	"time"
)

// PoolReply is an entry of a [PoolAPI]'s scripts: how it answers a request for a
// list, or a report. Its methods give changed copies. The zero PoolReply answers
// 200 and nothing, and takes a report (202).
type PoolReply struct {
	when   when
	act    act
	status int
	header http.Header
	body   string
}

func (r PoolReply) conditions() when { return r.when }

// Times limits the reply to so many requests; 0 or less means no limit.
func (r PoolReply) Times(n int) PoolReply { r.when.times = max(n, 0); return r }

// FromStep limits the reply to the step given and later ones, see
// [Network.SetStep].
func (r PoolReply) FromStep(step int) PoolReply { r.when.from = step; return r }

// ToStep limits the reply to the step given and earlier ones.
func (r PoolReply) ToStep(step int) PoolReply { r.when.until = step + 1; return r }

// Delay has the pool wait before it answers.
func (r PoolReply) Delay(d time.Duration) PoolReply { r.when.delay = d; return r }

// Hold has the pool wait until the test lets the request go, see [Gate].
func (r PoolReply) Hold(g *Gate) PoolReply { r.when.gate = g; return r }

// Header adds a header to the answer.
func (r PoolReply) Header(name, value string) PoolReply {
	if r.header = r.header.Clone(); r.header == nil {
		r.header = http.Header{}
	}
	r.header.Add(name, value)
	return r
}

// Listed is an RPC in a list.
type Listed struct {
	URL    string `json:"url"`
	Score  int    `json:"score"`
	Height uint64 `json:"height"`
	Caps   Caps   `json:"caps"`
}

// Caps are what an RPC can do; nil means unknown.
type Caps struct {
	SendTx  *bool   `json:"send_tx"`
	Logs    *int    `json:"logs"`    // blocks of an eth_getLogs: 0, 1000 or 10000
	Archive *string `json:"archive"` // "none", "recent" or "full"
}

// List is the entry for a node that can do everything, at height 1000.
func List(node *Node) Listed {
	return Listed{URL: node.URL(), Score: 50, Height: 1000, Caps: AllCaps()}
}

// AllCaps gives the capabilities of an RPC that can do everything.
func AllCaps() Caps {
	return Caps{SendTx: new(true), Logs: new(10000), Archive: new("full")}
}

// PoolList answers with a list for the chain with the given key, such as
// "eip155:8453". Entries are [Node]s ([List] is sent for them), [Listed] values,
// or anything else that marshals to what the pool sends.
func PoolList(key string, entries ...any) PoolReply {
	rpcs := make([]any, len(entries))
	for i, e := range entries {
		if node, ok := e.(*Node); ok {
			e = List(node)
		}
		rpcs[i] = e
	}
	return PoolBody(string(must(json.Marshal(map[string]any{
		"chain":  map[string]any{"key": key},
		"policy": map[string]any{"note": "of no matter"},
		"rpcs":   rpcs,
	}))))
}

// PoolBody answers 200 and exactly this body.
func PoolBody(body string) PoolReply { return PoolReply{status: http.StatusOK, body: body} }

// PoolGarbage answers 200 and a page of HTML.
func PoolGarbage() PoolReply { return PoolBody("<html>Please log in</html>") }

// PoolStatus answers with this HTTP status.
func PoolStatus(status int) PoolReply { return PoolReply{status: status} }

// PoolReset breaks the connection.
func PoolReset() PoolReply { return PoolReply{act: resetIt} }

// PoolHang never answers.
func PoolHang() PoolReply { return PoolReply{act: hangIt} }

// PoolTake takes a report (202).
func PoolTake() PoolReply { return PoolReply{status: http.StatusAccepted} }
