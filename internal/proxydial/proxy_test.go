package proxydial_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool/internal/proxydial"
)

// No way of printing a proxy, or what holds one, shows its login, in any of the
// forms in which it could be read back.
func TestProxyPrintsNoLogin(t *testing.T) {
	const raw = "http://hunter2:s3%63r3t@proxy-a.example.com:3128"
	proxy, err := proxydial.Parse(raw)
	require.NoError(t, err)
	const label = "http://***@proxy-a.example.com:3128"

	hidden := struct {
		p     *proxydial.Proxy
		value proxydial.Proxy
	}{proxy, *proxy}
	shown := struct {
		P     *proxydial.Proxy
		Value proxydial.Proxy
		D     proxydial.Dialer
	}{proxy, *proxy, proxydial.Dialer{Proxy: proxy}}
	var texts []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%p", "%t", "%40s", "%z"} {
		for _, value := range []any{proxy, *proxy, hidden, shown, &shown, []*proxydial.Proxy{proxy}, map[string]proxydial.Proxy{"k": *proxy}} {
			texts = append(texts, fmt.Sprintf(verb, value))
		}
	}
	inJSON, err := json.Marshal(map[string]any{"p": proxy, "v": *proxy})
	require.NoError(t, err)
	texts = append(texts, string(inJSON))
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("m", "p", proxy, "v", *proxy, "hidden", hidden)
	}
	texts = append(texts, log.String())
	for _, text := range texts {
		for _, secret := range []string{"hunter2", "s3cr3t", "s3%63r3t", "aHVudGVyMjpzM2NyM3Q", "68756e74657232", "68756E74657232"} {
			assert.NotContains(t, text, secret)
		}
	}

	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
		assert.Equal(t, label, fmt.Sprintf(verb, proxy))
		assert.Equal(t, label, fmt.Sprintf(verb, *proxy))
	}
	assert.Equal(t, `"`+label+`"`, fmt.Sprintf("%q", proxy))
	assert.Equal(t, label, proxy.GoString())
	assert.Equal(t, label, proxy.LogValue().String())
	assert.JSONEq(t, `{"p":"`+label+`","v":"`+label+`"}`, string(inJSON))
}

// The secrets hide a login in each of its forms, and are the caller's own copy.
func TestProxySecrets(t *testing.T) {
	proxy, err := proxydial.Parse("http://hunter%32:s3%63r3t@p.test")
	require.NoError(t, err)
	for _, form := range []string{
		"hunter%32:s3%63r3t", "hunter2:s3cr3t", "hunter2", "s3cr3t", "s3%63r3t", "aHVudGVyMjpzM2NyM3Q=",
	} {
		scrubbed := proxy.Secrets().Scrub("<" + form + ">")
		assert.NotContains(t, scrubbed, form)
		assert.NotContains(t, scrubbed, "3r3t")
	}
	proxy.Secrets()[0] = "changed"
	assert.NotContains(t, proxy.Secrets(), "changed")

	for _, raw := range []string{"http://p.test", "socks5://:@p.test"} {
		proxy, err = proxydial.Parse(raw)
		require.NoError(t, err)
		assert.Empty(t, proxy.Secrets())
	}
}

// Only HTTP proxies are asked in absolute form, and only they have a header for
// their login.
func TestProxyAbsoluteFormAndAuthorization(t *testing.T) {
	for _, test := range []struct {
		raw           string
		absolute      bool
		authorization string
	}{
		{"http://p.test", true, ""},
		{"https://p.test", true, ""},
		{"http://jo:p%77@p.test", true, "Basic am86cHc="},
		{"https://jo:pw@p.test", true, "Basic am86cHc="},
		{"http://jo@p.test", true, "Basic am86"},
		{"socks5://jo:pw@p.test", false, ""},
		{"socks5h://jo:pw@p.test", false, ""},
		{"socks4://jo@p.test", false, ""},
		{"socks4a://jo@p.test", false, ""},
	} {
		proxy, err := proxydial.Parse(test.raw)
		require.NoError(t, err)
		assert.Equal(t, test.absolute, proxy.AbsoluteForm(), test.raw)
		assert.Equal(t, test.authorization, proxy.Authorization(), test.raw)
	}
}
