-- Copies a slice of a history to the queue of a replay's subscriber, in batches of their own, which
-- are due now.
--
-- ARGV     namespace; stepArgs of replay_copier.go; then for each batch: its UID, its lane, the
--          number of its events, and these
-- Returns  {1, '1' if this was the last slice, else '0'}; {0, 'moved'} when the replay has ended or
--          is elsewhere: the same slice is copied once; {0, 'not subscribed'} to the topic any
--          more; {0, 'stale'} when the lanes are of another version
-- Keeps    a replay's position with its events; every batch with its job, its index entry and its
--          gauges, and in the set of its replay's
local id, before, after, lost, now, lanes, options_version, notice, left_since =
  unpack(ARGV, 2, 10)
lost, left_since = tonumber(lost), tonumber(left_since)
local replay = replay_key(id)
local found = redis.call('HMGET', replay, 'state', 'next', 'token', 'topic', 'to')
if found[1] ~= 'running' or found[2] ~= before then return { 0, 'moved' } end
local token = found[3]
if redis.call('SISMEMBER', subscriber_topics_key(token), found[4]) == 0 then
  return { 0, 'not subscribed' }
end
if lanes_version(token) ~= lanes then return { 0, 'stale' } end

redis.call('HSET', replay, 'next', after)
local at, copied = 11, 0
while at <= #ARGV do
  local bid, lane, events = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  redis.call('RPUSH', batch_key(bid), token, now, 0, unpack(ARGV, at + 3, at + 2 + events))
  redis.call('HSET', batch_state_key(bid), 'replay', id)
  redis.call('SADD', replay_batches_key(id), bid)
  add_batch(bid, token, now, events, lane)
  at, copied = at + 3 + events, copied + events
end
if copied > 0 then
  need_options_version(token, options_version)
  redis.call('HINCRBY', replay, 'copied', copied)
end
if lost > 0 then
  redis.call('HINCRBY', replay, 'skipped', lost)
  gaps().note(token, now, notice, {
    events = lost, batches = 0, since = left_since, untl = left_since, reason = 'history',
  })
end
if tonumber(after) <= tonumber(found[5]) then return { 1, '0' } end
end_replay(id, 'done', '')
return { 1, '1' }
