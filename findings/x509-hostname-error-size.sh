#!/usr/bin/env bash
# Go's crypto/x509, Go 1.26.8: how long the error is that says a certificate is for other hosts.
#
# A good guess: it names the wanted host and a few of the certificate's names, or it grows with the
# number of names. Neither holds: it has every name of a certificate with 99, about 14 KB with names
# of DNS' usual limits, and only their number from 100 names on. So whoever owns the certificate
# chooses how many bytes each failed handshake writes into the log of the client.
#
# Seen: "1 192", "99 14010", "100 75", "1000 76" (names, bytes of the error).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > go.mod <<'GO'
module finding

go 1.26
GO
cat > main.go <<'GO'
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"log"
	"math/big"
	"strings"
	"time"
)

// size is how many bytes the error has for a certificate with a number of names.
func size(names int) int {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	for i := range names {
		name := fmt.Sprintf("%03d.%s.%s.example", i, strings.Repeat("a", 63), strings.Repeat("b", 63))
		template.DNSNames = append(template.DNSNames, name)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		log.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		log.Fatal(err)
	}
	return len(certificate.VerifyHostname("callback.example").Error())
}

func main() {
	for _, names := range []int{1, 99, 100, 1000} {
		fmt.Println(names, size(names))
	}
}
GO
GOTOOLCHAIN=go1.26.8 GOFLAGS= go run . | tee seen
diff seen - <<'SEEN' && echo "as stated"
1 192
99 14010
100 75
1000 76
SEEN
