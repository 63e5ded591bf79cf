package rpcpool

import (
	"context"
	"log/slog"
	"net/url"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/bomzrpc/rpcpool/internal/redact"
)

const (
	maxQueuedReports = 1024
	maxReportDetail  = 500 // characters
	reportGrace      = 2 * time.Second
)

// reporter sends complaints to the pool in the background. It never delays a call
// and its failures are nobody's (rule A8). Its goroutine lives only as long as
// there is something to send.
type reporter struct {
	directory Directory
	log       *slog.Logger
	secrets   redact.Secrets
	hooks     *hookSet
	start     func(func()) bool // runs a goroutine of the pool
	lifetime  context.Context   // ends when queued reports are given up
	call      func(context.Context, func(context.Context) error) error

	mu      sync.Mutex // protects what follows
	queue   []Report
	sending bool
	lost    uint64 // reports dropped because the queue was full or the pool closed
}

// add queues reports.
func (r *reporter) add(reports []Report) {
	if len(reports) == 0 {
		return
	}
	queued, lost := r.enqueue(reports)
	r.tellReports(ReportQueued, "", queued...)
	r.tellReports(ReportDropped, "", lost...)
	if len(lost) > 0 {
		r.log.Debug("rpcpool: reports dropped, too many are waiting", keyDropped, len(lost))
	}
}

func (r *reporter) enqueue(reports []Report) (queued, lost []Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	room := min(max(0, maxQueuedReports-len(r.queue)), len(reports))
	queued, lost = reports[:room], reports[room:]
	r.queue = append(r.queue, queued...)
	if !r.sending && len(r.queue) > 0 {
		r.sending = r.start(r.send)
		if !r.sending { // nothing was waiting, else somebody would be sending
			queued, lost, r.queue = nil, reports, nil
		}
	}
	r.lost += uint64(len(lost))
	return queued, lost
}

// send delivers what is queued, one by one, and ends when nothing is left.
func (r *reporter) send() {
	for {
		report, late, ok := r.next()
		r.tellReports(ReportDropped, "", late...)
		if !ok {
			return
		}
		err := r.deliver(report)
		if err == nil {
			r.tellReports(ReportSent, "", report)
			continue
		}
		why := r.shown(err, report)
		r.tellReports(ReportFailed, why, report)
		r.log.Debug("rpcpool: a report wasn't delivered", keyChain, report.Chain, keyRPC, redact.URL(report.URL), keyError, why)
	}
}

// next gives the report to send, and those that it is too late for.
func (r *reporter) next() (report Report, late []Report, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lifetime.Err() != nil {
		late = r.queue
		r.lost += uint64(len(late))
		r.queue = nil
	}
	if len(r.queue) == 0 {
		r.sending = false
		return Report{}, late, false
	}
	report = r.queue[0]
	r.queue = r.queue[1:]
	return report, nil, true
}

func (r *reporter) deliver(report Report) error {
	ctx, cancel := context.WithTimeout(r.lifetime, poolTimeout)
	defer cancel()
	return r.call(ctx, func(ctx context.Context) error { return r.directory.Report(ctx, report) })
}

// shown is the text of a directory's error, which may quote the report or a URL.
func (r *reporter) shown(err error, report Report) string {
	text := r.secrets.Scrub(withoutURL(err).Error())
	if target, parseErr := url.Parse(report.URL); parseErr == nil {
		text = redact.OfURL(target).Scrub(text)
	}
	return text
}

// clip cuts text to at most n characters.
func clip(text string, n int) string {
	if len(text) <= n || utf8.RuneCountInString(text) <= n {
		return text
	}
	runes := []rune(text)
	return string(runes[:n-1]) + "…"
}
