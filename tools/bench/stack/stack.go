// Package stack runs the processes of a bus on loopback: redis-server, web and workers, and beside
// them a receiver of deliveries and a no-op server. It measures the CPU time and memory of each.
package stack

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"

	"routemaster/internal/freeport"
	"routemaster/internal/rdb"
)

// The programs.
const (
	Redis    = "redis"
	Web      = "web"
	Worker   = "worker"
	Receiver = "receiver"
	Service  = "service"
	Noop     = "noop"
)

// Options are how a stack is started.
type Options struct {
	// Programs is the directory of web and worker; empty, they are beside this program.
	Programs string
	// Masters is how many nodes a Redis Cluster has, from 1 to [Partitions]; 0 is one Redis.
	Masters int
	// Env is more settings for web and worker, like NAME=value.
	Env []string
	// Profiles is a directory for CPU and heap profiles of web and worker; empty for none.
	Profiles string
}

// RootKey is the root key of the bus.
const RootKey = "bench-root-key"

// daemonEnv is the environment of the daemons, besides addresses: they inherit nothing.
var daemonEnv = []string{
	"ROUTEMASTER_ROOT_KEY=" + RootKey,
	"FORCE_SSL=no",                              // publishers speak plain HTTP
	"ROUTEMASTER_SSL_VERIFY=no",                 // the receiver signs its own certificate
	"ROUTEMASTER_CALLBACK_DENY=none",            // and is on loopback
	"ROUTEMASTER_REDIS_MAX_MEM=100000000000000", // no backlog is dropped
	"DOWNSTREAM_WORKER_AUTH=bench",
	"ROUTEMASTER_LOG_LEVEL=WARN",
}

// Stack is the running processes.
type Stack struct {
	// The addresses, HOST:PORT. A cluster's names all its nodes, with commas between.
	Redis, Web, Noop, Receiver, Control string
	// Service and ServiceControl are the addresses of the service, which does jobs and answers the
	// webhooks of labels once it is started.
	Service, ServiceControl string

	options Options
	// nodes are the one Redis, or the masters of a cluster, each as a whole. partitions are the bus's:
	// on one Redis the same. A stack of only a receiver has neither.
	nodes, partitions rdb.Partitions
	directory         string
	ports             freeport.Claims
	profiles          profiles
	running           map[string]*Process
	// past is the usage of processes that have stopped.
	past map[string]Usage
}

// New starts everything but workers. The stack must be closed.
func New(ctx context.Context, o Options) (*Stack, error) {
	s := newStack(o)
	err := s.findAddresses()
	if err == nil {
		err = s.openRedis()
	}
	if err == nil {
		err = s.startAll(ctx)
	}
	return s, s.closeUnless(err)
}

// NewReceiver starts only a receiver on an address: the bus is somewhere else. Empty, it is any
// loopback address. The stack must be closed.
func NewReceiver(ctx context.Context, o Options, address string) (*Stack, error) {
	s := newStack(o)
	addresses, err := s.FreeAddresses(2)
	if err == nil {
		s.Receiver, s.Control = cmp.Or(address, addresses[0]), addresses[1]
		err = s.startReceiver(ctx)
	}
	return s, s.closeUnless(err)
}

// FreeAddresses finds loopback addresses that are free, for programs of [Stack.Launch]. Until the
// stack is closed, no other gets them.
func (s *Stack) FreeAddresses(n int) ([]string, error) { return s.ports.Addresses(n) }

// findAddresses finds the addresses of all programs.
func (s *Stack) findAddresses() error {
	addresses, err := s.FreeAddresses(9)
	if err != nil {
		return err
	}
	s.Redis, s.Web, s.Noop, s.Receiver, s.Control = addresses[0], addresses[1], addresses[2], addresses[3], addresses[4]
	s.Service, s.ServiceControl = addresses[5], addresses[6]
	s.profiles.addresses[Web], s.profiles.addresses[Worker] = addresses[7], addresses[8]
	if s.options.Masters == 0 {
		return nil
	}
	nodes, err := s.ports.Addresses(s.options.Masters, busPortAbove)
	s.Redis = strings.Join(nodes, ",")
	return err
}

func newStack(o Options) *Stack {
	return &Stack{options: o, profiles: profiles{addresses: map[string]string{}}, running: map[string]*Process{}, past: map[string]Usage{}}
}

func (s *Stack) closeUnless(err error) error {
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

func (s *Stack) startAll(ctx context.Context) (err error) {
	if s.directory, err = os.MkdirTemp("", "rtm-bench-"); err != nil {
		return err
	}
	if err := s.startRedis(ctx); err != nil {
		return err
	}
	if err := s.startReceiver(ctx); err != nil {
		return err
	}
	if err := s.launch(ctx, Noop, nil, accepting(s.Noop), s.Noop); err != nil {
		return err
	}
	return s.startWeb(ctx)
}

func (s *Stack) startWeb(ctx context.Context, settings ...string) error {
	_, port, _ := net.SplitHostPort(s.Web)
	return s.launch(ctx, Web, append(s.daemonEnv(), append(settings, "PORT="+port)...), func() bool {
		resp, err := http.Get("http://" + s.Web + "/health/ready")
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
}

// RestartWeb starts web anew, with more settings: it remembers nothing.
func (s *Stack) RestartWeb(ctx context.Context, settings ...string) error {
	if err := s.Stop(Web); err != nil {
		return err
	}
	return s.startWeb(ctx, settings...)
}

func (s *Stack) startReceiver(ctx context.Context) error {
	return s.launch(ctx, Receiver, nil, accepting(s.Receiver, s.Control), s.Receiver, s.Control)
}

// StartService starts a service, which reports to web with a client's token.
func (s *Stack) StartService(ctx context.Context, token string) error {
	return s.launch(ctx, Service, nil, accepting(s.Service, s.ServiceControl), s.Service, s.ServiceControl, "http://"+s.Web, token)
}

func (s *Stack) startRedis(ctx context.Context) error {
	if s.options.Masters > 0 {
		return s.startCluster(ctx)
	}
	return s.startServer(ctx, Redis, s.Redis)
}

// startServer starts a Redis server that keeps nothing on disk.
func (s *Stack) startServer(ctx context.Context, name, address string, arguments ...string) error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return errors.New("redis-server is not installed: install it " +
			"(apt-get install redis-server, or brew install redis), or measure a running bus with --bus")
	}
	host, port, _ := net.SplitHostPort(address)
	usual := []string{"--bind", host, "--port", port, "--save", "", "--appendonly", "no"}
	return s.run(ctx, name, exec.Command(path, append(usual, arguments...)...), accepting(address))
}

// StartWorker starts a worker with more settings. It does not wait until it is ready.
func (s *Stack) StartWorker(ctx context.Context, settings ...string) error {
	return s.launch(ctx, Worker, append(s.daemonEnv(), settings...), func() bool { return true })
}

func (s *Stack) redisURL() string {
	if s.options.Masters > 0 {
		return "redis+cluster://" + s.Redis
	}
	return "redis://" + s.Redis
}

func (s *Stack) daemonEnv() []string {
	addresses := []string{"ROUTEMASTER_REDIS_URL=" + s.redisURL(), "DOWNSTREAM_URL=http://" + s.Service}
	return slices.Concat(daemonEnv, addresses, s.options.Env)
}

// Launch starts another program, and waits until it accepts connections on its addresses.
func (s *Stack) Launch(ctx context.Context, program string, addresses []string, args ...string) error {
	return s.launch(ctx, program, nil, accepting(addresses...), args...)
}

func (s *Stack) launch(ctx context.Context, name string, env []string, ready func() bool, args ...string) error {
	command, err := s.command(name, args...)
	if err != nil {
		return err
	}
	if name == Web || name == Worker {
		metrics := s.profiles.addresses[name]
		env = append(env, "ROUTEMASTER_METRICS_ADDR="+metrics, "ROUTEMASTER_PPROF=on")
		if s.options.Profiles != "" {
			ready = accepting(metrics)
		}
	}
	command.Env = append(command.Env, env...)
	return s.run(ctx, name, command, ready)
}

func (s *Stack) run(ctx context.Context, name string, command *exec.Cmd, ready func() bool) error {
	command.Dir = s.directory // which has no .env
	command.Env = append(command.Env, "PATH="+os.Getenv("PATH"))
	p, err := Start(ctx, name, command, ready)
	if err == nil {
		s.running[name] = p
	}
	return err
}

// accepting returns a function that reports whether all addresses accept connections.
func accepting(addresses ...string) func() bool {
	return func() bool {
		for _, address := range addresses {
			conn, err := net.Dial("tcp", address)
			if err != nil || conn.Close() != nil {
				return false
			}
		}
		return true
	}
}

// Stop stops a program, if it runs.
func (s *Stack) Stop(name string) error {
	p := s.running[name]
	if p == nil {
		return nil
	}
	if u, known := s.Usage()[name]; known {
		s.past[name] = u
	}
	delete(s.running, name)
	return p.Stop()
}

// Close stops everything, senders before receivers, and programs that [Stack.Launch] started last.
func (s *Stack) Close() (err error) {
	usual := []string{Worker, Web, Noop, Receiver, Service, Redis}
	for _, name := range slices.AppendSeq(usual, maps.Keys(s.running)) {
		err = errors.Join(err, s.Stop(name))
	}
	clients := map[*rdb.Client]bool{}
	for _, p := range slices.Concat(s.nodes, s.partitions) {
		clients[p.Client()] = true
	}
	for client := range clients {
		err = errors.Join(err, client.Close())
	}
	if s.directory != "" {
		err = errors.Join(err, os.RemoveAll(s.directory))
	}
	return errors.Join(err, s.ports.Close())
}

// Err fails if a program has exited by itself.
func (s *Stack) Err() error {
	for _, p := range s.running {
		if err := p.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Load is the name of this process among the processes.
const Load = "load"

// nodePrefix begins the names of the nodes of a cluster, which are counted as [Redis] together.
const nodePrefix = Redis + "-"

// Usage returns the usage of each program since the stack was made, and of this process since it
// began. It is empty on systems that do not report it. The peak memory of a cluster is the largest
// node's.
func (s *Stack) Usage() map[string]Usage {
	all := maps.Clone(s.past)
	for name, p := range s.running {
		if strings.HasPrefix(name, nodePrefix) {
			name = Redis
		}
		if u, known := usageOf(p.command.Process.Pid); known {
			all[name] = Usage{all[name].CPU + u.CPU, max(all[name].PeakMemory, u.PeakMemory)}
		}
	}
	if u, known := usageOf(os.Getpid()); known {
		all[Load] = u
	}
	return all
}

// Peak returns the peak memory of a program since it was started last, in bytes, if that is known.
func (s *Stack) Peak(name string) (bytes int64, known bool) {
	p := s.running[name]
	if p == nil {
		return 0, false
	}
	u, known := usageOf(p.command.Process.Pid)
	return u.PeakMemory, known
}
