package maintenance

import (
	"context"
	"errors"

	"routemaster/internal/account"
	"routemaster/internal/bus"
)

// tendAccounts sets the clients' limits in the partition's accounts, given the high mark of its
// Redis (bytes; 0 for none), and the bytes the clients keep in other partitions there. An
// unavailable partition counts nothing. First it releases expired bytes, which a full Redis allows.
func (m *Maintenance) tendAccounts(ctx context.Context, high int64) error {
	here := m.store.Partition()
	if err := account.Release(ctx, here, m.now()); err != nil {
		return err
	}
	limits := account.Limits{High: high, Clients: m.clients, Elsewhere: map[bus.ClientName]int64{}}
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
