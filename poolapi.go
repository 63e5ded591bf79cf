package rpcpool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/bomzrpc/rpcpool/internal/redact"
)

// poolTimeout bounds one call of the pool API (rule A1.4).
const poolTimeout = 10 * time.Second

// maxListBytes bounds the pool's answer: a thousand entries have about 200 kB.
const maxListBytes = 16 << 20

// apiDirectory is the pool API. It is called directly, never through a proxy,
// and no environment variable changes that (rules A1.3, A1.4).
type apiDirectory struct {
	base    string
	key     string
	secrets redact.Secrets
	client  *http.Client
}

func newAPIDirectory(base, key string, dial dialFunc) *apiDirectory {
	return &apiDirectory{
		base:    strings.TrimRight(base, "/"),
		key:     key,
		secrets: redact.Of(key),
		client: &http.Client{
			Transport: &http.Transport{
				Proxy:                  nil,
				DialContext:            dial,
				TLSHandshakeTimeout:    poolTimeout,
				IdleConnTimeout:        30 * time.Second,
				MaxIdleConnsPerHost:    2,
				MaxResponseHeaderBytes: 64 << 10,
			},
			// A redirect could carry the key to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// RPCs asks for a chain's list.
func (d *apiDirectory) RPCs(ctx context.Context, ref string) (*List, error) {
	address := d.base + "/v1/chains/" + url.PathEscape(ref) + "/rpcs?transport=http"
	status, body, err := d.exchange(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, &PoolAPIError{Chain: ref, Reason: d.secrets.Scrub(err.Error())}
	}
	if status != http.StatusOK {
		return nil, &PoolAPIError{StatusCode: status, Chain: ref, Reason: refusal(status)}
	}
	list, err := parseListing(body)
	if err != nil {
		return nil, &PoolAPIError{StatusCode: status, Chain: ref, Reason: err.Error()}
	}
	return list, nil
}

// refusal says what a status of the pool means and what to do about it.
func refusal(status int) string {
	text := fmt.Sprintf("the pool answered HTTP %d %s", status, http.StatusText(status))
	switch status {
	case http.StatusBadRequest:
		return text + "; check the chain reference"
	case http.StatusUnauthorized:
		return text + "; check the API key (Config.APIKey or RPC_POOL_API_KEY)"
	case http.StatusNotFound:
		return text + "; the pool doesn't know this chain, or the URL isn't the pool's (Config.APIURL or RPC_POOL_URL)"
	}
	return text
}

// Report sends a complaint.
func (d *apiDirectory) Report(ctx context.Context, report Report) error {
	body, err := json.Marshal(struct {
		Chain  string `json:"chain"`
		URL    string `json:"url"`
		Error  string `json:"error"`
		Detail string `json:"detail"`
	}{report.Chain, report.URL, report.Error, report.Detail})
	if err != nil {
		return errors.New("the report can't be written as JSON")
	}
	status, _, err := d.exchange(ctx, http.MethodPost, d.base+"/v1/report", body)
	if err != nil {
		return errors.New(d.secrets.Scrub(err.Error()))
	}
	if status < 200 || status > 299 {
		return fmt.Errorf("the pool answered HTTP %d", status)
	}
	return nil
}

func (d *apiDirectory) exchange(ctx context.Context, method, address string, body []byte) (status int, answer []byte, err error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, reader)
	if err != nil {
		return 0, nil, errors.New("the pool's URL can't be used")
	}
	req.Header.Set("X-API-Key", d.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := d.client.Do(req)
	if err != nil {
		return 0, nil, unreachable(err)
	}
	defer res.Body.Close()
	answer, more, err := readLimited(res.Body, maxListBytes)
	if err != nil && res.StatusCode == http.StatusOK {
		return 0, nil, fmt.Errorf("the pool's answer broke off: %w", withoutURL(err))
	}
	if more {
		return res.StatusCode, nil, errors.New("the pool's answer is too large")
	}
	return res.StatusCode, answer, nil
}

func (d *apiDirectory) close() { d.client.CloseIdleConnections() }

func unreachable(err error) error {
	err = withoutURL(err)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the pool gave no answer in time: %w", err)
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("the pool's host name can't be looked up: %w", err)
	}
	return fmt.Errorf("the pool can't be reached: %w", err)
}

// withoutURL takes the wrapping off that quotes the whole URL.
func withoutURL(err error) error {
	var wrapped *url.Error
	for errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return err
}
