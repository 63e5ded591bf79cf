package rpcpool

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every row decides the message that it gives as seen: none is shadowed by another.
func TestTableRowsDecideWhatTheySaw(t *testing.T) {
	c := builtin(t)
	for i := range c.table.rows {
		r := &c.table.rows[i]
		t.Run(r.name, func(t *testing.T) {
			e := &RPCError{Code: r.seen.code, Message: r.seen.message, Data: json.RawMessage(r.seen.data)}
			j := c.rpcError("", r.seen.method, e)
			assert.Equal(t, r.name, j.rule)
			assert.Equal(t, r.verdict, j.verdict)
		})
	}
}

// Every row has a name of its own and says who says it and where it was seen; a row
// without wordings goes by codes.
func TestTableRowsAreComplete(t *testing.T) {
	names := map[string]bool{}
	for _, s := range wordings {
		assert.NotEmpty(t, s.title)
		assert.NotEmpty(t, s.about)
		for _, r := range s.rows {
			assert.NotEmpty(t, r.name)
			assert.False(t, names[r.name], "two rows are called %s", r.name)
			names[r.name] = true
			assert.NotEmpty(t, r.who, r.name)
			assert.NotEmpty(t, r.where, r.name)
			assert.NotEmpty(t, r.seen.message, r.name)
			assert.True(t, len(r.say) > 0 || len(r.codes) > 0, r.name)
			assert.True(t, s.verdict != "" || r.verdict != "", r.name)
		}
	}
}

// Every wording helps to decide at least one recorded answer: a new one comes with
// its case, and one that nothing shows is in nobody's way.
func TestTableWordingsAreAllRecorded(t *testing.T) {
	c := builtin(t)
	shown := make([]bool, len(c.table.wordings))
	show := func(method string, e *RPCError) {
		w := wordsOf(method, e.Message, e.Data, e.Code)
		defer w.free()
		r := c.table.decide(w, classesOf(method), e.Code)
		for n := range c.table.wordings {
			if r != nil && &c.table.rows[c.table.wordings[n].row] == r && c.table.says(w, uint16(n), len(w.buf)) {
				shown[n] = true
			}
		}
	}
	for _, k := range recordedCases(t) {
		e, _ := k.rpcError()
		show(k.Method, e)
	}
	n := 0
	for i := range c.table.rows {
		r := &c.table.rows[i]
		for _, text := range r.say {
			assert.True(t, shown[n], "row %s: no recorded answer is decided by %q", r.name, text)
			n++
		}
		n += len(r.unless)
	}
	require.Len(t, shown, n)
}

// A wording that can't match is refused when the table is compiled.
func TestTableRefusesUnusableWordings(t *testing.T) {
	for _, text := range []string{"", "...", "nonce .. ", "Nonce too low", "{a|}"} {
		_, err := compileTable([]section{{step: stepNode, verdict: VerdictRPCFail, rows: []row{{name: "odd", say: []string{text}}}}})
		assert.Error(t, err, "%q", text)
	}
}

// The notation of wordings means what the page on it says.
func TestWordingNotation(t *testing.T) {
	for _, k := range []struct {
		wording, text string
		want          bool
	}{
		{"already known", "ALREADY_EXISTS: AlreadyKnown", true},
		{"already known", "alreadyknown", true},
		{"already known", "already  un-known", false},
		{"known transaction", "unknown transaction type", false},
		{"known transaction", "un-known transaction", true},
		{"nonce too {low|high}", "err: Nonce too high!", true},
		{"nonce too {low|high}", "nonce too old", false},
		{"block {range |}limit", "blockLimit", true},
		{"{a|b {c|d}} e", "bd e", true},
		{"more than # results", "more than 10,000 results", true},
		{"more than # results", "more than 0x2710 results", true},
		{"more than # results", "more than 1 2 results", true},
		{"more than # results", "more than results", false},
		{"mined_", "mined", true},
		{"mined_", "mined: 5", true},
		{"mined_", "minedir", false},
		{"method .. not supported", "Method foo isn't, not supported", true},
		{"method .. not supported", "Method foo. Tags are not supported", false},
		{"method .. not supported", "method " + strings.Repeat("x", 30) + " not supported", false},
		{"method ..40 not supported", "method " + strings.Repeat("x", 30) + " not supported", true},
		{"@ is off", "eth_getLogs is off", true},
		{"@ is off", "ETH_GETLOGS is off", true},
		{"@ is off", "eth_getLogsX is off", false},
		{"@ is off", "eth_call is off", false},
		{"& is off", "eth_call is off", true},
		{"= limit exceeded", "Limit exceeded.", true},
		{"= limit exceeded", "rate limit exceeded", false},
		{"= limit exceeded", "limit exceeded by far", false},
		{"^ not supported by", "not supported by Erigon3", true},
		{"^ not supported by", "tags not supported by us", false},
		{"doesn't exist", "it doesn’t exist", true},
	} {
		table, err := compileTable([]section{{step: stepNode, rows: []row{{name: "r", say: []string{k.wording}}}}})
		require.NoError(t, err)
		w := wordsOf("eth_getLogs", k.text, nil, 0)
		assert.Equal(t, k.want, table.decide(w, classesOf("eth_getLogs"), 0) != nil, "%q in %q (%s)", k.wording, k.text, w.buf)
		w.free()
	}
}

// A message means the same in capitals and in small letters.
func TestClassifyIgnoresCase(t *testing.T) {
	c := builtin(t)
	for _, k := range recordedCases(t) {
		e, ok := k.rpcError()
		if !ok || k.HTTP >= 300 {
			continue
		}
		want := c.rpcError("", k.Method, e)
		for _, change := range []func(string) string{strings.ToUpper, strings.ToLower} {
			other := &RPCError{Code: e.Code, Message: change(e.Message), Data: e.Data}
			got := c.rpcError("", k.Method, other)
			assert.Equal(t, want.verdict, got.verdict, "%s by %s, %s: %s", want.rule, got.rule, k.ID, other.Message)
		}
	}
}

// The order of rule A6.1: what stands first wins over what stands later.
func TestClassifyOrder(t *testing.T) {
	const send, call, logs = "eth_sendRawTransaction", "eth_call", "eth_getLogs"
	for _, k := range []struct {
		method, message string
		code            int
		want            string
	}{
		{send, "already known: txpool is full, nonce too low", -32000, "sent_ok"},
		{send, "txpool is full: transaction underpriced", -32000, "rpc_fail"},
		{send, "nonce too low: block not found", -32000, "caller"},
		{send, "transaction type not supported by method", -32000, "caller"},
		{send, "execution reverted: already known", -32000, "caller"},
		{send, "execution reverted: txpool is full", -32000, "caller"},
		{call, "already known", -32000, "caller"},
		{call, "execution reverted: missing trie node", -32603, "caller"},
		{call, "out of gas: rate limit exceeded", -32005, "caller"},
		{call, "state is pruned; method not available", -32000, "no_state"},
		{logs, "block range [1, 5] is pruned, the maximum block range is 100", -32000, "no_state"},
		{logs, "block range too large: method disabled, rate is fine", -32005, "range"},
		{call, "block range too large", -32000, "caller"},
		{call, "method not supported: insufficient funds on this plan", -32000, "unsupported"},
		{call, "insufficient funds, try again", -32000, "caller"},
		{call, "internal error: nonce too low", -32603, "caller"},
		{call, "missing trie node 12ab (path ) state 0x1 is not available, not found", -32000, "rpc_fail"},
		{call, "something odd", 3, "caller"},
		{call, "upstream overloaded", 3, "rpc_fail"},
		{call, "something odd", -32601, "unsupported"},
		{call, "something odd", -32005, "rpc_fail"},
		{call, "something odd", -32603, "rpc_fail"},
		{call, "something odd", -32000, "caller"},
		{call, "something odd", 429, "caller"},
		{call, "", 0, "caller"},
	} {
		j := builtin(t).rpcError("", k.method, &RPCError{Code: k.code, Message: k.message})
		assert.Equal(t, k.want, j.label(), "%s: %d %s (by %s)", k.method, k.code, k.message, j.rule)
	}
}

// Where the method isn't known, as in Run, the words decide: a range refusal is one,
// a time-out isn't, and a raw send's success can't be told.
func TestClassifyInRun(t *testing.T) {
	c := builtin(t)
	for message, want := range map[string]Verdict{
		"block range too large":                      VerdictRange,
		"query timeout exceeded":                     VerdictRPCFail,
		"trace_filter is not available on this plan": VerdictUnsupported,
		"already known":                              VerdictCaller,
		"invalid transaction signature":              VerdictCaller,
		"block not found":                            VerdictNoState,
	} {
		assert.Equal(t, want, c.rpcError("", "", &RPCError{Code: -32000, Message: message}).verdict, message)
	}
}

// The words may stand in the data alone: in a string, in an object, in hex. What
// repeats the request isn't read.
func TestClassifyReadsData(t *testing.T) {
	for _, k := range []struct {
		message, data string
		want          Verdict
	}{
		{"Internal error", `"height 5 is not available, lowest height is 10"`, VerdictNoState},
		{"Server error", `{"cause":{"name":"UNKNOWN_BLOCK","info":{}}}`, VerdictNoState},
		{"Server error", `{"TxExecutionError":{"InvalidTxError":{"InvalidNonce":{"ak_nonce":1}}}}`, VerdictCaller},
		{"server error", `"0x08C379A0000000000000000000000000"`, VerdictCaller},
		{"rate limit exceeded", `{"data":"0x4e487b710000000000000000"}`, VerdictCaller},
		{"rate limit exceeded", `"0xdeadbeef00"`, VerdictRPCFail},
		{"rate limit exceeded", `{"params":["execution reverted"],"request":{"note":"execution reverted"},"logs":["reverted"]}`, VerdictRPCFail},
		{"odd", `{"rate_limited":false,"state_pruned":null}`, VerdictCaller},
		{"odd", `{"rate_limited":true}`, VerdictRPCFail},
		{"odd", "{\"why\":\"too many requests\", cut", VerdictRPCFail},
		{"odd", `"esc\u0061ped: r\u0061te limit"`, VerdictRPCFail},
		{"54617020726174652065786365656465643a2072617465206c696d6974", "", VerdictRPCFail},
		{"odd", `[[["busy"]]]`, VerdictRPCFail},
	} {
		j := builtin(t).rpcError("", "eth_call", &RPCError{Code: -32000, Message: k.message, Data: json.RawMessage(k.data)})
		assert.Equal(t, k.want, j.verdict, "%s %s (by %s)", k.message, k.data, j.rule)
	}
}

// Numbers that are no hint aren't taken for one.
func TestHintsComeOfTheRightNumbers(t *testing.T) {
	for _, k := range []struct {
		message  string
		span     uint64
		from, to uint64
	}{
		{"eth_getLogs is limited to 0 - 50 blocks range", 50, 0, 0},
		{"block range too large (2000), maximum allowed is 1000 blocks", 1000, 0, 0},
		{"max block range is 0x3e8", 1000, 0, 0},
		{"max is 1M blocks", 1_000_000, 0, 0},
		{"limited to 10 000 blocks", 10000, 0, 0},
		{"limited to 10_000 blocks", 10000, 0, 0},
		{"limited to 10,000,000 blocks", 10_000_000, 0, 0},
		{"limit the range to 500 blocks: requested 5000 blocks", 500, 0, 0},
		{"requested range of 20000 blocks exceeds limit of 1000", 1000, 0, 0},
		{"range too large, retry in 5s", 0, 0, 0},
		{"block range limit exceeded on node 127.0.0.1:8545", 0, 0, 0},
		{"block range limit exceeded, trace 0x5f6f7a8b5e6f7a8b5e6f7a8b5e6f7a8b", 0, 0, 0},
		{"block range limit exceeded (code 413)", 0, 0, 0},
		{"block range limit is 99999999999999999999999", 0, 0, 0},
		{"block range limit is 0", 0, 0, 0},
		{"query returned more than 10000 results", 0, 0, 0},
		{"the maximum duration of a range is 7 days (604800 seconds)", 0, 0, 0},
		{"response over 150MB: narrow the block range", 0, 0, 0},
		{"limit of 30 requests: block range too large", 0, 0, 0},
		{"query exceeds max results 20000, retry with the range 6000000-6000509", 0, 6000000, 6000509},
		{"query exceeds max results 20000, retry with the range 6000509-6000000", 0, 0, 0},
		{"requested block range [4096, 8192] is too wide", 0, 0, 0},
		{"Try with this block range [0x10, 0x20].", 0, 16, 32},
	} {
		w := wordsOf("eth_getLogs", k.message, nil, 0)
		h := hintsOf(w)
		w.free()
		assert.Equal(t, k.span, h.span, k.message)
		assert.Equal(t, []uint64{k.from, k.to}, []uint64{h.from, h.to}, k.message)
		assert.Equal(t, k.to > 0, h.hasRange, k.message)
	}
}

// A status without a telling body is judged by itself, with the right report
// (rules A5, A6.4).
func TestStatusWithoutWords(t *testing.T) {
	verdicts := map[Verdict][]int{
		VerdictIPBlocked: {401, 403, 429},
		VerdictProxyFail: {407},
		VerdictCaller:    {400, 406, 409, 411, 412, 413, 414, 415, 416, 417, 418, 422, 424, 428, 431},
		VerdictRPCFail:   {300, 301, 302, 303, 304, 307, 308, 402, 404, 405, 408, 410, 421, 423, 425, 426, 451, 500, 501, 502, 503, 504, 507, 520, 522, 524, 529, 530, 599, 999},
	}
	reports := map[int]string{401: "http_403", 403: "http_403", 429: "http_429", 408: "timeout"}
	for want, statuses := range verdicts {
		for _, status := range statuses {
			for _, body := range []string{"", "no", "{}", "[]", `{"message":"no"}`, "<html><title>No</title></html>", `{"error":{}}`, "\x00\xff{"} {
				j, e := builtin(t).status("", "eth_blockNumber", status, []byte(body))
				assert.Equal(t, want, j.verdict, "%d %s", status, body)
				assert.Nil(t, e)
				report := reports[status]
				if report == "" && want == VerdictRPCFail {
					report = "rpc_error"
				}
				assert.Equal(t, report, j.report, "%d", status)
			}
		}
	}
}

// A JSON-RPC error in the body wins over the status where its words are clear, and
// then it is given to the caller (rule A6.4).
func TestStatusAgainstTheBody(t *testing.T) {
	for _, k := range []struct {
		method string
		status int
		code   int
		say    string
		want   string
		given  bool
	}{
		{"eth_call", 500, 3, "execution reverted", "caller", true},
		{"eth_call", 500, 3, "odd", "caller", true},
		{"eth_call", 403, -32000, "execution reverted", "caller", true},
		{"eth_getLogs", 400, -32602, "block range is too wide", "range", true},
		{"eth_getLogs", 413, -32602, "block range is too wide", "range", true},
		{"eth_foo", 403, -32601, "no such thing", "unsupported", true},
		{"eth_foo", 404, -32601, "Method not found", "unsupported", true},
		{"eth_getBalance", 403, -32002, "project ID does not have access to archive state", "no_state", true},
		{"eth_sendRawTransaction", 500, -32000, "already known", "sent_ok", true},
		{"eth_sendRawTransaction", 503, -32000, "nonce too low", "caller", true},
		{"eth_sendRawTransaction", 401, -32000, "invalid signature", "caller", true},
		{"eth_call", 401, -32000, "invalid signature", "ip_blocked", false},
		{"eth_call", 429, -32005, "limit exceeded", "ip_blocked", false},
		{"eth_call", 500, -32000, "something odd", "rpc_fail", false},
		{"eth_call", 500, -32602, "invalid params", "rpc_fail", false},
		{"eth_call", 400, -32602, "invalid params", "caller", false},
		{"eth_call", 400, -32000, "no backend available", "rpc_fail", true},
		{"eth_call", 413, -32000, "upgrade your plan", "caller", false},
		{"getblock", 500, -8, "blockhash must be of length 64", "caller", true},
		{"getblockcount", 500, -28, "Loading block index...", "rpc_fail", false},
		{"eth_call", 408, -32000, "request timeout", "rpc_fail", false},
	} {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":%q}}`, k.code, k.say)
		j, e := builtin(t).status("", k.method, k.status, []byte(body))
		assert.Equal(t, k.want, j.label(), "%d %s (by %s)", k.status, k.say, j.rule)
		assert.Equal(t, k.given, e != nil, "%d %s", k.status, k.say)
		if e != nil {
			assert.Equal(t, k.code, e.Code)
			assert.Equal(t, k.say, e.Message)
		}
	}
}

// A body that isn't a JSON-RPC error may tell what is wrong too, but a page's or a
// gateway's words don't go as far.
func TestStatusWithOtherBodies(t *testing.T) {
	for _, k := range []struct {
		method string
		status int
		body   string
		want   Verdict
	}{
		{"eth_call", 405, "method not allowed\n", VerdictRPCFail},
		{"eth_call", 404, "404 page not found\n", VerdictRPCFail},
		{"debug_traceCall", 403, `{"error":"debug methods not permitted"}`, VerdictUnsupported},
		{"eth_call", 403, `{"error":"invalid signature"}`, VerdictIPBlocked},
		{"eth_getLogs", 504, "<html><title>504 Gateway Time-out</title></html>", VerdictRPCFail},
		{"eth_getLogs", 400, `{"error":"block range too large"}`, VerdictRange},
		{"/v1/x", 410, `{"message":"Block(5) has been pruned","error_code":"block_pruned"}`, VerdictNoState},
		{"eth_call", 400, "<html><title>400 The plain HTTP request was sent to HTTPS port</title></html>", VerdictRPCFail},
		{"eth_call", 200, `{"ok":false,"error":"Unknown method"}`, VerdictUnsupported},
		{"eth_call", 200, `{"jsonrpc":"2.0","id":1,"error":"odd"}`, VerdictRPCFail},
		{"eth_call", 200, `execution reverted`, VerdictRPCFail},
		{"eth_call", 200, `{"error":"execution reverted"`, VerdictRPCFail},
	} {
		j, e := builtin(t).status("", k.method, k.status, []byte(k.body))
		assert.Equal(t, k.want, j.verdict, "%d %s (by %s)", k.status, k.body, j.rule)
		assert.Nil(t, e)
	}
}

// The user's rules come before everything, in their order, and only for the chains
// and methods that they are for (rule A6.5).
func TestRulesComeFirst(t *testing.T) {
	odd := regexp.MustCompile("odd")
	c, err := newClassifier([]Rule{
		{Name: "one chain", Pattern: odd, Chains: []string{"eip155:1"}, Verdict: VerdictNoState},
		{Name: "one method", Pattern: odd, Methods: []string{"eth_foo"}, Verdict: VerdictUnsupported},
		{Name: "a range", Pattern: odd, Verdict: VerdictRange},
		{Name: "revert", Pattern: regexp.MustCompile("^execution reverted: paused"), Verdict: VerdictRPCFail},
		{Name: "panics", Match: func(a ErrorAnswer) bool { return a.Message[99] == 'x' }, Verdict: VerdictRPCFail},
		{Name: "match", Match: func(a ErrorAnswer) bool { return a.Code == 7 && a.Status == 200 }, Verdict: VerdictIPBlocked},
		{Name: "both", Pattern: regexp.MustCompile("both"), Match: func(a ErrorAnswer) bool { return a.Code == 8 }, Verdict: VerdictCaller},
		{Name: "in data", Pattern: regexp.MustCompile("no credits"), Verdict: VerdictRPCFail},
		{Name: "last", Pattern: odd, Verdict: VerdictRPCFail},
	})
	require.NoError(t, err)
	for _, k := range []struct {
		chain, method, message, data string
		code                         int
		rule                         string
		want                         Verdict
		report                       string
	}{
		{"eip155:1", "eth_foo", "ODD", "", 0, "one chain", VerdictNoState, ""},
		{"eip155:2", "eth_foo", "odd", "", 0, "one method", VerdictUnsupported, ""},
		{"", "eth_getLogs", "odd: max block range 5", "", 0, "a range", VerdictRange, ""},
		{"", "eth_call", "odd", "", 0, "last", VerdictRPCFail, "rpc_error"},
		{"", "eth_call", "execution reverted: Paused", "", 3, "revert", VerdictRPCFail, "rpc_error"},
		{"", "eth_call", "seven", "", 7, "match", VerdictIPBlocked, "http_403"},
		{"", "eth_call", "both", "", 8, "both", VerdictCaller, ""},
		{"", "eth_call", "both", "", 9, "", VerdictCaller, ""},
		{"", "eth_call", "x", `{"why":"No credits"}`, 0, "in data", VerdictRPCFail, "rpc_error"},
		{"", "eth_call", "nonce too low", "", 0, "nonce", VerdictCaller, ""},
	} {
		j := c.rpcError(k.chain, k.method, &RPCError{Code: k.code, Message: k.message, Data: json.RawMessage(k.data)})
		assert.Equal(t, k.rule, j.rule, k.message)
		assert.Equal(t, k.want, j.verdict, k.message)
		assert.Equal(t, k.report, j.report, k.message)
	}
	j := c.rpcError("", "eth_getLogs", &RPCError{Message: "odd: max block range 5"})
	assert.EqualValues(t, 5, j.hints.span, "hints are read out for a user's rule too")
	j, e := c.status("", "eth_call", http.StatusForbidden, []byte(`{"error":{"code":1,"message":"odd"}}`))
	assert.Equal(t, "last", j.rule, "rules win over the status")
	assert.Equal(t, &RPCError{Code: 1, Message: "odd"}, e)
	j, e = c.status("", "eth_call", http.StatusForbidden, []byte("an odd text"))
	assert.Equal(t, "last", j.rule)
	assert.Nil(t, e)
}

// Rules that can't be used are refused, with the field that names them.
func TestRulesAreChecked(t *testing.T) {
	pattern := regexp.MustCompile("x")
	for name, r := range map[string]Rule{
		"no verdict":       {Pattern: pattern},
		"ok":               {Pattern: pattern, Verdict: VerdictOK},
		"conn_fail":        {Pattern: pattern, Verdict: VerdictConnFail},
		"unknown":          {Pattern: pattern, Verdict: "rpcfail"},
		"nothing to match": {Verdict: VerdictCaller},
	} {
		_, err := newClassifier([]Rule{{Pattern: pattern, Verdict: VerdictCaller}, r})
		var bad *ConfigError
		require.ErrorAs(t, err, &bad, name)
		assert.Equal(t, "Rules[1]", bad.Field)
		assert.NotEmpty(t, bad.Reason)
	}
}

// The user's slices are copied in: what becomes of them later changes nothing.
func TestRulesAreCopied(t *testing.T) {
	rules := []Rule{{Name: "a", Pattern: regexp.MustCompile("odd"), Methods: []string{"eth_a"}, Chains: []string{"eip155:1"}, Verdict: VerdictRPCFail}}
	c, err := newClassifier(rules)
	require.NoError(t, err)
	rules[0].Methods[0], rules[0].Chains[0], rules[0].Verdict = "eth_b", "eip155:2", VerdictCaller
	assert.Equal(t, VerdictRPCFail, c.rpcError("eip155:1", "eth_a", &RPCError{Message: "odd"}).verdict)
}

// underRace tells whether the race detector is on.
func underRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// Judging allocates nothing, whatever the answer (a user's pattern aside), and of a
// long text only its beginning and end are looked at.
func TestClassifyCost(t *testing.T) {
	c := builtin(t)
	mib := 1 << 20
	for name, e := range map[string]*RPCError{
		"revert":  {Code: 3, Message: "execution reverted: Dai/insufficient-balance", Data: json.RawMessage(`"0x08c379a0` + strings.Repeat("00", 96) + `"`)},
		"range":   {Code: -32602, Message: "You can make eth_getLogs requests with up to a 2K block range. Based on your parameters, this block range should work: [0x0, 0x133e71]"},
		"unknown": {Code: -32000, Message: "something odd"},
		"hostile": {Code: -32000, Message: strings.Repeat("block range limit exceeded method nonce ", mib/40), Data: json.RawMessage(`{"a":"` + strings.Repeat("too many ", mib/9) + `"}`)},
	} {
		allocs := testing.AllocsPerRun(20, func() { c.rpcError("eip155:1", "eth_getLogs", e) })
		if !underRace() { // whose sync.Pool forgets on purpose
			assert.LessOrEqual(t, allocs, 2.0, name)
		}
		w := wordsOf("eth_getLogs", e.Message, e.Data, e.Code)
		assert.LessOrEqual(t, len(w.raw), 3*maxText, name)
		assert.LessOrEqual(t, len(w.buf), 3*maxText, name)
		w.free()
	}
	x := strings.Repeat("x ", mib)
	for text, want := range map[string]Verdict{
		"rate limit" + x:         VerdictRPCFail,
		x + "rate limit":         VerdictRPCFail,
		x + "rate limit" + x:     VerdictCaller,
		x[:100] + "rate limit":   VerdictRPCFail,
		x[:6000] + "rate limit!": VerdictRPCFail,
	} {
		assert.Equal(t, want, c.rpcError("", "eth_call", &RPCError{Message: text}).verdict)
	}
}

// Judgements don't depend on what is judged at the same time.
func TestClassifyConcurrently(t *testing.T) {
	c := builtin(t)
	cases := recordedCases(t)
	want := make([]judgement, len(cases))
	for i := range cases {
		want[i] = cases[i].classify(c)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range cases {
				if got := cases[i].classify(c); !assert.ObjectsAreEqual(want[i], got) {
					t.Errorf("%s: %+v, then %+v", cases[i].ID, want[i], got)
				}
			}
		})
	}
	wg.Wait()
}

// checkJudgement asserts what holds of every judgement of the built-in table.
func checkJudgement(t *testing.T, method string, j judgement) {
	t.Helper()
	allowed := []Verdict{VerdictOK, VerdictCaller, VerdictRPCFail, VerdictUnsupported, VerdictRange, VerdictNoState, VerdictIPBlocked, VerdictProxyFail}
	assert.True(t, slices.Contains(allowed, j.verdict), "verdict %q", j.verdict)
	assert.Equal(t, j.verdict == VerdictOK, j.sentOK)
	if j.sentOK {
		assert.True(t, isRawSend(method))
	}
	if j.verdict == VerdictRange {
		assert.True(t, isLogQuery(method) || method == "")
	} else {
		assert.Nil(t, j.hints)
	}
	if j.hints != nil {
		assert.LessOrEqual(t, j.hints.from, j.hints.to)
	}
	assert.Equal(t, j.verdict == VerdictRPCFail || j.verdict == VerdictIPBlocked, j.report != "", "report %q", j.report)
	assert.True(t, !j.pruned || j.verdict == VerdictNoState)
}

// oneOfEachRow gives one recorded answer for each row and status: enough to begin
// with, and soon run through.
func oneOfEachRow(t testing.TB, c *classifier) (seeds []recordedCase) {
	seen := map[string]bool{}
	for _, k := range recordedCases(t) {
		j := k.classify(c)
		if key := fmt.Sprint(j.rule, k.HTTP); !seen[key] {
			seen[key] = true
			seeds = append(seeds, k)
		}
	}
	return seeds
}

// Any answer gets a verdict, always the same.
func FuzzClassify(f *testing.F) {
	c := builtin(f)
	for _, k := range oneOfEachRow(f, c) {
		if e, ok := k.rpcError(); ok {
			f.Add(k.Method, e.Code, e.Message, []byte(e.Data))
		}
	}
	f.Fuzz(func(t *testing.T, method string, code int, message string, data []byte) {
		e := &RPCError{Code: code, Message: message, Data: data}
		j := c.rpcError("eip155:1", method, e)
		checkJudgement(t, method, j)
		assert.Equal(t, j, c.rpcError("eip155:1", method, e))
	})
}

// Any answer with any status gets a verdict, always the same.
func FuzzStatus(f *testing.F) {
	c := builtin(f)
	for _, k := range oneOfEachRow(f, c) {
		f.Add(k.Method, k.HTTP, k.body())
	}
	f.Fuzz(func(t *testing.T, method string, status int, body []byte) {
		kept := slices.Clone(body)
		j, e := c.status("eip155:1", method, status, body)
		checkJudgement(t, method, j)
		again, e2 := c.status("eip155:1", method, status, body)
		assert.Equal(t, j, again)
		assert.Equal(t, e, e2)
		assert.Equal(t, kept, body, "the body is left as it was")
	})
}

func BenchmarkClassify(b *testing.B) {
	c := builtin(b)
	for _, k := range []struct {
		name, method string
		e            RPCError
	}{
		{"revert", "eth_call", RPCError{Code: 3, Message: "execution reverted: Dai/insufficient-balance", Data: json.RawMessage(`"0x08c379a0` + strings.Repeat("00", 96) + `"`)}},
		{"nonce", "eth_sendRawTransaction", RPCError{Code: -32000, Message: "nonce too low: next nonce 12, tx nonce 11"}},
		{"range", "eth_getLogs", RPCError{Code: -32602, Message: "exceed maximum block range: 5000"}},
		{"unknown", "eth_call", RPCError{Code: -32000, Message: "something odd happened while reading the thing"}},
		{"method", "debug_traceCall", RPCError{Code: -32601, Message: "the method debug_traceCall does not exist/is not available"}},
		{"hostile", "eth_getLogs", RPCError{Code: -32000, Message: strings.Repeat("block range limit exceeded method nonce ", 26000)}},
	} {
		b.Run(k.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.rpcError("eip155:1", k.method, &k.e)
			}
		})
	}
}
