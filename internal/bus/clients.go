package bus

import (
	"fmt"
	"slices"
)

// MaxClients is how many clients a [Clients] has at most: a page of 1,000 job types stays below 8
// MiB with them.
const MaxClients = 32

// Clients names the clients that may use a job type or a machine. It is empty if all may.
type Clients []ClientName

// Allow reports whether a client may use it. The empty name stands for root and for the bus itself,
// which always may.
func (c Clients) Allow(client ClientName) bool {
	return client == "" || len(c) == 0 || slices.Contains(c, client)
}

// Check calls a function with the index and the fault of each name that must not be there. An index
// of -1 is about the list.
func (c Clients) Check(refuse func(index int, fault string)) {
	if len(c) == 0 {
		refuse(-1, "names no client; name those that may use it, or leave it out for all")
	}
	if len(c) > MaxClients {
		refuse(-1, fmt.Sprintf("names %d clients; at most %d are allowed", len(c), MaxClients))
	}
	for i, name := range c {
		if name == RootName {
			refuse(i, "root always may; leave it out")
		} else if name.Validate() != nil {
			refuse(i, "is not the name of a client: 1 to 64 characters of a-z, 0-9, colon, _ and -")
		} else if slices.Contains(c[:i], name) {
			refuse(i, fmt.Sprintf("names the client %s twice; name it once", name))
		}
	}
}
