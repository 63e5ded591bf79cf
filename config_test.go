package rpcpool

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func goodConfig(t *testing.T) Config {
	t.Helper()
	return Config{
		Proxies:  []string{"socks5://user-p:word-p@p.test:1080"},
		APIURL:   "https://pool.test",
		APIKey:   "key-of-the-api",
		CacheDir: t.TempDir(),
	}
}

// Unusable values are refused with the name of the field, and no error shows a
// login, a key or any part of a URL that it can't parse.
func TestNewRefusesWhatCantBeUsed(t *testing.T) {
	t.Setenv(EnvAPIURL, "")
	t.Setenv(EnvAPIKey, "")
	for name, c := range map[string]struct {
		change func(*Config)
		field  string
	}{
		"no proxies":           {func(c *Config) { c.Proxies = nil }, "Proxies"},
		"proxy without scheme": {func(c *Config) { c.Proxies = []string{"user:secret@h:80"} }, "Proxies[0]"},
		"proxy with bad port":  {func(c *Config) { c.Proxies = append(c.Proxies, "socks5://user:secret@h:secret") }, "Proxies[1]"},
		"unknown scheme":       {func(c *Config) { c.Proxies = []string{"ftp://user:secret@h:21"} }, "Proxies[0]"},
		"empty proxy":          {func(c *Config) { c.Proxies = []string{""} }, "Proxies[0]"},
		"unknown mode":         {func(c *Config) { c.Mode = 99 }, "Mode"},
		"negative mode":        {func(c *Config) { c.Mode = -1 }, "Mode"},
		"negative timeout":     {func(c *Config) { c.Timeout = -time.Second }, "Timeout"},
		"negative rounds":      {func(c *Config) { c.MaxRounds = -1 }, "MaxRounds"},
		"negative refresh":     {func(c *Config) { c.RefreshInterval = -1 }, "RefreshInterval"},
		"negative conns":       {func(c *Config) { c.MaxConns = -1 }, "MaxConns"},
		"negative size":        {func(c *Config) { c.MaxResponseBytes = -1 }, "MaxResponseBytes"},
		"no URL":               {func(c *Config) { c.APIURL = "" }, "APIURL"},
		"URL without scheme":   {func(c *Config) { c.APIURL = "pool.test/secret" }, "APIURL"},
		"URL without host":     {func(c *Config) { c.APIURL = "https:///secret" }, "APIURL"},
		"URL that won't parse": {func(c *Config) { c.APIURL = "https://user:secret@h:x/" }, "APIURL"},
		"no key":               {func(c *Config) { c.APIKey = "" }, "APIKey"},
		"key with a line end":  {func(c *Config) { c.APIKey = "secret\n" }, "APIKey"},
		"bad check URL":        {func(c *Config) { c.ProxyCheckURL = "ws://h/secret" }, "ProxyCheckURL"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := goodConfig(t)
			c.change(&cfg)
			pool, err := New(cfg)
			require.Nil(t, pool)
			var configErr *ConfigError
			require.ErrorAs(t, err, &configErr)
			require.Equal(t, c.field, configErr.Field)
			require.NotContains(t, strings.ReplaceAll(err.Error(), "socks5://user:password@host:1080", ""), "secret")
			require.True(t, isError(err))
		})
	}
}

// Zero values mean the documented defaults; the URL and key come from the
// environment, and neither is needed with a Directory.
func TestNewFillsInDefaults(t *testing.T) {
	t.Setenv(EnvAPIURL, "https://env.test/")
	t.Setenv(EnvAPIKey, "key-of-the-environment")
	t.Setenv("XDG_CACHE_HOME", filepath.Join(t.TempDir(), "cache"))
	pool, err := New(Config{Proxies: []string{"http://p.test:3128"}})
	require.NoError(t, err)
	defer pool.Close()
	s := pool.s.settings
	require.Equal(t, 15*time.Second, s.timeout)
	require.Equal(t, 2, s.maxRounds)
	require.Equal(t, 600*time.Second, s.refreshInterval)
	require.Equal(t, int64(256<<20), s.maxResponseBytes)
	require.Equal(t, Sticky, s.mode)
	require.Equal(t, "https://env.test/", s.apiURL)
	require.Equal(t, "key-of-the-environment", s.apiKey)
	require.Equal(t, "rpc_pool_client", filepath.Base(s.cacheDir))

	t.Setenv(EnvAPIURL, "")
	t.Setenv(EnvAPIKey, "")
	own, err := New(Config{Proxies: []string{"http://p.test:3128"}, Directory: &apiDirectory{}})
	require.NoError(t, err)
	require.NoError(t, own.Close())
}

// No printed, logged or JSON form of a configuration, a pool or a handle shows a
// secret (rule A1.5).
func TestPrintedFormsOfConfigPoolAndChainShowNoSecret(t *testing.T) {
	cfg := goodConfig(t)
	cfg.Proxies = append(cfg.Proxies, "http://user-q:word-q@q.test", "socks5://user-r:word-r@:99999")
	cfg.APIURL = "https://user-s:word-s@pool.test/path-s"
	cfg.ProxyCheckURL = "https://c.test/key-c"
	shown := printedForms(t, cfg) + printedForms(t, &cfg) + printedForms(t, []Config{cfg})
	cfg.Proxies = cfg.Proxies[:2]
	pool, err := New(cfg)
	require.NoError(t, err)
	defer pool.Close()
	chain := pool.Chain("8453")
	shown += printedForms(t, pool) + printedForms(t, *pool) + printedForms(t, chain) + printedForms(t, *chain)
	for _, secret := range []string{"user-", "word-", "key-of-the-api", "path-s", "key-c"} {
		require.NotContains(t, shown, secret)
	}
	require.Contains(t, shown, "socks5://***@p.test:1080")
}

// printedForms gives every form in which a value may come to be seen.
func printedForms(t *testing.T, value any) string {
	t.Helper()
	var b strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X"} {
		fmt.Fprintf(&b, verb+"\n", value)
	}
	encoded, err := json.Marshal(value)
	if err == nil {
		b.Write(encoded)
	}
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "value", value)
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "value", value)
	return b.String()
}

// Every exported field of Config has a word in its comment on what zero means: the
// list below is checked against the type, so a new field can't be forgotten here.
func TestConfigFieldsAreAllChecked(t *testing.T) {
	known := map[string]bool{
		"Proxies": true, "APIURL": true, "APIKey": true, "Directory": true, "Mode": true, "Timeout": true,
		"MaxRounds": true, "RefreshInterval": true, "CacheDir": true, "ProxyCheckURL": true,
		"MaxInFlight": true, "MaxConns": true, "MaxWait": true, "LastResort": true, "MaxRequests": true, "NonIdempotent": true, "VerifyChainID": true,
		"MaxResponseBytes": true, "Rules": true, "Logger": true, "Hooks": true, "RootCAs": true, "DialContext": true,
		"Shared": true, "SharedSecret": true,
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		if field.IsExported() {
			require.True(t, known[field.Name], "Config.%s isn't covered: add it to the tests of New", field.Name)
		}
	}
}
