package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// setup is what a client is made for.
type setup struct {
	proxy   string // none where empty
	ca      []byte
	urls    []string      // in the order in which they are to be asked
	attempt time.Duration // the longest that one attempt may take; 0: no bound
	conns   int           // the most connections to one endpoint; 0: no bound, or the library's default
}

// client is a contender, ready to be asked.
type client struct {
	call  func(ctx context.Context, method string, params ...any) (json.RawMessage, error)
	close func()
	logs  logsFunc // asks for logs in pieces; nil where the library leaves that to its user
}

// contender is a way of making calls.
type contender struct {
	name string
	make func(setup) (*client, error)
}

// The contenders' names.
const (
	nameTuned     = "bare-tuned"
	nameLean      = "bare-lean"
	nameDefault   = "bare-default"
	nameLoop      = "bare-loop"
	nameSticky    = "bare-sticky"
	nameGeth      = "go-ethereum rpc.Client"
	nameRetryable = "go-retryablehttp"
	nameFailsafe  = "failsafe-go"
	nameHedged    = "hedgedhttp"
	nameOurs      = "rpcpool"

	// The same with settings that some workloads ask for.
	nameResort    = nameOurs + ", LastResort"
	nameUnbounded = nameOurs + ", no bound"
	nameHedging   = nameOurs + ", hedging"
)

// singles make calls to one endpoint. The first is what the others are compared with.
var singles = []contender{
	{nameTuned, newTuned},
	{nameLean, newLean},
	{nameDefault, newDefault},
	{nameGeth, newGeth},
	{nameRetryable, newRetryable},
	{nameFailsafe, newFailsafe},
	{nameHedged, newHedged},
	{nameOurs, newOurs},
}

// rings go on to another endpoint where one fails. The first is what the others are
// compared with.
var rings = []contender{
	{nameLoop, newLoop},
	{nameSticky, newSticky},
	{nameRetryable, newRetryable},
	{nameFailsafe, newFailsafe},
	{nameHedged, newHedged},
	{nameOurs, newOurs},
}

// crowdRings are those that a crowd is let loose on.
var crowdRings = append(slices.Clip(rings), contender{nameResort, newResort}, contender{nameUnbounded, newUnbounded})

// leave gives the contenders but those of some names.
func leave(all []contender, out ...string) []contender {
	return slices.DeleteFunc(slices.Clone(all), func(c contender) bool { return slices.Contains(out, c.name) })
}

// manyIdle is more connections than any workload has at once: a pool that closes
// connections which are needed again would be measured for that.
const manyIdle = 1 << 14

// tunedTransport is net/http as one sets it who knows it: HTTP/1.1, as many kept
// connections as were in use, nothing from the environment.
func (s setup) tunedTransport() (*http.Transport, error) {
	t, err := s.defaultTransport()
	if err != nil {
		return nil, err
	}
	t.MaxIdleConnsPerHost = manyIdle
	t.MaxIdleConns = 0
	t.MaxConnsPerHost = s.conns
	return t, nil
}

// defaultTransport is http.DefaultTransport but for the proxy and the certificates,
// without which it would reach nobody here, and HTTP/1.1, which all contenders speak.
func (s setup) defaultTransport() (*http.Transport, error) {
	proxy, err := url.Parse(s.proxy)
	if err != nil {
		return nil, err
	}
	proxied := http.ProxyURL(proxy)
	if s.proxy == "" {
		proxied = nil
	}
	standard, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("http.DefaultTransport isn't net/http's own")
	}
	t := standard.Clone()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.ca)
	t.Proxy = proxied
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	t.Protocols = protocols
	return t, nil
}

// targets are the URLs, parsed.
func (s setup) targets() ([]*url.URL, error) {
	targets := make([]*url.URL, len(s.urls))
	for i, raw := range s.urls {
		target, err := url.Parse(raw)
		if err != nil {
			return nil, err
		}
		targets[i] = target
	}
	return targets, nil
}

// request is the envelope of a call, as one declares it.
type request struct {
	Version string `json:"jsonrpc"`
	ID      uint64 `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

// answer is the envelope of an answer, as one declares it.
type answer struct {
	ID     uint64          `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *answerError    `json:"error"`
}

type answerError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *answerError) Error() string { return e.Message }

// decodeAnswer takes an answer apart with encoding/json.
func decodeAnswer(raw []byte) (json.RawMessage, error) {
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, err
	}
	if a.Error != nil {
		return nil, a.Error
	}
	return a.Result, nil
}

// encodeRequest writes a request with encoding/json.
func encodeRequest(method string, params []any) ([]byte, error) {
	if params == nil {
		params = []any{}
	}
	return json.Marshal(request{"2.0", 1, method, params})
}
