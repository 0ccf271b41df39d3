package worker

import (
	"slices"
	"sync"
	"time"

	"routemaster/internal/queue"
)

// The rules of [shares].
const (
	// slowAfter is how long a thread must be busy with an owner's task to make the owner slow.
	slowAfter = time.Second
	// slowMemory is for how long an owner stays slow once its tasks are quick again, and for how long
	// a slow one waits for threads after it had one.
	slowMemory = 10 * time.Second
	// stallAfter is for how long a thread may be busy before an owner that holds too many is full.
	// Until then the remaining threads wait, since the owner's may be free again.
	stallAfter = 50 * time.Millisecond
	// The entries of a full owner are put off for as long as its oldest task has run, within these.
	minRecheck, maxRecheck = 20 * time.Millisecond, 250 * time.Millisecond
	// maxNamed is how many owners are named at most in one call to Redis.
	maxNamed = 200
	// ownerMemory is for how long an owner is known that has no task.
	ownerMemory = 10 * time.Minute
)

// shares decides from which owners a thread of a pool may take a task now, so that no owner holds
// all threads while its requests hang. It is policy, without I/O: docs/decisions/queue.md has the
// reasons.
//
//   - A first owner, as a subscriber, holds at most seven eighths of the threads that others leave
//     it, and leaves one at least. In a pool of one thread, it holds that.
//   - An owner is slow if a thread has been busy with it for over a second, until it has been quick
//     again for ten. All slow owners hold at most three quarters of the threads.
//   - A slow owner holds at most the threads, divided by the number of owners that wait, itself
//     included: the slow ones, and if few threads are left all that hold one. It may hold one in
//     any case. An owner that several share, as a host, is slow while two of them are: then this
//     applies to it too, but not to the owners known to be quick.
//
// It is safe for concurrent use.
type shares struct {
	threads int
	// freed has a value when the owner that idle threads wait for leaves one.
	freed chan struct{}

	mu     sync.Mutex
	owners map[queue.Owner]*owner
	// active are the owners that hold threads, and first owners that are slow.
	active map[*owner]struct{}
	// dominant is the owner that idle threads wait for; nil if none of them does.
	dominant *owner
	held     map[*queue.Task]hold
	// asking is the number of calls under way that may take a task. asksSlow is the number of calls
	// that may take one of a slow owner.
	asking, asksSlow int
	// quietUntil is until when no owner can be slow; zero if one may be now.
	quietUntil time.Time
	tidied     time.Time
}

// owner is the state of a [queue.Owner].
type owner struct {
	name  queue.Owner
	level level
	// begun is when the threads that it holds have begun, the oldest first.
	begun []time.Time
	// open is the number of calls under way that may take a task of it, while it is slow.
	open int
	// slowUntil is until when it is slow, though no thread is busy with it.
	slowUntil time.Time
	// quick is whether its last task was quick.
	quick    bool
	lastSeen time.Time
	// shared are the further owners of its tasks, hosts the ones among them that only requests have
	// shown, and members the first owners that share this one.
	shared, hosts []*owner
	members       map[*owner]struct{}
}

// level says which owners wait for the same threads: first owners, and each sort of shared ones.
type level int

const (
	firstLevel level = iota
	sharedLevel
	hostLevel
)

// hold is a thread that runs a task. First is nil if the task has no owners.
type hold struct {
	first  *owner
	shared []*owner
	since  time.Time
}

// grant limits the tasks that a call may take.
type grant struct {
	full []queue.Full
	// wait is for how long a thread should not ask at all; zero if it may.
	wait time.Duration
	// open are the slow owners that are not full.
	open []*owner
}

func newShares(threads int) *shares {
	return &shares{
		threads: threads, freed: make(chan struct{}, 1), owners: map[queue.Owner]*owner{},
		active: map[*owner]struct{}{}, held: map[*queue.Task]hold{},
	}
}

// part is a fraction of some threads, at least one.
func part(threads, of int) int { return max(1, threads/of) }

// ask begins a call that may take a task. It is ended by take.
func (s *shares) ask(now time.Time) (g grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.asking++ }()
	if !now.Before(s.quietUntil) {
		s.refresh(now)
	}
	if s.quietUntil.IsZero() || len(s.held)+s.asking >= s.threads-part(s.threads, 8) {
		s.decide(now, &g) // seldom, and a short walk while no owner is slow
	}
	if len(g.open) > 0 {
		s.asksSlow++
	}
	return g
}

// refresh forgets owners that are slow no more, and notes until when none can be.
func (s *shares) refresh(now time.Time) {
	s.quietUntil = now.Add(slowAfter)
	for o := range s.active {
		switch {
		case o.isSlow(now):
			s.quietUntil = time.Time{}
		case len(o.begun) == 0:
			delete(s.active, o)
		case o.begun[0].Add(slowAfter).Before(s.quietUntil):
			s.quietUntil = o.begun[0].Add(slowAfter)
		}
	}
}

// isSlow reports whether a first owner is slow.
func (o *owner) isSlow(now time.Time) bool {
	return o.level == firstLevel &&
		(now.Before(o.slowUntil) || len(o.begun) > 0 && now.Sub(o.begun[0]) >= slowAfter)
}

// load is how many threads the slow first owners that share an owner hold. Open is the largest
// number of tasks that calls under way may take from one of them: each call takes one task at most,
// from any owner.
type load struct{ members, held, open int }

// decide says which owners are full.
func (s *shares) decide(now time.Time, g *grant) {
	var waiting map[level]int
	var loads map[*owner]load
	var slowOwners, slowHeld int
	if s.quietUntil.IsZero() { // else none is slow
		waiting, loads, slowOwners, slowHeld = s.count(now)
	}
	hasNoRoom := slowHeld >= max(1, s.threads-part(s.threads, 4))
	isFull := func(o *owner, held int) bool {
		return hasNoRoom || held >= part(s.threads, max(1, waiting[o.level]))
	}
	for o := range s.active {
		slow := slowOwners > 0 && o.isSlow(now)
		switch {
		case slow && isFull(o, len(o.begun)+o.open/slowOwners): // each call takes one task at most
			g.refuse(o, maxRecheck)
		case s.isDominant(o):
			age := now.Sub(o.begun[0])
			if rest := stallAfter - age; rest > 0 && (g.wait == 0 || rest < g.wait) {
				g.wait, s.dominant = rest, o
			}
			g.refuse(o, min(max(age, minRecheck), maxRecheck))
		case slow:
			o.open++
			g.open = append(g.open, o)
		}
	}
	for o, load := range loads {
		if load.members > 1 && isFull(o, load.held+load.open) {
			g.refuse(o, maxRecheck)
			g.refuseMembers(o)
		}
	}
	if len(g.full) > maxNamed {
		g.full = g.full[len(g.full)-maxNamed:]
	}
}

// count counts the owners of each level that wait for threads and, for each shared owner, the
// threads that its slow first owners hold. It also counts all slow first owners, and the threads
// that they hold or that calls under way may take for them.
func (s *shares) count(now time.Time) (waiting map[level]int, loads map[*owner]load, slowOwners, slowHeld int) {
	waiting, loads = map[level]int{}, map[*owner]load{}
	isCrowded := s.threads-len(s.held) <= part(s.threads, 4)
	for o := range s.active {
		slow := o.isSlow(now)
		if isCrowded && len(o.begun) > 0 || slow && (len(o.begun) > 0 || now.Sub(o.lastSeen) < slowMemory) {
			waiting[o.level]++
		}
		if !slow {
			continue
		}
		slowOwners++
		slowHeld += len(o.begun)
		for _, shared := range o.shared {
			l := loads[shared]
			loads[shared] = load{l.members + 1, l.held + len(o.begun), max(l.open, o.open)}
		}
	}
	slowHeld += s.asksSlow
	if !isCrowded {
		for o, load := range loads {
			if load.members > 1 {
				waiting[o.level]++
			}
		}
	}
	return waiting, loads, slowOwners, slowHeld
}

// isDominant reports whether a first owner holds so many threads that it must leave the others.
// Several that hold few each may hold all threads together.
func (s *shares) isDominant(o *owner) bool {
	holds := len(o.begun)
	few := max(min(2, s.threads-1), s.threads/16)
	if o.level != firstLevel || holds < max(1, few) {
		return false
	}
	left := s.threads - len(s.held) + holds // the threads that other owners leave it
	return holds+s.asking >= left-part(left, 8)
}

// refuse makes an owner full.
func (g *grant) refuse(o *owner, recheck time.Duration) {
	g.full = append(g.full, queue.Full{Owner: o.name, Recheck: recheck})
}

// refuseMembers makes the owners full that share a full owner, unless they are known to be quick:
// their entries may not show that they share it.
func (g *grant) refuseMembers(o *owner) {
	named := map[queue.Owner]bool{}
	for _, f := range g.full {
		named[f.Owner] = true
	}
	for m := range o.members {
		if len(g.full) >= maxNamed {
			return
		}
		if named[m.name] {
			continue
		}
		f := queue.Full{Owner: m.name}
		if !m.quick {
			f.Recheck = maxRecheck
		}
		g.full = append(g.full, f)
	}
}

// take ends a call. If it has taken a task, nil if not, its owners hold a thread until end.
func (s *shares) take(g grant, task *queue.Task, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking--
	if len(g.open) > 0 {
		s.asksSlow--
	}
	for _, o := range g.open {
		o.open--
	}
	defer s.wake()
	if task == nil {
		return
	}
	h := hold{since: now}
	if names := ownersOf(task); len(names) > 0 {
		h.first = s.know(names[0], firstLevel, now)
		h.first.share(append(s.knowAll(names[1:], now), h.first.hosts...))
		h.shared = h.first.shared
		s.begin(h.first, now)
	}
	for _, o := range h.shared {
		s.begin(o, now)
	}
	s.held[task] = h
}

// begin notes that an owner holds a thread more, and release that it holds one less, since a time.
func (s *shares) begin(o *owner, now time.Time) {
	o.begun = append(o.begun, now)
	s.active[o] = struct{}{}
	if slow := now.Add(slowAfter); slow.Before(s.quietUntil) { // others have read the clock later
		s.quietUntil = slow
	}
}

func (s *shares) release(o *owner, since, now time.Time) {
	if at := slices.Index(o.begun, since); at >= 0 {
		o.begun = slices.Delete(o.begun, at, at+1)
	}
	o.lastSeen = now
	if len(o.begun) == 0 && !now.Before(o.slowUntil) {
		delete(s.active, o)
	}
}

// ownersOf are the owners of a task that are known when it is taken.
func ownersOf(task *queue.Task) []queue.Owner {
	if task.Payload == nil {
		return nil
	}
	return task.Payload.Owners()
}

// know returns the state of an owner, and creates it if necessary.
func (s *shares) know(name queue.Owner, at level, now time.Time) *owner {
	s.tidy(now)
	o := s.owners[name]
	if o == nil {
		o = &owner{name: name, level: at}
		s.owners[name] = o
	}
	o.lastSeen = now
	return o
}

// knowAll returns the states of owners that several share, without owners that have no name.
func (s *shares) knowAll(names []queue.Owner, now time.Time) (all []*owner) {
	for _, name := range names {
		switch {
		case name == "":
		case name.IsHost():
			all = append(all, s.know(name, hostLevel, now))
		default:
			all = append(all, s.know(name, sharedLevel, now))
		}
	}
	return all
}

// share records the further owners of a first owner.
func (o *owner) share(others []*owner) {
	if slices.Equal(o.shared, others) {
		return
	}
	o.unshare()
	for _, other := range others {
		if slices.Contains(o.shared, other) {
			continue
		}
		o.shared = append(o.shared, other)
		if other.members == nil {
			other.members = map[*owner]struct{}{}
		}
		other.members[o] = struct{}{}
	}
}

func (o *owner) unshare() {
	for _, other := range o.shared {
		delete(other.members, o)
	}
	o.shared = nil
}

// end ends a task that was taken, given the hosts to which it has sent requests, if its owners did
// not say; nil if it has sent none.
func (s *shares) end(task *queue.Task, hosts []queue.Owner, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.held[task]
	delete(s.held, task)
	for _, o := range h.shared {
		s.release(o, h.since, now)
	}
	if h.first == nil {
		return
	}
	s.note(h.first, now.Sub(h.since) < slowAfter, now)
	s.release(h.first, h.since, now)
	if hosts != nil {
		h.first.hosts = s.knowAll(hosts, now)
	}
}

// wake makes an idle thread ask again if the owner that it waits for leaves a thread. This is known
// once a call has ended, because a thread that has ended a task may take another of its owner.
func (s *shares) wake() {
	if s.dominant == nil || s.isDominant(s.dominant) {
		return
	}
	select {
	case s.freed <- struct{}{}:
	default: // no thread waits
		s.dominant = nil
	}
}

// note notes whether a task of a first owner was quick. One that was not makes it slow for as long
// as it is known, or until it has been quick for some time.
func (s *shares) note(o *owner, quick bool, now time.Time) {
	o.quick = quick
	if !quick {
		o.slowUntil = now.Add(ownerMemory)
		s.quietUntil = time.Time{}
	} else if soon := now.Add(slowMemory); o.slowUntil.After(soon) {
		o.slowUntil = soon
	}
}

// tidy forgets owners that have had no task for long.
func (s *shares) tidy(now time.Time) {
	if now.Sub(s.tidied) < ownerMemory {
		return
	}
	s.tidied = now
	for name, o := range s.owners {
		if len(o.begun) > 0 || o.open > 0 || len(o.members) > 0 || now.Sub(o.lastSeen) < ownerMemory {
			continue
		}
		delete(s.owners, name)
		delete(s.active, o)
		o.unshare()
	}
}
