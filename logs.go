package rpcpool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"strconv"

	"github.com/bomzrpc/rpcpool/internal/jsonrpc"
)

// defaultChunk is the number of blocks of a piece.
const defaultChunk = 1000

// LogFilter chooses logs, as eth_getLogs does.
type LogFilter struct {
	// Address is a string, a []string, or anything that marshals to one address
	// or a list of them. nil: every address.
	Address any
	// Topics are the topics by position, each nil (any), a string, or a list of
	// alternatives. nil: any topics.
	Topics []any
	// FromBlock is the first block: an integer, *[math/big.Int], a hex quantity
	// such as "0x1b4", a decimal string, "earliest", "latest" ("pending" means the
	// same here), "safe" or "finalized". nil: "latest".
	FromBlock any
	// ToBlock is the last block, in the same forms. nil: "latest".
	ToBlock any
	// BlockHash names one block instead; with it, both bounds must be nil.
	BlockHash string
}

// LogChunk is a piece of a log query: the logs of the blocks From to To, both
// included, as the RPC sent them. For a filter with a BlockHash the numbers are 0.
type LogChunk struct {
	From, To uint64
	Logs     []json.RawMessage
}

// LogsOption changes how a log query is cut and sent.
type LogsOption func(*logsOptions)

type logsOptions struct {
	chunk       uint64
	concurrency int
	maxResults  int
	checkHeads  bool
	onProgress  func(LogProgress)
}

// ChunkSize is the number of blocks of a piece. Default: 1000; 0 means the default.
func ChunkSize(blocks uint64) LogsOption {
	return func(o *logsOptions) { o.chunk = orDefault(blocks, defaultChunk) }
}

// Concurrency is the number of pieces that are asked for at once. Default: 1;
// what is under 1 means 1. The order of the pieces stays that of the blocks.
func Concurrency(n int) LogsOption {
	return func(o *logsOptions) { o.concurrency = max(1, n) }
}

// MaxResults bounds the number of logs that [Chain.GetLogsChunked] collects: the
// piece that would go beyond it ends the query with a *[RequestError]. Default: 0,
// no limit.
func MaxResults(n int) LogsOption {
	return func(o *logsOptions) { o.maxResults = max(0, n) }
}

// CheckHeads has an answer believed only from an RPC that is known to have the last
// block of its piece. A node that lags answers with the logs of the blocks that it
// has, or none, and no error: the logs of the others would be lost without a sign.
// Where the RPC isn't known to have the block, it is asked for its head before it is
// asked for the logs, through the same proxy and within the same attempt; one that
// is behind is passed over. That costs a request now and then near the head of the
// chain, and none for old blocks. Recommended for indexers. Default: not checked.
func CheckHeads() LogsOption {
	return func(o *logsOptions) { o.checkHeads = true }
}

// LogProgress is how far a log query has come.
type LogProgress struct {
	// From and To are the query's bounds, both included.
	From, To uint64
	// Covered is the last block that the pieces handed out so far cover.
	Covered uint64
	// Logs is the number of logs in them.
	Logs int
}

// OnProgress has a function called for each piece once it has been handed out and,
// with [Chain.LogChunks], the loop's body has come to its end; on the goroutine that
// the query runs on. Default: none.
func OnProgress(report func(LogProgress)) LogsOption {
	return func(o *logsOptions) { o.onProgress = report }
}

// GetLogsChunked asks for the logs of a range of blocks in pieces, each with a
// failover of its own, and gives them in the order of the blocks (rule A9). A piece
// that RPCs refuse as too large is cut: to the span that they name, else in half;
// the smaller size is kept for the rest of the query. What each RPC took or refused
// is remembered for later queries. From > to is an empty list. Numbers beyond the
// chain's head are asked for as they are; without [CheckHeads] an RPC that answers
// for them with nothing is believed.
//
// "latest", and an absent bound, is asked for once, by eth_blockNumber. An answer
// that is no block number or no list of logs is a *[MalformedResponseError]; one
// block that is still refused is a *[LogsRangeTooLargeError].
//
// An error of a piece comes in a *[LogsError], which names the first block that
// isn't covered; the logs before it are given together with the error.
func (c *Chain) GetLogsChunked(ctx context.Context, filter LogFilter, opts ...LogsOption) ([]json.RawMessage, error) {
	options := newLogsOptions(opts)
	var logs []json.RawMessage
	for chunk, err := range c.logChunks(ctx, filter, options) {
		if err != nil {
			return logs, err
		}
		if options.maxResults > 0 && len(logs)+len(chunk.Logs) > options.maxResults {
			return logs, tooManyLogs(filter, chunk, options.maxResults)
		}
		logs = append(logs, chunk.Logs...)
	}
	if logs == nil {
		logs = []json.RawMessage{}
	}
	return logs, nil
}

// tooManyLogs says that a piece goes beyond what the caller wants to collect.
func tooManyLogs(filter LogFilter, chunk LogChunk, most int) error {
	if filter.BlockHash != "" {
		return badFilter(fmt.Sprintf("the block has more than MaxResults(%d) logs; ask for fewer addresses or topics", most))
	}
	return &LogsError{NextBlock: chunk.From, Err: badFilter(fmt.Sprintf(
		"more than MaxResults(%d) logs by block %d; use LogChunks, or ask for fewer addresses or topics", most, chunk.To))}
}

// LogChunks is [Chain.GetLogsChunked] as an iterator: it yields the pieces in the
// order of their blocks as they come, and ends after the first error. Breaking off
// ends what is under way.
func (c *Chain) LogChunks(ctx context.Context, filter LogFilter, opts ...LogsOption) iter.Seq2[LogChunk, error] {
	return c.logChunks(ctx, filter, newLogsOptions(opts))
}

func newLogsOptions(opts []LogsOption) logsOptions {
	options := logsOptions{chunk: defaultChunk, concurrency: 1}
	for _, opt := range opts {
		if opt != nil {
			opt(&options)
		}
	}
	return options
}

func (c *Chain) logChunks(ctx context.Context, filter LogFilter, options logsOptions) iter.Seq2[LogChunk, error] {
	return func(yield func(LogChunk, error) bool) {
		query, err := newLogQuery(ctx, c, filter, options)
		if err != nil {
			yield(LogChunk{}, err)
			return
		}
		if query.whole {
			logs, err := query.fetch(ctx, nil)
			yield(LogChunk{Logs: logs}, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		pieces := newLogPieces(ctx, query, options)
		defer pieces.wait()
		defer cancel()
		progress := LogProgress{From: query.from, To: query.to}
		for {
			chunk, more, err := pieces.next()
			if err != nil {
				yield(LogChunk{}, err)
				return
			}
			if !more || !yield(chunk, nil) {
				return
			}
			progress.Covered, progress.Logs = chunk.To, progress.Logs+len(chunk.Logs)
			if options.onProgress != nil {
				options.onProgress(progress)
			}
		}
	}
}

// logQuery is a filter whose bounds are known.
type logQuery struct {
	chain      *Chain
	filter     map[string]any
	from, to   uint64
	whole      bool // the filter names one block by its hash and is sent as it is
	checkHeads bool
	parallel   bool // pieces are asked for at once
}

// newLogQuery checks a filter and turns its bounds into numbers.
func newLogQuery(ctx context.Context, c *Chain, filter LogFilter, options logsOptions) (*logQuery, error) {
	q := &logQuery{
		chain: c, filter: map[string]any{},
		checkHeads: options.checkHeads, parallel: options.concurrency > 1,
	}
	if err := q.freeze(filter); err != nil {
		return nil, err
	}
	if filter.BlockHash != "" {
		if filter.FromBlock != nil || filter.ToBlock != nil {
			return nil, badFilter("BlockHash names one block, so FromBlock and ToBlock must be nil")
		}
		q.filter["blockHash"], q.whole = filter.BlockHash, true
		return q, nil
	}
	from, err := parseBound("FromBlock", filter.FromBlock)
	if err != nil {
		return nil, err
	}
	to, err := parseBound("ToBlock", filter.ToBlock)
	if err != nil {
		return nil, err
	}
	heads := map[string]uint64{}
	if q.from, err = c.boundNumber(ctx, from, heads); err != nil {
		return nil, err
	}
	q.to, err = c.boundNumber(ctx, to, heads)
	return q, err
}

// freeze writes address and topics as JSON once: whether the filter can be sent is
// found out before anything is, and what the caller does with his slices while the
// query runs changes nothing.
func (q *logQuery) freeze(filter LogFilter) error {
	members := map[string]any{}
	if filter.Address != nil {
		members["address"] = filter.Address
	}
	if filter.Topics != nil {
		members["topics"] = filter.Topics
	}
	for name, value := range members {
		encoded, err := json.Marshal(value)
		if err != nil {
			return &RequestError{Method: methodLogs, Reason: "the filter's " + name + " can't be written as JSON", Err: err}
		}
		q.filter[name] = json.RawMessage(encoded)
	}
	return nil
}

// boundNumber gives a bound as a number. A tag is asked for once, and both bounds
// mean the same by it.
func (c *Chain) boundNumber(ctx context.Context, bound logBoundary, known map[string]uint64) (number uint64, err error) {
	if bound.tag == "" {
		return bound.number, nil
	}
	number, ok := known[bound.tag]
	if ok {
		return number, nil
	}
	if bound.tag == tagLatest {
		number, err = c.head(ctx)
	} else {
		number, err = c.tagged(ctx, bound.tag)
	}
	if err == nil {
		known[bound.tag] = number
	}
	return number, err
}

func badFilter(reason string) error {
	return &RequestError{Method: methodLogs, Reason: reason}
}

// head asks for the number of the latest block.
func (c *Chain) head(ctx context.Context) (uint64, error) {
	raw, err := c.Call(ctx, methodBlockNumber)
	if err != nil {
		return 0, err
	}
	number, ok := blockNumber(raw)
	if !ok || raw[0] != '"' {
		return 0, &MalformedResponseError{Method: methodBlockNumber, Reason: "the result isn't a hex number"}
	}
	return number, nil
}

// tagged asks for the number of the block that a tag names.
func (c *Chain) tagged(ctx context.Context, tag string) (uint64, error) {
	raw, err := c.Call(ctx, methodBlockByNumber, tag, false)
	if err != nil {
		return 0, err
	}
	var block struct{ Number json.RawMessage }
	if json.Unmarshal(raw, &block) == nil {
		if number, ok := blockNumber(block.Number); ok && block.Number[0] == '"' {
			return number, nil
		}
	}
	return 0, &MalformedResponseError{
		Method: methodBlockByNumber, Reason: "the result for " + strconv.Quote(tag) + " isn't a block with a number",
	}
}

// fetch asks for the logs of one piece; nil for a filter that is sent as it is.
func (q *logQuery) fetch(ctx context.Context, piece *blockRange) ([]json.RawMessage, error) {
	filter := make(map[string]any, len(q.filter)+2)
	maps.Copy(filter, q.filter)
	if piece != nil {
		filter["fromBlock"] = fmt.Sprintf("0x%x", piece.from)
		filter["toBlock"] = fmt.Sprintf("0x%x", piece.to)
	}
	c := q.chain.s
	call, err := newCallRequest(c.pool, methodLogs, []any{filter})
	if err != nil {
		return nil, err
	}
	raw, err := c.do(ctx, &pieceRequest{callRequest: call, blocks: piece, checkHead: q.checkHeads, others: q.parallel})
	if err != nil {
		return nil, err
	}
	logs, ok := jsonrpc.Elements(raw)
	if !ok {
		return nil, &MalformedResponseError{Method: methodLogs, Reason: "the result isn't a list of logs"}
	}
	return logs, nil
}

// blockRange is a range of blocks, both ends included.
type blockRange struct{ from, to uint64 }

// span is the number of blocks; the whole of uint64 has one less than it has.
func (r blockRange) span() uint64 {
	if r.from == 0 && r.to == math.MaxUint64 {
		return math.MaxUint64
	}
	return r.to - r.from + 1
}

// first gives the first blocks of the range, at most size of them.
func (r blockRange) first(size uint64) blockRange {
	if size < r.span() {
		r.to = r.from + size - 1
	}
	return r
}

// cutTo is the size to try after a span was refused: what the provider named where
// that is smaller, else half. It is smaller than the span in any case, so every
// refusal makes progress.
func cutTo(refused, suggested uint64) uint64 {
	if suggested > 0 && suggested < refused {
		return suggested
	}
	return max(1, refused/2)
}

// tooLarge tells whether a piece was refused as too large, and the span that was named.
func tooLarge(err error) (suggested uint64, ok bool) {
	var refused *LogsRangeTooLargeError
	if !errors.As(err, &refused) {
		return 0, false
	}
	return refused.SuggestedSpan, true
}
