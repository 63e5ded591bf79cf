package proxydial_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool/internal/proxydial"
)

// An Attempt is found in what is derived from its context, keeps its phase under
// concurrent use, and is harmless where there is none.
func TestAttempt(t *testing.T) {
	assert.Nil(t, proxydial.AttemptFrom(t.Context()))
	var none *proxydial.Attempt
	none.SetPhase(proxydial.PhaseReady)
	assert.Equal(t, proxydial.PhaseNone, none.Phase())
	assert.Equal(t, context.Background(), none.Own())
	none.SetServed()
	assert.False(t, none.Served())

	ctx, attempt := proxydial.WithAttempt(t.Context())
	assert.Equal(t, proxydial.PhaseNone, attempt.Phase())
	assert.Same(t, attempt, proxydial.AttemptFrom(context.WithoutCancel(ctx)))
	assert.Equal(t, t.Context(), attempt.Own())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			attempt.SetPhase(proxydial.PhaseTargetTLS)
			_ = attempt.Phase()
		})
	}
	wg.Wait()
	assert.Equal(t, proxydial.PhaseTargetTLS, attempt.Phase())
}

// Each phase has a phrase of its own.
func TestPhaseString(t *testing.T) {
	seen := map[string]bool{}
	for p := proxydial.PhaseNone; p <= proxydial.PhaseReady; p++ {
		assert.NotContains(t, p.String(), "unknown")
		seen[p.String()] = true
	}
	assert.Len(t, seen, int(proxydial.PhaseReady)+1)
	assert.Equal(t, "connecting to the proxy", proxydial.PhaseDial.String())
	assert.Contains(t, (proxydial.PhaseReady + 1).String(), "unknown")
}

// An error that was made by hand has a text too, and no form shows its fields.
func TestErrorForms(t *testing.T) {
	e := &proxydial.Error{
		Phase: asking, Reason: proxydial.Status, StatusCode: 407,
		Header: http.Header{"Secret": {"secret"}}, Err: fmt.Errorf("secret: %w", io.EOF),
	}
	const text = "asking the proxy for the target: the proxy answered CONNECT with HTTP status 407 (Proxy Authentication Required)"
	inJSON, err := json.Marshal(e)
	require.NoError(t, err)
	for _, form := range []string{e.Error(), fmt.Sprintf("%v", e), fmt.Sprintf("%+v", e), fmt.Sprintf("%#v", e)} {
		assert.Equal(t, text, form)
	}
	assert.JSONEq(t, `"`+text+`"`, string(inJSON))
	require.ErrorIs(t, e, io.EOF)

	for reason := proxydial.Reason(0); reason <= proxydial.Canceled+1; reason++ {
		text := (&proxydial.Error{Phase: greeting, Reason: reason, Err: e.Err}).Error()
		assert.NotContains(t, text, "secret")
		assert.NotEmpty(t, text)
		known := proxydial.Unreachable <= reason && reason <= proxydial.Canceled
		assert.Equal(t, !known, text == "greeting the proxy: failed", text)
	}
}

// Under net/http, whose dials outlive their requests, a dial ends with its attempt:
// nothing is left soon after Do returned, whichever end it is, and the Attempt says where
// it hung although Do's error doesn't.
func TestAttemptEndsDialsOfNetHTTP(t *testing.T) {
	for _, end := range endings[:2] {
		synctest.Test(t, func(t *testing.T) {
			n := &fakeNet{serve: saying(bytesOf("05 00"), silence)}
			d := dialerTo(t, "socks5://p.test", n)
			client := &http.Client{Transport: transportOver(d.Tunnel)}
			ctx, cancel := end.start(t.Context(), d)
			defer cancel()
			ctx, attempt := proxydial.WithAttempt(ctx)
			started := time.Now()
			_, err := get(ctx, client)
			require.ErrorIs(t, err, end.is)
			assert.Equal(t, time.Second, time.Since(started))
			assert.Equal(t, asking, attempt.Phase())
			synctest.Wait() // Do returns before the dial does
			assert.Zero(t, n.openConns())
		})
	}
}

// A pooled connection works for the attempts after the one that dialed it.
func TestConnectionIsPooledBeyondItsAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv := conversations[0]
		n := &fakeNet{serve: speaker{t: t, conv: conv, limit: -1, then: serveHTTP}.serve}
		client := &http.Client{Transport: transportOver(dialerTo(t, conv.url, n).Tunnel)}
		defer client.CloseIdleConnections()
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			ctx, _ = proxydial.WithAttempt(ctx)
			body, err := get(ctx, client)
			require.NoError(t, err)
			assert.Equal(t, "GET /path", body)
			cancel()
			time.Sleep(5 * time.Second)
		}
		assert.Len(t, n.dials(), 1)
	})
}

// Reach serves requests in absolute form.
func TestReachServesAbsoluteForm(t *testing.T) {
	for _, url := range []string{"http://jo:pw@p.test", "https://p.test"} {
		synctest.Test(t, func(t *testing.T) {
			n := &fakeNet{serve: speaker{t: t, conv: conversation{url: url}, then: serveHTTP}.serve}
			d := dialerTo(t, url, n)
			client := &http.Client{Transport: transportOver(func(ctx context.Context, _ string) (net.Conn, error) { return d.Reach(ctx) })}
			defer client.CloseIdleConnections()
			body, err := get(t.Context(), client)
			require.NoError(t, err)
			assert.Equal(t, "GET /path", body)
		})
	}
}

func transportOver(dial func(context.Context, string) (net.Conn, error)) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) }}
}

func get(ctx context.Context, client *http.Client) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+target+"/path", http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// serveHTTP answers requests with their own method and path.
func serveHTTP(conn net.Conn) {
	r := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		text := request.Method + " " + request.URL.Path
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	}
}
