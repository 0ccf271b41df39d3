-- Publishes events to one topic: stores them in a batch of every subscriber and, if the bus has
-- partitions, in an outbox for each other partition with subscribers.
--
-- ARGV     namespace; publishArgs of topics.go; for each subscriber with several lanes: token,
--          version of its lanes, for each event the character of its lane; then packed events,
--          oldest first
-- Returns  {1, the subscribers' tokens}, with a space between two, so that they are cheap to
--          return; and a third value, how many idempotency keys were evicted, if any were. {1} when
--          the request was stored before. {0, 'topic claimed'} when another client publishes to the
--          topic; {0, 'key reused'} when another request had its idempotency key; {0, 'token
--          unknown'}; {0, 'too many batches'} when it would open too many; {0, "client's topics"}
--          when the client has too many to claim one more, {0, "bus's topics"} when the bus has;
--          {0, 'lanes', tokens and versions, with spaces between} of all subscribers of the topic
--          with several lanes, when the lanes sent are not theirs. An error, before anything is
--          written, when a key that all subscribers share is not of its type
-- Keeps    every event in one batch of each subscriber; every batch with one job, its
--          index entry and its gauges; a current batch neither full nor closed
-- Cost     commands for one event and one subscriber: 12 if it joins a current batch, 21 if it
--          opens and fills a batch; 2 more if the key plans exists; 3 more if the topic keeps a
--          history, 5 once that is full; 1 more while the topic has a live tail
local topic, publisher, received_at, seed, max_events, timeout, key, digest, key_ttl, traceparents,
  wait_until, max_keys, max_opened, max_client_topics, max_topics, lane_values =
  unpack(ARGV, 2, 17)
local FIRST_LANE = 18
local FIRST, LAST, now = FIRST_LANE + lane_values, #ARGV, tonumber(received_at)

local name = redis.call('HGET', tokens_key(), publisher)
if not name then return { 0, 'token unknown' } end
local topic_hash = topic_key(topic)
local owner = redis.call('HGET', topic_hash, 'publisher')
local claims = not owner or owner == ''
if not claims and owner ~= publisher and owner_name(topic, owner) ~= name then
  return { 0, 'topic claimed' } -- it was not claimed with another token of the same client either
end
local life, keys, slice = tonumber(key_ttl), nil, nil
if key ~= '' then
  keys = idempotency_keys(name)
  local all = keys.read(key, now)
  local before, found = keys.find(all)
  if before and before ~= digest then return { 0, 'key reused' } end
  if before then
    keys.renew(found, now, life)
    return { 1 }
  end
  slice = keys.choose(all, now, life, tonumber(max_keys))
end
local subscribers = redis.call('SMEMBERS', topic_subscribers_key(topic))
local extras, laned = false, {} -- facts beyond the founding keys
if redis.call('HLEN', plans_key()) > 0 then
  extras = publish_extras(topic, subscribers)
  laned = extras.lanes(FIRST_LANE, FIRST)
  if not laned then return extras.stale() end
end
local appending = {
  now = received_at, seed = seed, max_events = tonumber(max_events), timeout = tonumber(timeout),
  wait_until = wait_until, traceparents = traceparents, opened = 0,
}
local tokens = read_receivers(appending, subscribers, laned, FIRST, LAST)
if appending.opening > tonumber(max_opened) then return { 0, 'too many batches' } end

-- The keys that are written below and were not read above, with their types: none if events only
-- join current batches.
local written = {}
if owner ~= publisher then
  written[topics_key()], written[owners_key()], written[owned_key()] = 'set', 'hash', 'hash'
end
if appending.ends_batches then written_with_batches(written) end
local outboxes = KEYS[1] and read_outboxes(topic, written)
local wrong = wrong_type(written)
if wrong then return wrong end
if claims then
  local more, new = 0, 0
  if redis.call('HGET', owners_key(), topic) ~= name then more = 1 end
  if redis.call('SISMEMBER', topics_key(), topic) == 0 then new = 1 end
  local refused =
    owners().over_limit(name, more, new, tonumber(max_client_topics), tonumber(max_topics))
  if refused then return { 0, refused } end
end

local counter = redis.call('HINCRBY', topic_hash, 'counter', count_text(FIRST, LAST))
redis.call('HSET', topic_hash, 'last_event', ARGV[LAST])
if owner ~= publisher then
  redis.call('HSET', topic_hash, 'publisher', publisher)
  redis.call('SADD', topics_key(), topic)
  owners().set(topic, name)
end

append_events(appending)
if outboxes then fill_outboxes(outboxes, FIRST, LAST) end
if extras then
  if extras.keeps_history then histories().append(topic, now, FIRST, LAST, counter) end
  extras.tell(FIRST, LAST)
end
-- Last, so that a script that fails before this does not count as done.
if slice then
  local dropped = keys.put(slice, key, digest, now, life)
  if dropped > 0 then return { 1, table.concat(tokens, ' '), dropped } end
end
return { 1, table.concat(tokens, ' ') }
