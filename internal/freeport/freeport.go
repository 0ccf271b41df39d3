// Package freeport finds loopback addresses for servers that start later.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
)

// The ports are from minPort to below maxPort: below the ones that systems assign to outgoing
// connections.
const minPort, maxPort = 20_000, 32_000

// claimAbove is how much above a port another is listened on over UDP, to say that it is taken.
const claimAbove = 20_000

// Claims are addresses that this package gives to no other claims, in any process, whether or not
// their servers listen. The zero value has none. It must be closed, and is not for concurrent use.
type Claims struct{ sockets []net.PacketConn }

// Addresses claims n free addresses, HOST:PORT. It also claims the ports that are above each by the
// given offsets, which are free too.
func (c *Claims) Addresses(n int, above ...int) ([]string, error) {
	addresses := make([]string, n)
	for i := range addresses {
		var err error
		if addresses[i], err = c.address(above...); err != nil {
			return nil, err
		}
	}
	return addresses, nil
}

func (c *Claims) address(above ...int) (string, error) {
	const tries = 100
	offsets := append([]int{0}, above...)
	for range tries {
		port := minPort + rand.IntN(maxPort-minPort-slices.Max(offsets))
		if c.claimAll(port, offsets) {
			return loopback(port), nil
		}
	}
	return "", fmt.Errorf("found no free port from %d to %d on loopback: end what listens there", minPort, maxPort)
}

// claimAll claims all ports that are so much above one, or none.
func (c *Claims) claimAll(port int, offsets []int) bool {
	var got Claims
	for _, offset := range offsets {
		if !got.claim(port + offset) {
			_ = got.Close()
			return false
		}
	}
	c.sockets = append(c.sockets, got.sockets...)
	return true
}

// claim claims a port, if it is free.
func (c *Claims) claim(port int) bool {
	socket, err := net.ListenPacket("udp", loopback(port+claimAbove))
	if err != nil {
		return false
	}
	c.sockets = append(c.sockets, socket)
	listener, err := net.Listen("tcp", loopback(port))
	return err == nil && listener.Close() == nil
}

// Close gives the addresses up.
func (c *Claims) Close() (err error) {
	for _, socket := range c.sockets {
		err = errors.Join(err, socket.Close())
	}
	c.sockets = nil
	return err
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
