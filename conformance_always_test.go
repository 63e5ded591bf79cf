package rpcpool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// checkAlways checks what must hold after every step, whatever it expects.
func (p *player) checkAlways(s *step) {
	proxies := p.proxyAddrs()
	allowed := append(slices.Clone(proxies), p.world.Pool.Addr())
	for _, dialled := range p.world.Network.Dials()[p.previous.dials:] {
		assert.Contains(p.t, allowed, dialled, "%s: only proxies and the pool API may be dialled", p.label)
	}
	if len(proxies) > 0 {
		assert.Zero(p.t, p.world.Network.PendingDials(proxies...), "%s: dials to proxies are left", p.label)
		assert.Zero(p.t, p.world.Network.OpenConns(proxies...), "%s: connections to proxies are left", p.label)
	}
	assert.Empty(p.t, p.world.Network.Breaches(), "%s: what the client must not do", p.label)
	text, _ := p.log.seen()
	p.checkHidden("the log", text[p.previous.logText:])
}

// checkNothingIsLeft checks what must hold once the pool is closed.
func (p *player) checkNothingIsLeft() {
	synctest.Wait()
	assert.Zero(p.t, p.world.Network.PendingDials(), "%s: dials are left", p.label)
	assert.Zero(p.t, p.world.Network.OpenConns(), "%s: connections are left", p.label)
	for name, node := range p.nodes {
		for _, request := range node.Requests() {
			sent := string(request.Body)
			for header, values := range request.Header {
				sent += "\n" + header + ": " + strings.Join(values, ", ")
			}
			assert.NotContains(p.t, sent, p.world.Pool.Key(), "RPC %s was sent the API key", name)
			for _, proxy := range p.scenario.Proxies {
				for _, secret := range loginOf(proxy.URL) {
					assert.NotContains(p.t, sent, secret, "RPC %s was sent a proxy's login", name)
				}
			}
		}
	}
	p.checkForms("the configuration", p.config)
	p.checkForms("the pool", p.pool)
	if p.pool != nil {
		p.checkForms("a chain", p.pool.Chain("8453"))
	}
}

// checkErrorHides checks every printed form of an error, of what it wraps, and of
// the attempts that it lists.
func (p *player) checkErrorHides(err error) {
	if err == nil {
		return
	}
	p.checkForms(fmt.Sprintf("the error %T", err), err)
	for _, attempt := range attemptsOf(err) {
		p.checkForms("an attempt", attempt)
	}
	p.checkErrorHides(errors.Unwrap(err))
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, inner := range joined.Unwrap() {
			p.checkErrorHides(inner)
		}
	}
}

func (p *player) checkForms(what string, value any) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		p.checkHidden(what+" under "+verb, fmt.Sprintf(verb, value))
	}
	if raw, err := json.Marshal(value); err == nil {
		p.checkHidden(what+" as JSON", string(raw))
	}
}

func (p *player) checkHidden(what, text string) {
	for _, secret := range p.secrets {
		if i := strings.Index(text, secret); i >= 0 {
			assert.Fail(p.t, "a secret is shown", "%s: %s has %q in it: …%s…", p.label, what, secret,
				text[max(0, i-200):min(len(text), i+100)])
			return
		}
	}
}

// shortest is the length from which a part of a path counts as a secret.
const shortest = 4

// secretsOf collects what must never be shown.
func secretsOf(world *rpcpooltest.World, s *scenario) []string {
	secrets := world.Secrets()
	for _, rpc := range s.RPCs {
		u, err := url.Parse(rpc.URL)
		if err != nil {
			continue
		}
		for part := range strings.SplitSeq(u.Path, "/") {
			if len(part) >= shortest {
				secrets = append(secrets, part)
			}
		}
	}
	return append(secrets, "user-env", "word-env")
}

func loginOf(rawURL string) []string {
	u, err := url.Parse(rawURL)
	if err != nil || u.User == nil {
		return nil
	}
	password, _ := u.User.Password()
	return []string{u.User.Username(), password}
}

// reportLedger compares reports with what the steps expect: they may come after
// their step, but before the pool is closed.
type reportLedger struct {
	outstanding []string
	anything    bool // a step left its reports open: those unexpected may be its
}

// takeReports enters what a step expects, if there is one, and the reports that
// have come since the last time.
func (p *player) takeReports(s *step) {
	ledger := &p.reports
	if s != nil {
		for _, r := range s.Expect.Reports {
			ledger.outstanding = append(ledger.outstanding, strings.Join(r[:], " "))
		}
		ledger.anything = ledger.anything || s.calls() && s.Expect.Reports == nil
	}
	reports := p.world.Pool.Reports()
	for _, r := range reports[p.previous.reports:] {
		name, known := p.names[r.URL]
		assert.True(p.t, known, "%s: a report's URL isn't an RPC's whole URL: %s", p.label, r.URL)
		p.checkHidden("a report's detail", r.Detail)
		if !ledger.settle(r.Chain+" "+name+" ", r.Error) && !ledger.anything {
			assert.Fail(p.t, "a report that nobody expected", "%s: %s %s %s (%s); expected: %q",
				p.label, r.Chain, name, r.Error, r.Detail, ledger.outstanding)
		}
	}
	p.previous.reports = len(reports)
}

// settle crosses out the expectation that a report fulfils.
func (l *reportLedger) settle(prefix, kind string) bool {
	for _, wanted := range []string{prefix + kind, prefix + "*"} {
		if i := slices.Index(l.outstanding, wanted); i >= 0 {
			l.outstanding = slices.Delete(l.outstanding, i, i+1)
			return true
		}
	}
	return false
}

// recorder is a slog.Handler that keeps everything, from debug level on, as text
// and as JSON.
type recorder struct {
	slog.Handler
	state *recorderState
}

type recorderState struct {
	mu       sync.Mutex // protects what follows
	text     bytes.Buffer
	warnings int
}

func (s *recorderState) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func newRecorder() *recorder {
	state := &recorderState{}
	options := &slog.HandlerOptions{Level: slog.LevelDebug}
	return &recorder{Handler: slog.NewMultiHandler(slog.NewTextHandler(state, options), slog.NewJSONHandler(state, options)), state: state}
}

func (r *recorder) Handle(ctx context.Context, record slog.Record) error {
	if record.Level == slog.LevelWarn {
		r.state.mu.Lock()
		r.state.warnings++
		r.state.mu.Unlock()
	}
	return r.Handler.Handle(ctx, record)
}

func (r *recorder) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &recorder{Handler: r.Handler.WithAttrs(attrs), state: r.state}
}

func (r *recorder) WithGroup(name string) slog.Handler {
	return &recorder{Handler: r.Handler.WithGroup(name), state: r.state}
}

// seen gives all that was logged, and the number of warnings.
func (r *recorder) seen() (text string, warnings int) {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	return r.state.text.String(), r.state.warnings
}
