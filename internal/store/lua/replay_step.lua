-- Copies a slice of a history to the queue of a replay's subscriber, in batches of their own, which
-- are due now.
--
-- ARGV     1 namespace, 2 UID of the replay, 3 position of the next event, as it was read, 4 that
--          position after the slice, 5 how many events before the slice the history has lost,
--          6 now (ms), 7 version of the subscriber's lanes that the batches are for, 8 version of
--          the options, should it need one, 9 UID of a batch, should a notice of the loss need
--          one, 10 when the oldest event that is left was received (ms); and for each batch:
--          its UID, its lane, the number of its events, and these
-- Returns  {1, '1' if this was the last slice, else '0'}; {0, 'moved'} when the replay has ended or
--          is elsewhere: the same slice is copied once; {0, 'not subscribed'} to the topic any
--          more; {0, 'stale'} when the lanes are of another version
-- Keeps    a replay's position with its events; every batch with its job, its index entry and its
--          gauges, and in the set of its replay's
local id, now, lost, left_since = ARGV[2], ARGV[6], tonumber(ARGV[5]), tonumber(ARGV[10])
local replay = replay_key(id)
local found = redis.call('HMGET', replay, 'state', 'next', 'token', 'topic', 'to')
if found[1] ~= 'running' or found[2] ~= ARGV[3] then return { 0, 'moved' } end
local token = found[3]
if redis.call('SISMEMBER', subscriber_topics_key(token), found[4]) == 0 then
  return { 0, 'not subscribed' }
end
if lanes_version(token) ~= ARGV[7] then return { 0, 'stale' } end

redis.call('HSET', replay, 'next', ARGV[4])
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
  need_options_version(token, ARGV[8])
  redis.call('HINCRBY', replay, 'copied', copied)
end
if lost > 0 then
  redis.call('HINCRBY', replay, 'skipped', lost)
  gaps().note(token, now, ARGV[9], {
    events = lost, batches = 0, since = left_since, untl = left_since, reason = 'history',
  })
end
if tonumber(ARGV[4]) <= tonumber(found[5]) then return { 1, '0' } end
end_replay(id, 'done', '')
return { 1, '1' }
