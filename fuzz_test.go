package rpcpool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// Whatever bytes come as the answer to a call, it ends with a result that is JSON or
// with an error of the library's; and where they repeat secrets, none is shown.
func FuzzAnswer(f *testing.F) {
	for _, answer := range parrotAnswers {
		f.Add("POST", answer)
	}
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"result":"0x1"}`, `{"id":1,"result":{"a":"ECHO"}}`, `{"id":"1","error":{"code":-32005,"message":"ECHO"}}`,
		`{"id":1,"error":{"code":3,"message":"execution reverted ECHO","data":"ECHO"}}`, `{"id":1,"error":{"code":-32000,"message":"block range is too large, max 500 ECHO"}}`,
		`{"id":1,"error":{"message":"already known"}}`, `ECHO`, `[]`, `{"error":"ECHO"}`,
	} {
		f.Add("eth_call", "HTTP/1.1 200 OK\r\n\r\n"+body)
		f.Add("eth_getLogs", "HTTP/1.1 400 ECHO\r\nContent-Type: application/json\r\n\r\n"+body)
		f.Add("eth_sendRawTransaction", "HTTP/1.0 503 ECHO\r\nVia: ECHO\r\nX-Squid-Error: ECHO\r\n\r\n"+body)
	}
	f.Add("eth_chainId", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nECHO")
	f.Fuzz(func(t *testing.T, method, answer string) {
		inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
			r := newRoom(t, w)
			r.parrot("parrot.test:8080", strings.ReplaceAll(answer, "ECHO", echo(w)))
			r.listedURL(rpcURL("http", "nobody.test"))
			pool := r.open(func(cfg *rpcpool.Config) { cfg.Proxies = []string{proxyURL("http", "parrot.test:8080")} })
			result, err := pool.Chain("1").Call(t.Context(), method, "0x02")
			if err == nil {
				require.True(t, json.Valid(result), "%q", result)
			} else {
				var own rpcpool.Error
				require.ErrorAs(t, err, &own)
				require.Nil(t, result)
				r.hidden("the error", err.Error())
				for _, attempt := range attemptsIn(err) {
					r.hidden("an attempt", attempt.String())
				}
			}
			r.end(pool)
		})
	})
}
