package rpcpool_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// sdkRequests are requests as SDKs write them, byte for byte, and what these SDKs need
// in the answer. The modules of some can't be had, the others have tests of their own
// (examples/, integration/sdk) besides.
var sdkRequests = map[string]struct {
	header http.Header
	body   string
	params []string // of each request as the RPC must get it; "" means absent
	answer string
}{
	"go-ethereum": {
		http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}},
		`{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}`,
		[]string{``}, `{"jsonrpc":"2.0","id":1,"result":"0x1"}`,
	},
	"w3, several calls": { // over go-ethereum's client; matched by the exact bytes of ids
		http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}},
		`[{"jsonrpc":"2.0","id":2,"method":"eth_getBalance","params":["0x000000000000000000000000000000000000c0fe","latest"]},` +
			`{"jsonrpc":"2.0","id":3,"method":"eth_gasPrice"}]`,
		[]string{`["0x000000000000000000000000000000000000c0fe","latest"]`, ``},
		`[{"jsonrpc":"2.0","id":2,"result":"0x1"},{"jsonrpc":"2.0","id":3,"result":"0x1"}]`,
	},
	"starknet.go": { // a null, where go-ethereum leaves the member out
		http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}},
		`{"jsonrpc":"2.0","id":1,"method":"starknet_specVersion","params":null}`,
		[]string{`null`}, `{"jsonrpc":"2.0","id":1,"result":"0x1"}`,
	},
	"sui-go-sdk": { // Unix milliseconds
		http.Header{"Content-Type": {"application/json"}},
		`{"jsonrpc":"2.0","id":1767225600123,"method":"sui_getLatestCheckpointSequenceNumber","params":[]}`,
		[]string{`[]`}, `{"jsonrpc":"2.0","id":1767225600123,"result":"0x1"}`,
	},
	"solana-go": {
		http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}},
		`{"method":"getSlot","params":[{"commitment":"confirmed"}],"id":"5f7c6a0e-2f5e-4b52-9d0e-0d9a5a3c1b7e","jsonrpc":"2.0"}`,
		[]string{`[{"commitment":"confirmed"}]`},
		`{"jsonrpc":"2.0","id":"5f7c6a0e-2f5e-4b52-9d0e-0d9a5a3c1b7e","result":"0x1"}`,
	},
	"CometBFT": { // params by name, ids from 0, no Accept
		http.Header{"Content-Type": {"application/json"}},
		`{"jsonrpc":"2.0","id":0,"method":"block","params":{"height":"5"}}`,
		[]string{`{"height":"5"}`}, `{"jsonrpc":"2.0","id":0,"result":"0x1"}`,
	},
	"CometBFT, a batch of one": {
		http.Header{"Content-Type": {"application/json"}},
		`[{"jsonrpc":"2.0","id":0,"method":"status","params":{}}]`,
		[]string{`{}`}, `[{"jsonrpc":"2.0","id":0,"result":"0x1"}]`,
	},
	"btcd's rpcclient": { // JSON-RPC 1.0
		http.Header{"Content-Type": {"application/json"}},
		`{"jsonrpc":"1.0","method":"getblockcount","params":[],"id":1}`,
		[]string{`[]`}, `{"jsonrpc":"2.0","id":1,"result":"0x1"}`,
	},
	"anvil --fork-url": {
		http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}, "Accept-Encoding": {"gzip, deflate, br"}},
		`{"method":"eth_getBlockByNumber","params":["0x10",true],"id":0,"jsonrpc":"2.0"}`,
		[]string{`["0x10",true]`}, `{"jsonrpc":"2.0","id":0,"result":"0x1"}`,
	},
	"viem": {
		http.Header{"Content-Type": {"application/json"}},
		`{"jsonrpc":"2.0","id":0,"method":"eth_blockNumber"}`,
		[]string{``}, `{"jsonrpc":"2.0","id":0,"result":"0x1"}`,
	},
	"web3.js": {
		http.Header{"Content-Type": {"application/json"}},
		`{"jsonrpc":"2.0","id":"9a3f54b6-8f0c-4c3e-8b55-52cf2f2a1d11","method":"eth_chainId","params":[]}`,
		[]string{`[]`}, `{"jsonrpc":"2.0","id":"9a3f54b6-8f0c-4c3e-8b55-52cf2f2a1d11","result":"0x1"}`,
	},
}

// Each SDK's request fails over and is answered in the SDK's own terms, and nothing of
// it changes on its way to the RPC but the id.
func TestHTTPClientTakesWhatSDKsSend(t *testing.T) {
	for name, sdk := range sdkRequests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.Proxy("p1")
				good := w.Node("good")
				w.List("1", w.Node("down", rpcpooltest.Status(502)), good)
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, label, strings.NewReader(sdk.body))
				require.NoError(t, err)
				req.Header = sdk.header
				res, err := open(t, w).Chain("1").HTTPClient().Do(req)
				require.NoError(t, err)
				require.Equal(t, "200 OK", res.Status)
				require.Equal(t, sdk.answer, readAll(t, res))

				var got []string
				for _, q := range good.Requests() {
					got = append(got, string(q.Params))
				}
				require.Equal(t, sdk.params, got)
			})
		})
	}
}

// aptos-go-sdk sends a GET without a content type. Of an answer that isn't 2xx it reads
// the response's own request, and panics where that is nil; of all it reads headers.
func TestRESTServesAptosGoSDK(t *testing.T) {
	inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
		w.Proxy("p1")
		const notFound = `{"message":"Account not found by Address(0x5)","error_code":"account_not_found","vm_error_code":null}`
		good := restNode(w, "good", rpcpooltest.Body(notFound).WithStatus(404).
			Header("Content-Type", "application/json").Header("X-Aptos-Ledger-Version", "77"))
		w.List("1", restNode(w, "down", rpcpooltest.Status(502)), good)
		client := open(t, w).Chain("1").HTTPClient(rpcpool.REST(rpcpool.JoinAptos))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://label.invalid/v1/accounts/0x5", http.NoBody)
		require.NoError(t, err)
		req.Header.Set("X-Aptos-Client", "aptos-go-sdk/unk")
		res, err := client.Do(req)
		require.NoError(t, err)
		require.Equal(t, "404 Not Found", res.Status)
		require.Equal(t, "http://label.invalid/v1/accounts/0x5", res.Request.URL.String())
		require.Equal(t, "77", res.Header.Get("X-Aptos-Ledger-Version"))
		var failure struct {
			Code string `json:"error_code"`
		}
		require.NoError(t, json.Unmarshal([]byte(readAll(t, res)), &failure))
		require.Equal(t, "account_not_found", failure.Code)

		got := good.Requests()[0]
		require.Equal(t, "GET /key-good/v1/accounts/0x5", got.Method)
		require.Equal(t, "aptos-go-sdk/unk", got.Header.Get("X-Aptos-Client"))
		require.Empty(t, got.Header["Content-Type"])
	})
}
