package redact

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// The shown form of any URL is scheme, host, port and perhaps a mask, and no more;
// and whatever text a server makes of the URL's secret parts, none is left in it.
func FuzzMask(f *testing.F) {
	for _, raw := range []string{
		"", "https://rpc.example.org", "https://rpc.example.org/v2/aB3dEf9", "https://user:secret@rpc.example.org:8545/?key=aB3dEf9#frag",
		"http://[::1]:8545/k%2Fey", "https://rpc.example.org/?a=1;b=secret", "https://rpc.example.org/?aB3dEf9&x=1", "https:secret", "//host/secret",
		"https://us%40er:s%3Aecret@rpc.example.org/", "https://rpc.example.org/aaaa/aaaaaa?aaaaa=aaaaaaa", "http://host?=secret", "socks5://secret@host", "http://%ff/",
	} {
		f.Add(raw, "before ", " after")
	}
	f.Add("https://rpc.example.org/abcd/cdef", "ab", "ef")
	f.Add("https://rpc.example.org/x7k9?000;&1234", "a", "b")
	f.Fuzz(func(t *testing.T, raw, before, after string) {
		shown := URL(raw)
		u, err := url.Parse(raw)
		if err != nil || u.Host == "" {
			require.Equal(t, Unparsable, shown)
			return
		}
		rest, found := strings.CutPrefix(shown, u.Scheme+"://"+strings.ToValidUTF8(u.Host, "\uFFFD"))
		require.True(t, found, "%q is shown as %q", raw, shown)
		require.True(t, utf8.ValidString(shown))
		require.Contains(t, []string{"", "/" + Mask}, rest)

		secrets := OfURL(u)
		for _, part := range append(secretParts(u), secrets...) {
			switch {
			case len(part) < shortest, dull(part):
				continue
			case strings.Contains(part, "*"):
				continue // a mask may complete a secret of stars
			case strings.Contains(before+after, part):
				continue // within a word, a short text is no secret
			}
			text := secrets.Scrub(before + " " + part + " " + after)
			require.NotContains(t, text, part, "of %q", raw)
		}
	})
}

// secretParts are the parts of a URL that may be a secret by themselves.
func secretParts(u *url.URL) []string {
	parts := []string{u.Fragment}
	if u.User != nil {
		password, _ := u.User.Password()
		parts = append(parts, u.User.Username(), password, u.User.String())
	}
	for _, path := range []string{u.Path, u.EscapedPath()} {
		parts = append(parts, strings.Split(path, "/")...)
	}
	for pair := range strings.FieldsFuncSeq(u.RawQuery, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, hasValue := strings.Cut(pair, "=")
		if hasValue {
			name = ""
		}
		parts = append(parts, name, value)
	}
	for _, values := range u.Query() {
		parts = append(parts, values...)
	}
	return parts
}
