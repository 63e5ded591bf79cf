//go:build browser

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// The tests of this file look at the page in a real browser; scripts/browser.sh runs
// them. They need a Chromium, and nothing from the internet.

// stage is a gateway in a world, and a browser that looks at it.
type stage struct {
	*bed
	*browser
	nodes   []*rpcpooltest.Node
	proxied *rpcpooltest.Proxy

	mu       sync.Mutex // protects what follows
	requests []string   // URLs that the browser asked for
	problems []string   // what it wrote to its console
}

func newStage(t *testing.T) *stage {
	s := &stage{bed: newBed(t)}
	s.proxied = s.proxy("p1")
	s.proxy("p2")
	for _, name := range []string{"alpha", "bravo", "charlie", "delta", "echo"} {
		s.nodes = append(s.nodes, s.NodeAt(name, "http://"+name+".test/v2/key-of-"+name+"?token=token-of-"+name,
			rpcpooltest.Result("0x10")))
	}
	s.nodes[0].Script(rpcpooltest.Error(-32601, "the method debug_traceTransaction does not exist").Method("debug_traceTransaction"))
	s.List("8453", s.nodes...)
	s.List("eip155:1", s.nodes[3], s.nodes[4])
	s.start("-chains", "8453,eip155:1")
	s.browser = openBrowser(t, s.note)
	return s
}

// note collects what the browser asks for and what it complains of.
func (s *stage) note(method string, params json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch method {
	case "Network.requestWillBeSent":
		var sent struct{ Request struct{ URL string } }
		_ = json.Unmarshal(params, &sent)
		s.requests = append(s.requests, sent.Request.URL)
	case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled":
		s.problems = append(s.problems, method+" "+string(params))
	}
}

// fill has something of everything happen, so that all kinds of rows are on the page.
func (s *stage) fill() {
	s.nodes[0].Then(rpcpooltest.ErrorData(3, "execution reverted: no money", "0x08c379a0").Method("eth_call"))
	for _, method := range []string{"eth_blockNumber", "eth_call", "debug_traceTransaction", "eth_blockNumber"} {
		require.Equal(s.bed.t, http.StatusOK, s.bed.call("8453", method).status)
	}
	s.nodes[0].Kill()
	s.nodes[1].Script(rpcpooltest.RateLimited(0))
	require.Equal(s.bed.t, http.StatusOK, s.bed.call("8453", "eth_blockNumber").status)
	require.Equal(s.bed.t, http.StatusOK, s.bed.call("eip155:1", "eth_blockNumber").status)
	s.browser.waitFor(row("alpha") + `.innerText.includes("Cooling") && ` + row("bravo") + `.innerText.includes("Cooling")`)
	s.browser.waitFor(`document.querySelectorAll("#attempts tr").length >= 9`)
}

// row is the row of an RPC of the first chain, as an expression in the page; an empty
// one where there is none yet.
func row(name string) string {
	return `([...document.querySelectorAll("article:first-of-type tbody tr")].find((r) => r.innerText.includes("//` + name + `.test")) ?? document.createElement("tr"))`
}

// settle ends all animations, so that colours are those that stay.
func (s *stage) settle() {
	s.browser.eval(nil, `document.getAnimations().forEach((a) => a.finish())`)
}

// A state change is seen without reloading: an RPC that dies cools, the cursor goes on,
// a live region says so; a proxy's death likewise.
func TestBrowserSeesChanges(t *testing.T) {
	s := newStage(t)
	s.size(1280, 900, false)
	s.open(s.url)
	s.waitFor(`document.getElementById("link").innerText === "Live"`)
	s.waitFor(`document.querySelectorAll("article").length === 2`)
	require.Equal(t, http.StatusOK, s.bed.call("8453", "eth_blockNumber").status)
	s.waitFor(row("alpha") + `.innerText.includes("cursor")`)
	s.eval(nil, `window.loadedOnce = true`)

	s.nodes[0].Kill()
	require.Equal(t, http.StatusOK, s.bed.call("8453", "eth_blockNumber").status)
	s.waitFor(row("alpha") + `.innerText.includes("Cooling, ")`)
	s.waitFor(row("bravo") + `.innerText.includes("cursor")`)
	s.waitFor(`document.getElementById("announcer").textContent.includes("alpha.test/*** cools for")`)
	s.waitFor(`document.querySelector("#attempts").innerText.includes("conn_fail")`)
	var before, after string
	countdown := row("alpha") + `.querySelector('[data-f="state"]').innerText`
	s.eval(&before, countdown)
	s.waitFor(countdown + ` !== ` + fmt.Sprintf("%q", before))
	s.eval(&after, countdown)
	assert.Regexp(t, `^Cooling, \d+ s$`, after, "the countdown goes on by itself")

	s.proxied.Kill()
	require.Equal(t, http.StatusOK, s.bed.call("8453", "eth_blockNumber").status)
	s.waitFor(`document.querySelector("#proxies tr:first-child").innerText.includes("Cooling")`)
	s.waitFor(`document.querySelector("#proxies tr:last-child").innerText.includes("in use")`)

	var stayed bool
	s.eval(&stayed, `window.loadedOnce === true`)
	assert.True(t, stayed, "the page was reloaded")
}

// Where events don't get through the page asks every few seconds; when the gateway
// ends it says so, and it comes back by itself.
func TestBrowserWithoutEvents(t *testing.T) {
	s := newStage(t)
	s.browser.call("Network.setBlockedURLs", map[string]any{"urls": []string{"*/events"}}, nil)
	s.open(s.url)
	s.waitFor(`document.getElementById("link").innerText === "Polling"`)
	require.Equal(t, http.StatusOK, s.bed.call("8453", "eth_blockNumber").status)
	s.waitFor(row("alpha") + `.innerText.includes("cursor")`)
	s.waitFor(`document.querySelectorAll("#attempts tr").length === 1`)
	s.browser.call("Network.setBlockedURLs", map[string]any{"urls": []string{}}, nil)
	s.waitFor(`document.getElementById("link").innerText === "Live"`)
	s.bed.end()
	s.waitFor(`document.getElementById("link").innerText === "Not connected"`)
}

// Every text can be read, in the light and in the dark scheme: its contrast is 4.5 to 1
// at least. Nothing is wider than the window, down to the smallest phone. A picture of
// each is kept.
func TestBrowserLooks(t *testing.T) {
	s := newStage(t)
	s.size(1280, 900, false)
	s.open(s.url)
	s.fill()
	s.eval(nil, `document.querySelectorAll("details").forEach((d) => d.open = true)`)
	for _, scheme := range []string{"light", "dark"} {
		s.prefers("prefers-color-scheme", scheme)
		for _, window := range []struct {
			width, height int
			phone         bool
		}{{1280, 900, false}, {1024, 768, false}, {768, 1024, true}, {375, 812, true}, {320, 640, true}} {
			s.size(window.width, window.height, window.phone)
			s.settle()
			name := fmt.Sprintf("%s-%d", scheme, window.width)
			var widths []int
			s.eval(&widths, `[document.documentElement.scrollWidth, innerWidth, ...[...document.querySelectorAll("main *")]
				.filter((e) => e.getBoundingClientRect().width > 1 && !e.closest(".sr, thead")).map((e) => Math.ceil(e.getBoundingClientRect().right))]`)
			assert.LessOrEqual(t, slices.Max(widths), window.width, "%s: something is wider than the window", name)
			var faint []string
			s.eval(&faint, contrastScript)
			assert.Empty(t, faint, "%s: text with too little contrast", name)
			s.screenshot(name)
		}
	}
}

// contrastScript gives the texts whose contrast with what lies behind them is under 4.5.
const contrastScript = `(() => {
	const channels = (colour) => {
		const c = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
		c.fillStyle = colour;
		c.fillRect(0, 0, 1, 1);
		const [r, g, b, a] = c.getImageData(0, 0, 1, 1).data;
		return [r, g, b, a / 255];
	};
	const over = (top, under) => top.slice(0, 3).map((v, i) => v * top[3] + under[i] * (1 - top[3])).concat(1);
	const luminance = ([r, g, b]) => [r, g, b].map((v) => v / 255)
		.map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
	const behind = (e) => {
		const layers = [];
		for (; e; e = e.parentElement) layers.push(channels(getComputedStyle(e).backgroundColor));
		return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
	};
	const faint = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	let seen = 0;
	for (let node; (node = walk.nextNode());) {
		const e = node.parentElement, style = getComputedStyle(e);
		if (!node.data.trim() || e.closest(".sr, script, style, noscript, template, .skip") || style.visibility === "hidden") continue;
		if (!e.getClientRects().length) continue;
		seen++;
		const back = behind(e), text = over(channels(e instanceof SVGElement ? style.fill : style.color), back);
		const [light, dark] = [luminance(text), luminance(back)].sort((a, b) => b - a);
		const ratio = (light + .05) / (dark + .05);
		if (ratio < 4.5) faint.push(ratio.toFixed(2) + " " + node.data.trim().slice(0, 40));
	}
	if (seen < 100) faint.push("only " + seen + " texts were looked at");
	return faint;
})()`

// By Tab alone everything that can be operated is reached, in the order of the page,
// and the one that has the focus shows it; Enter and Space operate it.
func TestBrowserKeyboard(t *testing.T) {
	s := newStage(t)
	s.size(1280, 900, false)
	s.open(s.url)
	s.fill()
	const label = `((e) => e.tagName + " " + (e.ariaLabel || e.innerText || e.id).trim())`
	var all, reached []string
	s.eval(&all, `[...document.querySelectorAll("a[href], button, input, summary, [tabindex='0']")].filter((e) => e.getClientRects().length).map(`+label+`)`)
	require.GreaterOrEqual(t, len(all), 7)
	for range all {
		s.press("Tab")
		var at struct {
			Label   string
			Outline bool
			Seen    bool
		}
		s.eval(&at, `(() => {
			const e = document.activeElement, box = e.getBoundingClientRect();
			const outlined = (e) => e && getComputedStyle(e).outlineStyle !== "none" && parseFloat(getComputedStyle(e).outlineWidth) >= 2;
			return { label: `+label+`(e), outline: outlined(e) || outlined(e.closest(".check")), seen: box.bottom > 0 && box.top < innerHeight };
		})()`)
		reached = append(reached, at.Label)
		assert.True(t, at.Outline, "the focus isn't seen on %q", at.Label)
		assert.True(t, at.Seen, "%q has the focus out of sight", at.Label)
	}
	assert.Equal(t, all, reached)

	focus := func(selector string) { s.eval(nil, `document.querySelector("`+selector+`").focus()`) }
	var yes bool
	focus(".skip")
	s.press("Enter")
	s.eval(&yes, `document.activeElement.id === "main"`)
	assert.True(t, yes, "the skip link leads to the status")

	focus("#pause")
	s.press("Enter")
	s.waitFor(`document.getElementById("pause").getAttribute("aria-pressed") === "true"`)
	rows := `document.querySelectorAll("#attempts tr").length`
	var before, after int
	s.eval(&before, rows)
	require.Equal(t, http.StatusOK, s.bed.call("8453", "eth_chainId").status)
	s.waitFor(row("charlie") + `.innerText.includes("cursor")`)
	s.eval(&after, rows)
	assert.Equal(t, before, after, "a paused list stands still")
	s.press(" ")
	s.waitFor(rows + ` === ` + fmt.Sprint(before+1))

	focus("#only-failures")
	s.press(" ")
	s.waitFor(`[...document.querySelectorAll("#attempts .badge")].every((b) => !/ok|caller/.test(b.innerText))`)
	focus("#connect summary")
	s.press("Enter")
	s.waitFor(`document.getElementById("connect").open`)
	focus(".copy")
	s.press("Enter")
	s.waitFor(`document.querySelector(".copy").innerText === "Copied" || getSelection().toString().includes("/8453")`)
}

// The page asks the gateway and nobody else, has no secret in it, and nothing in it
// breaks its own policy.
func TestBrowserKeepsToItself(t *testing.T) {
	s := newStage(t)
	s.size(375, 812, true)
	s.open(s.url)
	s.fill()
	var document string
	s.eval(&document, `document.documentElement.outerHTML + document.documentElement.innerText`)
	require.Contains(t, document, "alpha.test/***")
	s.noSecretIn(document)
	for _, hidden := range []string{"key-of-", "token-of-", "user-p1", "word-p1"} {
		assert.NotContains(t, document, hidden)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	require.GreaterOrEqual(t, len(s.requests), 2)
	for _, request := range s.requests {
		u, err := url.Parse(request)
		require.NoError(t, err)
		if u.Scheme != "data" && request != "about:blank" {
			assert.Equal(t, s.url, u.Scheme+"://"+u.Host)
		}
	}
	assert.Empty(t, s.problems, "the browser complains")
}

// On a phone, where rows become cards, a screen reader still meets the same tables,
// and each state is a word, not a colour alone; who wants no motion gets none.
func TestBrowserMeansTheSameOnAPhone(t *testing.T) {
	s := newStage(t)
	s.prefers("prefers-reduced-motion", "reduce")
	s.open(s.url)
	s.fill()
	roles := func() map[string]int {
		var tree struct {
			Nodes []struct {
				Ignored bool
				Role    struct{ Value string }
			}
		}
		s.browser.call("Accessibility.getFullAXTree", nil, &tree)
		count := map[string]int{}
		for _, node := range tree.Nodes {
			if !node.Ignored {
				count[node.Role.Value]++
			}
		}
		return count
	}
	s.size(1280, 900, false)
	wide := roles()
	s.size(375, 812, true)
	narrow := roles()
	for _, role := range []string{"table", "row", "rowheader", "columnheader", "button", "heading"} {
		assert.NotZero(t, wide[role], role)
		assert.Equal(t, wide[role], narrow[role], role)
	}
	var states []string
	s.eval(&states, `[...document.querySelectorAll("[data-f=state]")].map((b) => b.innerText.trim())`)
	require.NotEmpty(t, states)
	for _, state := range states {
		assert.NotEmpty(t, strings.Trim(state, " 0123456789"), "a state without a word")
	}
	var moving int
	s.eval(&moving, `document.getAnimations().length`)
	assert.Zero(t, moving)
}
