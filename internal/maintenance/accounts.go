package maintenance

import (
	"context"
	"errors"

	"routemaster/internal/account"
	"routemaster/internal/bus"
)

// limitAccounts notes with the accounts of the partition what clients may keep: given the high mark
// of its Redis (bytes; 0 for none), and what they keep in other partitions there. Of one that is
// away, nothing is known.
func (m *Maintenance) limitAccounts(ctx context.Context, high int64) error {
	limits := account.Limits{High: high, Clients: m.clients, Elsewhere: map[bus.ClientName]int64{}}
	here := m.store.Partition()
	for _, st := range m.all.All() {
		p := st.Partition()
		if p == here || p.Node() != here.Node() {
			continue
		}
		accounts, err := account.Read(ctx, p)
		if errors.Is(err, bus.ErrUnavailable) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return err
		}
		for client, bytes := range accounts.Kept {
			limits.Elsewhere[client] += bytes
		}
	}
	return limits.Write(ctx, here)
}
