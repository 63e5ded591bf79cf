package rpcpool

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// This file has what a call makes sure of before its request goes to an RPC: that the
// RPC is on the right chain (rule D1), that its head is known and fresh (rule B3), that
// it may be tried at all after a cooldown (rule B7). What must be asked is asked of the
// RPC itself, through the call's proxy, by attempts like any other; calls that want to
// know the same wait for one answer.

// visit is a call's stay at one RPC.
type visit struct {
	e        *endpoint
	onlyHead bool   // the head is all that is wanted
	always   bool   // and is asked for although it is known
	behind   bool   // it is passed over because of its head
	back     bool   // it has passed its trial
	asked    int    // how often the head was asked for in this visit
	trial    bool   // the one request that an RPC gets after its cooldown
	probe    *probe // what this visit is finding out; nil if nothing
	mark     uint64 // the high-water mark when the next request is sent

	proxy      *proxy
	triedOther bool          // another proxy was tried because the RPC blocked one's address
	refusals   int           // by proxies
	took       time.Duration // of the last attempt
}

// probe is a question to an RPC that is under way. Others wait for its end.
type probe struct {
	done  chan struct{}
	trial bool
}

const (
	// unconfirmed has a call ask other RPCs whether a head may be believed.
	unconfirmed step = finished + 1 + iota
	// admitted has the request sent.
	admitted
)

// admit says what to send to the RPC next: a question, or the call's own request, for
// which it gives nil. settled means neither, but to go on by s.
func (k *call) admit(v *visit) (question *callRequest, s step, settled bool) {
	for {
		k.chain.mu.Lock()
		a := k.admission(v, time.Now())
		k.chain.mu.Unlock()
		k.tellAdmission(v)
		switch {
		case a.wait != nil:
			select {
			case <-a.wait.done:
				continue
			case <-k.ctx.Done():
			case <-k.pool.working.Done():
			}
			k.err = k.ended()
			return nil, finished, true
		case a.ask != "":
			return newEncodedRequest(k.pool, a.ask, []byte(noParams)), next, false
		case a.settled:
			return nil, a.step, true
		}
		return nil, next, false
	}
}

// admission is what admit decided.
type admission struct {
	ask     string // the method of a question
	wait    *probe
	settled bool
	step    step
}

func leaveBy(s step) admission { return admission{settled: true, step: s} }

// admission decides. The caller holds the chain's lock.
func (k *call) admission(v *visit, now time.Time) admission {
	e, heads := v.e, &k.chain.heads
	switch {
	case e.expelled || e.pos < 0:
		return v.leave(leaveBy(next))
	case k.line.leftAlone(e, now):
		return v.leave(leaveBy(next)) // another call found it out meanwhile
	case v.probe == nil && e.probe != nil:
		if e.probe.trial {
			k.trials = append(k.trials, e.probe)
			return leaveBy(next)
		}
		if k.asksFirst(v, now) != "" {
			return admission{wait: e.probe}
		}
	}
	v.mark = heads.mark
	if k.chain.policy != nil && v.asked == 0 && v.probe == nil && e.health.stands() {
		v.trial = true // it comes back from a cooldown
	}
	if ask := k.asksFirst(v, now); ask != "" {
		if !e.serves(ask, now) { // it can't say what must be known of it
			k.sawStale = k.sawStale || ask == methodBlockNumber
			v.behind = ask == methodBlockNumber
			return v.leave(leaveBy(next))
		}
		if v.probe == nil {
			v.probe = &probe{done: make(chan struct{}), trial: v.trial}
			e.probe = v.probe
		}
		return admission{ask: ask}
	}
	if k.demand.on {
		if s := k.judgeHead(v, now); s != admitted {
			return v.leave(leaveBy(s))
		}
	}
	if v.trial && !v.onlyHead { // the request itself is the trial
		if v.probe == nil {
			v.probe = &probe{done: make(chan struct{}), trial: true}
			e.probe = v.probe
		}
		return admission{}
	}
	return v.leave(admission{})
}

// judgeHead says whether the request may go to the RPC by what is known of its head.
// The caller holds the chain's lock.
func (k *call) judgeHead(v *visit, now time.Time) step {
	e, heads, d := v.e, &k.chain.heads, &k.demand
	asks := d.latest || d.named && d.number > heads.mark
	switch {
	case !d.onlyFloor && !heads.believes(e) && !e.heads.at.IsZero() && (asks || v.onlyHead):
		return unconfirmed
	case k.chain.policy != nil && asks && !d.carries && heads.overdue(k.chain.ring, e, now):
		return unconfirmed
	case v.trial && heads.lag(e.heads.seen) > k.policy.MaxLag:
		k.sawStale, v.behind = true, true
		return next
	}
	if v.trial {
		e.health.reset() // its trial is passed
		e.heads.ejected = false
		v.trial, v.back = false, true
	}
	switch {
	case v.onlyHead:
		return next
	case d.carries && (d.insists || !e.heads.recent(now, heads.sampleAge())):
		return admitted // the answer is judged
	case !heads.admits(e, d, &k.policy, now):
		k.sawStale, v.behind = true, true
		return next
	}
	return admitted
}

// asksFirst gives what must be asked of the RPC now; empty if nothing. The caller holds
// the chain's lock.
func (k *call) asksFirst(v *visit, now time.Time) string {
	e := v.e
	if k.pool.verifyChainID && !e.verified && k.chain.ring.chainID != "" {
		return methodChainID
	}
	heads := &k.chain.heads
	switch {
	case !k.demand.on:
	case v.asked > 0:
		if v.asked == 1 && !e.heads.steady() && k.wantsSteady(v) {
			return methodBlockNumber // a load balancer has two answers
		}
	case v.trial && e.heads.recent(now, heads.sampleAge()) && heads.lag(e.heads.seen) > k.policy.MaxLag && !k.demand.insists:
		// It was asked a moment ago, and isn't there yet.
	case v.trial, v.onlyHead && (v.always || !e.heads.recent(now, heads.sampleAge())),
		heads.needsSample(e, &k.demand, &k.policy, now), !e.heads.steady() && k.wantsSteady(v):
		return methodBlockNumber
	}
	return ""
}

// wantsSteady tells whether one answer about the head is too little of an RPC that hasn't
// given two: where another can be had, and the read to come doesn't show its own head.
func (k *call) wantsSteady(v *visit) bool {
	return k.chain.policy != nil && k.chain.ring.sources > 1 && k.demand.latest && !k.demand.carries && !v.onlyHead
}

// leave is a decision after which nothing more is found out in the visit. The caller holds
// the chain's lock.
func (v *visit) leave(a admission) admission {
	v.endProbe()
	return a
}

// endProbe ends what the visit was finding out, so that others go on. The caller holds the
// chain's lock.
func (v *visit) endProbe() {
	if v.probe != nil {
		v.e.probe = nil
		close(v.probe.done)
		v.probe = nil
	}
}

// inspect judges a good answer by what it tells of the RPC: a head under the mark, or
// another chain, isn't good.
func (k *call) inspect(v *visit, req request, out *outcome, sent time.Time) {
	question := req != k.req
	if question {
		switch out.verdict {
		case VerdictCaller: // the questions are beyond reproach; this host's limits are nobody's fault
			if _, ours := errors.AsType[*HostError](out.err); !ours {
				out.judgement, out.err = judgement{verdict: VerdictRPCFail, report: reportRPC}, nil
			}
		case VerdictOK:
			*out = k.checkAnswer(v, req.method(), *out)
		}
		if req.method() == methodBlockNumber && out.verdict == VerdictOK {
			v.asked++
		}
	}
	if out.verdict != VerdictOK || !k.demand.on {
		return
	}
	said := headSaid(req.method(), req.encodedParams(), out.result)
	if !said.known {
		if !question && k.demand.carries && k.chain.policy != nil {
			*out = failed(VerdictNoState, "", "the answer names no block")
		}
		return
	}
	c, now := k.chain, time.Now()
	c.mu.Lock()
	before := c.heads.mark
	news, judged := c.heads.judge(c.ring, v.e, said, sent, now, v.mark, k)
	c.shareHead(v.e, before)
	if news.rolledBack {
		c.writes.forgetFloors()
	}
	calibrate := c.wantsCalibration(now)
	c.mu.Unlock()
	if news.conflict != nil {
		v.e.meter.forks.Add(1)
		news.conflict.meter.forks.Add(1)
	}
	k.logNews(v.e, news)
	k.tellNews(v.e, &news)
	if calibrate {
		c.calibrate()
	}
	switch {
	case !said.exact || !question && !k.demand.latest:
	case judged.eject, judged.verdict != VerdictOK && !question:
		*out = outcome{judgement: judgement{verdict: VerdictStale, report: reportRPC}, eject: judged.eject, detail: judged.detail, batch: out.batch}
	case !question: // a question's answer is looked at by what is known then
		out.detail, out.doubtful = judged.doubt, judged.doubt != ""
	}
}

// checkAnswer sees to it that a question was answered.
func (k *call) checkAnswer(v *visit, method string, out outcome) outcome {
	number, ok := decodeQuantity(out.result)
	if !ok {
		return failed(VerdictRPCFail, reportRPC, "the answer to "+method+" isn't a hex quantity")
	}
	if method != methodChainID {
		return out
	}
	c := k.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	if said := fmt.Sprint(number); said != c.ring.chainID {
		return failed(VerdictWrongChain, reportRPC, fmt.Sprintf("the RPC is on chain %s instead of %s", said, c.ring.chainID))
	}
	v.e.verified = true
	return out
}

// headJudgement is what a head means for the RPC that said it.
type headJudgement struct {
	verdict Verdict
	eject   bool
	detail  string
	doubt   string // why others are to be asked first; empty where they needn't be
}

// judge takes in what an answer said, and says whether it is stale. The mark is that of
// when the request was sent: what came up meanwhile isn't held against the answer.
func (v *headView) judge(r *ring, e *endpoint, said saidHead, sent, now time.Time, mark uint64, k *call) (headNews, headJudgement) {
	p, d := &k.policy, &k.demand
	if said.stamp > 0 && said.head <= max(v.mark, v.plausible(now)) && said.stamp <= uint64(now.Add(maxStampAhead).Unix()) {
		v.pace.stamped(said.number, time.Unix(int64(said.stamp), 0))
	}
	news := v.observe(r, e, said.head, said.exact, sent, now, p)
	if said.hash != "" && !news.any() {
		news = v.noteHash(e, said.number, said.hash)
	}
	judged := headJudgement{verdict: VerdictOK}
	mark = min(mark, v.mark)
	lag := mark - min(mark, said.head)
	switch {
	case !said.exact:
	case lag > p.ejectLag():
		judged = headJudgement{verdict: VerdictStale, eject: true,
			detail: fmt.Sprintf("stale: head %d is %d blocks under %d", said.head, lag, mark)}
	case lag > p.MaxLag:
		judged = headJudgement{verdict: VerdictStale,
			detail: fmt.Sprintf("behind: head %d is %d blocks under %d", said.head, lag, mark)}
	case said.head < d.floor:
		judged = headJudgement{verdict: VerdictStale,
			detail: fmt.Sprintf("behind: head %d, and the caller has seen block %d", said.head, d.floor)}
	case d.onlyFloor:
	case !v.believes(e):
		judged.doubt = fmt.Sprintf("implausible: head %d is ahead of %d, and no other operator's RPC is that far", said.head, v.mark)
	case v.overdue(r, e, now):
		judged.doubt = fmt.Sprintf("behind: head %d, and others are further", said.head)
	}
	return news, judged
}

// logNews writes down what is worth it.
func (k *call) logNews(e *endpoint, news headNews) {
	if !news.any() {
		return
	}
	log := k.pool.log.With(keyChain, k.chain.ref, keyRPC, e.label)
	switch {
	case news.rolledBack:
		log.Warn("rpcpool: the chain went back, its RPCs agree on a lower head; the high-water mark begins anew")
	case news.conflict != nil:
		log.Warn("rpcpool: two RPCs have different hashes for a block", keyBlock, news.block, keyOther, news.conflict.label)
	case news.reorg:
		log.Warn("rpcpool: an RPC has another hash for a block than before", keyBlock, news.block)
	case news.wentBack > 0 && log.Enabled(k.ctx, slog.LevelDebug):
		log.Debug("rpcpool: an RPC's head went back", keyBlocks, news.wentBack)
	}
}
