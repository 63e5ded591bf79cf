package proxydial_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool/internal/proxydial"
)

// answer is a wrong answer of a proxy, and what it must be taken for.
type answer struct {
	name   string
	url    string
	greets string // said after the first message; then words after the second
	words  string
	phase  proxydial.Phase
	reason proxydial.Reason
	code   int // SOCKS code or HTTP status
	text   string
}

var answers = []answer{
	{"socks5: SOCKS4 reply", "socks5://p.test", "", bytesOf("00 5b"), greeting, proxydial.Garbage, 0, "isn't of the proxy's protocol; is the scheme"},
	{"socks5: one byte of SSH", "socks5://p.test", "", "S", greeting, proxydial.Garbage, 0, ""},
	{"socks5: page", "socks5://p.test", "", "HTTP/1.1 400 Bad Request\r\n\r\n", greeting, proxydial.Garbage, 0, ""},
	{"socks5: no method, no login", "socks5://p.test", "", bytesOf("05 ff"), greeting, proxydial.AuthRefused, 0, "wants a login and its URL has none"},
	{"socks5: no method, login", "socks5://jo:pw@p.test", "", bytesOf("05 ff"), greeting, proxydial.AuthRefused, 0, "neither"},
	{"socks5: login not offered", "socks5://p.test", "", bytesOf("05 02"), greeting, proxydial.AuthRefused, 0, "wasn't offered"},
	{"socks5: GSSAPI not offered", "socks5://jo:pw@p.test", "", bytesOf("05 01"), greeting, proxydial.AuthRefused, 0, "wasn't offered"},
	{"socks5: login refused", "socks5://jo:pw@p.test", bytesOf("05 02"), bytesOf("01 01"), greeting, proxydial.AuthRefused, 0, "refused the user or password"},
	{"socks5: login refused, 255", "socks5://jo:pw@p.test", bytesOf("05 02"), bytesOf("01 ff"), greeting, proxydial.AuthRefused, 0, ""},
	{"socks5: login, other version", "socks5://jo:pw@p.test", bytesOf("05 02"), bytesOf("05 00"), greeting, proxydial.Garbage, 0, ""},
	{"socks5: reply, other version", "socks5://p.test", bytesOf("05 00"), bytesOf("04 00"), asking, proxydial.Garbage, 0, ""},
	{"socks5: reply, one foreign byte", "socks5://p.test", bytesOf("05 00"), "H", asking, proxydial.Garbage, 0, ""},
	{"socks5: unknown bound address", "socks5://p.test", bytesOf("05 00"), bytesOf("05 00 00 02"), asking, proxydial.Garbage, 0, ""},

	{"socks4: SOCKS5 reply", "socks4://p.test", "", bytesOf("05 ff"), asking, proxydial.Garbage, 0, ""},
	{"socks4: version 4 in the reply", "socks4://p.test", "", bytesOf("04 5a"), asking, proxydial.Garbage, 0, ""},
	{"socks4: 91", "socks4://p.test", "", bytesOf("00 5b"), asking, proxydial.Reply, 91, "SOCKS4 code 91 (request rejected or failed)"},
	{"socks4: 92", "socks4://p.test", "", bytesOf("00 5c"), asking, proxydial.Reply, 92, "SOCKS4 code 92 (the proxy can't reach"},
	{"socks4: 93", "socks4a://p.test", "", bytesOf("00 5d 0000 00000000"), asking, proxydial.Reply, 93, "SOCKS4 code 93 (identd reports another user)"},
	{"socks4: 0", "socks4a://p.test", "", bytesOf("00 00"), asking, proxydial.Reply, 0, "SOCKS4 code 0 (of unknown meaning)"},

	{"http: no HTTP", "http://p.test", "", "SSH-2.0-x\r\n", asking, proxydial.Garbage, 0, "isn't HTTP/1; is the scheme"},
	{"http: SOCKS reply without line end", "http://p.test", "", bytesOf("05 ff"), asking, proxydial.Garbage, 0, ""},
	{"http: begins like HTTP", "http://p.test", "", "HTTX", asking, proxydial.Garbage, 0, ""},
	{"http: HTTP/2", "http://p.test", "", "HTTP/2 200\r\n\r\n", asking, proxydial.Garbage, 0, ""},
	{"http: no status", "http://p.test", "", "HTTP/1.1\r\n\r\n", asking, proxydial.Garbage, 0, ""},
	{"http: long version", "http://p.test", "", "HTTP/1.10 200\r\n\r\n", asking, proxydial.Garbage, 0, ""},
	{"http: worded status", "http://p.test", "", "HTTP/1.1 NOT 200\r\n\r\n", asking, proxydial.Garbage, 0, ""},
	{"http: status of four digits", "http://p.test", "", "HTTP/1.1 2000\r\n\r\n", asking, proxydial.Garbage, 0, ""},
	{"http: status 099", "http://p.test", "", "HTTP/1.1 099 x\r\n\r\n", asking, proxydial.Garbage, 0, ""},
	{"http: tunnel with a bad header", "http://p.test", "", "HTTP/1.1 200 OK\r\nsecret line\r\n\r\n", asking, proxydial.Garbage, 0, ""},
	{"http: refusal with a bad header", "http://p.test", "", "HTTP/1.1 407 No\r\nsecret line\r\n\r\n", asking, proxydial.Status, 407, ""},
	{"http: 407", "http://p.test", "", "HTTP/1.1 407 secret reason\r\nVia: x\r\n\r\n", asking, proxydial.Status, 407, "HTTP status 407 (Proxy Authentication Required)"},
	{"http: 407 without a reason, after 100", "http://p.test", "", "HTTP/1.1 100\r\n\r\nHTTP/1.0 407\r\n\r\n", asking, proxydial.Status, 407, ""},
	{"http: 300", "http://p.test", "", "HTTP/1.1 300 x\r\n\r\n", asking, proxydial.Status, 300, ""},
	{"http: 302", "http://p.test", "", "HTTP/1.1 302 Found\r\n\r\n", asking, proxydial.Status, 302, ""},
	{"http: 999", "http://p.test", "", "HTTP/1.1  999  x\n\n", asking, proxydial.Status, 999, "HTTP status 999"},
	{"https: 503", "https://p.test", "", "HTTP/1.1 503 x\r\n\r\n", asking, proxydial.Status, 503, ""},
}

func (a answer) conversation() conversation {
	hears := map[string]string{"socks5://p.test": bytesOf("05 01 00"), "socks5://jo:pw@p.test": bytesOf("05 02 00 02")}
	conv := conversation{url: a.url}
	if first, ok := hears[a.url]; ok {
		conv.turns = append(conv.turns, turn{hears: first, says: a.greets})
		switch {
		case a.greets == "":
			conv.turns[0].says = a.words
			return conv
		case a.greets == bytesOf("05 02"):
			return conv.and(bytesOf("01 02")+"jo"+bytesOf("02")+"pw", a.words)
		}
		return conv.and(request5, a.words)
	}
	if strings.HasPrefix(a.url, "socks4") {
		return conv.and(request4+"\x00rpc.nowhere.test\x00", a.words)
	}
	return conv.and(requestHTTP+"\r\n", a.words)
}

func (c conversation) and(hears, says string) conversation {
	c.turns = append(c.turns, turn{hears: hears, says: says})
	return c
}

// Every wrong answer is told by its own reason and code, in its phase, as soon as
// its last deciding byte is there: whether the proxy closes then or says no more,
// and whether the bytes came one by one. The text names the code and shows nothing
// that the proxy sent.
func TestTunnelJudgesAnswers(t *testing.T) {
	ends := map[string]func(net.Conn){"closed": nil, "silent": silence}
	for _, a := range answers {
		for endName, end := range ends {
			t.Run(a.name+"/"+endName, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					for _, slow := range []bool{false, true} {
						n := &fakeNet{serve: speaker{t: t, conv: a.conversation(), limit: -1, slow: slow, then: end}.serve}
						started := time.Now()
						_, err := dialerTo(t, a.url, n).Tunnel(t.Context(), target)
						own := wantError(t, err, a.phase, a.reason)
						assert.Zero(t, time.Since(started))
						assert.Equal(t, a.reason == proxydial.Reply && a.url[5] == '4', own.SOCKS4)
						assert.Equal(t, a.code, own.Code+own.StatusCode)
						assert.Contains(t, err.Error(), a.text)
						assert.NotContains(t, err.Error(), "secret")
						assert.NotContains(t, fmt.Sprintf("%+v %#v", own, own), "secret")
						assert.Zero(t, n.openConns())
					}
				})
			})
		}
	}
}

// Every SOCKS5 code but 0 is found, even if the proxy closes right behind it.
func TestTunnelFindsEverySOCKS5Code(t *testing.T) {
	named := map[int]string{
		1: "general failure", 2: "not allowed by the proxy's rules", 3: "network unreachable", 4: "host unreachable",
		5: "connection refused", 6: "TTL expired", 7: "command not supported", 8: "address type not supported",
	}
	for code := 1; code <= 255; code++ {
		synctest.Test(t, func(t *testing.T) {
			a := answer{url: "socks5://p.test", greets: bytesOf("05 00"), words: "\x05" + string([]byte{byte(code)})}
			n := &fakeNet{serve: speaker{t: t, conv: a.conversation(), limit: -1}.serve}
			_, err := dialerTo(t, a.url, n).Tunnel(t.Context(), target)
			own := wantError(t, err, asking, proxydial.Reply)
			assert.Equal(t, code, own.Code)
			assert.False(t, own.SOCKS4)
			meaning := named[code]
			if meaning == "" {
				meaning = "of unknown meaning"
			}
			assert.Equal(t, fmt.Sprintf("asking the proxy for the target: the proxy answered with SOCKS5 code %d (%s)", code, meaning), err.Error())
		})
	}
}

// The header of a refusal is handed on.
func TestTunnelKeepsTheRefusalsHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNet{serve: saying("HTTP/1.1 407 No\r\nproxy-authenticate: Basic\r\nRetry-After: 7\r\nContent-Length: 9\r\n\r\nnot read", silence)}
		_, err := dialerTo(t, "http://p.test", n).Tunnel(t.Context(), target)
		own := wantError(t, err, asking, proxydial.Status)
		assert.Equal(t, http.Header{"Proxy-Authenticate": {"Basic"}, "Retry-After": {"7"}, "Content-Length": {"9"}}, own.Header)
	})
}

// A refusal counts from its status line on: that its header breaks off, or never
// ends within the attempt, doesn't hide it; the second is found as the cause.
func TestTunnelCountsARefusalWhoseHeaderBreaksOff(t *testing.T) {
	for _, rest := range []string{"", "Via", "Via: x\r\n"} {
		for name, end := range map[string]func(net.Conn){"closed": nil, "silent": silence} {
			synctest.Test(t, func(t *testing.T) {
				n := &fakeNet{serve: saying("HTTP/1.1 100\r\n\r\nHTTP/1.1 502 Bad\r\n"+rest, end)}
				d := dialerTo(t, "http://p.test", n)
				ctx, cancel := endings[1].start(t.Context(), d)
				defer cancel()
				_, err := d.Tunnel(ctx, target)
				assert.Equal(t, 502, wantError(t, err, asking, proxydial.Status).StatusCode)
				if name == "silent" {
					require.ErrorIs(t, err, endings[1].is)
				} else {
					require.ErrorIs(t, err, io.EOF)
				}
				assert.Zero(t, n.openConns())
			})
		}
	}
}

// An answer's head may have 64 KiB in all, interim answers included; one byte more
// is garbage, whatever its status, and so are endless lines and endless interim
// answers.
func TestTunnelLimitsTheHead(t *testing.T) {
	const limit = 64 << 10
	head := func(status string, size int) string {
		start := "HTTP/1.1 " + status + "\r\nX: "
		return start + strings.Repeat("x", size-len(start)-4) + "\r\n\r\n"
	}
	interim := "HTTP/1.1 102 Wait\r\n\r\n"
	for name, test := range map[string]struct {
		words string
		fits  bool
	}{
		"just fits":               {head("200", limit), true},
		"one byte too much":       {head("200", limit+1), false},
		"refusal, too much":       {head("407", limit+1), false},
		"interim, just fits":      {interim + head("200", limit-len(interim)), true},
		"interim, too much":       {interim + head("200", limit-len(interim)+1), false},
		"endless interim answers": {strings.Repeat(interim, 2*limit/len(interim)), false},
		"endless line":            {"HTTP/1.1 200 " + strings.Repeat("x", 2*limit), false},
		"endless header":          {"HTTP/1.1 200\r\n" + strings.Repeat("X: x\r\n", limit), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &fakeNet{serve: saying(test.words, silence)}
				conn, err := dialerTo(t, "http://p.test", n).Tunnel(t.Context(), target)
				if test.fits {
					require.NoError(t, err)
					require.NoError(t, conn.Close())
				} else {
					wantError(t, err, asking, proxydial.Garbage)
					assert.Contains(t, err.Error(), "64 KiB")
				}
				assert.Zero(t, n.openConns())
			})
		})
	}
}

// deafConn takes no byte, and says words.
type deafConn struct {
	net.Conn
	words io.Reader
}

func (c *deafConn) Write([]byte) (int, error) {
	return 0, &net.OpError{Op: "write", Err: syscall.EPIPE}
}
func (c *deafConn) Read(b []byte) (int, error)  { return c.words.Read(b) }
func (c *deafConn) Close() error                { return nil }
func (c *deafConn) SetDeadline(time.Time) error { return nil }
func deaf(words string) func() (net.Conn, error) {
	return func() (net.Conn, error) { return &deafConn{words: strings.NewReader(words)}, nil }
}

// A proxy that refuses and closes before it read the request is told by its
// refusal; but a success upon a request that it can't have read is none.
func TestTunnelReadsARefusalThatCameFirst(t *testing.T) {
	for _, test := range []struct {
		url, words string
		phase      proxydial.Phase
		reason     proxydial.Reason
	}{
		{"socks5://p.test", bytesOf("05 ff"), greeting, proxydial.AuthRefused},
		{"socks5://p.test", bytesOf("05 00 05 02"), asking, proxydial.Reply},
		{"socks5://p.test", "", greeting, proxydial.Closed},
		{"socks5://p.test", bytesOf("05 00") + yes5, asking, proxydial.Closed},
		{"http://p.test", "HTTP/1.1 407 No\r\n\r\n", asking, proxydial.Status},
		{"http://p.test", "HTTP/1.1 200 OK\r\n\r\n", asking, proxydial.Closed},
	} {
		_, err := dialerWith(t, test.url, deaf(test.words)).Tunnel(t.Context(), target)
		own := wantError(t, err, test.phase, test.reason)
		if test.reason == proxydial.Closed && test.words != "" {
			require.ErrorIs(t, own, syscall.EPIPE)
		}
	}
}
