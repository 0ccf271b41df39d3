package bus_test

import (
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
)

func TestDenyList(t *testing.T) {
	for text, addresses := range map[string]map[string]bool{
		"loopback,link-local": {
			"127.0.0.1": true, "127.9.9.9": true, "::1": true, "0.0.0.0": true, "::": true, "::ffff:127.0.0.1": true,
			"::127.0.0.1": true, "64:ff9b::127.0.0.1": true, "64:ff9b:1::7f00:1": true, "2002:7f00:1::": true,
			"2001:0:1:2:3:4:80ff:fffe": true, "::ffff:0:127.0.0.1": true, "2606:4700::5efe:7f00:1": true, "2606:4700::200:5efe:7f00:1": true, "169.254.169.254": true, "fe80::1": true, "fe80::1%eth0": true,
			"::ffff:169.254.169.254": true,
			"10.0.0.1":               false, "192.168.0.1": false, "8.8.8.8": false, "2606:4700::1": false, "::ffff:8.8.8.8": false, "fd00::1": false,
		},
		"private": {
			"10.1.2.3": true, "172.16.0.1": true, "172.32.0.1": false, "192.168.1.1": true, "100.64.0.1": true,
			"fd00::1": true, "::ffff:10.0.0.1": true, "64:ff9b::10.0.0.0": true, "::10.0.0.0": true, "127.0.0.1": false,
		},
		"metadata": {
			"169.254.169.254": true, "::ffff:169.254.169.254": true, "64:ff9b::169.254.169.254": true, "169.254.1.1": false,
			"fd00:ec2::254": true, "fd00:ec2::254%eth0": true, "fd00:ec2::253": false, "100.100.100.200": true, "100.100.100.201": false,
			"168.63.129.16": true, "168.63.129.17": false, "224.0.0.1": true, "239.255.255.255": true, "240.0.0.1": false,
			"ff02::1": true, "0.0.0.0": true, "0.1.2.3": true, "127.0.0.1": false, "10.0.0.1": false, "8.8.8.8": false,
		},
		bus.DefaultDeny: {
			"127.0.0.1": true, "169.254.9.9": true, "fd00:ec2::254": true, "100.100.100.200": true, "168.63.129.16": true,
			"224.0.0.1": true, "ff05::2": true, "10.0.0.1": false, "fd00::1": false, "100.64.0.1": false, "1.1.1.1": false,
		},
		" 203.0.113.0/24 , loopback": {"203.0.113.9": true, "203.0.114.9": false, "127.0.0.1": true, "::ffff:203.0.113.9": true},
		"::ffff:10.0.0.0/104":        {"10.1.2.3": true, "::ffff:10.1.2.3": true, "11.0.0.0": false},
		"10.1.2.3/8":                 {"10.255.0.1": true},
		"none":                       {"127.0.0.1": false, "::1": false},
	} {
		list, err := bus.ParseDenyList(text)
		require.NoError(t, err)
		for address, denied := range addresses {
			assert.Equal(t, denied, list.Denies(netip.MustParseAddr(address)), "%s by %q", address, text)
		}
	}
	for _, text := range []string{"", "Loopback", "10.0.0.1", "none,loopback", "loopback,,private", "::ffff:0.0.0.0/90"} {
		_, err := bus.ParseDenyList(text)
		assert.Error(t, err, "%q", text)
	}
}

func TestDeniesHost(t *testing.T) {
	list, err := bus.ParseDenyList("loopback,private")
	require.NoError(t, err)
	for text, denied := range map[string]bool{
		"https://127.0.0.1/x": true, "https://[::1]:8443/": true, "https://localhost/": true, "https://LOCALHOST./": true,
		"https://a.localhost/": true, "https://10.0.0.1": true, "https://[::ffff:10.0.0.1]/": true, "https://8.8.8.8/": false,
		"https://internal.example/": false, "https://localhost.example/": false,
	} {
		u, err := url.Parse(text)
		require.NoError(t, err)
		assert.Equal(t, denied, list.DeniesHost(u), text)
	}
	u, err := url.Parse("https://localhost/")
	require.NoError(t, err)
	assert.False(t, bus.DenyList{}.DeniesHost(u))
}
