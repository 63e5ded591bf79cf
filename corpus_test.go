package rpcpool_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// recordedAnswer is a case of testdata/corpus: an answer as a real node or
// provider gave it, and the right verdict.
type recordedAnswer struct {
	ID        string          `json:"id"`
	Method    string          `json:"method"`
	HTTP      int             `json:"http"`
	Code      *int            `json:"code"`
	Message   string          `json:"message"`
	Data      json.RawMessage `json:"data"`
	Body      *string         `json:"body"`
	Verdict   string          `json:"verdict"`
	HintSpan  uint64          `json:"hint_span"`
	HintRange []uint64        `json:"hint_range"`
	Contested bool            `json:"contested"`
}

func recordedAnswers(t testing.TB) (answers []recordedAnswer) {
	t.Helper()
	f, err := os.Open("testdata/corpus/errors.jsonl")
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var answer recordedAnswer
		require.NoError(t, json.Unmarshal(lines.Bytes(), &answer))
		answers = append(answers, answer)
	}
	require.NoError(t, lines.Err())
	return answers
}

// reply serves the answer as it was recorded.
func (a *recordedAnswer) reply() rpcpooltest.Reply {
	switch {
	case a.Body != nil:
		return rpcpooltest.Body(*a.Body).WithStatus(a.HTTP)
	case a.Code == nil:
		return rpcpooltest.Status(a.HTTP)
	case len(a.Data) > 0:
		return rpcpooltest.ErrorData(*a.Code, a.Message, a.Data).WithStatus(a.HTTP)
	}
	return rpcpooltest.Error(*a.Code, a.Message).WithStatus(a.HTTP)
}

// params are such as the method takes.
func (a *recordedAnswer) params() []any {
	switch {
	case strings.HasSuffix(a.Method, "getLogs"):
		return []any{map[string]string{"fromBlock": "0x1", "toBlock": "0x2710"}}
	case strings.Contains(strings.ToLower(a.Method), "sendraw"):
		return []any{"0x616263"}
	}
	return []any{}
}

// ask makes the call that the answer was given to. A REST API is asked through Run.
func (a *recordedAnswer) ask(t *testing.T, chain *rpcpool.Chain) error {
	t.Helper()
	method := a.Method
	if method == "" { // what was asked wasn't JSON-RPC; the answer is judged all the same
		method = "eth_blockNumber"
	}
	if !strings.HasPrefix(method, "/") {
		_, err := chain.Call(t.Context(), method, a.params()...)
		return err
	}
	return chain.Run(t.Context(), func(ctx context.Context, url string, client *http.Client) error {
		res, err := client.Post(url+method, "application/json", strings.NewReader("{}"))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		return &rpcpool.HTTPError{StatusCode: res.StatusCode, Status: res.Status, Body: body}
	})
}

// errOfTheAPI is what a function makes of an error under HTTP 200.
var errOfTheAPI = errors.New("the API says in its own form that it refuses the request")

// seenVerdict is the verdict that a call's end shows.
func seenVerdict(err error) (verdict string, span uint64) {
	var (
		rpcErr    *rpcpool.RPCError
		httpErr   *rpcpool.HTTPError
		refused   *rpcpool.LogsRangeTooLargeError
		unhealthy *rpcpool.NoHealthyRPCError
		ambiguous *rpcpool.AmbiguousError // of methods with effects
		proxies   *rpcpool.ProxyError
	)
	switch {
	case err == nil:
		return "sent_ok", 0
	case errors.As(err, &rpcErr), errors.As(err, &httpErr), errors.Is(err, errOfTheAPI):
		return "caller", 0
	case errors.As(err, &refused):
		return "range", refused.SuggestedSpan
	case errors.As(err, &unhealthy):
		return string(unhealthy.Attempts[0].Verdict), 0
	case errors.As(err, &ambiguous):
		return string(ambiguous.Attempts[0].Verdict), 0
	case errors.As(err, &proxies):
		return string(proxies.Attempts[0].Verdict), 0
	}
	return err.Error(), 0
}

// Every recorded answer gets its verdict from a call through the public API, with
// one RPC and one proxy, and the span that it names is read out (rule A6.6). Those
// that careful engineers judge differently are listed in docs/VERDICTS.md.
func TestCallJudgesRecordedAnswers(t *testing.T) {
	right, total := 0, 0
	for _, answer := range recordedAnswers(t) {
		if answer.Contested {
			continue
		}
		total++
		t.Run(answer.ID, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *rpcpooltest.World) {
				w.ProxyAt("p1", "http://user-p1:word-p1@p1.test:3128")
				r := w.Node("r1", answer.reply())
				r.AllowREST()
				w.List("1", r)
				err := answer.ask(t, open(t, w).Chain("1"))
				verdict, span := seenVerdict(err)
				require.Equal(t, answer.Verdict, verdict, "%v", err)
				want := answer.HintSpan
				if want == 0 && len(answer.HintRange) == 2 {
					want = answer.HintRange[1] - answer.HintRange[0] + 1
				}
				if verdict == "range" {
					require.Equal(t, want, span, "the span that is named: %v", err)
				}
				right++
			})
		})
	}
	t.Logf("%d of %d", right, total)
}
