package rpcpool_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// Calls one after the other through random faults of RPCs, proxies and the pool go
// exactly as the model says: the same requests in the same order through the same
// proxies, the same outcome, attempts, reports, lists asked for and cooldowns, and
// no more time. A scenario is run alone by its seed:
// -run 'TestCallsAgreeWithTheModel/^seed_17$'.
func TestCallsAgreeWithTheModel(t *testing.T) {
	t.Parallel() // it takes a core for long
	const all, few = 500, 50
	seeds := all
	if testing.Short() || underRace {
		seeds = few
	}
	saw, ran, wrong := map[string]int{}, 0, 0
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			ran++
			if wrong >= 3 {
				t.Skip("three scenarios differ already")
			}
			defer func() {
				if t.Failed() {
					wrong++
				}
			}()
			synctest.Test(t, func(t *testing.T) { newModelScenario(uint64(seed)).run(t, saw) })
		})
	}
	if ran < all || wrong > 0 {
		return // too few to meet with everything
	}
	for _, rule := range modelRules {
		assert.Greater(t, saw[rule], 10, "the scenarios hardly meet with %q", rule)
	}
}

// modelRules are outcomes and turns of the model that the scenarios must come to.
var modelRules = []string{
	modelServed, modelCallers, modelNoProxy, modelNoHealthy, modelNoCapable, modelRangeLarge,
	"A2.3 the cursor goes to the best",
	"A2.4 the list in memory is kept",
	"A4.3 another round",
	"A5 a blocked address is tried through another proxy",
	"A5 an RPC is passed over for a method",
	"A5.1 all proxies refuse an RPC",
	"A7.1 a check at the third RPC",
	"A7.1 a check at the end of a walk",
	"A7.3 a suspect is alive",
	"A7.3 a suspect is dead",
}

// run plays the scenario, up to the first step that goes another way than the model
// says. It is called in a bubble, for the times are exact.
func (s *modelScenario) run(t *testing.T, saw map[string]int) {
	w, checkURL := s.world(t)
	pool := open(t, w, func(c *rpcpool.Config) {
		c.ProxyCheckURL = checkURL
		c.Mode, c.MaxRounds, c.Timeout = s.mode, s.maxRounds, modelTimeout
	})
	watch, m := &modelWatch{world: w}, s.model(saw)
	var story strings.Builder
	for step := range modelSteps {
		s.step = step
		w.Network.SetStep(step)
		time.Sleep(s.waits[step])
		m.now = m.now.Add(s.waits[step])
		begin := time.Now()

		want := m.call(s.methods[step])
		_, err := pool.Chain("1").Call(t.Context(), s.methods[step], modelParams(s.methods[step])...)
		end := time.Now()
		synctest.Wait() // for reports
		got := watch.next(err, end)

		s.tell(&story, m, want, begin)
		if !assert.ObjectsAreEqual(want, got) {
			t.Errorf("seed %d, step %d goes another way than the model says\n\n%s\nthe model:\n%s\nthe library:\n%s",
				s.seed, step, s.describe(&story), want.text(begin), got.text(begin))
			return
		}
	}
}

func modelParams(method string) []any {
	if method == "eth_getLogs" {
		return []any{map[string]any{"fromBlock": "0x1", "toBlock": "0x2"}}
	}
	return nil
}

// modelWatch sees what calls do.
type modelWatch struct {
	world                    *rpcpooltest.World
	requests, reports, lists int // seen so far
}

// next gives the trace of the call that has just ended.
func (w *modelWatch) next(err error, end time.Time) modelTrace {
	requests, reports, lists := w.world.Requests(), w.world.Pool.Reports(), len(w.world.Pool.Asked())
	trace := modelTrace{requests: requests[w.requests:], lists: lists - w.lists, end: end}
	if len(trace.requests) == 0 {
		trace.requests = nil
	}
	for _, r := range reports[w.reports:] {
		trace.reports = append(trace.reports, modelName(r.URL)+" "+r.Error)
	}
	slices.Sort(trace.reports)
	w.requests, w.reports, w.lists = len(requests), len(reports), lists

	var attempts []rpcpool.Attempt
	trace.outcome, attempts, trace.retryAt = modelOutcome(err)
	for _, a := range attempts {
		trace.attempts = append(trace.attempts, modelName(a.RPC)+" "+modelName(a.Proxy)+" "+string(a.Verdict))
	}
	return trace
}

func modelOutcome(err error) (outcome string, attempts []rpcpool.Attempt, retryAt time.Time) {
	var (
		caller  *rpcpool.RPCError
		proxy   *rpcpool.ProxyError
		healthy *rpcpool.NoHealthyRPCError
		capable *rpcpool.NoCapableRPCError
		logs    *rpcpool.LogsRangeTooLargeError
	)
	switch {
	case err == nil:
		return modelServed, nil, time.Time{}
	case errors.As(err, &caller):
		return modelCallers, nil, time.Time{}
	case errors.As(err, &proxy):
		return modelNoProxy, proxy.Attempts, proxy.RetryAt
	case errors.As(err, &healthy):
		return modelNoHealthy, healthy.Attempts, healthy.RetryAt
	case errors.As(err, &capable):
		return modelNoCapable, nil, time.Time{}
	case errors.As(err, &logs):
		return modelRangeLarge, logs.Attempts, time.Time{}
	}
	return "another error: " + err.Error(), nil, time.Time{}
}

// modelName gives the name of an RPC or proxy, which is the first part of its
// host's.
func modelName(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return rawURL
	}
	name, _, _ := strings.Cut(u.Hostname(), ".")
	return name
}

// text prints a trace, with times from the call's begin on.
func (c modelTrace) text(begin time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  outcome:  %s after %v\n", c.outcome, c.end.Sub(begin))
	if !c.retryAt.IsZero() {
		fmt.Fprintf(&b, "  retry at: %v\n", c.retryAt.Sub(begin))
	}
	fmt.Fprintf(&b, "  lists:    %d\n", c.lists)
	fmt.Fprintf(&b, "  requests: %s\n", strings.Join(c.requests, ", "))
	fmt.Fprintf(&b, "  attempts: %s\n", strings.Join(c.attempts, ", "))
	fmt.Fprintf(&b, "  reports:  %s\n", strings.Join(c.reports, ", "))
	return b.String()
}

// tell adds to the story what a step was, and what the model says of it.
func (s *modelScenario) tell(story *strings.Builder, m *model, want modelTrace, begin time.Time) {
	fmt.Fprintf(story, "step %d: after %v, %s\n", s.step, s.waits[s.step], s.methods[s.step])
	for _, name := range s.proxies {
		fmt.Fprintf(story, "  %s %s\n", name, s.proxyDoes[name][s.step].name)
	}
	for _, name := range append(slices.Clone(s.rpcs), modelCheckTarget) {
		doing := s.rpcDoes[name][s.step]
		fmt.Fprintf(story, "  %s %s", name, doing.does.name)
		if doing.not.name != doing.does.name {
			fmt.Fprintf(story, " through %s, else %s", doing.via, doing.not.name)
		}
		story.WriteString("\n")
	}
	for _, list := range s.lists[s.nth-want.lists : s.nth] {
		fmt.Fprintf(story, "  the pool answers: %s\n", list.text())
	}
	fmt.Fprintf(story, "  -> %s after %v; then the ring is %s, the cursor on %s, the proxy %s\n",
		want.outcome, want.end.Sub(begin), modelList{rpcs: m.ring}.text(), m.atCursor(), m.proxies[m.current])
}

func (l modelList) text() string {
	if l.down {
		return "503"
	}
	var names []string
	for _, rpc := range l.rpcs {
		if !rpc.logs {
			rpc.name += " (no logs)"
		}
		names = append(names, rpc.name)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

func (s *modelScenario) describe(story *strings.Builder) string {
	return fmt.Sprintf("scenario: %v, %d rounds\n%s", s.mode, s.maxRounds, story)
}
