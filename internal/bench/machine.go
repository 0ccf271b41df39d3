package bench

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
)

// Launcher makes the command that runs a program: one of [Web], [Worker], [Receiver] and [Noop].
type Launcher func(program string, args ...string) (*exec.Cmd, error)

// machine is the processes of one scenario, on loopback.
type machine struct {
	launch    Launcher
	directory string
	env       []string
	http      *http.Client
	profiler  *profiler // nil for none
	running   map[string]*process
	// past is what processes took that have stopped.
	past map[string]usage

	redis, api string // addresses
	receiver   addresses
	noop       addresses
}

// daemonEnv is what the daemons are told, besides where things are. They see nothing of this process' environment.
var daemonEnv = []string{
	"ROUTEMASTER_ROOT_KEY=" + rootKey,
	"FORCE_SSL=no",                              // publishers speak plain HTTP
	"ROUTEMASTER_SSL_VERIFY=no",                 // the receiver signs its own certificate
	"ROUTEMASTER_CALLBACK_DENY=none",            // and is on loopback
	"ROUTEMASTER_REDIS_MAX_MEM=100000000000000", // no backlog is dropped
	"ROUTEMASTER_LOG_LEVEL=WARN",
}

const rootKey = "bench-root-key"

// newMachine starts Redis, a web process, a receiver and a no-op server. Workers are started by whoever needs them.
func newMachine(ctx context.Context, o Options) (*machine, error) {
	profiler, err := newProfiler(o.Profile)
	if err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp("", "rtm-bench-")
	if err != nil {
		return nil, err
	}
	m := &machine{launch: o.Launch, directory: directory, http: newHTTPClient(false), profiler: profiler, running: map[string]*process{}, past: map[string]usage{}}
	for _, begin := range []func(context.Context) error{m.startRedis, m.startHelpers} {
		if err := begin(ctx); err != nil {
			return nil, errors.Join(err, m.close())
		}
	}
	m.env = slices.Concat(daemonEnv, []string{"ROUTEMASTER_REDIS_URL=redis://" + m.redis}, o.Env)
	if err := m.startWeb(ctx); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func (m *machine) startRedis(ctx context.Context) (err error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return errors.New("redis-server is not installed: install it (apt-get install redis-server, or brew install redis), or measure a running bus with --bus")
	}
	if m.redis, err = freeAddress(); err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(m.redis)
	p, err := m.start(Redis, exec.Command(path, "--bind", host, "--port", port, "--save", "", "--appendonly", "no"))
	if err != nil {
		return err
	}
	return p.ready(ctx, func() bool {
		conn, err := dialRedis(ctx, m.redis)
		if err != nil {
			return false
		}
		defer conn.close()
		pong, err := conn.do("PING")
		return err == nil && pong == "PONG"
	})
}

// startHelpers starts the receiver and the no-op server.
func (m *machine) startHelpers(ctx context.Context) (err error) {
	for name, to := range map[string]*addresses{Receiver: &m.receiver, Noop: &m.noop} {
		p, err := m.startProgram(name, nil)
		if err != nil {
			return err
		}
		if *to, err = p.listening(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) startWeb(ctx context.Context) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(address)
	m.api = "http://" + address
	p, err := m.startProgram(Web, append(slices.Clone(m.env), "PORT="+port))
	if err != nil {
		return err
	}
	return p.ready(ctx, func() bool {
		answer, err := m.http.Get(m.api + "/health")
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	})
}

// startWorker starts a worker, with more settings.
func (m *machine) startWorker(settings ...string) error {
	_, err := m.startProgram(Worker, slices.Concat(m.env, settings))
	return err
}

func (m *machine) startProgram(name string, env []string) (*process, error) {
	command, err := m.launch(name)
	if err != nil {
		return nil, err
	}
	profiled, err := m.profiler.serve(name)
	if err != nil {
		return nil, err
	}
	command.Env = slices.Concat(command.Env, env, profiled)
	return m.start(name, command)
}

func (m *machine) start(name string, command *exec.Cmd) (*process, error) {
	command.Dir = m.directory // where no .env is
	if len(command.Env) == 0 {
		command.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	p, err := start(name, command)
	if err == nil {
		m.running[name] = p
	}
	return p, err
}

// stop stops a program, if it runs.
func (m *machine) stop(name string) error {
	p := m.running[name]
	if p == nil {
		return nil
	}
	if u, known := m.usage()[name]; known {
		m.past[name] = u
	}
	delete(m.running, name)
	return p.stop()
}

// close stops all, those that send before those that are sent to.
func (m *machine) close() (err error) {
	for _, name := range []string{Worker, Web, Noop, Receiver, Redis} {
		err = errors.Join(err, m.stop(name))
	}
	return errors.Join(err, os.RemoveAll(m.directory))
}

// loadProcess is the name of this process, which publishes.
const loadProcess = "load"

// usage is what each program has taken since the machine was made, and this process since it began. It is empty
// where that is not known.
func (m *machine) usage() map[string]usage {
	all := maps.Clone(m.past)
	for name, p := range m.running {
		if u, known := usageOf(p.command.Process.Pid); known {
			all[name] = usage{all[name].cpu + u.cpu, max(all[name].peak, u.peak)}
		}
	}
	if u, known := usageOf(os.Getpid()); known {
		all[loadProcess] = u
	}
	return all
}

// died says which program has ended by itself.
func (m *machine) died() error {
	for _, p := range m.running {
		if err := p.died(); err != nil {
			return err
		}
	}
	return nil
}

// cpuPer is the CPU time of each program between two times, in µs, shared by so many events.
func cpuPer(events int64, from, to map[string]usage) map[string]float64 {
	per := map[string]float64{}
	for name, u := range to {
		if events > 0 {
			per[name] = float64((u.cpu - from[name].cpu).Microseconds()) / float64(events)
		}
	}
	return per
}
