package rdb

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// parseSource reads a redis, rediss or unix URL, or one with several hosts:
//
//	redis+sentinel://user:password@host:port,host:port/master/database
//	redis+cluster://user:password@host:port,host:port
//
// Everything but a host and the master is optional. The URLs begin with rediss for TLS, for which
// cacert, cert and key may name PEM files, which are not read yet. Sentinels may have
// sentinel_username and sentinel_password; other parameters are as in a plain URL. The error may
// show the URL.
func parseSource(text string) (source, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	switch scheme, kind, _ := strings.Cut(scheme, "+"); {
	case scheme != "redis" && scheme != "rediss":
	case kind == "sentinel":
		return parseSentinelURL(scheme, rest)
	case kind == "cluster":
		return parseClusterURL(scheme, rest)
	}
	u, err := url.Parse(text)
	if err != nil {
		return source{}, err
	}
	var s source
	err = s.parseOptions(u)
	return s, err
}

const sentinelPort, redisPort = "26379", "6379"

func parseSentinelURL(scheme, rest string) (source, error) {
	sentinels, u, err := parseHosts(scheme, rest, sentinelPort)
	if err != nil {
		return source{}, err
	}
	s := source{sentinels: sentinels}
	s.master, u.Path, _ = strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if s.master == "" {
		return source{}, errors.New("the path must begin with the master's name")
	}
	query := u.Query()
	s.sentinelUsername, s.sentinelPassword = query.Get("sentinel_username"), query.Get("sentinel_password")
	query.Del("sentinel_username")
	query.Del("sentinel_password")
	u.RawQuery = query.Encode()
	if err := s.parseOptions(u); err != nil {
		return source{}, err
	}
	if s.options.DB < 0 {
		return source{}, errors.New("the database must be 0 or more")
	}
	return s, nil
}

func parseClusterURL(scheme, rest string) (source, error) {
	nodes, u, err := parseHosts(scheme, rest, redisPort)
	if err != nil {
		return source{}, err
	}
	s := source{Nodes: nodes}
	if err := s.parseOptions(u); err != nil {
		return source{}, err
	}
	if s.options.DB != 0 {
		return source{}, errors.New("a cluster has no database but 0")
	}
	return s, nil
}

// parseOptions reads all that is not about several hosts.
func (s *source) parseOptions(u *url.URL) error {
	query := u.Query()
	s.files = takePEMFiles(query)
	u.RawQuery = query.Encode()
	options, err := redis.ParseURL(u.String())
	if err != nil {
		return err
	}
	s.options = *options
	if s.options.TLSConfig != nil {
		s.options.TLSConfig.ServerName = "" // each server has its own
	}
	return nil
}

// parseHosts reads the hosts that follow a scheme, separated by commas, and the URL with the first
// alone.
func parseHosts(scheme, rest, port string) (addresses []string, u *url.URL, err error) {
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	user := authority[:strings.LastIndex(authority, "@")+1]
	hosts := strings.Split(authority[len(user):], ",")
	if u, err = url.Parse(scheme + "://" + user + hosts[0] + path); err != nil {
		return nil, nil, err
	}
	for _, host := range hosts {
		address, err := parseAddress(host, port)
		if err != nil {
			return nil, nil, err
		}
		addresses = append(addresses, address)
	}
	return addresses, u, nil
}

// parseAddress reads a host, with its port if that is another than the usual one.
func parseAddress(host, usual string) (string, error) {
	u, err := url.Parse("redis://" + host)
	if err != nil || u.Host != host || u.Hostname() == "" || strings.Contains(u.Hostname(), ":") != strings.HasPrefix(host, "[") {
		return "", fmt.Errorf("%q is not the address of a host", host)
	}
	port := cmp.Or(u.Port(), usual)
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("%q has a port beyond 1 to 65535", host)
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}
