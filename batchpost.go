package rpcpool

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/bomzrpc/rpcpool/internal/jsonrpc"
)

// batchBlame is what the outcomes of one batch have in common: when it fails, the RPC
// or the proxy failed once, however many requests it carried. The first request that
// is acted upon brings the failure into the books, the others are its echo.
type batchBlame struct{ rpc, proxy atomic.Bool }

// echoesRPC tells whether another request has been held against the RPC.
func (b *batchBlame) echoesRPC() bool { return b != nil && !b.rpc.CompareAndSwap(false, true) }

// echoesProxy tells whether another request has been held against the proxy.
func (b *batchBlame) echoesProxy() bool { return b != nil && !b.proxy.CompareAndSwap(false, true) }

// exchange sends a group, as a batch where it is one, and gives what came of it for
// each of its members.
func (b *batchRun) exchange(g *batchGroup) []batchAnswer {
	if !b.enter(b.posts) {
		return g.all(callerGone())
	}
	defer func() { <-b.posts }()
	if len(g.members) == 1 {
		return g.all(b.sendOne(g))
	}
	answers, refused := b.post(g)
	if refused {
		answers = b.scout(g)
		for i := range answers {
			answers[i].out.before = true // whatever was said of the batch, it was there
		}
	}
	for i := range answers {
		answers[i].out.given = g.allotted
	}
	return answers
}

// sendOne sends the first of a group by itself.
func (b *batchRun) sendOne(g *batchGroup) outcome {
	ctx, cancel := b.within(g.allotted)
	defer cancel()
	return g.members[0].callRequest.send(ctx, g.to)
}

// all gives every member the same outcome. It counts once.
func (g *batchGroup) all(out outcome) []batchAnswer {
	if len(g.members) > 1 {
		out.batch = &batchBlame{}
	}
	answers := make([]batchAnswer, len(g.members))
	for i := range answers {
		answers[i].out = out
	}
	return answers
}

// scout finds out what it means that an RPC refused a batch, or gave an answer that is
// none: one request travels alone. If that fails too, the RPC is at fault and nobody
// else need try. If not, it is batches that the RPC doesn't take: the others follow
// one by one, and nobody is blamed.
func (b *batchRun) scout(g *batchGroup) []batchAnswer {
	out := b.sendOne(g)
	switch out.verdict {
	case VerdictOK, VerdictCaller, VerdictUnsupported, VerdictRange, VerdictNoState:
	default:
		return g.all(out)
	}
	if b.ctx.Err() == nil {
		b.chain.markUnsupported(g.to.endpoint, batches)
	}
	answers := make([]batchAnswer, len(g.members))
	answers[0].out = out
	for i := range answers[1:] {
		answers[1+i].alone = true
	}
	return answers
}

// post sends a group as one JSON-RPC batch. refused tells that the RPC didn't take it
// as one, whatever its words.
func (b *batchRun) post(g *batchGroup) (answers []batchAnswer, refused bool) {
	ctx, cancel := b.within(g.allotted)
	defer cancel()
	given, why := g.to.enter(ctx)
	if why != "" {
		return g.all(notSent(why)), false
	}
	defer g.to.leave()
	if given > 0 {
		g.allotted = min(g.allotted, given)
	}
	res, before, linkFailed := g.to.proxy.links.roundTrip(ctx, g.to.endpoint.post, g.body())
	answers, refused = b.judgePost(ctx, g, res, linkFailed)
	for i := range answers {
		answers[i].out.before = answers[i].out.before || before
	}
	return answers, refused
}

// judgePost says what came of a group that was sent as a batch.
func (b *batchRun) judgePost(ctx context.Context, g *batchGroup, res *http.Response, linkFailed *linkError) (answers []batchAnswer, refused bool) {
	to := g.to
	if linkFailed != nil {
		out := judgeLink(linkFailed, to.proxy.dial.AbsoluteForm())
		out.detail = to.endpoint.secrets.Scrub(out.detail)
		out.arrived = linkFailed.written
		return g.all(out), false
	}
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		out := (&callRequest{pool: b.pool}).judgeStatus(to, res)
		out.arrived = true
		if refusesBatch(res.StatusCode, out.verdict) {
			return nil, true
		}
		return g.all(out), false
	}
	whole, more, err := readAnswer(res, &to.endpoint.size, b.pool.maxResponseBytes)
	if err != nil {
		out := brokenBody(ctx, err)
		out.arrived = true
		return g.all(out), false
	}
	parts, err := jsonrpc.ParseBatchAnswer(whole)
	if more || err != nil {
		return nil, true
	}
	return g.judge(parts)
}

// refusesBatch tells whether a status other than 2xx may be about the batch rather
// than about the RPC, its proxy or a limit. Servers that can't read an array say 400,
// 500 and other things.
func refusesBatch(status int, verdict Verdict) bool {
	switch verdict {
	case VerdictProxyFail, VerdictConnFail, VerdictIPBlocked:
		return false
	case VerdictRPCFail:
		return status == http.StatusInternalServerError || status == http.StatusNotImplemented ||
			status >= 400 && status <= 499 && status != http.StatusRequestTimeout
	}
	return true
}

func (g *batchGroup) body() []byte {
	body := make([]byte, 0, g.bytes+len(g.members)+1)
	for i, r := range g.members {
		if i == 0 {
			body = append(body, '[')
		} else {
			body = append(body, ',')
		}
		body = append(body, r.body...)
	}
	return append(body, ']')
}

// judge says what a batch's answer means for each member: what answers it by its id
// is judged as an answer to it alone would be; none, or more than one, is the RPC's
// fault; an error that is about the batch is nobody's, and the member travels alone.
// Where no member has anything else, the batch as a whole was refused.
func (g *batchGroup) judge(parts jsonrpc.Answers) (answers []batchAnswer, refused bool) {
	blame := &batchBlame{}
	answers = make([]batchAnswer, len(g.members))
	refused = true
	for i, r := range g.members {
		out := &answers[i].out
		switch own := parts.For(r.id); len(own) {
		case 1:
			*out = r.judgeBody(g.to, http.StatusOK, own[0])
			if out.verdict != VerdictOK && isAboutBatch(out.err) {
				answers[i] = batchAnswer{alone: true, out: outcome{before: true}}
				continue
			}
			refused = false
		case 0:
			*out = failed(VerdictRPCFail, reportRPC, "the answer to the batch lacks this request's")
		default:
			*out = failed(VerdictRPCFail, reportRPC, "the answer to the batch has several for this request")
			refused = false
		}
		out.batch, out.arrived = blame, true
	}
	return answers, refused
}

// codeResponseTooLarge is what geth and its kin say to the requests of a batch for
// which there is no room left in its answer.
const codeResponseTooLarge = -32003

// isAboutBatch tells whether an error answers the batch that a request was in rather
// than the request. A revert whose words look like it costs no more than a second
// request.
func isAboutBatch(err error) bool {
	rpcErr, ok := errors.AsType[*RPCError](err)
	if !ok {
		return false
	}
	text := strings.ToLower(rpcErr.Message)
	return rpcErr.Code == jsonrpc.CodeNotRequest || strings.Contains(text, "batch") ||
		rpcErr.Code == codeResponseTooLarge && strings.Contains(text, "response too large")
}
