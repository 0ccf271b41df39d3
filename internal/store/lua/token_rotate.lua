-- Begins to change a client's token: registers another one for the same client, and moves the
-- subscriber's keys to it. Only the batches still begin with the old token, see holder_of. Those in
-- flight are relabelled here, because completing them goes by that token; the others are relabelled
-- by token_relabel, or as they come up.
--
-- ARGV     1 namespace, 2 the token, 3 the new one, if none was made before
-- Returns  {1, the client's name, its new token}; {0, 'token unknown'}
-- Keeps    the order of the batches: lane, current batch, jobs and gauges are as they were
local old, new = ARGV[2], ARGV[3]
local heir = redis.call('HGET', rotations_key(), old)
if heir then
  local name = redis.call('HGET', tokens_key(), heir)
  if name then return { 1, name, heir } end -- else it has been removed in the meantime
end
local name = redis.call('HGET', tokens_key(), old)
if not name then return { 0, 'token unknown' } end

-- All is read before anything is written.
local heirs = redis.call('HGETALL', rotations_key())
local gauges = {
  batch_gauge_key(), event_gauge_key(), bytes_gauge_key(), dead_letter_events_key(),
  dead_letter_bytes_key(),
}
local function read(token)
  local found = {
    token = token, keys = {}, topics = {}, gauges = {}, replays = {},
    version = lanes_version(token),
    subscribed = redis.call('SISMEMBER', subscribers_key(), token) == 1,
    retains = redis.call('SISMEMBER', retention_key(), token) == 1,
  }
  for _, gauge in ipairs(gauges) do
    found.gauges[gauge] = tonumber(redis.call('HGET', gauge, token)) or 0
  end
  local keys = {
    subscriber_key, subscriber_topics_key, failed_key, delivery_key, options_key, attempts_key,
    dead_letters_key, replays_key, gaps_key,
  }
  for lane = 0, subscriber_lanes().count(token) - 1 do
    table.insert(keys, function(of) return lane_of_subscriber(of, lane) end)
    table.insert(keys, function(of) return current_of_lane_key(of, lane) end)
  end
  for _, key in ipairs(keys) do
    if redis.call('EXISTS', key(token)) == 1 then table.insert(found.keys, key) end
  end
  for _, id in ipairs(redis.call('SMEMBERS', replays_key(token))) do
    if redis.call('HGET', replay_key(id), 'token') then table.insert(found.replays, id) end
  end
  for _, topic in ipairs(redis.call('SMEMBERS', subscriber_topics_key(token))) do
    if redis.call('SISMEMBER', topic_subscribers_key(topic), token) == 1 then
      table.insert(found.topics, topic)
    end
  end
  return found
end
local moved = { read(old) }
if heir then table.insert(moved, read(heir)) end
local held = {}
for _, worker in ipairs(redis.call('SMEMBERS', pending_index_key('main'))) do
  for _, job in ipairs(redis.call('LRANGE', pending_key('main', worker), 0, -1)) do
    local bid = batch_of('main', job)
    local token = bid and redis.pcall('LINDEX', batch_key(bid), 0)
    if token == old or token == heir then table.insert(held, bid) end
  end
end

redis.call('HSET', tokens_key(), new, name)
redis.call('HSET', rotations_key(), old, new)
for i = 1, #heirs, 2 do
  if heirs[i + 1] == old or heirs[i + 1] == heir then
    redis.call('HSET', rotations_key(), heirs[i], new)
  end
end
for _, bid in ipairs(held) do redis.call('LSET', batch_key(bid), 0, new) end
for _, from in ipairs(moved) do
  for _, key in ipairs(from.keys) do redis.call('RENAME', key(from.token), key(new)) end
  for _, id in ipairs(from.replays) do redis.call('HSET', replay_key(id), 'token', new) end
  for _, topic in ipairs(from.topics) do
    redis.call('SREM', topic_subscribers_key(topic), from.token)
    redis.call('SADD', topic_subscribers_key(topic), new)
  end
  if from.subscribed then
    redis.call('SREM', subscribers_key(), from.token)
    redis.call('SADD', subscribers_key(), new)
  end
  if from.version ~= '' then
    redis.call('HDEL', plans_key(), from.token)
    redis.call('HSET', plans_key(), new, from.version)
  end
  if from.retains then
    redis.call('SREM', retention_key(), from.token)
    redis.call('SADD', retention_key(), new)
  end
  for gauge, figure in pairs(from.gauges) do
    redis.call('HDEL', gauge, from.token)
    if figure > 0 then change_gauge(gauge, new, figure) end
  end
end
return { 1, name, new }
