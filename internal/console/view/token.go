package view

import (
	"cmp"
	"time"
)

// Token is a token in the list of tokens, without the token.
type Token struct {
	// Name is the public name of the client, ID stands for the token.
	Name, ID string
	// Topics is how many topics the client publishes, Queued how many events wait for it.
	Topics     int
	Subscribed bool
	Queued     int64
	// Used is when it was last used, zero if that is not known.
	Used time.Time
}

// Tokens is the list of tokens, by name.
var Tokens = Kind[Token]{
	id: "tokens", name: func(t *Token) string { return t.Name }, usual: "name",
	columns: []Column[Token]{
		{Name: "name", Title: "Name", Rank: 1, compare: func(a, b *Token) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) }},
		{Name: "id", Title: "Fingerprint", Figure: "fingerprint", Rank: 2},
		{Name: "topics", Title: "Publishes", Figure: "publishes", Number: true, Rank: 2, descending: true, compare: by(func(t *Token) int { return t.Topics })},
		{Name: "queued", Title: "Queued", Figure: "queued", Number: true, Rank: 1, descending: true, compare: by(func(t *Token) int64 { return t.Queued })},
		{Name: "used", Title: "Last used", Figure: "last used", Number: true, Rank: 2, descending: true, compare: by(func(t *Token) int64 { return t.Used.UnixMilli() })},
		{Name: "actions", Title: "Action", Rank: 1},
	},
}
