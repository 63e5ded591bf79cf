//go:build race

package rpcpool_test

// underRace tells that the race detector watches, which makes everything slow and
// large: tests of much work do less then, those of memory none.
const underRace = true
