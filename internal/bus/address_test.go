package bus

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestIsPublic(t *testing.T) {
	for _, public := range []string{
		"8.8.8.8", "::ffff:8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::808:808", "2002:808:808::1",
	} {
		assert.True(t, IsPublic(netip.MustParseAddr(public)), public)
	}
	for _, private := range []string{
		"127.0.0.1", "::1", "0.0.0.0", "::", "0.1.2.3", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.127.255.255",
		"169.254.169.254", "168.63.129.16", "224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.18.0.1", "203.0.113.9",
		"fe80::1", "fe80::1%eth0", "fec0::1", "fd00::1", "ff02::1", "2001:db8::1", "2001:0:1::1", "4000::1",
		"::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::a00:1", "2002:a00:1::1", "2606:4700::5efe:10.0.0.1",
	} {
		assert.False(t, IsPublic(netip.MustParseAddr(private)), private)
	}
	assert.False(t, IsPublic(netip.Addr{}))
}
