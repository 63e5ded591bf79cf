// Package proxydial is the client's side of SOCKS5, SOCKS4(a), HTTP CONNECT and
// HTTPS proxies, with failures that say what happened in which phase.
//
// It is a client of its own because golang.org/x/net/proxy can't tell enough to
// judge by (rule A5): it hides reply codes in texts and doesn't say in which
// phase it failed; it reads four bytes of a reply at once, so that the code is
// lost when a server sends "05 02" and closes; it doesn't check that the method
// a server chose was offered; it knows neither SOCKS4 nor CONNECT. And under
// net/http it never learns that the attempt ended: see [Attempt].
//
// A target's name is handed to the proxy and never resolved here (rule A1.2).
// The environment's proxy variables aren't read (rule A1.3).
package proxydial
