package rpcpool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// mainnet is the chain whose best RPCs proxies are checked by; the lists that the
// check asks for aren't counted.
const mainnet = "eip155:1"

// tolerance is for what virtual time is exact to: timers of the library's own
// may come a little before or after.
const tolerance = 5 * time.Millisecond

// mark is how far the records had come.
type mark struct {
	exchanges, dials, lists, reports, logText, warnings int
}

func (p *player) mark() mark {
	text, warnings := p.log.seen()
	return mark{
		exchanges: len(p.world.Network.Exchanges()),
		dials:     len(p.world.Network.Dials()),
		lists:     len(p.world.Pool.Asked()),
		reports:   len(p.world.Pool.Reports()),
		logText:   len(text),
		warnings:  warnings,
	}
}

func (p *player) checkOutcome(want expect, got outcome) {
	if !got.acted {
		return
	}
	p.checkEnd(p.label, want.Error, want.Result, got)
	if want.LogBlocks != nil {
		assert.Equal(p.t, want.LogBlocks, blocksOf(p, got.logs), "%s: log_blocks", p.label)
	}
	if want.Chunks != nil {
		assert.Equal(p.t, want.Chunks, got.chunks, "%s: chunks", p.label)
	}
	if want.Shown != nil {
		shown := [][2]string{}
		for _, a := range attemptsOf(got.err) {
			shown = append(shown, [2]string{a.RPC, a.Proxy})
		}
		assert.Equal(p.t, want.Shown, shown, "%s: shown", p.label)
	}
	if want.RetryAt != nil {
		var none *rpcpool.NoHealthyRPCError
		if assert.ErrorAs(p.t, got.err, &none, "%s: retry_at_s", p.label) {
			assert.WithinDuration(p.t, p.begin.Add(want.RetryAt.duration()), none.RetryAt, tolerance, "%s: retry_at_s", p.label)
		}
	}
}

func (p *player) checkParallel(want expect, got []outcome) {
	if want.Outcomes == nil {
		return
	}
	require.Len(p.t, got, len(want.Outcomes), "%s: outcomes", p.label)
	for i, w := range want.Outcomes {
		p.checkEnd(fmt.Sprintf("%s, outcome %d", p.label, i), w.Error, w.Result, got[i])
	}
}

// checkEnd compares an error or a result.
func (p *player) checkEnd(label string, wantErr *wantError, wantResult json.RawMessage, got outcome) {
	if wantErr != nil {
		p.checkError(label, wantErr, got.err)
		return
	}
	if assert.NoError(p.t, got.err, label) && wantResult != nil {
		assert.JSONEq(p.t, string(wantResult), string(got.result), "%s: result", label)
	}
}

// kindOf gives the name that the scenarios have for an error.
func kindOf(err error) string {
	kinds := []struct {
		name string
		is   bool
	}{
		{"own", errors.Is(err, errOwn)},
		{"panic", errors.Is(err, errPanics)},
		{"closed", errors.Is(err, rpcpool.ErrClosed)},
		{"rpc_error", is[*rpcpool.RPCError](err)},
		{"http_error", is[*rpcpool.HTTPError](err)},
		{"logs_range", is[*rpcpool.LogsRangeTooLargeError](err)},
		{"no_capable", is[*rpcpool.NoCapableRPCError](err)},
		{"no_healthy", is[*rpcpool.NoHealthyRPCError](err)},
		{"proxy_error", is[*rpcpool.ProxyError](err)},
		{"pool_api", is[*rpcpool.PoolAPIError](err)},
		{"malformed", is[*rpcpool.MalformedResponseError](err)},
		{"config", is[*rpcpool.ConfigError](err)},
		{"canceled", errors.Is(err, context.Canceled)},
	}
	for _, kind := range kinds {
		if kind.is {
			return kind.name
		}
	}
	return fmt.Sprintf("%T", err)
}

func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

func (p *player) checkError(label string, want *wantError, err error) {
	if !assert.Equal(p.t, want.Kind, kindOf(err), "%s: the error's kind; it is %v", label, err) {
		return
	}
	var status int
	var rpcErr *rpcpool.RPCError
	var httpErr *rpcpool.HTTPError
	var poolErr *rpcpool.PoolAPIError
	switch {
	case errors.As(err, &rpcErr):
		p.checkRPCError(label, want, rpcErr)
	case errors.As(err, &httpErr):
		status = httpErr.StatusCode
	case errors.As(err, &poolErr):
		status = poolErr.StatusCode
	}
	if want.Status != nil {
		assert.Equal(p.t, *want.Status, status, "%s: the error's status", label)
	}
	if want.Attempts != nil {
		assert.Equal(p.t, want.Attempts, p.named(attemptsOf(err)), "%s: the error's attempts", label)
	}
}

func (p *player) checkRPCError(label string, want *wantError, got *rpcpool.RPCError) {
	if want.Code != nil {
		assert.Equal(p.t, *want.Code, got.Code, "%s: the error's code", label)
	}
	if want.Message != nil {
		assert.Equal(p.t, *want.Message, got.Message, "%s: the error's message", label)
	}
	if want.Data != nil {
		assert.JSONEq(p.t, string(want.Data), string(got.Data), "%s: the error's data", label)
	}
}

// attemptsOf gives the attempts that an error lists.
func attemptsOf(err error) []rpcpool.Attempt {
	var noHealthy *rpcpool.NoHealthyRPCError
	var proxy *rpcpool.ProxyError
	var logs *rpcpool.LogsRangeTooLargeError
	switch {
	case errors.As(err, &noHealthy):
		return noHealthy.Attempts
	case errors.As(err, &proxy):
		return proxy.Attempts
	case errors.As(err, &logs):
		return logs.Attempts
	}
	return nil
}

// named gives attempts with the names of their RPCs and proxies, which are found
// by host: the rest of their URLs is masked.
func (p *player) named(attempts []rpcpool.Attempt) [][3]string {
	list := [][3]string{}
	for _, a := range attempts {
		list = append(list, [3]string{p.nameOf(a.RPC, p.scenario.RPCs), p.nameOf(a.Proxy, p.scenario.Proxies), string(a.Verdict)})
	}
	return list
}

func (p *player) nameOf(shown string, servers []scriptedServer) string {
	u, err := url.Parse(shown)
	if err != nil {
		return shown
	}
	for _, server := range servers {
		if full, err := url.Parse(server.URL); err == nil && full.Host == u.Host && full.Scheme == u.Scheme {
			return server.Name
		}
	}
	return shown
}

// checkTraffic compares what was asked of whom.
func (p *player) checkTraffic(s *step) {
	want := s.Expect
	exchanges := p.world.Network.Exchanges()[p.previous.exchanges:]
	lists := []string{}
	for _, asked := range p.world.Pool.Asked()[p.previous.lists:] {
		if asked.Chain != mainnet {
			lists = append(lists, asked.Chain)
		}
	}
	if s.Advance != nil {
		assert.Empty(p.t, p.world.Network.Dials()[p.previous.dials:], "%s: dialled while only time passed", p.label)
	}
	if want.Requests != nil {
		wanted, got := wantedLines(want.Requests), lines(exchanges)
		if s.Parallel != nil {
			slices.Sort(wanted)
			slices.Sort(got)
		}
		assert.Equal(p.t, wanted, got, "%s: requests, as [rpc proxy what]", p.label)
	}
	if want.Lists != nil {
		wanted := slices.Clone(want.Lists)
		if s.Parallel != nil {
			slices.Sort(wanted)
			slices.Sort(lists)
		}
		assert.Equal(p.t, wanted, lists, "%s: lists", p.label)
	}
	p.takeReports(s)
	if want.Warn != nil {
		_, warnings := p.log.seen()
		assert.Equal(p.t, *want.Warn, warnings > p.previous.warnings, "%s: warn", p.label)
	}
	p.checkParams(s, exchanges)
}

func wantedLines(requests [][3]*string) []string {
	list := []string{}
	for _, r := range requests {
		parts := make([]string, 3)
		for i, part := range r {
			parts[i] = "null"
			if part != nil {
				parts[i] = *part
			}
		}
		list = append(list, strings.Join(parts, " "))
	}
	return list
}

func lines(exchanges []rpcpooltest.Exchange) []string {
	list := []string{}
	for _, e := range exchanges {
		rpc := e.Node
		if rpc == "" {
			rpc = e.Target // no RPC of the scenario's
		}
		what := e.Method
		if from, to, ok := rpcpooltest.LogRange(e.Params); ok && what == "eth_getLogs" {
			what += fmt.Sprintf(" %d..%d", from, to)
		}
		list = append(list, orNull(rpc)+" "+orNull(e.Proxy)+" "+orNull(what))
	}
	return list
}

func orNull(text string) string {
	if text == "" {
		return "null"
	}
	return text
}

// checkParams: the caller's params arrive as they are.
func (p *player) checkParams(s *step, exchanges []rpcpooltest.Exchange) {
	for _, e := range exchanges {
		switch {
		case s.Call != nil && e.Method == s.Call.Method && s.Call.Params != nil:
			assert.JSONEq(p.t, string(s.Call.Params), string(e.Params), "%s: params", p.label)
		case s.Call != nil && e.Method == s.Call.Method:
			assert.Contains(p.t, []string{"", "[]"}, string(e.Params), "%s: params", p.label)
		case s.GetLogs != nil && e.Method == "eth_getLogs":
			p.checkFilter(s.GetLogs, e.Params)
		case s.LogChunks != nil && e.Method == "eth_getLogs":
			p.checkFilter(s.LogChunks, e.Params)
		}
	}
}

func (p *player) checkFilter(l *logsStep, params json.RawMessage) {
	var filters []map[string]any
	require.NoError(p.t, json.Unmarshal(params, &filters), "%s: params %s", p.label, params)
	require.Len(p.t, filters, 1, p.label)
	assert.Equal(p.t, l.Filter.Address, filters[0]["address"], "%s: the filter's address", p.label)
	if l.Filter.BlockHash != "" {
		assert.Equal(p.t, map[string]any{"address": l.Filter.Address, "blockHash": l.Filter.BlockHash}, filters[0], "%s: the filter", p.label)
	}
}

func (p *player) checkTime(want expect, elapsed time.Duration) {
	if want.Elapsed != nil {
		assert.InDelta(p.t, want.Elapsed.duration().Seconds(), elapsed.Seconds(), tolerance.Seconds(), "%s: elapsed_s", p.label)
	}
	if want.ElapsedTo != nil {
		assert.LessOrEqual(p.t, elapsed, want.ElapsedTo.duration()+tolerance, "%s: elapsed_max_s", p.label)
	}
}

func (p *player) checkFiles(want expect) {
	if want.CacheFiles != nil {
		files, err := filepath.Glob(filepath.Join(p.config.CacheDir, "*.json"))
		require.NoError(p.t, err)
		for i := range files {
			files[i] = filepath.Base(files[i])
		}
		assert.Equal(p.t, want.CacheFiles, files, "%s: cache_files", p.label)
	}
	if want.CacheMode == nil {
		return
	}
	err := filepath.WalkDir(p.config.CacheDir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		wanted := want.CacheMode.File
		if entry.IsDir() {
			wanted = want.CacheMode.Dir
		}
		assert.Equal(p.t, wanted, fmt.Sprintf("%04o", info.Mode().Perm()), "%s: the mode of %s", p.label, filepath.Base(path))
		return nil
	})
	assert.NoError(p.t, err)
}

// blocksOf reads the block numbers of logs.
func blocksOf(p *player, logs []json.RawMessage) []uint64 {
	blocks := []uint64{}
	for _, log := range logs {
		var l struct {
			BlockNumber string `json:"blockNumber"`
		}
		require.NoError(p.t, json.Unmarshal(log, &l), p.label)
		n, err := strconv.ParseUint(strings.TrimPrefix(l.BlockNumber, "0x"), 16, 64)
		if !assert.NoError(p.t, err, p.label) {
			n = math.MaxUint64
		}
		blocks = append(blocks, n)
	}
	return blocks
}
