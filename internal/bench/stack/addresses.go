package stack

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// minFreePort is the lowest port of [FreeAddresses].
const minFreePort = 20_000

// FreeAddresses finds loopback addresses that are free. Their ports are below those that systems
// assign by themselves, so that they stay free until the programs that they are for have started.
func FreeAddresses(n int) (addresses []string, err error) {
	const maxPort = 32_000
	return freeAddresses(n, minFreePort, maxPort, 0)
}

// freeAddresses finds loopback addresses with ports from minPort to below maxPort, of which all
// that are so much above are free.
func freeAddresses(n, minPort, maxPort int, above ...int) (addresses []string, err error) {
	const tries = 100
	for range tries {
		port := minPort + rand.IntN(maxPort-minPort)
		listeners, err := listen(port, above)
		for _, listener := range listeners {
			defer listener.Close()
		}
		if err != nil {
			continue
		}
		if addresses = append(addresses, loopback(port)); len(addresses) == n {
			return addresses, nil
		}
	}
	return nil, errors.New("no ports from " + strconv.Itoa(minPort) + " to " + strconv.Itoa(maxPort) + " are free on loopback")
}

// listen listens at all ports that are so much above one.
func listen(port int, above []int) (listeners []net.Listener, err error) {
	for _, offset := range above {
		listener, err := net.Listen("tcp", loopback(port+offset))
		if err != nil {
			return listeners, err
		}
		listeners = append(listeners, listener)
	}
	return listeners, nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
