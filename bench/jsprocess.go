package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed js/package.json js/package-lock.json js/clients.mjs
var jsFiles embed.FS

const (
	jsLock    = "package-lock.json"
	jsInstall = 3 * time.Minute // the longest that npm may take
)

// jsMissingError says why the clients of JavaScript can't be measured; fit for the page.
type jsMissingError struct{ why string }

func (e *jsMissingError) Error() string { return e.why }

// installJS puts the script and the pinned clients into a folder of the user's cache, as
// far as they aren't there already. Nothing of them is run while they are installed.
func installJS(ctx context.Context, log io.Writer) (folder string, err error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", &jsMissingError{program + " isn't installed (Debian: apt-get install nodejs npm)"}
		}
	}
	if folder, err = jsFolder(); err != nil {
		return "", err
	}
	for _, name := range []string{"package.json", jsLock, "clients.mjs"} {
		content, err := jsFiles.ReadFile("js/" + name)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return "", err
		}
	}
	lock, err := jsFiles.ReadFile("js/" + jsLock)
	if err != nil {
		return "", err
	}
	mark := filepath.Join(folder, "node_modules", ".installed")
	if there, err := os.ReadFile(mark); err == nil && bytes.Equal(there, lock) {
		return folder, nil
	}
	fmt.Fprintln(log, "         npm installs the clients of JavaScript")
	ctx, cancel := context.WithTimeout(ctx, jsInstall)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = folder
	if said, err := install.CombinedOutput(); err != nil {
		fmt.Fprintf(log, "%s\nnpm ci: %v\n", said, err)
		return "", &jsMissingError{"npm couldn't install the pinned clients; the run's own output says why"}
	}
	return folder, os.WriteFile(mark, lock, 0o644)
}

func jsFolder() (string, error) {
	cache := os.Getenv("RPCPOOL_CACHE")
	if cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(base, "rpcpool-integration")
	}
	folder := filepath.Join(cache, "bench-js")
	return folder, os.MkdirAll(folder, 0o755)
}

// jsVersions are those of Node.js and of the clients.
func jsVersions(ctx context.Context) ([]string, error) {
	node, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil {
		return nil, err
	}
	raw, err := jsFiles.ReadFile("js/package.json")
	if err != nil {
		return nil, err
	}
	var pinned struct{ Dependencies struct{ Viem, Ethers string } }
	if err := json.Unmarshal(raw, &pinned); err != nil {
		return nil, err
	}
	return []string{"Node.js " + strings.TrimSpace(string(node)), "viem " + pinned.Dependencies.Viem, "ethers " + pinned.Dependencies.Ethers}, nil
}

// jsCommand and jsAnswer are what the script takes and gives.
type jsCommand struct {
	Do      string   `json:"do"`
	URLs    []string `json:"urls,omitempty"`
	Callers int      `json:"callers,omitempty"`
	Calls   int      `json:"calls,omitempty"`
	Longest int64    `json:"longest,omitempty"` // ms
}

type jsAnswer struct {
	Micros    float64   `json:"micros"`
	CPUMicros float64   `json:"cpuMicros"`
	Took      []float64 `json:"took"` // ms
	Failed    int       `json:"failed"`
	Millis    float64   `json:"ms"`
	Peak      float64   `json:"peak"` // bytes
	Fault     string    `json:"fault"`
}

// jsClient is a client in a process of its own.
type jsClient struct {
	*conversation
	name string
}

func startJS(ctx context.Context, folder, name string, urls []string) (*jsClient, error) {
	child := exec.CommandContext(ctx, "node", "--expose-gc", "clients.mjs", name)
	child.Dir = folder
	talk, err := talkTo(child)
	if err != nil {
		return nil, err
	}
	c := &jsClient{talk, name}
	if _, err := c.do(jsCommand{Do: "open", URLs: urls}); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func (c *jsClient) do(cmd jsCommand) (answer jsAnswer, err error) {
	if err = c.writer.Encode(cmd); err == nil {
		err = c.reader.Decode(&answer)
	}
	if err == nil && answer.Fault != "" {
		err = errors.New(answer.Fault)
	}
	if err != nil {
		return answer, fmt.Errorf("%s, %s: %w", c.name, cmd.Do, err)
	}
	return answer, nil
}
