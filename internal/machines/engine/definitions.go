package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/rdb"
)

// definitionCache is the definitions that a partition had when they were read last. They are
// replaced as a whole, by later ones.
type definitionCache struct {
	atomic.Pointer[machines.Definitions]
	// reading is held while definitions are read: reading costs memory and time, so others wait for
	// the result.
	reading sync.Mutex
	all     *readDefinitions
}

// readDefinitions are the definitions that a process has read, from all partitions, so that the
// same ones are parsed once.
type readDefinitions struct {
	reading sync.Mutex
	caches  []*definitionCache
}

// parse returns the definitions of a partition. If another partition's parsed ones are the same, it
// returns these.
func (r *readDefinitions) parse(fields map[string]string) (*machines.Definitions, error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	for _, cache := range r.caches {
		if d := cache.of(editionOf(fields["version"], fields["applied_at"])); d != nil && string(d.Source) == fields["yaml"] {
			return d, nil
		}
	}
	d, err := load([]byte(fields["yaml"]))
	if err != nil {
		return nil, err
	}
	return d, readBesides(d, fields)
}

// editionOf returns the same text as definitions_edition of lua/lib/definitions.lua; empty if there
// are none.
func editionOf(version, appliedAt string) string {
	if version == "" {
		return ""
	}
	return version + " " + appliedAt
}

// of returns the definitions if they are of an edition; else nil.
func (c *definitionCache) of(edition string) *machines.Definitions {
	if latest := c.Load(); latest != nil && latest.Edition == edition {
		return latest
	}
	return nil
}

// Definitions returns the current definitions. It fails with [bus.ErrUnavailable].
func (s *Store) Definitions(ctx context.Context) (*machines.Definitions, error) {
	found, err := s.redis.HMGet(ctx, s.keys.Definitions(), "version", "applied_at").Result()
	if err != nil {
		return nil, rdb.Wrap("read version of definitions", err)
	}
	return s.definitions(ctx, editionOf(rdb.Text(found[0]), rdb.Text(found[1])))
}

// DefinitionsOf returns the definitions by which a label was taken. It fails with
// [bus.ErrUnavailable].
func (s *Store) DefinitionsOf(ctx context.Context, v *Visit) (*machines.Definitions, error) {
	return s.definitions(ctx, v.definitions)
}

// definitions returns the definitions of an edition, or of a later one. It asks Redis only if it
// has others.
func (s *Store) definitions(ctx context.Context, edition string) (*machines.Definitions, error) {
	if edition == "" {
		return &machines.Definitions{}, s.redis.RequireOpen(ctx)
	}
	if latest := s.latest.of(edition); latest != nil {
		return latest, nil
	}
	s.latest.reading.Lock()
	defer s.latest.reading.Unlock()
	if latest := s.latest.of(edition); latest != nil {
		return latest, nil
	}
	fields, err := s.redis.HGetAll(ctx, s.keys.Definitions()).Result()
	if err != nil {
		return nil, rdb.Wrap("read definitions", err)
	}
	if latest := s.latest.of(editionOf(fields["version"], fields["applied_at"])); latest != nil { // a label was taken by earlier ones
		return latest, nil
	}
	read, err := s.latest.all.parse(fields)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	s.latest.Store(read)
	return read, nil
}

// readBesides reads the fields stored beside the YAML.
func readBesides(d *machines.Definitions, fields map[string]string) error {
	d.Version, d.Edition = rdb.Integer(fields["version"], 0), editionOf(fields["version"], fields["applied_at"])
	d.Source = []byte(fields["yaml"])
	d.AppliedAt = fromMillis(fields["applied_at"])
	if err := json.Unmarshal([]byte(fields["moves"]), &d.Moves); err != nil {
		return fmt.Errorf("moves of definitions: %w", err)
	}
	return nil
}

// load reads definitions from the YAML of all of them.
func load(source []byte) (*machines.Definitions, error) {
	d, _, err := definition.LoadApplied(definition.File{Name: "definitions", Content: source})
	return d, err
}
