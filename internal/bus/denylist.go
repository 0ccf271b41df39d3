package bus

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// DenyList lists addresses that deliveries never connect to, so that a subscriber cannot make
// the bus reach the bus's own network. The zero list denies nothing.
type DenyList struct{ prefixes []netip.Prefix }

// DefaultDeny is the default list, for [ParseDenyList].
const DefaultDeny = "loopback,link-local,metadata"

// denyClasses are names of well-known ranges. The unspecified address reaches the host itself.
// Clouds give a host its credentials at the addresses of metadata, which include multicast and
// 0.0.0.0/8 because no subscriber is there.
var denyClasses = map[string][]string{
	"loopback":   {"127.0.0.0/8", "::1/128", "0.0.0.0/8", "::/128"},
	"link-local": {"169.254.0.0/16", "fe80::/10"},                                                             // RFC 3927, RFC 4291
	"private":    {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10"}, // RFC 1918, 6598, 4193, 3879
	"metadata": {
		"169.254.169.254/32", "fd00:ec2::254/128", // most clouds, EC2 over IPv6
		"100.100.100.200/32", "168.63.129.16/32", // Alibaba Cloud, Azure
		"224.0.0.0/4", "ff00::/8", // multicast: RFC 5771, RFC 4291
		"0.0.0.0/8", // RFC 791
	},
}

// ParseDenyList reads a comma-separated list of classes (loopback, link-local, metadata,
// private) and CIDRs; "none" alone denies nothing.
func ParseDenyList(text string) (DenyList, error) {
	var list DenyList
	if strings.TrimSpace(text) == "none" {
		return list, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		ranges, ok := denyClasses[item]
		if !ok {
			ranges = []string{item}
		}
		for _, cidr := range ranges {
			prefix, err := netip.ParsePrefix(cidr)
			if err != nil {
				return DenyList{}, fmt.Errorf("%q is neither loopback, link-local, metadata, private, nor a CIDR such as 10.0.0.0/8", item)
			}
			if prefix.Addr().Is4In6() { // addresses are compared as IPv4
				if prefix.Bits() < 96 {
					return DenyList{}, fmt.Errorf("%q covers more than IPv4 in IPv6; write IPv4 ranges as IPv4", item)
				}
				prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
			}
			list.prefixes = append(list.prefixes, prefix.Masked())
		}
	}
	return list, nil
}

// Denies reports whether an address is denied, also if it is an IPv4 address in one of its IPv6
// forms.
func (l DenyList) Denies(address netip.Addr) bool {
	address = address.WithZone("")
	for _, form := range []netip.Addr{address, embeddedIPv4(address)} {
		for _, prefix := range l.prefixes {
			if prefix.Contains(form) {
				return true
			}
		}
	}
	return false
}

// DeniedHost says to clients why a URL is refused for which [DenyList.DeniesHost].
const DeniedHost = "must not have an address that the operator's ROUTEMASTER_CALLBACK_DENY denies: " +
	"loopback, link-local and metadata addresses, if it is not set otherwise"

// DeniesHost reports whether a URL's host is a denied address, or a name of the host itself
// that is denied. Other names are checked by their addresses when they are dialled.
func (l DenyList) DeniesHost(u *url.URL) bool {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") { // RFC 6761, section 6.3
		host = "127.0.0.1"
	}
	address, err := netip.ParseAddr(host)
	return err == nil && l.Denies(address)
}

// The IPv6 ranges whose addresses stand for IPv4 addresses.
var (
	compatible = netip.MustParsePrefix("::/96")           // RFC 4291, section 2.5.5.1
	nat64      = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")  // RFC 8215, used with 96 bits of prefix
	sixToFour  = netip.MustParsePrefix("2002::/16")       // RFC 3056
	siit       = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765
	teredo     = netip.MustParsePrefix("2001::/32")       // RFC 4380
)

// The middle of an ISATAP address (RFC 5214).
var isatap, globalISATAP = [4]byte{0, 0, 0x5e, 0xfe}, [4]byte{2, 0, 0x5e, 0xfe}

// embeddedIPv4 returns the IPv4 address that an IPv6 address stands for, or else the address
// itself.
func embeddedIPv4(address netip.Addr) netip.Addr {
	if address = address.Unmap(); address.Is4() || address == netip.IPv6Unspecified() || address == netip.IPv6Loopback() {
		return address
	}
	b := address.As16()
	last := [4]byte(b[12:])
	switch {
	case compatible.Contains(address), nat64.Contains(address), localNAT64.Contains(address), siit.Contains(address),
		[4]byte(b[8:12]) == isatap, [4]byte(b[8:12]) == globalISATAP:
		return netip.AddrFrom4(last)
	case sixToFour.Contains(address):
		return netip.AddrFrom4([4]byte(b[2:6]))
	case teredo.Contains(address): // which inverts it
		return netip.AddrFrom4([4]byte{^last[0], ^last[1], ^last[2], ^last[3]})
	}
	return address
}
