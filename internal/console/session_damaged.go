package console

import "routemaster/internal/rdb"

// DamagedError says that a key in Redis, which all sessions need, is not of its type.
type DamagedError struct{ Key string }

func (e *DamagedError) Error() string {
	return "the key " + e.Key + " in Redis is not of its type: nobody can log in until it is deleted"
}

// wrap wraps an error of the list of sessions.
func (s *Store) wrap(what string, err error) error {
	if rdb.IsWrongType(err) {
		return &DamagedError{s.keys.Sessions()}
	}
	return rdb.Wrap(what, err)
}
