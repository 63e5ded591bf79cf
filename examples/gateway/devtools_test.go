//go:build browser

package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// browser is a headless Chromium that is spoken to over a pipe, in the Chrome
// DevTools Protocol: no port, no library.
type browser struct {
	t       *testing.T
	in      io.Writer
	session string
	events  func(method string, params json.RawMessage) // called in order, on the reader's goroutine

	mu      sync.Mutex // protects what follows, and keeps messages whole
	lastID  int
	waiting map[int]chan message
}

type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// openBrowser starts the browser of RPCPOOL_BROWSER, or chromium, with an empty
// profile, and ends it with the test.
func openBrowser(t *testing.T, events func(method string, params json.RawMessage)) *browser {
	path := os.Getenv("RPCPOOL_BROWSER")
	if path == "" {
		path = "chromium"
	}
	theirIn, ourOut, err := os.Pipe()
	require.NoError(t, err)
	ourIn, theirOut, err := os.Pipe()
	require.NoError(t, err)
	ctx, kill := context.WithTimeout(context.Background(), 3*time.Minute)
	command := exec.CommandContext(ctx, path,
		"--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--disable-extensions", "--hide-scrollbars",
		"--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	command.ExtraFiles = []*os.File{theirIn, theirOut} // it reads from 3 and writes to 4
	command.WaitDelay = 5 * time.Second
	require.NoError(t, command.Start(), "the browser %q can't be started; scripts/browser.sh installs it", path)
	theirIn.Close()
	theirOut.Close()

	b := &browser{t: t, in: ourOut, events: events, waiting: map[int]chan message{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(ourIn)
	}()
	t.Cleanup(func() {
		b.session = "" // what follows is for the browser, not for its page
		_, _ = b.try("Browser.close", nil)
		_ = command.Wait()
		kill()
		ourOut.Close()
		ourIn.Close()
		<-read
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// read takes messages, each of which ends with a zero byte, until the browser ends.
func (b *browser) read(from io.Reader) {
	reader := bufio.NewReaderSize(from, 1<<20)
	for {
		raw, err := reader.ReadBytes(0)
		if err != nil {
			break
		}
		var m message
		if json.Unmarshal(raw[:len(raw)-1], &m) != nil {
			continue
		}
		if m.ID == 0 {
			b.events(m.Method, m.Params)
			continue
		}
		b.mu.Lock()
		reply := b.waiting[m.ID]
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		if reply != nil {
			reply <- m
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, reply := range b.waiting {
		close(reply)
	}
	b.waiting = nil
}

// try sends a command and waits for its result.
func (b *browser) try(method string, params any) (json.RawMessage, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	if params == nil {
		raw = json.RawMessage("{}")
	}
	reply := make(chan message, 1)
	b.mu.Lock()
	if b.waiting == nil {
		b.mu.Unlock()
		return nil, fmt.Errorf("%s: the browser has ended", method)
	}
	b.lastID++
	b.waiting[b.lastID] = reply
	text, err := json.Marshal(message{ID: b.lastID, Session: b.session, Method: method, Params: raw})
	if err == nil {
		_, err = b.in.Write(append(text, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case m, ok := <-reply:
		switch {
		case !ok:
			return nil, fmt.Errorf("%s: the browser has ended", method)
		case m.Error != nil:
			return nil, fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		return m.Result, nil
	case <-time.After(40 * time.Second):
		return nil, fmt.Errorf("%s: no answer in time", method)
	}
}

// call is try for what must work.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	raw, err := b.try(method, params)
	require.NoError(b.t, err)
	if result != nil {
		require.NoError(b.t, json.Unmarshal(raw, result))
	}
}

// eval gives the value of an expression in the page; a promise's when it's there.
func (b *browser) eval(into any, expression string) {
	b.t.Helper()
	var out struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true}, &out)
	if out.ExceptionDetails != nil {
		require.FailNow(b.t, "an exception in the page", "%s %s", out.ExceptionDetails.Text, out.ExceptionDetails.Exception.Description)
	}
	if into != nil {
		require.NoError(b.t, json.Unmarshal(out.Result.Value, into), "%s", expression)
	}
}

// waitFor waits until an expression is true in the page. Nothing is polled: it is
// looked at whenever the document changes.
func (b *browser) waitFor(expression string) {
	b.t.Helper()
	var met bool
	b.eval(&met, `new Promise((resolve) => {
		let watch, late = setTimeout(() => { watch.disconnect(); resolve(false) }, 25000);
		const look = () => { if (`+expression+`) { watch.disconnect(); clearTimeout(late); resolve(true) } };
		watch = new MutationObserver(look);
		watch.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
		look();
	})`)
	if !met {
		var text string
		b.eval(&text, `document.body.innerText`)
		require.FailNow(b.t, "the page never came to it", "%s\nthe page:\n%s", expression, text)
	}
}

// open goes to a page and waits until it is loaded.
func (b *browser) open(url string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	b.eval(nil, `new Promise((resolve) => document.readyState === "complete" ? resolve() : addEventListener("load", () => resolve(), {once: true}))`)
}

// size sets the window's width, as a phone's or a desktop's.
func (b *browser) size(width, height int, phone bool) {
	b.t.Helper()
	scale := 1
	if phone {
		scale = 2
	}
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": scale, "mobile": phone,
	}, nil)
}

// prefers sets what the user's system says that the user likes.
func (b *browser) prefers(features ...string) {
	b.t.Helper()
	var list []map[string]string
	for i := 0; i < len(features); i += 2 {
		list = append(list, map[string]string{"name": features[i], "value": features[i+1]})
	}
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": list}, nil)
}

// press presses a key.
func (b *browser) press(key string) {
	b.t.Helper()
	codes := map[string]struct {
		code int
		text string
	}{"Tab": {9, ""}, "Enter": {13, "\r"}, " ": {32, " "}}
	event := map[string]any{"type": "keyDown", "key": key, "windowsVirtualKeyCode": codes[key].code}
	if text := codes[key].text; text != "" {
		event["text"] = text
	}
	b.call("Input.dispatchKeyEvent", event, nil)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "windowsVirtualKeyCode": codes[key].code}, nil)
}

// screenshot keeps the whole page as a picture in the folder of
// RPCPOOL_SCREENSHOTS, or one of the test's.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("RPCPOOL_SCREENSHOTS")
	if dir == "" {
		dir = b.t.TempDir()
	}
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600))
}
