package proxydial_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool/internal/proxydial"
)

// Parse reads every scheme, in any case, with its default port, and shows the URL
// as it was written but for the login.
func TestParse(t *testing.T) {
	long := strings.Repeat("x", 255)
	for _, test := range []struct{ raw, addr, label string }{
		{"socks5://p.test", "p.test:1080", "socks5://p.test"},
		{"socks5h://p.test/", "p.test:1080", "socks5h://p.test"},
		{"socks4://p.test:1", "p.test:1", "socks4://p.test:1"},
		{"socks4a://p.test:65535", "p.test:65535", "socks4a://p.test:65535"},
		{"http://p.test", "p.test:80", "http://p.test"},
		{"https://p.test", "p.test:443", "https://p.test"},
		{"HTTP://Proxy-A.Example.com:3128", "Proxy-A.Example.com:3128", "http://Proxy-A.Example.com:3128"},
		{"Socks5://hunter2:s3cr3t@192.0.2.1:9/", "192.0.2.1:9", "socks5://***@192.0.2.1:9"},
		{"socks5://hunter2@p.test", "p.test:1080", "socks5://***@p.test"},
		{"socks5://hun@ter2:s3@cr3t@p.test", "p.test:1080", "socks5://***@p.test"},
		{"socks5://hunter2:s3:cr3t@[2001:db8::1]:9", "[2001:db8::1]:9", "socks5://***@[2001:db8::1]:9"},
		{"https://[::1]", "[::1]:443", "https://[::1]"},
		{"http://[fe80::1%25eth0]:8080", "[fe80::1%eth0]:8080", "http://[fe80::1%25eth0]:8080"},
		{"http://:s3cr3t@p_1.test.:08080", "p_1.test.:8080", "http://***@p_1.test.:08080"},
		{"http://h%75nter2%3A:s3%2Fcr3t%40@p.test", "p.test:80", "http://***@p.test"},
		{"socks4://hunter2:@p.test", "p.test:1080", "socks4://***@p.test"},
		{"socks5://" + long + ":" + long + "@p.test", "p.test:1080", "socks5://***@p.test"},
		{"http://" + long + "x:" + long + "x@p.test", "p.test:80", "http://***@p.test"},
		{"socks5://@p.test", "p.test:1080", "socks5://p.test"},
		{"socks5://:@p.test", "p.test:1080", "socks5://p.test"},
	} {
		proxy, err := proxydial.Parse(test.raw)
		require.NoError(t, err, test.raw)
		assert.Equal(t, test.label, proxy.String())
		var dialed string
		d := &proxydial.Dialer{Proxy: proxy, Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
			dialed = addr
			return nil, errOfTest
		}}
		_, err = d.Reach(t.Context())
		require.ErrorIs(t, err, errOfTest)
		assert.Equal(t, test.addr, dialed, test.raw)
	}
}

// Parse refuses what isn't a proxy's URL, says what is wrong and what is wanted, and
// shows no part of the text: each piece of it, between its punctuation, is looked
// for in the error.
func TestParseRefusesWithoutShowing(t *testing.T) {
	long := strings.Repeat("q", 256)
	for _, test := range []struct{ raw, says string }{
		{"", "has no scheme"},
		{"hunter2:s3cr3t@qroxy.test:1080", "has no scheme"},
		{"qroxy.test:1080", "has no scheme"},
		{"//hunter2:s3cr3t@qroxy.test:1080", "has no scheme"},
		{"socks5:hunter2:s3cr3t@qroxy.test", "has no scheme"},
		{"://hunter2:s3cr3t@qroxy.test", "unknown scheme"},
		{"ftp://hunter2:s3cr3t@qroxy.test", "unknown scheme"},
		{"socks6://hunter2:s3cr3t@qroxy.test", "unknown scheme"},
		{"hunter2:s3cr3t@socks5://qroxy.test", "unknown scheme"},
		{"\ufeffsocks5://hunter2:s3cr3t@qroxy.test", "unknown scheme"},
		{"socks5://", "has no host"},
		{"socks5:///", "has no host"},
		{"socks5://:1080", "has no host"},
		{"socks5://hunter2:s3cr3t@", "has no host"},
		{"socks5://hunter2:s3cr3t@:1080", "has no host"},
		{"socks5://hunter2:s3cr3t@qroxy.test:0", "port that isn't a number from 1 to 65535"},
		{"socks5://hunter2:s3cr3t@qroxy.test:99999", "port that isn't"},
		{"socks5://hunter2:s3cr3t@qroxy.test:-9", "port that isn't"},
		{"socks5://hunter2:s3cr3t@qroxy.test:+99", "port that isn't"},
		{"socks5://hunter2:s3cr3t@qroxy.test:", "port that isn't"},
		{"socks5://hunter2:s3cr3t", "port that isn't"}, // the @host was forgotten
		{"socks5://hunter2:s3cr3t/x@qroxy.test:80", "percent-encode"},
		{"socks5://hunter2:s3#cr3t@qroxy.test:80", "percent-encode"},
		{"socks5://hunter2:s3?cr3t@qroxy.test:80", "percent-encode"},
		{"socks5://hunter2:s3cr3t@qroxy.test/qath", "has a path, query or fragment"},
		{"socks5://hunter2:s3cr3t@qroxy.test//", "has a path, query or fragment"},
		{"socks5://hunter2:s3cr3t@qroxy.test?", "has a path, query or fragment"},
		{"http://hunter2:s3cr3t@qroxy.test/?key=s3cr3t", "has a path, query or fragment"},
		{"http://hunter2:s3cr3t@qroxy.test#frag9", "has a path, query or fragment"},
		{"socks5://hunter2:s3%zzcr3t@qroxy.test", "isn't followed by two hex digits"},
		{"socks5://hunt%er2:s3cr3t@qroxy.test", "isn't followed by two hex digits"},
		{"socks5://hunter2:s3cr3t@qroxy.test:80:90", "more than one colon"},
		{"socks5://hunter2:s3cr3t@2001:db8::9", "more than one colon"},
		{"socks5://hunter2:s3cr3t@[2001:db8::9", "in brackets"},
		{"socks5://hunter2:s3cr3t@[2001:db8::9]99", "in brackets"},
		{"socks5://hunter2:s3cr3t@[192.0.2.9]:99", "in brackets"},
		{"socks5://hunter2:s3cr3t@[qroxy.test]:99", "in brackets"},
		{"socks5://hunter2:s3cr3t@прокси.test", "xn-- form"},
		{"socks5://hunter2:s3cr3t@qr\"xy.test", "no host name"},
		{"socks5://hunter2:s3cr3t@qroxy%2etest", "no host name"},
		{"socks5://hunter2:s3cr3t@" + long, "no host name"},
		{" socks5://hunter2:s3cr3t@qroxy.test", "space or control character"},
		{"socks5://hunter2:s3cr3t@qroxy.test\n", "space or control character"},
		{"socks5://hunter2:s3 cr3t@qroxy.test", "space or control character"},
		{"socks5://hunter2:s3\x00cr3t@qroxy.test", "space or control character"},
		{"socks5://hunter2:s3\u0085cr3t@qroxy.test", "space or control character"},
		{"socks5://hunter2:s3cr3t%0A@qroxy.test", "control character in its login"},
		{"socks4://hunt%00er2@qroxy.test", "control character in its login"},
		{"socks4://hunter2:s3cr3t@qroxy.test", "SOCKS4 knows a user id only"},
		{"socks4a://:s3cr3t@qroxy.test", "SOCKS4 knows a user id only"},
		{"socks4://" + long + "@qroxy.test", "more than 255 bytes"},
		{"socks5://:s3cr3t@qroxy.test", "has a password but no user"},
		{"socks5://" + long + ":s3cr3t@qroxy.test", "more than 255 bytes"},
		{"socks5://hunter2:" + long + "@qroxy.test", "more than 255 bytes"},
	} {
		proxy, err := proxydial.Parse(test.raw)
		require.Error(t, err, "%q", test.raw)
		assert.Nil(t, proxy)
		assert.Contains(t, err.Error(), test.says, "%q", test.raw)
		assert.Contains(t, err.Error(), "wanted form: SCHEME://HOST:PORT")
		for _, piece := range strings.FieldsFunc(test.raw, func(r rune) bool { return strings.ContainsRune(":/@?#[]. %=", r) }) {
			known := strings.HasPrefix(piece, "socks") || strings.HasPrefix(piece, "http")
			if len(piece) > 1 && !known {
				assert.NotContains(t, strings.ToLower(err.Error()), strings.ToLower(piece), "%q", test.raw)
			}
		}
	}
}
