package rpcpool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// logPieces cuts a query into pieces, asks for some of them at once and hands them
// out in order. It is used by one goroutine; the fetches report through channels.
type logPieces struct {
	ctx     context.Context
	query   *logQuery
	atOnce  int
	size    uint64      // blocks of the next piece
	slight  int         // how often the size was lowered by less than half
	unsure  bool        // the size is a guess after a refusal: no piece of it has been taken yet
	pending []*logPiece // in the order of the blocks: those asked for, and those that wait to be
	held    int         // how many of them are under way, or have logs that wait to be handed out
	rest    blockRange  // what isn't cut yet
	left    bool        // whether there is such a rest
	running sync.WaitGroup
}

// logPiece is a piece that is being asked for, or waits to be.
type logPiece struct {
	blockRange
	answer chan logAnswer // nil until it is asked for
	got    *logAnswer     // what came; nil until it was looked at
}

type logAnswer struct {
	logs []json.RawMessage
	err  error
}

func newLogPieces(ctx context.Context, query *logQuery, options logsOptions) *logPieces {
	c := query.chain.s
	size := c.pieceSize(options.chunk)
	return &logPieces{
		ctx:    ctx,
		query:  query,
		atOnce: options.concurrency,
		size:   size,
		unsure: size < options.chunk && c.takenBelow(size+1) < size,
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
		head.wait()
		p.cutRefused()
		if p.pending[0] != head {
			continue // it was refused, and is asked for again in smaller pieces
		}
		p.pending = p.pending[1:]
		p.held--
		if err := head.got.err; err != nil {
			return LogChunk{}, false, &LogsError{NextBlock: head.from, Err: head.whyNot(err)}
		}
		if head.span() >= p.size {
			p.unsure = false
		}
		return LogChunk{From: head.from, To: head.to, Logs: head.got.logs}, true, nil
	}
}

// fill starts pieces until as many are held as may be. A piece that was refused
// isn't held, so the first one always finds a place. While the size is a guess only
// that one is asked for: else every step down would be refused as many times as
// pieces are asked for at once.
func (p *logPieces) fill() {
	for i := 0; p.held < p.atOnce && (i == 0 || !p.unsure); i++ {
		if i == len(p.pending) {
			if !p.left {
				return
			}
			p.pending = append(p.pending, p.takeRest())
		}
		if p.pending[i].answer == nil {
			p.split(i)
			p.start(p.pending[i])
		}
	}
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
	piece.answer = make(chan logAnswer, 1)
	p.held++
	p.running.Go(func() {
		logs, err := p.query.fetch(p.ctx, &piece.blockRange)
		piece.answer <- logAnswer{logs, err}
	})
}

// cutRefused looks through the pieces that have answered by now and takes those up
// again, smaller, that were refused: not only the first, so that the others don't
// keep places from those before them.
func (p *logPieces) cutRefused() {
	for i, piece := range p.pending {
		if !piece.answered() {
			continue
		}
		if smaller := p.cut(piece); smaller != nil {
			p.pending[i] = smaller
			p.held--
		}
	}
}

// cut gives the piece to ask for in place of one that was refused, and makes the
// size of all that follow smaller. nil: it wasn't refused, or is a single block.
func (p *logPieces) cut(piece *logPiece) *logPiece {
	suggested, refused := tooLarge(piece.got.err)
	if !refused || piece.span() <= 1 {
		return nil
	}
	size, half, cause := cutTo(piece.span(), suggested), cutTo(piece.span(), 0), SplitHalved
	if suggested > 0 && suggested < piece.span() {
		cause = SplitNamed
	}
	if taken := p.query.chain.s.takenBelow(piece.span()); taken > size {
		size, cause = taken, SplitTaken
	}
	if size > half {
		if p.slight++; p.slight > maxSlightCuts {
			size, cause = half, SplitHalved
		}
	}
	p.size, p.unsure = min(p.size, size), true
	p.tellSplit(piece, p.size, cause)
	return &logPiece{blockRange: piece.blockRange}
}

// maxSlightCuts is how often in a query the size is lowered by less than half,
// because an RPC named so much or took it before. One that isn't honest may refuse
// that, too, and name a block less each time; with this, the size is halved as often
// as it can be and lowered by less a few times at most, and so the number of
// requests is bounded (rule A9.5).
const maxSlightCuts = 8

// wait returns when nothing is under way any more. The context has ended by then.
func (p *logPieces) wait() { p.running.Wait() }

// wait returns when the piece has been answered.
func (p *logPiece) wait() {
	if p.got == nil {
		got := <-p.answer
		p.got = &got
	}
}

// answered tells whether the piece has been answered by now.
func (p *logPiece) answered() bool {
	if p.got == nil {
		select {
		case got := <-p.answer:
			p.got = &got
		default:
		}
	}
	return p.got != nil
}

// whyNot is the reason why the piece has failed: a single block that is refused as
// too large can't be cut, and the caller has to ask for less of it (rule A9.5).
func (p *logPiece) whyNot(err error) error {
	var refused *LogsRangeTooLargeError
	if !errors.As(err, &refused) {
		return err
	}
	return &blockTooLargeError{block: p.from, refused: refused}
}

// blockTooLargeError says that one block alone is more than the RPCs give. The
// advice of what is in it, to ask for fewer blocks, is of no use then.
type blockTooLargeError struct {
	block   uint64
	refused *LogsRangeTooLargeError
}

func (e *blockTooLargeError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "block %d alone has more results than the RPCs give; ask for fewer addresses or topics", e.block)
	writeAttempts(&b, e.refused.Attempts)
	return b.String()
}

func (e *blockTooLargeError) Unwrap() error { return e.refused }

func (*blockTooLargeError) rpcPoolError() {}

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

// send is one attempt. An RPC that lags isn't asked: its answer would be none.
func (r *pieceRequest) send(ctx context.Context, to target) outcome {
	if lags, out := r.lags(ctx, to); lags {
		return out
	}
	return r.callRequest.send(ctx, to)
}

// lags tells whether the RPC may lack blocks of the piece, where that is to be
// checked. It is found out before the logs are asked for: an RPC that comes by the
// last block between its answer and its head would seem to have answered for it.
func (r *pieceRequest) lags(ctx context.Context, to target) (bool, outcome) {
	if !r.checkHead || r.blocks == nil || to.endpoint.head.Load() >= r.blocks.to {
		return false, outcome{}
	}
	head, asked := r.askHead(ctx, to)
	if asked.verdict != VerdictOK {
		return true, asked
	}
	to.endpoint.sawHead(head)
	if head >= r.blocks.to {
		return false, outcome{}
	}
	return true, failed(VerdictNoState, "", fmt.Sprintf("the RPC is at block %d, and block %d is asked for", head, r.blocks.to))
}

// askHead asks the RPC for its head, through the proxy that the logs go through.
func (r *pieceRequest) askHead(ctx context.Context, to target) (uint64, outcome) {
	out := newEncodedRequest(r.pool, methodBlockNumber, []byte(noParams)).send(ctx, to)
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
