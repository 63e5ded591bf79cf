package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// authority signs the certificates of the test's own targets.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

var (
	ourCA     authority // trusted by the pools of these tests
	foreignCA authority // trusted by nobody

	goodCert, wrongNameCert, expiredCert, foreignCert tls.Certificate
)

// makeTestCA makes the authorities, the targets' certificates and the trusted
// roots, and starts the healthy targets, which stand on them.
func makeTestCA() error {
	proxyCert, err := os.ReadFile(filepath.Join(os.Getenv("RUN"), "proxy-cert.pem"))
	if err != nil {
		return err
	}
	if ourCA, err = newAuthority(); err != nil {
		return err
	}
	if foreignCA, err = newAuthority(); err != nil {
		return err
	}
	trusted = x509.NewCertPool()
	trusted.AddCert(ourCA.cert)
	if !trusted.AppendCertsFromPEM(proxyCert) {
		return errors.New("proxy-cert.pem has no certificate")
	}
	tomorrow, yesterday := time.Now().Add(24*time.Hour), time.Now().Add(-24*time.Hour)
	for cert, made := range map[*tls.Certificate]struct {
		by    authority
		name  string
		until time.Time
	}{
		&goodCert:      {ourCA, "*" + rpcDomain, tomorrow},
		&wrongNameCert: {ourCA, "another.example.test", tomorrow},
		&expiredCert:   {ourCA, "*" + rpcDomain, yesterday},
		&foreignCert:   {foreignCA, "*" + rpcDomain, tomorrow},
	} {
		if *cert, err = made.by.issue(made.name, made.until); err != nil {
			return err
		}
	}
	return startHealthy()
}

func newAuthority() (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "integration tests"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, err
	}
	cert, err := x509.ParseCertificate(der)
	return authority{cert, key}, err
}

func (a authority) issue(name string, until time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-47 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// onlyOurs are roots that don't know the https:// proxy.
func onlyOurs() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(ourCA.cert)
	return roots
}

func serving(cert tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{cert}}
}
