package redact

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func mustParse(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	require.NoError(t, err)
	return u
}

// Of a URL its scheme, host and port are shown, and a mask where there is more; of
// one that can't be parsed, or has no host, nothing is.
func TestURLShowsSchemeHostAndPortOnly(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{"https://rpc.example.org", "https://rpc.example.org"},
		{"https://rpc.example.org/", "https://rpc.example.org"},
		{"https://rpc.example.org:8545/", "https://rpc.example.org:8545"},
		{"https://rpc.example.org/v2/secret", "https://rpc.example.org/***"},
		{"https://rpc.example.org//secret", "https://rpc.example.org/***"},
		{"https://rpc.example.org/%2fsecret%20", "https://rpc.example.org/***"},
		{"https://rpc.example.org?key=secret", "https://rpc.example.org/***"},
		{"https://rpc.example.org/?secret", "https://rpc.example.org/***"},
		{"https://rpc.example.org/#secret", "https://rpc.example.org/***"},
		{"https://rpc.example.org/v2;secret", "https://rpc.example.org/***"},
		{"https://user:secret@rpc.example.org", "https://rpc.example.org"},
		{"https://user:s%40cret@rpc.example.org/secret?secret#secret", "https://rpc.example.org/***"},
		{"https://secret@rpc.example.org:443/", "https://rpc.example.org:443"},
		{"https://user:sec@ret@rpc.example.org/", "https://rpc.example.org"},
		{"http://[2001:db8::1]:8545/secret", "http://[2001:db8::1]:8545/***"},
		{"http://10.0.0.1:8545", "http://10.0.0.1:8545"},
		{"HTTPS://RPC.Example.org/Secret", "https://RPC.Example.org/***"},
		{"ws://rpc.example.org/secret", "ws://rpc.example.org/***"},
		{"//rpc.example.org/secret", "://rpc.example.org/***"},
		{"https://rpc%ff%fe.example.org/secret", "https://rpc\uFFFD.example.org/***"},
		{"https://rpc\xff.example.org", "https://rpc\uFFFD.example.org"},

		{"", Unparsable},
		{"secret", Unparsable},
		{"/secret", Unparsable},
		{"rpc.example.org/secret", Unparsable},
		{"https:///secret", Unparsable},
		{"https:secret", Unparsable},
		{"mailto:secret@example.org", Unparsable},
		{"https://user:sec/ret@rpc.example.org", Unparsable},
		{"https://user:sec?ret@rpc.example.org", Unparsable},
		{"https://rpc.example.org:secret/", Unparsable},
		{"https://rpc.example.org/%zzsecret", Unparsable},
		{"https://us er:secret@rpc.example.org", Unparsable},
		{"https://rpc example.org/secret", Unparsable},
		{"https://[secret/", Unparsable},
		{"https://rpc.example.org/secret\n", Unparsable},
		{" https://rpc.example.org/secret", Unparsable},
		{":secret:", Unparsable},
	} {
		require.Equal(t, c.want, URL(c.raw), "%q", c.raw)
	}
}

// A proxy's login is masked, whatever it is, and that there is one is seen.
func TestProxyMasksTheLogin(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{"socks5://user:secret@proxy.example.com:1080", "socks5://***@proxy.example.com:1080"},
		{"socks5://secret@proxy.example.com", "socks5://***@proxy.example.com"},
		{"http://:secret@proxy.example.com:8080", "http://***@proxy.example.com:8080"},
		{"http://user:s%3Acr%40t@[::1]:8080", "http://***@[::1]:8080"},
		{"https://proxy.example.com:443", "https://proxy.example.com:443"},
		{"http://user:secret@proxy%ff.example.com:80", "http://***@proxy\uFFFD.example.com:80"},
	} {
		require.Equal(t, c.want, Proxy(mustParse(t, c.raw)), "%q", c.raw)
	}
}

// Whatever a server repeats of an RPC's URL is hidden: the whole of it or a part,
// as it was written, unescaped, or as it stands in a header.
func TestOfURLHidesEveryPart(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		hidden    []string
	}{
		{"a key in the path", "https://rpc.example.org/v2/aB3dEf9", []string{"/v2/aB3dEf9", "v2/aB3dEf9", "aB3dEf9"}},
		{"a short key in the path", "https://rpc.example.org/x7k9", []string{"x7k9", "key=x7k9", "/x7k9/"}},
		{"a key of digits", "https://rpc.example.org/123456789", []string{"123456789", "0x123456789a"}},
		{"two keys in the path", "https://rpc.example.org/first-key/second-key/", []string{"first-key", "second-key"}},
		{"a key after a common word", "https://rpc.example.org/mainnet/aB3dEf9", []string{"/mainnet/aB3dEf9", "aB3dEf9"}},
		{"a path with escapes", "https://rpc.example.org/k%2Fe%20y1", []string{"/k%2Fe%20y1", "k%2Fe%20y1", "k/e y1"}},
		{"a key in the query", "https://rpc.example.org/?apikey=aB3dEf9", []string{"apikey=aB3dEf9", "aB3dEf9"}},
		{"two keys in the query", "https://rpc.example.org/?a=first-key&b=second-key",
			[]string{"a=first-key&b=second-key", "first-key", "second-key", "b=second-key"}},
		{"a query that is a key", "https://rpc.example.org/?aB3dEf9", []string{"aB3dEf9"}},
		{"a name without a value", "https://rpc.example.org/?aB3dEf9&x=1", []string{"aB3dEf9"}},
		{"a query with escapes", "https://rpc.example.org/?key=a%2Bb%3Dcd%2F", []string{"a%2Bb%3Dcd%2F", "a+b=cd/"}},
		{"a query with semicolons", "https://rpc.example.org/?a=1;key=aB3dEf9", []string{"aB3dEf9"}},
		{"a query with a broken escape", "https://rpc.example.org/?a=1&key=aB3dEf9%zz", []string{"aB3dEf9%zz"}},
		{"a login", "https://bob-the-user:tr0ub4dor@rpc.example.org/", []string{"bob-the-user", "tr0ub4dor", "bob-the-user:tr0ub4dor"}},
		{"a login with escapes", "https://bob%40home:p%3Ass%20w@rpc.example.org/",
			[]string{"bob@home", "p:ss w", "bob%40home", "p%3Ass%20w", "bob@home:p:ss w"}},
		{"a login in a header", "https://user:pass@rpc.example.org/", []string{"dXNlcjpwYXNz"}},
		{"a user alone", "https://aB3dEf9@rpc.example.org/", []string{"aB3dEf9"}},
		{"a fragment", "https://rpc.example.org/#aB3dEf9", []string{"aB3dEf9"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			secrets := OfURL(mustParse(t, c.raw))
			for _, hidden := range c.hidden {
				text := "bad request: " + hidden + ", see the docs"
				require.True(t, secrets.In(text), "%q", hidden)
				shown := secrets.Scrub(text)
				require.NotContains(t, shown, hidden)
				require.Contains(t, shown, "bad request: ")
				require.Contains(t, shown, ", see the docs")
			}
		})
	}
}

// What is no secret stays readable: short pieces, words that are in half of all
// URLs, and the host.
func TestOfURLLeavesTheRestReadable(t *testing.T) {
	for _, c := range []struct{ raw, text string }{
		{"https://rpc.example.org/v1/mainnet", "v1 of mainnet at rpc.example.org"},
		{"https://rpc.example.org/rpc", "rpc.example.org: execution reverted in rpc"},
		{"https://rpc.example.org/RPC/", "RPC"},
		{"https://rpc.example.org/json-rpc?v=2", "json-rpc v=2"},
		{"https://me:pw@rpc.example.org/", "me, the pw"},
		{"https://rpc.example.org/base", "max fee per gas less than block base fee"},
		{"https://rpc.example.org/11155111", "chain 11155111"},
		{"https://rpc.example.org/8453", "insufficient funds: have 84530, want 184531"},
		{"https://rpc.example.org/", "https://rpc.example.org/"},
		{"https://rpc.example.org", ""},
	} {
		require.Equal(t, c.text, OfURL(mustParse(t, c.raw)).Scrub(c.text), "%q", c.raw)
	}
}

// A login of a proxy is hidden whole and in parts; without one there is nothing
// to hide.
func TestOfProxyHidesTheLogin(t *testing.T) {
	secrets := OfProxy(mustParse(t, "socks5://some-user:p%40ssword@proxy.example.com:1080"))
	require.Equal(t, "*** *** ***",
		secrets.Scrub("some-user p@ssword some-user:p%40ssword"))
	require.Empty(t, OfProxy(mustParse(t, "socks5://proxy.example.com:1080")))
	require.Equal(t, "Basic *** of a, b", OfProxy(mustParse(t, "http://a:b@proxy.example.com:80")).Scrub("Basic YTpi of a, b"))
	require.Equal(t, "***", OfProxy(mustParse(t, "socks5://:p%40ssword@proxy.example.com")).Scrub("p@ssword"))
}

// A secret within another one doesn't leave the rest of it behind, in whatever
// order they were given.
func TestScrubTakesTheLongestFirst(t *testing.T) {
	for _, secrets := range []Secrets{
		Of("abcd", "xxabcdyy", "abcdyy"),
		Join(Of("abcd"), Of("abcdyy"), nil, Of("xxabcdyy")),
		Join(Of("xxabcdyy"), Of("abcdyy", "abcd")),
	} {
		require.Equal(t, "*** *** *** xx***", secrets.Scrub("xxabcdyy abcdyy abcd xxabcd"))
	}
}

// Every occurrence is hidden, overlapping ones included.
func TestScrubHidesEveryOccurrence(t *testing.T) {
	secrets := Of("aaaa", "key-1", "1-key")
	for _, text := range []string{"aaaa", "aaaaaaa", "key-1key-1", "key-1-key", "1-key-1", strings.Repeat("x key-1\n", 50)} {
		require.False(t, secrets.In(secrets.Scrub(text)), "%q became %q", text, secrets.Scrub(text))
	}
	require.Equal(t, "nothing of it", secrets.Scrub("nothing of it"))
	require.False(t, secrets.In("nothing of it"))
	require.Equal(t, "anything", Secrets(nil).Scrub("anything"))
	require.False(t, Secrets(nil).In("anything"))
}

// Texts too short to be secrets aren't taken for one.
func TestOfLeavesShortTextsOut(t *testing.T) {
	require.Empty(t, Of("", "a", "abc"))
	require.Equal(t, Secrets{"abcde", "abcd"}, Of("abcd", "abc", "abcde"))
}

// The longer ones can be had alone, for texts in which short ones turn up by chance.
func TestAtLeastGivesTheLongerOnes(t *testing.T) {
	secrets := Of("abcd", "abcdefgh", "abcdef")
	require.Equal(t, Secrets{"abcdefgh", "abcdef"}, secrets.AtLeast(6))
	require.Equal(t, secrets, secrets.AtLeast(4))
	require.Empty(t, secrets.AtLeast(9))
	require.Empty(t, Secrets(nil).AtLeast(1))
}
