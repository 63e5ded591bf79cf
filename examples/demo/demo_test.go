package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// keyLines are what a reader of the demo must have seen, in this order.
var keyLines = []string{
	"1. The ring",
	"ok           https://alpha.test/*** via socks5://***@paris.test:1080",
	"ok           https://delta.test/*** via socks5://***@paris.test:1080",
	"2. An RPC fails",
	"rpc_fail     https://alpha.test/*** via socks5://***@paris.test:1080",
	"HTTP status 500 Internal Server Error",
	"ok           https://bravo.test/*** via socks5://***@paris.test:1080",
	"3. A rate limit",
	"ip_blocked   https://bravo.test/*** via socks5://***@paris.test:1080",
	"ok           https://bravo.test/*** via http://***@tokyo.test:3128",
	"4. A revert",
	"caller       https://bravo.test/*** via http://***@tokyo.test:3128",
	"= *rpcpool.RPCError: code 3",
	"5. A method that an RPC doesn't have",
	"unsupported  https://bravo.test/***",
	"ok           https://delta.test/***",
	"6. A proxy dies",
	"conn_fail    https://bravo.test/*** via http://***@tokyo.test:3128",
	"conn_fail    https://delta.test/*** via http://***@tokyo.test:3128",
	"conn_fail    https://echo.test/*** via http://***@tokyo.test:3128",
	"! proxy failed its check",
	"ok           https://bravo.test/*** via socks5://***@paris.test:1080",
	"7. Logs of too many blocks",
	"range        https://bravo.test/***",
	"logs in the order of their blocks, none left out",
	"8. The pool API is down",
	"! the pool is unavailable, using the cached list",
	"9. What was reported in the end",
	"Report(eip155:8453 https://alpha.test/***: rpc_error: HTTP status 500",
	"paris.test:1080, pool.test:80, tokyo.test:3128",
	"RPC                     alpha    bravo    delta     echo",
	"conn_fail, undone         -        1        1        1",
	"cooling now               yes       no       no       no",
	"All 9 acts turned out as told",
}

// The story turns out as told, over real connections, in the time that rule E7
// allows, and no secret of the world gets into it.
func TestDemoTurnsOutAsTold(t *testing.T) {
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	began := time.Now()
	s, err := newStory(ctx, &teller{out: &out}, rpcpooltest.NewLoopbackNetwork())
	require.NoError(t, err)
	err = s.play(acts)
	s.close()
	require.NoError(t, err, "the story so far:\n%s", out.String())
	assert.Less(t, time.Since(began), longest)

	rest := unwrapped(out.String())
	for _, line := range keyLines {
		_, after, found := strings.Cut(rest, unwrapped(line))
		require.True(t, found, "%q isn't in the story, or not in its place:\n%s", line, out.String())
		rest = after
	}
	for _, secret := range s.world.Secrets() {
		assert.NotContains(t, out.String(), secret)
	}
	assert.NotContains(t, out.String(), "\x1b[", "colours where they weren't asked for")
	for line := range strings.Lines(out.String()) {
		assert.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), width+1, "too wide for a terminal: %q", line)
	}
}

// unwrapped is text on one line, with single spaces.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

// What turns out otherwise than told ends the story with an error, and isn't
// passed over by what follows.
func TestStoryThatTurnsOutOtherwiseIsAnError(t *testing.T) {
	for name, a := range map[string]act{
		"other attempts": {title: "wrong", play: func(s *story) {
			s.call(s.bot, "eth_chainId").through("bravo paris ok")
		}},
		"a call that fails": {title: "wrong", play: func(s *story) {
			for _, node := range []*rpcpooltest.Node{s.alpha, s.bravo, s.delta, s.echo} {
				node.Script(rpcpooltest.Status(500))
			}
			s.call(s.bot, "eth_chainId").through("alpha paris ok")
		}},
		"the first of two calls": {title: "wrong", play: func(s *story) {
			s.call(s.bot, "eth_chainId").through("bravo paris ok")
			s.call(s.bot, "eth_chainId").through("alpha paris ok")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s, err := newStory(t.Context(), &teller{out: &out}, rpcpooltest.NewMemoryNetwork())
			require.NoError(t, err)
			defer s.close()
			played := false
			err = s.play([]act{a, {title: "next", play: func(*story) { played = true }}})
			require.ErrorContains(t, err, `act 1, "wrong", didn't turn out as told`)
			assert.Contains(t, out.String(), "Not as told: ")
			assert.False(t, played, "the story went on")
		})
	}
}

// A story that its user breaks off says so, rather than that the library failed.
func TestStoryBrokenOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := newStory(ctx, &teller{out: &bytes.Buffer{}}, rpcpooltest.NewMemoryNetwork())
	require.NoError(t, err)
	defer s.close()
	err = s.play([]act{{title: "long", play: func(s *story) {
		cancel()
		s.call(s.bot, "eth_chainId").through("alpha paris ok")
	}}})
	require.ErrorIs(t, err, context.Canceled)
	assert.Contains(t, err.Error(), "was broken off")
}

// Colours are in the story where they were asked for, and change nothing else.
func TestTellerColours(t *testing.T) {
	tell := func(colours bool) string {
		var out bytes.Buffer
		told := &teller{out: &out, colours: colours}
		told.act(1, "title", "about")
		told.result("0x1")
		return out.String()
	}
	assert.Contains(t, tell(true), "\x1b[1m1. title\x1b[0m")
	assert.Equal(t, "\n1. title\n   about\n     = 0x1\n", tell(false))
}
