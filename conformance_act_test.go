package rpcpool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool"
)

// outcome is what a step ended with.
type outcome struct {
	acted  bool // the step was one that has an outcome
	result json.RawMessage
	err    error
	logs   []json.RawMessage
	chunks [][2]uint64
}

var (
	errOwn    = errors.New("the function's own error")
	errPanics = errors.New("the function panicked")
)

// act carries out a step that calls the library.
func (p *player) act(s *step) outcome {
	ctx, cancel := context.WithCancel(p.calls)
	defer cancel()
	if s.CancelAfter != nil {
		timer := time.AfterFunc(s.CancelAfter.duration(), cancel)
		defer timer.Stop()
	}
	got := outcome{acted: true, err: p.poolErr}
	switch {
	case p.pool == nil:
	case s.Call != nil:
		got.result, got.err = p.call(ctx, s.Call)
	case s.Run != nil:
		got.result, got.err = p.run(ctx, s.Run)
	case s.GetLogs != nil:
		p.getLogs(ctx, s.GetLogs, &got)
	case s.LogChunks != nil:
		p.logChunks(ctx, s.LogChunks, &got)
	default:
		require.FailNow(p.t, "a step without anything to do", p.label)
	}
	return got
}

// chain asks for the handle each time, as programs do: it must be the same one.
func (p *player) chain(ref string, id uint64, archive string) *rpcpool.Chain {
	var opts []rpcpool.ChainOption
	switch archive {
	case "":
	case "none":
		opts = append(opts, rpcpool.WithArchive(rpcpool.ArchiveNone))
	case "recent":
		opts = append(opts, rpcpool.WithArchive(rpcpool.ArchiveRecent))
	case "full":
		opts = append(opts, rpcpool.WithArchive(rpcpool.ArchiveFull))
	default:
		require.FailNow(p.t, "an unknown archive level: "+archive, p.label)
	}
	if id != 0 {
		return p.pool.ChainID(id, opts...)
	}
	return p.pool.Chain(ref, opts...)
}

func (p *player) call(ctx context.Context, c *callStep) (json.RawMessage, error) {
	var params []any
	var list []json.RawMessage
	var object rpcpool.NamedParams
	switch {
	case c.Params == nil:
	case json.Unmarshal(c.Params, &list) == nil:
		for _, param := range list {
			params = append(params, param)
		}
	default:
		require.NoError(p.t, json.Unmarshal(c.Params, &object), p.label)
		params = []any{object}
	}
	return p.chain(c.Chain, c.ChainID, c.Archive).Call(ctx, c.Method, params...)
}

func (p *player) run(ctx context.Context, r *runStep) (result json.RawMessage, err error) {
	defer func() {
		switch recovered := recover(); recovered {
		case nil:
		case any(errPanics):
			result, err = nil, errPanics
		default:
			panic(recovered)
		}
	}()
	err = p.chain(r.Chain, 0, "").Run(ctx, func(ctx context.Context, url string, client *http.Client) error {
		answer, err := post(ctx, client, url, r.Method)
		if err != nil {
			return err
		}
		switch r.Then {
		case "ok":
			result = answer
			return nil
		case "own":
			return errOwn
		case "panic":
			panic(errPanics)
		}
		return fmt.Errorf("an unknown end: %q", r.Then)
	})
	return result, err
}

// post is what a user's function does: a JSON-RPC request by hand.
func post(ctx context.Context, client *http.Client, url, method string) (json.RawMessage, error) {
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":[]}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode/100 != 2 {
		return nil, &rpcpool.HTTPError{StatusCode: response.StatusCode, Status: response.Status}
	}
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Code    int             `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		} `json:"error"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, err
	}
	if e := answer.Error; e != nil {
		return nil, &rpcpool.RPCError{Code: e.Code, Message: e.Message, Data: e.Data}
	}
	return answer.Result, nil
}

func (l *logsStep) filter() rpcpool.LogFilter {
	return rpcpool.LogFilter{
		Address:   l.Filter.Address,
		Topics:    l.Filter.Topics,
		FromBlock: bound(l.Filter.FromBlock),
		ToBlock:   bound(l.Filter.ToBlock),
		BlockHash: l.Filter.BlockHash,
	}
}

// bound makes an int of a JSON number.
func bound(value any) any {
	if number, ok := value.(float64); ok {
		return int(number)
	}
	return value
}

func (l *logsStep) options() []rpcpool.LogsOption {
	var opts []rpcpool.LogsOption
	if l.Chunk != 0 {
		opts = append(opts, rpcpool.ChunkSize(l.Chunk))
	}
	if l.Concurrency != 0 {
		opts = append(opts, rpcpool.Concurrency(l.Concurrency))
	}
	return opts
}

func (p *player) getLogs(ctx context.Context, l *logsStep, got *outcome) {
	got.logs, got.err = p.chain(l.Chain, 0, l.Archive).GetLogsChunked(ctx, l.filter(), l.options()...)
	got.result = listOf(got.logs)
}

func (p *player) logChunks(ctx context.Context, l *logsStep, got *outcome) {
	got.chunks = [][2]uint64{}
	for chunk, err := range p.chain(l.Chain, 0, l.Archive).LogChunks(ctx, l.filter(), l.options()...) {
		if err != nil {
			got.err = err
			break
		}
		got.chunks = append(got.chunks, [2]uint64{chunk.From, chunk.To})
		got.logs = append(got.logs, chunk.Logs...)
	}
	got.result = listOf(got.logs)
}

func listOf(logs []json.RawMessage) json.RawMessage {
	parts := make([]string, len(logs))
	for i, log := range logs {
		parts[i] = string(log)
	}
	return json.RawMessage("[" + strings.Join(parts, ",") + "]")
}

// parallel carries out steps at once, each after its start, in the scenario's bubble.
func (p *player) parallel(steps []step) []outcome {
	outcomes := make([]outcome, len(steps))
	var wg sync.WaitGroup
	for i := range steps {
		wg.Go(func() {
			time.Sleep(steps[i].Start.duration())
			outcomes[i] = p.act(&steps[i])
		})
	}
	wg.Wait()
	return outcomes
}
