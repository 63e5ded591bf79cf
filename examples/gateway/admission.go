package main

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// anyOrigin is the -cors value that lets every web page use the gateway.
const anyOrigin = "*"

// admission decides who may talk to the gateway. A web page that the user has open
// can send requests to loopback as well as any program; what it can't do is leave
// its own origin out, nor give another Host than the name it was loaded by.
type admission struct {
	hosts   []string // names that the Host header may have, lower case, without port
	origins []string // of other web pages
}

// newAdmission allows the names of loopback, those given, and the one that it
// listens on where that is a definite one.
func newAdmission(listen string, hosts, origins []string) admission {
	a := admission{hosts: []string{"localhost", "127.0.0.1", "::1"}, origins: origins}
	if host, _, err := net.SplitHostPort(listen); err == nil {
		hosts = append(slices.Clone(hosts), host)
	}
	for _, host := range hosts {
		if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
			continue
		}
		a.hosts = append(a.hosts, bareHost(host))
	}
	return a
}

// bareHost is a Host header's name: no port, no brackets, no dot at the end.
func bareHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// knows tells whether the gateway goes by this Host. A page that rebinds its own
// name to loopback gives that name, and is refused.
func (a admission) knows(host string) bool { return slices.Contains(a.hosts, bareHost(host)) }

// welcomes tells whether an origin may use the gateway, and whether it is another
// one than the gateway's own. Programs that aren't browsers send none.
func (a admission) welcomes(r *http.Request) (allowed, foreign bool) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		// An image or a form of another page sends no Origin, but a browser tells
		// where it comes from all the same. Following a link to the page is fine.
		site := r.Header.Get("Sec-Fetch-Site")
		visit := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate"
		return visit || site != "cross-site" && site != "same-site", false
	}
	if origin == "http://"+r.Host {
		return true, false
	}
	return slices.Contains(a.origins, anyOrigin) || slices.Contains(a.origins, origin), true
}

// isOrigin tells whether text is what a browser sends as Origin.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme != "" && u.Host != "" && u.User == nil &&
		u.Scheme+"://"+u.Host == text && text == strings.ToLower(text)
}

// guard lets in whom the admission allows, and answers the question of a browser
// that asks before it sends (a preflight).
func (a admission) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if !a.knows(r.Host) {
			refuse(w, http.StatusForbidden, fmt.Sprintf(
				"the gateway doesn't go by the name %q; call it by localhost or 127.0.0.1, or name it by -host", bareHost(r.Host)))
			return
		}
		header.Add("Vary", "Origin")
		allowed, foreign := a.welcomes(r)
		if !allowed {
			refuse(w, http.StatusForbidden, "a web page of another origin may not use the gateway, unless -cors names it")
			return
		}
		if foreign {
			a.admitPage(header, r)
		}
		if foreign && r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admitPage tells a browser what a page of another origin may do: call chains. The
// status isn't for it.
func (a admission) admitPage(header http.Header, r *http.Request) {
	if r.Method != http.MethodPost && r.Method != http.MethodOptions {
		return
	}
	header.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	header.Set("Access-Control-Expose-Headers", "Retry-After")
	if r.Method != http.MethodOptions {
		return
	}
	header.Set("Access-Control-Allow-Methods", http.MethodPost)
	header.Set("Access-Control-Allow-Headers", "Content-Type, Accept")
	header.Set("Access-Control-Max-Age", "600")
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		header.Set("Access-Control-Allow-Private-Network", "true")
	}
}

// refuse answers in a line of text. Nothing of it is read as a page.
func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, "gateway: %s\n", text)
}
