package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/bomzrpc/rpcpool"
)

// report is an error as it is told: what happened, what belongs to it, what to do.
type report struct {
	status   int
	what     string
	details  []string
	attempts []rpcpool.Attempt
	advice   string
}

// explain prints an error and gives the exit status. Attempts that were printed as
// they happened (-v) aren't printed again.
func explain(out io.Writer, err error, opts *options) int {
	r := reportOf(err)
	if opts.file != "" {
		r.aboutFile(err)
	}
	fmt.Fprintf(out, "call: %s\n", printable(r.what))
	for _, detail := range r.details {
		fmt.Fprintf(out, "  %s\n", printable(detail))
	}
	if !opts.verbose {
		for _, a := range r.attempts {
			fmt.Fprintf(out, "  %s\n", printable(a.String()))
		}
	}
	if r.advice != "" {
		fmt.Fprintf(out, "%s\n", r.advice)
	}
	return r.status
}

func reportOf(err error) report {
	for _, read := range []func(error) (report, bool){usageReport, nodeReport, troubleReport} {
		if r, ok := read(err); ok {
			return r
		}
	}
	return report{status: statusTrouble, what: err.Error()}
}

// usageReport is about what the user gave.
func usageReport(err error) (report, bool) {
	var (
		flags   *usageError
		list    *rpcpool.ListFileError
		config  *rpcpool.ConfigError
		request *rpcpool.RequestError
	)
	r := report{status: statusUsage}
	switch {
	case errors.As(err, &flags):
		r.what, r.advice = flags.text, "call -h tells how to use it"
	case errors.As(err, &list):
		r.what, r.advice = strings.TrimPrefix(list.Error(), "rpcpool: "), "docs/DIRECTORY.md has the form of -file"
	case errors.As(err, &config):
		r.what, r.advice = config.Field+": "+config.Reason, giveInstead(config.Field)
	case errors.As(err, &request):
		r.what = request.Error()
	default:
		return r, false
	}
	return r, true
}

// giveInstead says where a field of the configuration is given here.
func giveInstead(field string) string {
	field, _, _ = strings.Cut(field, "[")
	switch field {
	case "Proxies":
		return "proxies are given by -proxy URL, or in " + envProxies
	case "APIURL":
		return "the pool is given by -pool URL, or in " + rpcpool.EnvAPIURL
	case "APIKey":
		return "the key is given by -key KEY, or in " + rpcpool.EnvAPIKey
	}
	return ""
}

// nodeReport is about what nodes said to the request itself.
func nodeReport(err error) (report, bool) {
	var (
		rpc    *rpcpool.RPCError
		status *rpcpool.HTTPError
		logs   *rpcpool.LogsRangeTooLargeError
	)
	r := report{status: statusNode}
	switch {
	case errors.As(err, &rpc):
		r.what = "the node's answer is an error"
		r.details = []string{"code:    " + strconv.Itoa(rpc.Code), "message: " + rpc.Message}
		if len(rpc.Data) > 0 {
			r.details = append(r.details, "data:    "+string(rpc.Data))
		}
		r.advice = "another RPC would say the same: change the request"
	case errors.As(err, &status):
		// Not the body: a server may repeat the URL in it, key and all.
		r.what = "the RPC refuses the request with HTTP status " + strconv.Itoa(status.StatusCode) + " " +
			http.StatusText(status.StatusCode)
		r.advice = "another RPC would say the same: change the request"
	case errors.As(err, &logs):
		r.what, r.attempts = "the RPCs refuse the range of blocks, or the number of logs, as too large", logs.Attempts
		r.advice = "ask for fewer blocks"
		if logs.SuggestedSpan > 0 {
			r.advice += fmt.Sprintf(": the widest span that an RPC named is %d", logs.SuggestedSpan)
		}
	default:
		return r, false
	}
	return r, true
}

// troubleReport is about RPCs, proxies and the pool.
func troubleReport(err error) (report, bool) {
	var (
		healthy *rpcpool.NoHealthyRPCError
		capable *rpcpool.NoCapableRPCError
		proxies *rpcpool.ProxyError
		api     *rpcpool.PoolAPIError
		broken  *rpcpool.InterruptedError
	)
	r := report{status: statusTrouble}
	switch {
	case errors.As(err, &healthy):
		r.what = fmt.Sprintf("no RPC of chain %q answered (%d listed)", healthy.Chain, healthy.Listed)
		r.attempts = healthy.Attempts
		r.advice = "try again later, or through other proxies: RPCs may have blocked the addresses of these"
		if healthy.Listed == 0 {
			r.what = fmt.Sprintf("the pool lists no RPC for chain %q", healthy.Chain)
		}
	case errors.As(err, &capable):
		r.what = fmt.Sprintf("no RPC of chain %q can do this (%d listed)", capable.Chain, capable.Listed)
		r.details = []string{"needed: " + strings.Join(capable.Needs, ", ")}
		r.advice = "ask for something else, or wait until the pool lists such an RPC"
	case errors.As(err, &proxies):
		r.what, r.attempts = "no proxy works, and nothing is sent without one", proxies.Attempts
		r.advice = "check that the proxies run, and their logins; -proxy or " + envProxies + " gives others"
	case errors.As(err, &api):
		r.what, r.advice = poolTrouble(api)
	case errors.As(err, &broken):
		r.what, r.attempts = "interrupted", broken.Attempts
		if errors.Is(err, context.DeadlineExceeded) {
			r.what = "the time for the whole call ran out"
		}
	default:
		return r, false
	}
	return r, true
}

// aboutFile says what is different where the lists are from a file: there is no pool
// to check or to wait for.
func (r *report) aboutFile(err error) {
	var (
		capable *rpcpool.NoCapableRPCError
		api     *rpcpool.PoolAPIError
	)
	switch {
	case errors.As(err, &capable):
		r.advice = "ask for something else, or say in the file which RPC can: \"caps\""
	case errors.As(err, &api):
		r.what, r.advice = fmt.Sprintf("no list of RPCs for chain %q: %s", api.Chain, api.Reason), "check -chain, and the file"
	}
}

// poolTrouble says what is wrong with the pool, and what to do.
func poolTrouble(api *rpcpool.PoolAPIError) (what, advice string) {
	switch api.StatusCode {
	case http.StatusUnauthorized:
		return "the pool API refuses the key", "check -key, or " + rpcpool.EnvAPIKey
	case http.StatusBadRequest, http.StatusNotFound:
		return fmt.Sprintf("the pool API doesn't know chain %q", api.Chain),
			"check -chain, and that -pool (or " + rpcpool.EnvAPIURL + ") is the pool's URL"
	}
	return fmt.Sprintf("no list of RPCs for chain %q: %s", api.Chain, api.Reason),
		"check -pool (or " + rpcpool.EnvAPIURL + "), and whether the pool is up"
}

// printable shows control characters as escapes: what a node says must not write
// to the terminal as it likes.
func printable(text string) string {
	if !strings.ContainsFunc(text, unprintable) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unprintable(r) {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
