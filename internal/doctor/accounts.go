package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
	"routemaster/internal/rdb"
)

// accountsKey is without a namespace, as findings show it.
var accountsKey = keys.Accounts()

// accountExam examines accounts. Its keys have the namespace.
type accountExam struct {
	*Examination
	key string
	// off is by how much types keep more than they have said.
	off map[string]int64
}

func newAccountExam(e *Examination) accountExam {
	return accountExam{e, e.Keys.Accounts(), map[string]int64{}}
}

// findAccounts looks for labels that are in no account, as they were made before there were
// accounts.
func findAccounts(e *Examination) {
	x := newAccountExam(e)
	for id, label := range e.Labels {
		if !label.There || label.Deleted || label.By != "" {
			continue
		}
		machine, name, _ := strings.Cut(id, "/")
		record := x.Keys.Label(machines.Name(machine), machines.LabelName(name))
		e.Add(record, "is in nobody's account", "put in that of the machines", []Check{
			Is(label.State, "HGET", record, "state"), Is("", "HGET", record, "by"),
		}, Command{"HSET", record, "by", string(machines.DefaultPublisher)})
	}
}

// checkAccounts compares the accounts with the bytes kept, and counts again where they differ.
func checkAccounts(ctx context.Context, e *Examination) error {
	x := newAccountExam(e)
	show := func(name string) string { return "what the job type " + name + " keeps" }
	if err := e.UntilSteady(ctx, show, x.doubtfulTypes(), func(name string) (bool, error) {
		return x.checkType(ctx, name)
	}); err != nil {
		return err
	}
	if x.fit() {
		return nil
	}
	return e.UntilSteady(ctx, func(what string) string { return what }, []string{"the accounts of clients"}, func(string) (bool, error) {
		return x.checkAll(ctx)
	})
}

// CountAccounts writes the accounts of a partition that has none, as its types and labels say. It
// fails with [bus.ErrUnavailable].
func CountAccounts(ctx context.Context, p *rdb.Partition) error {
	x := newAccountExam(newExamination(p, examOptions{Fix: true, Observe: func(Finding) {}}))
	for range 2 { // the sum of the accounts is right once they are
		if _, err := x.checkAll(ctx); err != nil {
			return rdb.Wrap("count accounts", err)
		}
	}
	return nil
}

// ownerOf is the client whose account a type is in.
func ownerOf(owner string) bus.ClientName { return cmp.Or(bus.ClientName(owner), bus.RootName) }

// makerOf is the client whose account a label is in, or will be: see [findAccounts].
func makerOf(by string) bus.ClientName { return cmp.Or(bus.ClientName(by), machines.DefaultPublisher) }

// doubtfulTypes returns the types whose stated bytes differ from those the scan counted.
func (x accountExam) doubtfulTypes() (doubtful []string) {
	kept, counted := map[string]int64{}, map[string]bool{}
	for id, r := range x.Records {
		kept[r.Type] += jobs.JobBytes + r.Noted
		if at := keys.JobData(cmp.Or(r.Shared, id)); !counted[at] {
			counted[at] = true
			kept[r.Type] += x.Sizes[at]
		}
	}
	for name, fields := range x.Each(keys.JobType("")) {
		must := jobs.TypeBytes + rdb.Integer(fields["schedule_data"], 0) + kept[name]
		if fields["kept"] != Figure(must) {
			doubtful = append(doubtful, name)
		}
	}
	slices.Sort(doubtful)
	return doubtful
}

// fit reports whether the accounts match the scan.
func (x accountExam) fit() bool {
	must := map[bus.ClientName]int64{}
	for name, fields := range x.Each(keys.JobType("")) {
		must[ownerOf(fields["owner"])] += rdb.Integer(fields["kept"], 0) + x.off[name]
	}
	for id, label := range x.Labels {
		if label.There && !label.Deleted {
			must[makerOf(label.By)] += engine.SizeOf(x.Sizes[MetadataPrefix+id], label.Moves)
		}
	}
	addExpiring(x.Elements[accountsKey], must)
	total := int64(0)
	for field, said := range x.Elements[accountsKey] {
		if !account.IsClient(field) {
			continue
		}
		client, bytes := bus.ClientName(field), rdb.Integer(said, 0)
		if must[client] != bytes {
			return false
		}
		delete(must, client)
		total += bytes
	}
	for _, bytes := range must {
		if bytes > 0 {
			return false
		}
	}
	return rdb.Integer(x.Elements[accountsKey][account.FieldTotal], 0) == total
}

// addExpiring adds the bytes that Redis will expire on its own. Only the accounts record them, so
// they cannot be compared: a damaged field counts 0, and workers remove it.
func addExpiring(accounts map[string]string, sums map[bus.ClientName]int64) {
	for field, said := range accounts {
		if e, ok := account.ReadExpiring(field, said); ok && e.Client != "" {
			sums[e.Client] += e.Bytes
		}
	}
}

// checkType counts the bytes a type keeps. Every new job advances the type's clock, so nothing has
// changed if clock, revision and list lengths are the same before and after. Removed jobs do not
// matter to a type that says it keeps nothing.
func (x accountExam) checkType(ctx context.Context, name string) (done bool, err error) {
	hash := x.Keys.JobType(name)
	before, err := x.Redis.HMGet(ctx, hash, "strategy", "kept", "clock", "revision", "owner").Result()
	if err != nil || before[0] == nil {
		return true, ignored(err)
	}
	size, err := x.Redis.HStrLen(ctx, hash, "schedule_data").Result()
	if err != nil {
		return false, err
	}
	counted, unchanged, err := x.sizeOfJobs(ctx, name)
	if err != nil {
		return true, ignored(err)
	}
	said := rdb.Text(before[1])
	must := jobs.TypeBytes + size + counted
	if said == strconv.FormatInt(must, 10) {
		return true, nil
	}
	x.Add(hash, fmt.Sprintf("says that it keeps %q bytes, must be %d", said, must), "set right", append(unchanged,
		Is(said, "HGET", hash, "kept"), Is(rdb.Text(before[2]), "HGET", hash, "clock"),
		Is(rdb.Text(before[3]), "HGET", hash, "revision"), Is(rdb.Text(before[4]), "HGET", hash, "owner"),
	), Command{"HSET", hash, "kept", must})
	if done, err = x.Confirm(ctx); done {
		x.off[string(name)] = must - rdb.Integer(said, 0)
	}
	return done, err
}

// ignored is an error, unless it is about a key of another type, which is reported elsewhere.
func ignored(err error) error {
	if rdb.IsWrongType(err) {
		return nil
	}
	return err
}

// sizeOfJobs counts the jobs of a type, with their data. It also returns the checks that none was
// removed since.
func (x accountExam) sizeOfJobs(ctx context.Context, name string) (bytes int64, unchanged []Check, err error) {
	lists := []string{x.Keys.OpenJobs(name)}
	for _, status := range jobs.Archived {
		lists = append(lists, x.Keys.ArchivedJobs(name, string(status)))
	}
	all, counted := map[string]bool{}, map[string]bool{}
	for _, list := range lists {
		listed := map[string]bool{}
		take := rdb.Elements(rdb.SortedSet, func(id, _ string) { listed[id], all[id] = true, true })
		if err := x.Redis.EachPage(ctx, list, rdb.SortedSet, 0, take); err != nil {
			return 0, nil, err
		}
		unchanged = append(unchanged, Is(len(listed), "ZCARD", list))
	}
	for ids := range slices.Chunk(Sorted(all), rdb.KeysPerTrip) {
		records := make([]rdb.Reply[[]any], len(ids))
		if err := x.Redis.Reads(ctx, "count jobs", func(pipe rdb.Commands) {
			for i, id := range ids {
				records[i] = pipe.HMGet(ctx, x.Keys.Job(id), "type", "data", "noted")
			}
		}); err != nil {
			return 0, nil, err
		}
		var data []rdb.Reply[int64]
		if err := x.Redis.Reads(ctx, "count jobs", func(pipe rdb.Commands) {
			for i, id := range ids {
				r := records[i].Val()
				if len(r) != 3 || rdb.Text(r[0]) != string(name) {
					continue
				}
				bytes += jobs.JobBytes + rdb.Integer(rdb.Text(r[2]), 0)
				if at := cmp.Or(rdb.Text(r[1]), id); !counted[at] {
					counted[at] = true
					data = append(data, pipe.StrLen(ctx, x.Keys.JobData(at)))
				}
			}
		}); err != nil {
			return 0, nil, err
		}
		for _, one := range data {
			bytes += one.Val()
		}
	}
	return bytes, unchanged, nil
}

// checkAll reads all accounts, counts the bytes kept, and compares them.
func (x accountExam) checkAll(ctx context.Context) (done bool, err error) {
	said, err := x.Redis.HGetAll(ctx, x.key).Result()
	if err != nil {
		return true, ignored(err)
	}
	must := map[bus.ClientName]int64{}
	if err := x.sumTypes(ctx, must); err != nil {
		return false, err
	}
	if err := x.sumLabels(ctx, must); err != nil {
		return false, err
	}
	addExpiring(said, must)
	total := int64(0)
	for field, text := range said {
		if account.IsClient(field) {
			total += rdb.Integer(text, 0)
			must[bus.ClientName(field)] += 0
		}
	}
	for client, bytes := range must {
		text := said[string(client)]
		if rdb.Integer(text, 0) == bytes {
			continue
		}
		changes := account.FieldChanges + string(client)
		x.Add(x.key, fmt.Sprintf("says that %s keeps %q bytes, must be %d", client, text, bytes), "set right", []Check{
			Is(text, "HGET", x.key, string(client)), Is(said[changes], "HGET", x.key, changes),
		}, Command{"SET_ACCOUNT", string(client), bytes})
	}
	if rdb.Integer(said[account.FieldTotal], 0) != total {
		x.Add(x.key, fmt.Sprintf("says that all keep %q bytes, which is not what they say", said[account.FieldTotal]), "set right",
			[]Check{Is(1, "ACCOUNTS_DIFFER", x.key)}, Command{"ADD_ACCOUNTS", x.key})
	}
	return x.Confirm(ctx)
}

// sumTypes adds each type's stated bytes to its owner's sum. With Fix they are already corrected.
func (x accountExam) sumTypes(ctx context.Context, sums map[bus.ClientName]int64) error {
	names, err := x.Redis.SMembers(ctx, x.Keys.JobTypes()).Result()
	if err != nil {
		return ignored(err)
	}
	for some := range slices.Chunk(names, rdb.KeysPerTrip) {
		found := make([]rdb.Reply[[]any], len(some))
		if err := x.Redis.Reads(ctx, "sum up accounts", func(pipe rdb.Commands) {
			for i, name := range some {
				found[i] = pipe.HMGet(ctx, x.Keys.JobType(name), "owner", "kept")
			}
		}); err != nil {
			return err
		}
		for i, one := range found {
			fields := one.Val()
			if len(fields) != 2 {
				continue
			}
			owner := ownerOf(rdb.Text(fields[0]))
			if sums[owner] += rdb.Integer(rdb.Text(fields[1]), 0); !x.Fix {
				sums[owner] += x.off[some[i]]
			}
		}
	}
	return nil
}

// sumLabels adds the labels that clients have made.
func (x accountExam) sumLabels(ctx context.Context, sums map[bus.ClientName]int64) error {
	prefix := x.Keys.LabelNames("")
	var lists []string
	if err := x.Redis.EachKey(ctx, prefix+"*", func(page []string) error { lists = append(lists, page...); return nil }); err != nil {
		return err
	}
	slices.Sort(lists)
	for _, list := range slices.Compact(lists) {
		names, machine := map[string]bool{}, machines.Name(strings.TrimPrefix(list, prefix))
		take := rdb.Elements(rdb.SortedSet, func(name, _ string) { names[name] = true })
		if err := x.Redis.EachPage(ctx, list, rdb.SortedSet, 0, take); err != nil {
			if ignored(err) == nil {
				continue
			}
			return err
		}
		for some := range slices.Chunk(Sorted(names), rdb.KeysPerTrip) {
			if err := x.sumSome(ctx, machine, some, sums); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x accountExam) sumSome(ctx context.Context, machine machines.Name, names []string, sums map[bus.ClientName]int64) error {
	records, metadata := make([]rdb.Reply[[]any], len(names)), make([]rdb.Reply[int64], len(names))
	err := x.Redis.Reads(ctx, "sum up accounts", func(pipe rdb.Commands) {
		for i, name := range names {
			label := machines.LabelName(name)
			records[i] = pipe.HMGet(ctx, x.Keys.Label(machine, label), "state", "by", "moves")
			metadata[i] = pipe.StrLen(ctx, x.Keys.LabelMetadata(machine, label))
		}
	})
	for i := range names {
		if fields := records[i].Val(); err == nil && len(fields) == 3 && fields[0] != nil {
			sums[makerOf(rdb.Text(fields[1]))] += engine.SizeOf(metadata[i].Val(), rdb.Integer(rdb.Text(fields[2]), 0))
		}
	}
	return err
}
