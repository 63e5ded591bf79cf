// Package redact hides secrets: the logins of proxies, and what a provider puts
// its keys into, which is everything of an RPC's URL but scheme, host and port.
package redact

import (
	"encoding/base64"
	"net/url"
	"sort"
	"strings"
)

// Mask stands where something was hidden.
const Mask = "***"

// Unparsable is shown instead of a URL that can't be parsed: nothing of such a
// text is safe to print, for there is no telling which part of it is the secret.
const Unparsable = "[unparsable URL]"

// URL gives the form of an RPC's URL that may be shown: scheme, host and port,
// and a mask where the URL has a path or query. User info is dropped.
func URL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return Unparsable
	}
	return ParsedURL(u)
}

// ParsedURL is URL for one that was parsed before.
func ParsedURL(u *url.URL) string {
	shown := u.Scheme + "://" + u.Host
	if (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		shown += "/" + Mask
	}
	return shown
}

// Proxy gives the form of a proxy's URL that may be shown: its login is masked.
func Proxy(u *url.URL) string {
	if u.User != nil {
		return u.Scheme + "://" + Mask + "@" + u.Host
	}
	return u.Scheme + "://" + u.Host
}

// Secrets are texts that must not be shown, longest first, so that a secret
// that contains another one is replaced whole.
type Secrets []string

// shortest is the length under which a text is no secret: replacing "v1" or "a"
// would spoil every message and protect nobody.
const shortest = 4

// commonSegments are parts of paths that are in half of all RPC URLs.
var commonSegments = map[string]bool{
	"mainnet": true, "testnet": true, "jsonrpc": true, "json_rpc": true, "json-rpc": true,
	"ethereum": true, "polygon": true, "arbitrum": true, "optimism": true, "solana": true,
	"https": true, "http": true, "public": true, "archive": true, "api": true, "rpc": true,
	"avalanche": true, "starknet": true, "bitcoin": true, "node": true, "evm": true,
}

// OfURL collects what must be hidden of an RPC's URL: user info, path and query,
// whole and in parts, as written and unescaped.
func OfURL(u *url.URL) Secrets {
	var s Secrets
	if u.User != nil {
		s = s.add(u.User.Username())
		if password, ok := u.User.Password(); ok {
			s = s.add(password)
		}
		s = s.add(u.User.String()).add(basicLogin(u.User))
	}
	for _, path := range []string{u.Path, u.EscapedPath()} {
		s = s.addPath(path)
	}
	s = s.add(u.RawQuery)
	for name, values := range u.Query() {
		for _, value := range values {
			s = s.add(value)
			s = s.add(name + "=" + value)
		}
	}
	s = s.add(u.Fragment)
	return s.sorted()
}

// OfProxy collects what must be hidden of a proxy's URL: its login.
func OfProxy(u *url.URL) Secrets {
	if u.User == nil {
		return nil
	}
	var s Secrets
	password, _ := u.User.Password()
	s = s.add(u.User.Username()).add(password).add(u.User.String()).add(basicLogin(u.User))
	return s.sorted()
}

// basicLogin is a login in the form in which an Authorization header has it.
func basicLogin(user *url.Userinfo) string {
	password, _ := user.Password()
	return base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
}

// Of makes secrets of plain texts.
func Of(texts ...string) Secrets {
	var s Secrets
	for _, text := range texts {
		s = s.add(text)
	}
	return s.sorted()
}

// Join puts several sets together.
func Join(sets ...Secrets) Secrets {
	var all Secrets
	for _, set := range sets {
		all = append(all, set...)
	}
	return all.sorted()
}

func (s Secrets) addPath(path string) Secrets {
	trimmed := strings.Trim(path, "/")
	if trimmed == "" {
		return s
	}
	if !commonSegments[strings.ToLower(trimmed)] {
		s = s.add(path).add(trimmed)
	}
	for _, segment := range strings.Split(trimmed, "/") {
		if !commonSegments[strings.ToLower(segment)] {
			s = s.add(segment)
		}
	}
	return s
}

func (s Secrets) add(text string) Secrets {
	if len(text) < shortest {
		return s
	}
	return append(s, text)
}

func (s Secrets) sorted() Secrets {
	sort.SliceStable(s, func(i, j int) bool { return len(s[i]) > len(s[j]) })
	return s
}

// Scrub replaces every secret in text by the mask.
func (s Secrets) Scrub(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, Mask)
	}
	return text
}

// In tells whether text has a secret in it.
func (s Secrets) In(text string) bool {
	for _, secret := range s {
		if strings.Contains(text, secret) {
			return true
		}
	}
	return false
}
