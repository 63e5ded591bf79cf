package rpcpool

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// assumedCaps are the capabilities of an RPC of which nothing is said: what nearly
// every public RPC can do, and not what few can.
func assumedCaps() Caps {
	return Caps{SendTx: new(true), Logs: new(uint64(narrowLogs)), Archive: new(ArchiveNone)}
}

// or fills in what c doesn't say.
func (c Caps) or(other Caps) Caps {
	if c.SendTx == nil {
		c.SendTx = other.SendTx
	}
	if c.Logs == nil {
		c.Logs = other.Logs
	}
	if c.Archive == nil {
		c.Archive = other.Archive
	}
	return c
}

// evmNamespace is the beginning of the keys of Ethereum and its kin; a chain id
// follows.
const evmNamespace = "eip155:"

var (
	keyForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}:[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	idForm  = regexp.MustCompile(`^[1-9]\d{0,18}$`)
)

// chainKeyOf checks a chain's key, and completes a chain id. What is refused isn't
// shown: a "key" may be an API key that somebody put there.
func chainKeyOf(given string) (key, fault string) {
	if idForm.MatchString(given) {
		return evmNamespace + given, ""
	}
	id, evm := strings.CutPrefix(given, evmNamespace)
	switch {
	case given == "":
		return "", `it is empty; give the chain's key, such as "eip155:8453"`
	case evm && !idForm.MatchString(id):
		return "", `after eip155: stands the chain id in decimal, such as "eip155:8453"`
	case !keyForm.MatchString(given):
		return "", `it isn't a chain's key; the form is "eip155:8453", "aptos:mainnet", other names are aliases (an RPC's API key belongs in its URL)`
	}
	return given, ""
}

// aliasFault says what is wrong with an alias; "" for nothing.
func aliasFault(alias string) string {
	const longest = 64
	switch {
	case alias == "":
		return "an alias is empty"
	case len(alias) > longest:
		return "an alias has at most 64 characters"
	case strings.TrimSpace(alias) != alias || strings.ContainsFunc(alias, unicode.IsControl):
		return "an alias has no space at its ends, and no control characters"
	case idForm.MatchString(alias) || strings.HasPrefix(alias, evmNamespace):
		return "a chain id can't be an alias: it would lead to the wrong chain"
	}
	return ""
}

// checkURL says what is wrong with an RPC's URL, without showing more of it than may
// be shown; "" for nothing. same is equal for URLs that are one.
func checkURL(raw string) (same, fault string) {
	if raw == "" {
		return "", "it is empty; give the RPC's URL, such as \"https://rpc.example.org\""
	}
	if at := strings.IndexFunc(raw, notInURLs); at >= 0 {
		return "", "it isn't a URL: there is " + unwanted(raw[at:]) + " in it"
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", "it isn't a URL; the form is https://rpc.example.org"
	case u.Scheme == "ws" || u.Scheme == "wss":
		return "", "it is a WebSocket URL, which isn't used here; give the RPC's https:// or http:// URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "", "it doesn't begin with https:// or http://"
	case strings.Contains(raw, "#"):
		return "", "it has # in it; what follows that is never sent"
	case newEndpoint(raw) == nil:
		return "", "it has no host; the form is https://rpc.example.org"
	}
	if port := u.Port(); port != "" {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			return "", "its port is none; ports are 1 to 65535"
		}
	}
	return sameURL(u), ""
}

// sameURL gives a form in which two ways to write one URL are equal.
func sameURL(u *url.URL) string {
	port := u.Port()
	if (u.Scheme == "https" && port == "443") || (u.Scheme == "http" && port == "80") {
		port = ""
	}
	path := u.EscapedPath()
	if path == "/" {
		path = ""
	}
	login := ""
	if u.User != nil {
		login = u.User.String()
	}
	return fmt.Sprintf("%s %s %s:%s %s?%s", u.Scheme, login, strings.ToLower(u.Hostname()), port, path, u.RawQuery)
}

// notInURLs are characters that stand in no URL, but in placeholders and slips.
func notInURLs(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("<>{}|\\^`\"", r) }

// unwanted names the character that a text begins with.
func unwanted(text string) string {
	switch c := text[0]; {
	case c == ' ':
		return "a space"
	case c < ' ' || c == 0x7f:
		return "a control character (a line end, perhaps)"
	case c == '{' || c == '<':
		return string(c) + " (a placeholder, which nothing fills in?)"
	default:
		return string(c)
	}
}
