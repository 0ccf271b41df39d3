package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// redisConn is a raw connection to Redis, in RESP 2. It is closed when its context is done, or by close.
type redisConn struct {
	conn net.Conn
	in   *bufio.Reader
}

func dialRedis(ctx context.Context, address string) (*redisConn, error) {
	conn, err := (&net.Dialer{Timeout: dialWithin}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	return &redisConn{conn, bufio.NewReader(conn)}, nil
}

func (c *redisConn) close() { _ = c.conn.Close() }

// command is a command as it is sent.
func command(words ...string) []byte {
	text := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		text = fmt.Appendf(text, "$%d\r\n%s\r\n", len(word), word)
	}
	return text
}

// do sends a command and returns its reply: a string, an int64, nil, or a list of them.
func (c *redisConn) do(words ...string) (any, error) {
	if _, err := c.conn.Write(command(words...)); err != nil {
		return nil, err
	}
	return c.reply()
}

func (c *redisConn) reply() (any, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, text := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '+':
		return text, nil
	case '-':
		return nil, errors.New("redis: " + text)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || kind == ':':
		return n, err
	case n < 0:
		return nil, nil
	case kind == '$':
		value := make([]byte, n+2)
		_, err := io.ReadFull(c.in, value)
		return string(value[:n]), err
	}
	list := make([]any, n)
	for i := range list {
		if list[i], err = c.reply(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// integer is the reply of a command that answers with one.
func (c *redisConn) integer(words ...string) (int64, error) {
	reply, err := c.do(words...)
	n, _ := reply.(int64)
	return n, err
}

// info is a field of INFO.
func (c *redisConn) info(section, field string) (string, error) {
	reply, err := c.do("INFO", section)
	text, _ := reply.(string)
	_, after, found := strings.Cut(text, "\n"+field+":")
	if err == nil && !found {
		err = fmt.Errorf("redis does not tell its %s", field)
	}
	value, _, _ := strings.Cut(after, "\r")
	return value, err
}

// scripts is what Redis has spent in scripts.
type scripts struct {
	calls int64
	time  time.Duration
}

func (s scripts) since(before scripts) scripts {
	return scripts{s.calls - before.calls, s.time - before.time}
}

// scripts reads what scripts have taken so far.
func (c *redisConn) scripts() (s scripts, err error) {
	reply, err := c.do("INFO", "commandstats")
	text, _ := reply.(string)
	_, after, found := strings.Cut(text, "\ncmdstat_evalsha:")
	if err != nil || !found { // none has run
		return s, err
	}
	var microseconds int64
	_, err = fmt.Sscanf(after, "calls=%d,usec=%d", &s.calls, &microseconds)
	s.time = time.Duration(microseconds) * time.Microsecond
	return s, err
}

// usedMemory is what Redis holds, in bytes.
func (c *redisConn) usedMemory() (int64, error) {
	text, err := c.info("memory", "used_memory")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// leftOver counts the keys that must be gone when all is delivered: those of batches, and the index of their jobs.
func (c *redisConn) leftOver() (keys int64, err error) {
	if keys, err = c.integer("EXISTS", "jobs:index:main"); err != nil {
		return 0, err
	}
	for cursor := "0"; ; {
		reply, err := c.do("SCAN", cursor, "MATCH", "batch*", "COUNT", "1000")
		if err != nil {
			return 0, err
		}
		page := reply.([]any)
		keys += int64(len(page[1].([]any)))
		if cursor = page[0].(string); cursor == "0" {
			return keys, nil
		}
	}
}
