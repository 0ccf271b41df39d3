-- Makes dead letters of a subscriber batches again, which are due now and come behind all that
-- waits in its lane.
--
-- ARGV     1 namespace, 2 token, 3 max events to move, unless one letter has more, 4 a
--          version of the options, should the subscriber need one, 5.. UIDs in the order
--          of their delivery
-- Returns  {1, letters, events, how many of the UIDs are left}; {0, 'not subscribed'}
-- Keeps    each event in a letter or in a batch, never in both; a batch with its job, its index
--          entry and its gauges
local token = ARGV[2]
if redis.pcall('HEXISTS', subscriber_key(token), 'callback') ~= 1 then
  return { 0, 'not subscribed' }
end

-- Gives a batch the webhook-id that its content had. Its state is read only if its subscriber has a
-- version of its options.
local function keep_identity(bid)
  local found = redis.pcall('HMGET', dead_letter_cause_key(bid), 'revision', 'webhook_id')
  local revision, id = found[1] or '0', found[2] or ''
  if revision == '0' and (id == '' or id == bid) then return end
  redis.call('HSET', batch_state_key(bid), 'revision', revision, 'webhook_id', id)
  need_options_version(token, ARGV[4])
end

local lanes = subscriber_lanes().now(token)

-- The lane that a letter's events were in; the first, if there is no such lane now.
local function lane_of_letter(bid)
  local lane = tonumber(redis.pcall('HGET', dead_letter_cause_key(bid), 'lane')) or 0
  return lane < lanes and lane or 0
end

local function revive(bid, length)
  local key = batch_key(bid)
  redis.call('RENAME', dead_letter_key(bid), key)
  redis.call('LSET', key, 0, token) -- it was another if that has been changed since
  redis.call('LSET', key, 2, '1')
  keep_identity(bid)
  local created = tonumber(redis.call('LINDEX', key, 1)) or 0
  add_batch(bid, token, exact(created), length, lane_of_letter(bid))
end

allow_when_full()
return end_letters(token, tonumber(ARGV[3]), 5, revive)
