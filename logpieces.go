package rpcpool

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// logPieces cuts a query into pieces, asks for some of them at once and hands them
// out in order. It is used by one goroutine; the fetches report through channels.
type logPieces struct {
	ctx     context.Context
	query   *logQuery
	atOnce  int
	size    uint64 // blocks of the next piece
	pending []*logPiece
	rest    blockRange // what isn't cut yet
	left    bool       // whether there is such a rest
	running sync.WaitGroup
}

// logPiece is a piece that is being asked for, or waits to be.
type logPiece struct {
	blockRange
	started bool
	answer  chan logAnswer
}

type logAnswer struct {
	logs []json.RawMessage
	err  error
}

func newLogPieces(ctx context.Context, query *logQuery, options logsOptions) *logPieces {
	return &logPieces{
		ctx:    ctx,
		query:  query,
		atOnce: options.concurrency,
		size:   query.chain.s.pieceSize(options.chunk),
		rest:   blockRange{query.from, query.to},
		left:   query.from <= query.to,
	}
}

// next gives the next piece in the order of the blocks; more is false at the end.
func (p *logPieces) next() (chunk LogChunk, more bool, err error) {
	for {
		p.fill()
		if len(p.pending) == 0 {
			return LogChunk{}, false, nil
		}
		head := p.pending[0]
		answer := <-head.answer
		p.pending = p.pending[1:]
		if answer.err == nil {
			return LogChunk{From: head.from, To: head.to, Logs: answer.logs}, true, nil
		}
		if err := p.cut(head, answer.err); err != nil {
			return LogChunk{}, false, &LogsError{NextBlock: head.from, Err: err}
		}
	}
}

// fill starts pieces until as many are under way as may be at once.
func (p *logPieces) fill() {
	for i := 0; i < p.atOnce; i++ {
		if i == len(p.pending) {
			if !p.left {
				return
			}
			p.pending = append(p.pending, p.takeRest())
		}
		if piece := p.pending[i]; !piece.started {
			p.split(i)
			p.start(p.pending[i])
		}
	}
}

// pieceSize gives the number of blocks to begin a query with.
func (c *chainState) pieceSize(chunk uint64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ring == nil {
		return chunk
	}
	return c.ring.pieceSize(chunk, requirement{logs: true, archive: c.archive}, time.Now())
}

// takeRest cuts the next piece off the rest.
func (p *logPieces) takeRest() *logPiece {
	piece := &logPiece{blockRange: p.rest.first(p.size)}
	p.left = piece.to < p.rest.to
	p.rest.from = piece.to + 1
	return piece
}

// split makes the piece at i as small as the size asks for by now; what is left of
// it waits behind it.
func (p *logPieces) split(i int) {
	piece := p.pending[i]
	first := piece.first(p.size)
	if first.to == piece.to {
		return
	}
	rest := &logPiece{blockRange: blockRange{first.to + 1, piece.to}}
	piece.to = first.to
	p.pending = append(p.pending[:i+1], append([]*logPiece{rest}, p.pending[i+1:]...)...)
}

func (p *logPieces) start(piece *logPiece) {
	piece.started = true
	piece.answer = make(chan logAnswer, 1)
	p.running.Go(func() {
		logs, err := p.query.fetch(p.ctx, &piece.blockRange)
		piece.answer <- logAnswer{logs, err}
	})
}

// cut takes a piece that was refused up again, smaller. An error that isn't a
// refusal, or one for a single block, is the query's.
func (p *logPieces) cut(piece *logPiece, err error) error {
	suggested, refused := tooLarge(err)
	if !refused || piece.span() <= 1 {
		return err
	}
	p.size = min(p.size, cutTo(piece.span(), suggested))
	p.pending = append([]*logPiece{{blockRange: piece.blockRange}}, p.pending...)
	return nil
}

// wait returns when nothing is under way any more. The context has ended by then.
func (p *logPieces) wait() { p.running.Wait() }

// pieceRequest asks for the logs of a piece.
type pieceRequest struct {
	*callRequest
	blocks    *blockRange // nil for a filter that names its block by the hash
	checkHead bool
	others    bool // other pieces are asked for meanwhile
}

func (r *pieceRequest) piece() logPieceNeeds {
	if r.blocks == nil {
		return logPieceNeeds{}
	}
	needs := logPieceNeeds{span: r.blocks.span(), spread: r.others}
	if r.checkHead {
		needs.upTo = r.blocks.to
	}
	return needs
}

// send is one attempt. An answer of an RPC that lags is no answer.
func (r *pieceRequest) send(ctx context.Context, to target) outcome {
	out := r.callRequest.send(ctx, to)
	if out.verdict != VerdictOK || !r.checkHead || r.blocks == nil || to.endpoint.head.Load() >= r.blocks.to {
		return out
	}
	head, asked := r.askHead(ctx, to)
	if asked.verdict != VerdictOK {
		return asked
	}
	to.endpoint.sawHead(head)
	if head < r.blocks.to {
		return outcome{
			judgement: judgement{verdict: VerdictNoState},
			detail:    fmt.Sprintf("the RPC is at block %d and answered for blocks up to %d", head, r.blocks.to),
		}
	}
	return out
}

// askHead asks the RPC that answered for its head, through the same proxy.
func (r *pieceRequest) askHead(ctx context.Context, to target) (uint64, outcome) {
	ask, err := newCallRequest(r.pool, "eth_blockNumber", nil)
	if err != nil {
		return 0, failed(VerdictRPCFail, reportRPC, err.Error())
	}
	out := ask.send(ctx, to)
	switch out.verdict {
	case VerdictOK:
	case VerdictCaller, VerdictUnsupported:
		return 0, failed(VerdictNoState, "", "the RPC doesn't say at which block it is")
	default:
		return 0, out
	}
	number, ok := blockNumber(out.result)
	if !ok {
		return 0, failed(VerdictRPCFail, reportRPC, "the RPC's block number isn't one")
	}
	return number, out
}
