package bus

import "net/netip"

// notPublic lists the unicast addresses that do not belong to one host of the Internet, besides the
// classes of deny lists (IANA's registries of special-purpose addresses).
const notPublic = "192.0.0.0/24,192.0.2.0/24,192.88.99.0/24,198.18.0.0/15,198.51.100.0/24,203.0.113.0/24,240.0.0.0/4," +
	"2001::/23,2001:db8::/32,3fff::/20"

var (
	specialAddresses = mustParseDenyList("loopback,link-local,private,metadata," + notPublic)
	globalUnicast    = netip.MustParsePrefix("2000::/3") // RFC 4291, section 2.4
)

func mustParseDenyList(text string) DenyList {
	list, err := ParseDenyList(text)
	if err != nil {
		panic(err)
	}
	return list
}

// IsPublic reports whether an address is a public unicast one, which a client could reach without
// the bus. An IPv6 address that stands for an IPv4 address is public if the IPv4 address is.
func IsPublic(address netip.Addr) bool {
	address = address.Unmap()
	return address.IsGlobalUnicast() && !specialAddresses.Denies(address) &&
		(address.Is4() || globalUnicast.Contains(address) || nat64.Contains(address))
}
