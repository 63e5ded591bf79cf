// Package redact hides secrets: the logins of proxies, and what a provider puts
// its keys into, which is everything of an RPC's URL but scheme, host and port.
package redact

import (
	"encoding/base64"
	"net/url"
	"slices"
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
	shown := u.Scheme + "://" + host(u)
	if (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		shown += "/" + Mask
	}
	return shown
}

// Proxy gives the form of a proxy's URL that may be shown: its login is masked.
func Proxy(u *url.URL) string {
	if u.User != nil {
		return u.Scheme + "://" + Mask + "@" + host(u)
	}
	return u.Scheme + "://" + host(u)
}

// host is a URL's host, which "%ff" in a list may make into no UTF-8. Metrics and traces take
// no such label, and give up all others with it.
func host(u *url.URL) string { return strings.ToValidUTF8(u.Host, "\uFFFD") }

// Secrets are texts that must not be shown, longest first, so that a secret
// that contains another one is replaced whole.
type Secrets []string

// shortest is the length under which a text is no secret: replacing "v1" or "a"
// would spoil every message and protect nobody.
const shortest = 4

// longestID is the number of digits up to which a number is a chain's id, not a key.
const longestID = 8

// commonSegments are parts of paths that are in many RPC URLs, or in many messages of
// nodes. No provider's key is one of them.
var commonSegments = wordSet(
	"mainnet testnet devnet jsonrpc json_rpc json-rpc json https http public archive full node nodes",
	"ethereum polygon arbitrum optimism solana avalanche starknet bitcoin base linea scroll blast mode zora celo gnosis",
	"fantom near aptos tron cosmos zksync sepolia holesky goerli mantle sonic tezos filecoin kava evmos osmosis",
	"api rpc evm eth bsc block blocks call chain chains data gas fee fees value code error result request method",
	"account accounts wallet state token tokens ledger latest info status head main test",
)

func wordSet(lines ...string) map[string]bool {
	set := map[string]bool{}
	for _, line := range lines {
		for word := range strings.FieldsSeq(line) {
			set[word] = true
		}
	}
	return set
}

// OfURL collects what must be hidden of an RPC's URL: user info, path, query and
// fragment, whole and in parts, as written and unescaped.
func OfURL(u *url.URL) Secrets {
	s := ofLogin(nil, u.User)
	s = s.addParts(u.EscapedPath(), "/")
	s = s.addParts(u.Path, "/")
	s = s.addParts(u.RawQuery, "&;")
	for part := range strings.FieldsFuncSeq(u.RawQuery, func(r rune) bool { return r == '&' || r == ';' }) {
		if _, value, ok := strings.Cut(part, "="); ok {
			s = s.add(value)
		}
	}
	return s.add(u.Fragment).add(u.EscapedFragment()).sorted()
}

// OfProxy collects what must be hidden of a proxy's URL: its login.
func OfProxy(u *url.URL) Secrets { return ofLogin(nil, u.User).sorted() }

// ofLogin adds a login: its parts and the whole, as written, unescaped, and in the
// form in which an Authorization header has it.
func ofLogin(s Secrets, user *url.Userinfo) Secrets {
	if user == nil {
		return s
	}
	password, _ := user.Password()
	whole := user.Username() + ":" + password
	rawUser, rawPassword, _ := strings.Cut(user.String(), ":")
	return s.add(user.Username()).add(password).add(whole).
		add(user.String()).add(rawUser).add(rawPassword).
		add(base64.StdEncoding.EncodeToString([]byte(whole)))
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

// addParts adds a part of a URL, and its pieces between separators.
func (s Secrets) addParts(text, separators string) Secrets {
	trimmed := strings.Trim(text, separators)
	if !dull(trimmed) {
		s = s.add(text).add(trimmed)
	}
	for piece := range strings.FieldsFuncSeq(trimmed, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if !dull(piece) {
			s = s.add(piece)
		}
	}
	return s
}

// dull tells whether a part of a URL is a common word or a chain's id.
func dull(text string) bool {
	if commonSegments[strings.ToLower(text)] {
		return true
	}
	return len(text) <= longestID && strings.Trim(text, "0123456789") == ""
}

// add adds a text as it is and, where it has escapes, unescaped.
func (s Secrets) add(text string) Secrets {
	if len(text) < shortest {
		return s
	}
	s = append(s, text)
	if strings.ContainsAny(text, "%+") {
		if plain, err := url.QueryUnescape(text); err == nil && plain != text && len(plain) >= shortest {
			s = append(s, plain)
		}
		if plain, err := url.PathUnescape(text); err == nil && plain != text && len(plain) >= shortest {
			s = append(s, plain)
		}
	}
	return s
}

func (s Secrets) sorted() Secrets {
	slices.SortStableFunc(s, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(s)
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

// AtLeast gives the secrets of at least n characters.
func (s Secrets) AtLeast(n int) Secrets {
	for i, secret := range s { // longest first
		if len(secret) < n {
			return s[:i]
		}
	}
	return s
}
