package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// sdk is a small client of Aptos' REST API, as SDKs are written: it has a URL and an
// *http.Client, and knows nothing of rings, proxies or failing RPCs.
type sdk struct {
	base string
	http *http.Client
}

func newSDK(base string, client *http.Client) *sdk { return &sdk{base: base, http: client} }

type ledger struct {
	ChainID       int    `json:"chain_id"`
	LedgerVersion string `json:"ledger_version"`
	BlockHeight   string `json:"block_height"`
}

type account struct {
	SequenceNumber string `json:"sequence_number"`
}

type transaction struct {
	Type    string `json:"type"`
	Hash    string `json:"hash"`
	Version string `json:"version"`
	Success bool   `json:"success"`
}

// apiError is an answer with a status that isn't 2xx.
type apiError struct {
	Method, URL string
	Status      string
	StatusCode  int
	Message     string `json:"message"`
	Code        string `json:"error_code"`
}

func (e *apiError) Error() string {
	return fmt.Sprintf("%s %s: %s: %s (%s)", e.Method, e.URL, e.Status, e.Message, e.Code)
}

func (c *sdk) account(ctx context.Context, address string) (a account, err error) {
	return a, c.do(ctx, http.MethodGet, "/accounts/"+address, "", nil, &a)
}

// submit sends a signed transaction, in BCS, and gives its hash.
func (c *sdk) submit(ctx context.Context, signed []byte) (hash string, err error) {
	var pending transaction
	err = c.do(ctx, http.MethodPost, "/transactions", "application/x.aptos.signed_transaction+bcs", signed, &pending)
	return pending.Hash, err
}

// pollEvery is how often a submitted transaction is looked for.
const pollEvery = 100 * time.Millisecond

// wait waits until a transaction is committed, and gives its version.
func (c *sdk) wait(ctx context.Context, hash string) (version string, err error) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		var tx transaction
		err := c.do(ctx, http.MethodGet, "/transactions/by_hash/"+hash, "", nil, &tx)
		notYet, isAPIError := errors.AsType[*apiError](err)
		switch {
		case isAPIError && notYet.StatusCode == http.StatusNotFound:
		case err != nil:
			return "", err
		case tx.Type != "pending_transaction" && !tx.Success:
			return "", fmt.Errorf("the transaction %s failed", hash)
		case tx.Type != "pending_transaction":
			return tx.Version, nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-ticker.C:
		}
	}
}

func (c *sdk) do(ctx context.Context, method, path, contentType string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		// As aptos-go-sdk does: it panics where the response has no request.
		failure := &apiError{Method: res.Request.Method, URL: res.Request.URL.String(), Status: res.Status, StatusCode: res.StatusCode}
		_ = json.Unmarshal(answer, failure) // what isn't JSON has no message
		return failure
	}
	return json.Unmarshal(answer, into)
}
