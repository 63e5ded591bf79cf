package proxydial

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
)

// Whatever text is parsed: an error is one of the fixed texts of parse.go; else the
// address can be dialed, and every printed form is the one of the same URL with
// another login, so nothing of the login can be in it.
func FuzzParse(f *testing.F) {
	for _, raw := range []string{
		"socks5://hunter2:s3cr3t@p.test:1080", "SOCKS5H://p.test/", "socks4a://h@[::1]:9", "https://a%20b:%41@p.test",
		"http://:k@[fe80::1%25x]:1", "socks5://a@b:c@d:1", "http://u:p/x@h:80", "p.test:80", "://", "socks5://%zz@h",
		"socks4://u:p@h", "socks5://:p@h", "http://@h", "http://h:0", "http://[::1", "http://h?", "http://\x00", "http://é@h",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		proxy, err := Parse(raw)
		if err != nil {
			var fixed malformedError
			if !errors.As(err, &fixed) || proxy != nil {
				t.Fatalf("%T and %v", err, proxy)
			}
			return
		}
		host, port, err := net.SplitHostPort(proxy.addr())
		if err != nil || host == "" || port == "0" {
			t.Errorf("can't be dialed: %q", proxy.addr())
		}
		scheme, rest, _ := strings.Cut(raw, "://")
		shown := strings.TrimSuffix(rest, "/")
		login, secrets := proxy.revealed()
		if at := strings.LastIndexByte(shown, '@'); at >= 0 {
			shown = shown[at+1:]
		}
		if login != nil {
			shown = "***@" + shown
			if login.user+login.password == "" {
				t.Error("an empty login is none")
			}
			if scrubbed := secrets.Scrub(login.user + " " + login.password); len(login.user) > 3 && strings.Contains(scrubbed, login.user) ||
				len(login.password) > 3 && strings.Contains(scrubbed, login.password) {
				t.Errorf("the secrets leave %q", scrubbed)
			}
		}
		want := strings.ToLower(scheme) + "://" + shown
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x"} {
			if got := fmt.Sprintf(verb, proxy); got != want {
				t.Errorf("%s gives %q, want %q", verb, got, want)
			}
		}
		again, err := Parse(want)
		if err != nil && login == nil || err == nil && login == nil && again.addr() != proxy.addr() {
			t.Errorf("the label %q is parsed as %v, %v", want, again, err)
		}
	})
}
