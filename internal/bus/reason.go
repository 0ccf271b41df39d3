package bus

import "strings"

// hiding separates the part of a reason that clients may read from the part for root.
const hiding = "\x1f"

// HidingReason returns a reason, to be stored, that reads differently for clients and for root: of
// an address that is not a public one, for instance.
func HidingReason(forClients, forRoot string) string {
	if forClients == forRoot {
		return forRoot
	}
	return forClients + hiding + forRoot
}

// ShownReason returns a stored reason as root or clients may read it.
func ShownReason(stored string, root bool) string {
	forClients, forRoot, differs := strings.Cut(stored, hiding)
	if root && differs {
		return forRoot
	}
	return forClients
}
