package rpcpool

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bomzrpc/rpcpool/internal/proxydial"
	"github.com/bomzrpc/rpcpool/internal/redact"
)

// Defaults of [Config].
const (
	DefaultTimeout          = 15 * time.Second
	DefaultMaxRounds        = 2
	DefaultRefreshInterval  = 600 * time.Second
	DefaultMaxResponseBytes = 256 << 20
	DefaultMaxConns         = 256
)

// The environment variables that [Config.APIURL] and [Config.APIKey] default to.
// No other variable changes anything; proxy variables least of all (rule A1.3).
const (
	EnvAPIURL = "RPC_POOL_URL"
	EnvAPIKey = "RPC_POOL_API_KEY"
)

// Mode is how the cursor goes round the ring (rule A4.2).
type Mode int

const (
	// Sticky stays on an RPC as long as it answers: reads that belong together
	// see one node. The zero value and default.
	Sticky Mode = iota
	// RoundRobin goes on to the next RPC after each success: many independent
	// requests are spread over the list.
	RoundRobin
	// LeastOutstanding sends each call to the RPC with the fewest calls under way, the
	// first listed among equals (rule B10). The cursor stays at the best.
	LeastOutstanding
)

// String gives the mode's name.
func (m Mode) String() string {
	switch m {
	case Sticky:
		return "sticky"
	case RoundRobin:
		return "round_robin"
	case LeastOutstanding:
		return "least_outstanding"
	}
	return "Mode(" + strconv.Itoa(int(m)) + ")"
}

// Config is what [New] makes a [Pool] of. Only Proxies has no default; zero
// values mean the default that stands beside each field. New copies what it needs,
// so a Config may be changed or used again afterwards.
type Config struct {
	_ struct{} // fields are named in literals

	// Proxies are the user's own proxies, all requests to RPCs go through them:
	// socks5://, socks5h://, socks4://, socks4a://, http:// or https://, with
	// user:password@ where needed. At least one is required: without a proxy
	// nothing is sent (rule A1.1). Names of RPCs are always looked up at the
	// proxy (rule A1.2).
	Proxies []string

	// APIURL is the pool API. Default: the environment's RPC_POOL_URL. Not used
	// where Directory is set.
	APIURL string
	// APIKey is the key of the pool API, sent to it and to nobody else. Default:
	// the environment's RPC_POOL_API_KEY. Not used where Directory is set.
	APIKey string
	// Directory is where lists come from and reports go. Default: the pool API.
	Directory Directory

	// Mode is how the cursor goes round the ring. Default: Sticky.
	Mode Mode
	// Timeout bounds one attempt, from the connection to the proxy to the last
	// byte of the answer, and one check of a proxy. Default: 15 s.
	Timeout time.Duration
	// MaxRounds is how often a call walks round the ring. Default: 2.
	MaxRounds int
	// RefreshInterval is how long a list, and what proxies are checked by, counts
	// as fresh. Default: 600 s.
	RefreshInterval time.Duration
	// CacheDir is the folder for lists that outlive an outage of the pool.
	// Default: rpc_pool_client in the user's cache directory ([os.UserCacheDir]).
	CacheDir string
	// ProxyCheckURL is an RPC by which a suspicious proxy is checked. Default:
	// the two best RPCs of eip155:1 that the pool lists (rule A7.2).
	ProxyCheckURL string
	// MaxResponseBytes bounds the body of an answer, unpacked; an RPC that sends
	// more is at fault. Default: 256 MiB.
	MaxResponseBytes int64

	// MaxInFlight bounds the calls that are at one RPC of one handle at a time (rule
	// B10). A call goes on to the next RPC where one has that many, and waits for its
	// turn where all have. Default: 0, no limit.
	MaxInFlight int
	// MaxConns bounds the connections to one RPC of one handle: so many requests go to it
	// at a time, and more stand in line for it (rule F4), within the time of their attempt.
	// An RPC isn't blamed for what came of a wait, and who stands in line for one that fails
	// others goes on to the next. Default: 256.
	MaxConns int
	// MaxRequests bounds the requests of the whole pool that are under way at a time, over
	// all chains and RPCs (rule C6); more wait. Default: 0, no limit. See also [WithBudget].
	MaxRequests int
	// MaxWait is how long a call may wait, once nobody answered, for an RPC to come back
	// from its cooldown or rate limit, or to catch up with the others (rules B5, B8).
	// The waits of many calls end at slightly different times. With it, RPCs that say
	// 429, or 503 with a Retry-After, are left alone for as long as they ask for, 900 s
	// at most, instead of cooling down. Default: 0, the call ends at once.
	MaxWait time.Duration
	// LastResort has a call, before it gives up, ask those RPCs that it hasn't tried because
	// they are cooling, each once, first the one whose cooldown ends first. Those that asked
	// for a rest or are on another chain are left alone. Default: false (rule A4.1).
	LastResort bool
	// VerifyChainID has each RPC of an EVM chain asked for eth_chainId before its first
	// use and after each of its failures; one on another chain is left out until the
	// list changes, and reported (rule D1). Default: false.
	VerifyChainID bool

	// NonIdempotent are methods that must not be sent twice, beside those that are known
	// (eth_sendTransaction, personal_*, miner_*, evm_* …; docs/SENDS.md has the list): names,
	// or the beginning of names and an asterisk, "my_*". After an attempt that may have
	// reached an RPC a call of theirs ends with an *[AmbiguousError] (rule C2). Default: none.
	NonIdempotent []string

	// Rules are the user's own rules for error answers, tried before the
	// built-in ones, in order (rule A6.5). Default: none.
	Rules []Rule

	// Shared is a view that the bots of a fleet have in common: what one finds out about an
	// RPC or a proxy has the others use it last for a while (docs/FLEET.md). Its loss harms
	// no call. Default: nil, nothing is shared.
	Shared SharedView
	// SharedSecret is the key of the ids that RPCs and proxies have in Shared; all of the
	// fleet must have the same. Default: none; who reads the view can then try whether a
	// guessed URL is among them, which is of use where a proxy has a weak password.
	SharedSecret string

	// Logger takes a debug record for every attempt and a warning where the pool
	// is unavailable, a proxy fails its check or an answer is put aside. URLs
	// are masked in all of them. Default: slog.Default().
	Logger *slog.Logger
	// Hooks are told what happens: calls, attempts, cooldowns, proxies, lists, reports. See
	// [Hook] for which interfaces a hook may have, and what it may do. Default: none.
	Hooks []Hook
	// RootCAs verify the certificates of RPCs and of https:// proxies. Default:
	// the system's.
	RootCAs *x509.CertPool
	// DialContext replaces the dialer by which proxies and the pool API are
	// reached (a source address, a test network). It is never asked for an RPC's
	// address. Default: a net.Dialer.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// Format prints the configuration without its secrets, under every verb.
func (c Config) Format(s fmt.State, verb rune) { formatText(s, verb, c.String()) }

// String gives the configuration without its secrets.
func (c Config) String() string {
	shown := c.shown()
	return fmt.Sprintf("rpcpool.Config{Proxies: %v, APIURL: %s, APIKey: %s, Mode: %s, Timeout: %v, MaxRounds: %d, RefreshInterval: %v}",
		shown.Proxies, shown.APIURL, shown.APIKey, shown.Mode, c.Timeout, c.MaxRounds, c.RefreshInterval)
}

// LogValue gives the configuration without its secrets.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalJSON gives the configuration without its secrets.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.shown()) }

type shownConfig struct {
	Proxies []string `json:"proxies"`
	APIURL  string   `json:"apiURL,omitempty"`
	APIKey  string   `json:"apiKey,omitempty"`
	Mode    string   `json:"mode"`
	Timeout string   `json:"timeout"`
}

func (c Config) shown() shownConfig {
	shown := shownConfig{Mode: c.Mode.String(), Timeout: c.Timeout.String()}
	for _, raw := range c.Proxies {
		label := redact.Unparsable
		if p, err := proxydial.Parse(raw); err == nil {
			label = p.String()
		}
		shown.Proxies = append(shown.Proxies, label)
	}
	if c.APIURL != "" {
		shown.APIURL = redact.URL(c.APIURL)
	}
	if c.APIKey != "" {
		shown.APIKey = redact.Mask
	}
	return shown
}

// settings are a Config's values after defaults and checks.
type settings struct {
	proxies          []*proxydial.Proxy
	apiURL, apiKey   string
	directory        Directory
	mode             Mode
	maxInFlight      int
	maxConns         int
	maxRequests      int
	maxWait          time.Duration
	lastResort       bool
	verifyChainID    bool
	repeats          repeats
	timeout          time.Duration
	maxRounds        int
	refreshInterval  time.Duration
	cacheDir         string
	checkTarget      *url.URL // nil: the best RPCs of eip155:1
	maxResponseBytes int64
	classifier       *classifier
	shared           SharedView
	sharedSecret     string
	log              *slog.Logger
	hookList         []Hook
	rootCAs          *x509.CertPool
	dial             dialFunc
}

// resolve fills in the defaults and refuses what can't be used.
func (c *Config) resolve() (*settings, error) {
	s := &settings{
		mode:             c.Mode,
		maxInFlight:      c.MaxInFlight,
		maxConns:         orDefault(c.MaxConns, DefaultMaxConns),
		maxRequests:      c.MaxRequests,
		maxWait:          c.MaxWait,
		lastResort:       c.LastResort,
		verifyChainID:    c.VerifyChainID,
		timeout:          orDefault(c.Timeout, DefaultTimeout),
		maxRounds:        orDefault(c.MaxRounds, DefaultMaxRounds),
		refreshInterval:  orDefault(c.RefreshInterval, DefaultRefreshInterval),
		maxResponseBytes: orDefault(c.MaxResponseBytes, DefaultMaxResponseBytes),
		directory:        c.Directory,
		shared:           c.Shared,
		sharedSecret:     c.SharedSecret,
		log:              c.Logger,
		rootCAs:          c.RootCAs,
		dial:             c.DialContext,
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	for _, step := range []func(*settings) error{
		c.checkNumbers, c.resolveProxies, c.resolveAPI, c.resolveCheckTarget, c.resolveCacheDir, c.resolveRules,
		c.resolveHooks,
	} {
		if err := step(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

func (c *Config) checkNumbers(*settings) error {
	if c.Mode < Sticky || c.Mode > LeastOutstanding {
		return &ConfigError{"Mode", c.Mode.String() + " is unknown; use Sticky, RoundRobin or LeastOutstanding"}
	}
	for _, field := range []struct {
		name  string
		value int64
		shown string
	}{
		{"Timeout", int64(c.Timeout), c.Timeout.String()},
		{"MaxRounds", int64(c.MaxRounds), strconv.Itoa(c.MaxRounds)},
		{"RefreshInterval", int64(c.RefreshInterval), c.RefreshInterval.String()},
		{"MaxInFlight", int64(c.MaxInFlight), strconv.Itoa(c.MaxInFlight)},
		{"MaxConns", int64(c.MaxConns), strconv.Itoa(c.MaxConns)},
		{"MaxRequests", int64(c.MaxRequests), strconv.Itoa(c.MaxRequests)},
		{"MaxWait", int64(c.MaxWait), c.MaxWait.String()},
		{"MaxResponseBytes", c.MaxResponseBytes, strconv.FormatInt(c.MaxResponseBytes, 10)},
	} {
		if field.value < 0 {
			return &ConfigError{field.name, field.shown + " is negative; use a positive value, or 0 for the default"}
		}
	}
	return nil
}

func (c *Config) resolveProxies(s *settings) error {
	if len(c.Proxies) == 0 {
		return &ConfigError{"Proxies", "no proxy given, and nothing is ever sent without one; " +
			"give at least one URL such as socks5://user:password@host:1080"}
	}
	for i, raw := range c.Proxies {
		p, err := proxydial.Parse(raw)
		if err != nil {
			return &ConfigError{fmt.Sprintf("Proxies[%d]", i), err.Error()}
		}
		s.proxies = append(s.proxies, p)
	}
	return nil
}

func (c *Config) resolveAPI(s *settings) error {
	if c.Directory != nil {
		return nil
	}
	s.apiURL = orDefault(c.APIURL, os.Getenv(EnvAPIURL))
	s.apiKey = orDefault(c.APIKey, os.Getenv(EnvAPIKey))
	if s.apiURL == "" {
		return &ConfigError{"APIURL", "not given, and " + EnvAPIURL + " isn't set; give the pool's URL, or a Directory of your own"}
	}
	u, err := url.Parse(s.apiURL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return &ConfigError{"APIURL", "not a usable URL; the form is https://pool.example.org"}
	}
	if s.apiKey == "" {
		return &ConfigError{"APIKey", "not given, and " + EnvAPIKey + " isn't set; give the pool's API key"}
	}
	if strings.ContainsFunc(s.apiKey, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return &ConfigError{"APIKey", "has control characters in it (a line end, perhaps), which no HTTP header can carry"}
	}
	return nil
}

func (c *Config) resolveCheckTarget(s *settings) error {
	if c.ProxyCheckURL == "" {
		return nil
	}
	e := newEndpoint(c.ProxyCheckURL)
	if e == nil {
		return &ConfigError{"ProxyCheckURL", "not a usable URL; give the http(s) URL of an RPC"}
	}
	s.checkTarget = e.target
	return nil
}

func (c *Config) resolveCacheDir(s *settings) error {
	s.cacheDir = c.CacheDir
	if s.cacheDir != "" {
		return nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return &ConfigError{"CacheDir", "not given, and the user's cache directory isn't known: " + err.Error()}
	}
	s.cacheDir = filepath.Join(base, cacheFolder)
	return nil
}

func (c *Config) resolveRules(s *settings) (err error) {
	if s.repeats, err = newRepeats(c.NonIdempotent); err != nil {
		return err
	}
	s.classifier, err = newClassifier(c.Rules)
	return err
}

func (c *Config) resolveHooks(s *settings) error {
	for i, h := range c.Hooks {
		if why := checkHook(h); why != "" {
			return &ConfigError{fmt.Sprintf("Hooks[%d]", i), why}
		}
	}
	s.hookList = slices.Clone(c.Hooks)
	return nil
}
