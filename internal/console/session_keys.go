package console

// Keys names the keys of sessions, which begin with a namespace.
type Keys struct{ Namespace string }

// Session is a hash: `token` (empty for root), `client`, `person`, `from`, `look_only`, `made_at`
// (ms) and `proof`. What follows is the SHA-256 of the cookie. It expires.
func (k Keys) Session(id string) string { return k.Namespace + "console:session:" + id }

// Sessions is a sorted set: the ids of the sessions, by when they end (ms).
func (k Keys) Sessions() string { return k.Namespace + "console:sessions" }

// Code is a string: what a code that logs in says, as JSON, with a proof. What follows is the
// SHA-256 of the code. It expires.
func (k Keys) Code(id string) string { return k.Namespace + "console:code:" + id }

// Codes is a list: the ids of the codes of a client, the latest first. What follows is the SHA-256
// of its token. It expires.
func (k Keys) Codes(client string) string { return k.Namespace + "console:codes:" + client }

// Form is a string: that the form with a nonce was sent. What follows is the SHA-256 of the nonce.
// It expires.
func (k Keys) Form(id string) string { return k.Namespace + "console:form:" + id }
