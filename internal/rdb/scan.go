package rdb

import (
	"cmp"
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"routemaster/internal/bus"
)

// Sizes of one round trip of a scan: names of keys, and elements of one key.
const (
	KeysPerTrip     = 500
	ElementsPerTrip = 1000
)

// Kind is the type of a key, as TYPE has it.
type Kind string

// The types of keys that the bus has.
const (
	String    Kind = "string"
	Set       Kind = "set"
	Hash      Kind = "hash"
	SortedSet Kind = "zset"
	List      Kind = "list"
	Stream    Kind = "stream"
)

// PageReply is a page of a key, and the cursor of the next page: 0 if it was the last.
type PageReply interface {
	Result() (page []string, cursor uint64, err error)
	Val() (page []string, cursor uint64)
	Err() error
}

// Page reads a page of a set, of a sorted set as members and scores, or of a hash as fields and
// values. The first page has the cursor 0.
func Page(ctx context.Context, commands Commands, key string, kind Kind, cursor uint64) PageReply {
	switch kind {
	case Hash:
		return commands.HScan(ctx, key, cursor, "", ElementsPerTrip)
	case SortedSet:
		return commands.ZScan(ctx, key, cursor, "", ElementsPerTrip)
	default:
		return commands.SScan(ctx, key, cursor, "", ElementsPerTrip)
	}
}

// Add writes elements that [Page] has read of a key, a part of a list at its end, or a string's
// value.
func Add(ctx context.Context, commands Commands, key string, kind Kind, elements []string) AnyReply {
	switch kind {
	case String:
		return commands.Set(ctx, key, elements[0], 0)
	case Hash:
		return commands.HSet(ctx, key, elements)
	case List:
		return commands.RPush(ctx, key, elements)
	case SortedSet:
		members := make([]redis.Z, 0, len(elements)/2)
		for i := 0; i+1 < len(elements); i += 2 {
			score, err := strconv.ParseFloat(elements[i+1], 64)
			if err != nil {
				reply := redis.NewIntCmd(ctx)
				reply.SetErr(err)
				return reply
			}
			members = append(members, redis.Z{Score: score, Member: elements[i]})
		}
		return commands.ZAdd(ctx, key, members...)
	default:
		return commands.SAdd(ctx, key, elements)
	}
}

// Size asks for how many elements a key has; of a string, whether it is there.
func Size(ctx context.Context, commands Commands, key string, kind Kind) Reply[int64] {
	switch kind {
	case Hash:
		return commands.HLen(ctx, key)
	case List:
		return commands.LLen(ctx, key)
	case SortedSet:
		return commands.ZCard(ctx, key)
	case Set:
		return commands.SCard(ctx, key)
	default:
		return commands.Exists(ctx, key)
	}
}

// Expiry reads the time in ms until a key expires; it is 0 or less if the key does not expire or
// does not exist.
func Expiry(ctx context.Context, commands Commands, key string) Reply[int64] {
	return &msReply{commands.PTTL(ctx, key)}
}

// msReply is the reply of PTTL, which the library has with a unit only if it is positive.
type msReply struct{ *redis.DurationCmd }

func (r *msReply) Val() int64 { return r.DurationCmd.Val().Milliseconds() }

func (r *msReply) Result() (int64, error) { return r.Val(), r.Err() }

// ExpireIn has a key expire in so many ms.
func ExpireIn(ctx context.Context, commands Commands, key string, ms int64) AnyReply {
	return commands.PExpire(ctx, key, time.Duration(ms)*time.Millisecond)
}

// EachPage calls a function with the pages of a key, from a cursor on. It may or may not see
// elements that change meanwhile, and may see an element twice.
func (p *Partition) EachPage(
	ctx context.Context, key string, kind Kind, cursor uint64, each func(page []string) error,
) error {
	for {
		page, next, err := Page(ctx, p.Commands, key, kind, cursor).Result()
		if err != nil {
			return Wrap("scan", err)
		}
		if err := each(page); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// Pairs reads a page of fields and values, or of members and scores.
func Pairs(each func(name, value string)) func(page []string) error {
	return func(page []string) error {
		for i := 0; i+1 < len(page); i += 2 {
			each(page[i], page[i+1])
		}
		return nil
	}
}

// Elements reads a page of a key: elements with their values, which are empty for a set.
func Elements(kind Kind, each func(element, value string)) func(page []string) error {
	if kind != Set {
		return Pairs(each)
	}
	return func(page []string) error {
		for _, element := range page {
			each(element, "")
		}
		return nil
	}
}

// EachKey calls a function with the names of the keys that match a pattern, a page at a time. A
// name may come twice.
func (p *Partition) EachKey(ctx context.Context, match string, each func(page []string) error) error {
	cursor, given := uint64(0), ""
	for {
		page, next, at, err := p.scan(ctx, cursor, match)
		if err != nil {
			return Wrap("scan", err)
		}
		if cursor != 0 && (at == "" || at != given) { // a cursor is of the node that has given it
			cursor = 0
			continue
		}
		given = at
		if err := each(page); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// scan reads a page of keys, and says where: empty if the partition was about to move.
func (p *Partition) scan(ctx context.Context, cursor uint64, match string) (page []string, next uint64, at string, err error) {
	before := p.Node()
	var scan *redis.ScanCmd
	err = p.atHome(ctx, func(pipe Commands) { scan = pipe.Scan(ctx, cursor, match, KeysPerTrip) })
	if err != nil {
		return nil, 0, "", err
	}
	if at = p.Node(); at != before {
		at = ""
	}
	page, next, err = scan.Result()
	return page, next, at, err
}

// ScoredReply is the [Reply] of a command that returns members with their scores.
type ScoredReply = Reply[[]redis.Z]

// Scored is a member of a sorted set, with its score.
type Scored struct {
	Member string
	Score  float64
}

// Compare orders members as their sorted set does: by score, then by name. It is negative if this
// one comes before the other.
func (s Scored) Compare(other Scored) int {
	return cmp.Or(cmp.Compare(s.Score, other.Score), strings.Compare(s.Member, other.Member))
}

// Place names the place of a member in its sorted set, for a client that reads it in pages.
func (s Scored) Place() string { return FormatScore(s.Score) + "-" + s.Member }

// ParsePlace parses the result of [Scored.Place], for a UID and a time (ms). It fails with
// [bus.ErrAfter].
func ParsePlace(text string) (Scored, error) {
	score, member, _ := strings.Cut(text, "-")
	ms, err := strconv.ParseUint(score, 10, 53)
	if err != nil || !bus.IsUID(member) {
		return Scored{}, bus.ErrAfter
	}
	return Scored{member, float64(ms)}, nil
}

// MembersFrom reads members of a sorted set whose scores are atLeast or more, in their order: limit
// of them, after the first offset.
func (p *Partition) MembersFrom(
	ctx context.Context, key string, atLeast float64, offset, limit int64,
) ([]Scored, error) {
	return p.MembersIn(ctx, key, ScoreRange{Min: atLeast, Max: math.Inf(1), Offset: offset, Limit: limit})
}

// ScoreRange says which members of a sorted set are wanted: of those whose scores are from Min to
// Max, in their order or in Reverse, Limit behind the first Offset.
type ScoreRange struct {
	Min, Max      float64
	Reverse       bool
	Offset, Limit int64
}

// By is the range as commands take it.
func (r ScoreRange) By() *redis.ZRangeBy {
	return &redis.ZRangeBy{Min: FormatScore(r.Min), Max: FormatScore(r.Max), Offset: r.Offset, Count: r.Limit}
}

// MembersIn reads members of a sorted set.
func (p *Partition) MembersIn(ctx context.Context, key string, r ScoreRange) ([]Scored, error) {
	read := p.ZRangeByScoreWithScores
	if r.Reverse {
		read = p.ZRevRangeByScoreWithScores
	}
	found, err := read(ctx, key, r.By()).Result()
	members := make([]Scored, len(found))
	for i, z := range found {
		members[i] = Scored{z.Member.(string), z.Score}
	}
	return members, err
}

// LexRange is the part of a sorted set whose members have all the same score: in the order of their
// bytes, behind a member unless that is empty, and at most limit of them.
func LexRange(after string, limit int) *redis.ZRangeBy {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	return &redis.ZRangeBy{Min: from, Max: "+", Count: int64(limit)}
}

// FormatScore writes a score as Redis reads it.
func FormatScore(score float64) string { return strconv.FormatFloat(score, 'f', -1, 64) }
