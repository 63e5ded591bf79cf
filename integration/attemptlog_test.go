package integration

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/bomzrpc/rpcpool"
)

// attemptLog reads the debug log, where every attempt stands (rule A11), those of
// calls that succeeded in the end too.
type attemptLog struct {
	mu      sync.Mutex
	entries []loggedAttempt
}

type loggedAttempt struct {
	rpc, proxy string
	verdict    rpcpool.Verdict
}

func (l *attemptLog) logger() *slog.Logger { return slog.New(logHandler{l}) }

// attempts gives what was logged since the last call.
func (l *attemptLog) attempts() []loggedAttempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.entries
	l.entries = nil
	return taken
}

// verdicts gives the verdicts of attempts at RPCs whose masked URL has the text.
func verdicts(attempts []loggedAttempt, rpc string) (list []rpcpool.Verdict) {
	for _, a := range attempts {
		if strings.Contains(a.rpc, rpc) {
			list = append(list, a.verdict)
		}
	}
	return list
}

type logHandler struct{ log *attemptLog }

func (h logHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h logHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h logHandler) WithGroup(string) slog.Handler            { return h }

var allVerdicts = []rpcpool.Verdict{
	rpcpool.VerdictOK, rpcpool.VerdictCaller, rpcpool.VerdictProxyFail, rpcpool.VerdictIPBlocked, rpcpool.VerdictConnFail,
	rpcpool.VerdictRPCFail, rpcpool.VerdictUnsupported, rpcpool.VerdictRange, rpcpool.VerdictNoState, rpcpool.VerdictStale,
	rpcpool.VerdictWrongChain,
}

func (h logHandler) Handle(_ context.Context, record slog.Record) error {
	values := map[string]string{}
	record.Attrs(func(attr slog.Attr) bool {
		values[attr.Key] = attr.Value.Resolve().String()
		return true
	})
	verdict := rpcpool.Verdict(values["verdict"])
	if record.Level != slog.LevelDebug || !slices.Contains(allVerdicts, verdict) {
		return nil
	}
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	h.log.entries = append(h.log.entries, loggedAttempt{values["rpc"], values["proxy"], verdict})
	return nil
}
