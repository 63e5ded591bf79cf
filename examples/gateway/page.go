package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

//go:embed page/index.html
var pageHTML []byte

// newPage gives the handler of the status page. The page's own style and script
// are the only ones that a browser takes, and it talks to the gateway alone.
func newPage() http.Handler {
	policy := strings.Join([]string{
		"default-src 'none'",
		"style-src " + hashOf(pageHTML, "style"),
		"script-src " + hashOf(pageHTML, "script"),
		"connect-src 'self'",
		"img-src data:",
		"base-uri 'none'",
		"form-action 'none'",
		"frame-ancestors 'none'",
		"require-trusted-types-for 'script'",
		"trusted-types 'none'",
	}, "; ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Security-Policy", policy)
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(pageHTML))
	})
}

// hashOf gives the source expression of the one <style> or <script> in a page.
func hashOf(page []byte, element string) string {
	_, rest, _ := bytes.Cut(page, []byte("<"+element+">"))
	text, _, _ := bytes.Cut(rest, []byte("</"+element+">"))
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
