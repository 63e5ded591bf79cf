package rpcpooltest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"sync"
	"time"
)

// A synctest bubble's clock starts in the year 2000, so certificates must be
// valid before that, and still be today.
var (
	validFrom  = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	validUntil = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
)

// authority is a throw-away certificate authority.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool

	mu     sync.Mutex
	leaves map[string]*tls.Certificate // by host
}

func newAuthority() *authority {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "rpcpooltest throw-away authority"},
		NotBefore:             validFrom,
		NotAfter:              validUntil,
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	cert := must(x509.ParseCertificate(der))
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &authority{key: key, cert: cert, pool: pool, leaves: map[string]*tls.Certificate{}}
}

// serverConfig is the TLS configuration of a server that is called host.
func (a *authority) serverConfig(host string) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{*a.leaf(host)},
		NextProtos:   []string{"http/1.1"},
		MinVersion:   tls.VersionTLS12,
	}
}

func (a *authority) leaf(host string) *tls.Certificate {
	a.mu.Lock()
	defer a.mu.Unlock()
	if leaf, ok := a.leaves[host]; ok {
		return leaf
	}
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(a.leaves) + 2)),
		Subject:      pkix.Name{CommonName: host},
		NotBefore:    validFrom,
		NotAfter:     validUntil,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der := must(x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key))
	leaf := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	a.leaves[host] = leaf
	return leaf
}

// must gives v. What it is used for fails only where the program is wrong or
// the machine is out of entropy.
func must[T any](v T, err error) T {
	if err != nil {
		panic("rpcpooltest: " + err.Error())
	}
	return v
}
