package rpcpool_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// scenario is a file of testdata/conformance: a small world and steps that are
// carried out in order.
type scenario struct {
	Name    string           `json:"name"`
	Rules   []string         `json:"rules"`
	About   string           `json:"about"`
	Config  scenarioConfig   `json:"config"`
	Proxies []scriptedServer `json:"proxies"`
	RPCs    []scriptedServer `json:"rpcs"`
	Pool    struct {
		Lists   []scriptEntry `json:"lists"`
		Reports []scriptEntry `json:"reports"`
	} `json:"pool"`
	Steps []step `json:"steps"`
}

type scenarioConfig struct {
	Mode             string  `json:"mode"`
	MaxRounds        int     `json:"max_rounds"`
	Timeout          seconds `json:"timeout_s"`
	Refresh          seconds `json:"refresh_s"`
	ProxyCheckURL    string  `json:"proxy_check_url"`
	MaxResponseBytes int64   `json:"max_response_bytes"`
}

type scriptedServer struct {
	Name   string        `json:"name"`
	URL    string        `json:"url"`
	Script []scriptEntry `json:"script"`
}

// scriptEntry is an entry of any script; which fields count depends on do and on
// the server.
type scriptEntry struct {
	Do string `json:"do"`

	FromStep *int    `json:"from_step"`
	ToStep   *int    `json:"to_step"`
	Times    int     `json:"times"`
	Method   string  `json:"method"`
	Via      string  `json:"via"`
	Chain    string  `json:"chain"`
	Delay    seconds `json:"delay_s"`

	Value   json.RawMessage              `json:"value"`
	Code    int                          `json:"code"`
	Message string                       `json:"message"`
	Data    json.RawMessage              `json:"data"`
	Status  int                          `json:"status"`
	Headers map[string]string            `json:"headers"`
	Body    string                       `json:"body"`
	Error   *rpcFault                    `json:"error"`
	Cut     bool                         `json:"cut"`
	Bytes   int                          `json:"bytes"`
	MaxSpan uint64                       `json:"max_span"`
	Key     string                       `json:"key"`
	RPCs    []map[string]json.RawMessage `json:"rpcs"`
}

type rpcFault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// seconds of virtual time.
type seconds float64

func (s seconds) duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

type step struct {
	Call      *callStep `json:"call"`
	Run       *runStep  `json:"run"`
	GetLogs   *logsStep `json:"get_logs"`
	LogChunks *logsStep `json:"log_chunks"`
	Parallel  []step    `json:"parallel"`
	Advance   *seconds  `json:"advance_s"`
	Restart   bool      `json:"restart"`
	Close     bool      `json:"close"`
	CacheFile *struct {
		Do    string `json:"do"`
		File  string `json:"file"`
		ToRef string `json:"to_ref"`
	} `json:"cache_file"`

	Start       seconds  `json:"start_s"`
	CancelAfter *seconds `json:"cancel_after_s"`
	Expect      expect   `json:"expect"`
}

// calls tells whether the step calls the library for something.
func (s *step) calls() bool {
	return s.Call != nil || s.Run != nil || s.GetLogs != nil || s.LogChunks != nil || s.Parallel != nil
}

type callStep struct {
	Chain   string          `json:"chain"`
	ChainID uint64          `json:"chain_id"`
	Archive string          `json:"archive"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

type runStep struct {
	Chain  string `json:"chain"`
	Method string `json:"method"`
	Then   string `json:"then"`
}

type logsStep struct {
	Chain   string `json:"chain"`
	Archive string `json:"archive"`
	Filter  struct {
		Address   any    `json:"address"`
		Topics    []any  `json:"topics"`
		FromBlock any    `json:"fromBlock"`
		ToBlock   any    `json:"toBlock"`
		BlockHash string `json:"blockHash"`
	} `json:"filter"`
	Chunk       uint64 `json:"chunk"`
	Concurrency int    `json:"concurrency"`
}

// expect is what must hold after a step. Only what is named is compared, so nil
// is another thing than empty.
type expect struct {
	Result    json.RawMessage `json:"result"`
	Error     *wantError      `json:"error"`
	Requests  [][3]*string    `json:"requests"`
	Lists     []string        `json:"lists"`
	Reports   [][3]string     `json:"reports"`
	Elapsed   *seconds        `json:"elapsed_s"`
	ElapsedTo *seconds        `json:"elapsed_max_s"`
	Outcomes  []struct {
		Result json.RawMessage `json:"result"`
		Error  *wantError      `json:"error"`
	} `json:"outcomes"`
	LogBlocks  []uint64    `json:"log_blocks"`
	Chunks     [][2]uint64 `json:"chunks"`
	Warn       *bool       `json:"warn"`
	RetryAt    *seconds    `json:"retry_at_s"`
	Shown      [][2]string `json:"shown"`
	CacheFiles []string    `json:"cache_files"`
	CacheMode  *struct {
		Dir  string `json:"dir"`
		File string `json:"file"`
	} `json:"cache_mode"`
}

type wantError struct {
	Kind     string          `json:"kind"`
	Code     *int            `json:"code"`
	Message  *string         `json:"message"`
	Data     json.RawMessage `json:"data"`
	Status   *int            `json:"status"`
	Attempts [][3]string     `json:"attempts"`
}

// readScenario refuses keys that it doesn't know, so that no part of a scenario
// is left out in silence.
func readScenario(path string) (*scenario, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	var s scenario
	if err := decoder.Decode(&s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &s, nil
}

// limited puts an entry's conditions on a reply of a kind.
func limited[R interface {
	Times(int) R
	FromStep(int) R
	ToStep(int) R
	Delay(time.Duration) R
	Header(string, string) R
}](r R, e scriptEntry) R {
	r = r.Times(e.Times).Delay(e.Delay.duration())
	if e.FromStep != nil {
		r = r.FromStep(*e.FromStep)
	}
	if e.ToStep != nil {
		r = r.ToStep(*e.ToStep)
	}
	for name, value := range e.Headers {
		r = r.Header(name, value)
	}
	return r
}

func proxyScript(entries []scriptEntry) ([]rpcpooltest.ProxyReply, error) {
	var script []rpcpooltest.ProxyReply
	for _, e := range entries {
		reply, err := proxyReply(e)
		if err != nil {
			return nil, err
		}
		script = append(script, limited(reply, e))
	}
	return script, nil
}

func proxyReply(e scriptEntry) (rpcpooltest.ProxyReply, error) {
	switch e.Do {
	case "ok":
		return rpcpooltest.ProxyCarry(), nil
	case "refuse":
		return rpcpooltest.ProxyRefuse(), nil
	case "hang":
		return rpcpooltest.ProxyHang(), nil
	case "auth":
		return rpcpooltest.ProxyRefuseLogin(), nil
	case "garbage":
		return rpcpooltest.ProxyGarbage(), nil
	case "reply":
		return rpcpooltest.ProxyCode(e.Code), nil
	case "status":
		return rpcpooltest.ProxyStatus(e.Status), nil
	case "blackhole":
		return rpcpooltest.ProxyBlackHole(), nil
	}
	return rpcpooltest.ProxyReply{}, fmt.Errorf("a proxy can't do %q", e.Do)
}

func nodeScript(entries []scriptEntry) ([]rpcpooltest.Reply, error) {
	var script []rpcpooltest.Reply
	for _, e := range entries {
		reply, err := nodeReply(e)
		if err != nil {
			return nil, err
		}
		script = append(script, limited(reply, e).Method(e.Method).Via(e.Via))
	}
	return script, nil
}

func nodeReply(e scriptEntry) (rpcpooltest.Reply, error) {
	switch e.Do {
	case "result":
		return rpcpooltest.Result(e.Value), nil
	case "error":
		if e.Data != nil {
			return rpcpooltest.ErrorData(e.Code, e.Message, e.Data), nil
		}
		return rpcpooltest.Error(e.Code, e.Message), nil
	case "http":
		return statusReply(e), nil
	case "garbage":
		return rpcpooltest.Garbage(), nil
	case "body":
		return rpcpooltest.Body(e.Body), nil
	case "wrong_id":
		return rpcpooltest.WrongID(e.Value), nil
	case "big":
		return rpcpooltest.Big(e.Bytes), nil
	case "logs":
		if e.Error != nil {
			return rpcpooltest.LogsUpTo(e.MaxSpan, rpcpooltest.Error(e.Error.Code, e.Error.Message)), nil
		}
		return rpcpooltest.Logs(), nil
	case "hang":
		return rpcpooltest.Hang(), nil
	case "hang_body":
		return rpcpooltest.HangInBody(), nil
	case "reset":
		return rpcpooltest.Reset(), nil
	case "close":
		return rpcpooltest.Close(), nil
	case "truncated":
		return rpcpooltest.Truncated(), nil
	case "unreachable":
		return rpcpooltest.Unreachable().Code(e.Code).WithStatus(e.Status), nil
	case "bad_tls":
		return rpcpooltest.BadTLS(), nil
	case "hang_tls":
		return rpcpooltest.HangTLS(), nil
	}
	return rpcpooltest.Reply{}, fmt.Errorf("an RPC can't do %q", e.Do)
}

func statusReply(e scriptEntry) rpcpooltest.Reply {
	reply := rpcpooltest.Status(e.Status).Text(e.Body)
	if e.Error != nil {
		reply = rpcpooltest.Error(e.Error.Code, e.Error.Message).WithStatus(e.Status)
	}
	if e.Cut {
		reply = reply.Cut()
	}
	return reply
}

// poolReply makes an answer of the pool's; urls are those of the RPCs by name.
func poolReply(e scriptEntry, urls map[string]string) (rpcpooltest.PoolReply, error) {
	var reply rpcpooltest.PoolReply
	switch e.Do {
	case "list":
		var entries []any
		for _, rpc := range e.RPCs {
			entries = append(entries, listEntry(rpc, urls))
		}
		reply = rpcpooltest.PoolList(e.Key, entries...)
	case "status":
		reply = rpcpooltest.PoolStatus(e.Status)
	case "garbage":
		reply = rpcpooltest.PoolGarbage()
		if e.Body != "" {
			reply = rpcpooltest.PoolBody(e.Body)
		}
	case "reset":
		reply = rpcpooltest.PoolReset()
	case "hang":
		reply = rpcpooltest.PoolHang()
	case "ok":
		reply = rpcpooltest.PoolTake()
	default:
		return reply, fmt.Errorf("the pool can't do %q", e.Do)
	}
	return limited(reply, e), nil
}

// listEntry puts the URL in the place of the RPC's name and passes the rest on.
func listEntry(rpc map[string]json.RawMessage, urls map[string]string) map[string]any {
	entry := map[string]any{}
	for key, value := range rpc {
		var name string
		if key == "rpc" && json.Unmarshal(value, &name) == nil {
			entry["url"] = urls[name]
			continue
		}
		entry[key] = value
	}
	return entry
}
