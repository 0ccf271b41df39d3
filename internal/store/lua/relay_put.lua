-- Appends events that were relayed from another partition to the batches of their subscribers here.
--
-- ARGV     namespace; relayArgs of relays.go; then runs of events of one topic: the topic, how many
--          values of lanes there are, how many events, how many were in the outbox before the
--          first, ever, these values as topic_publish has them, and the packed events, oldest first
-- Returns  {1, topics that have no subscriber here, with spaces between; and for each receiver:
--          its token, how many events it got}; {1} when it was done before; {0, 'too many
--          batches'} when it would open too many for more than one event, or when a subscription
--          starts amid a run: of that the half is relayed next; {0, 'lanes', topic,
--          lanes, ...} of topics whose subscribers have others than were sent: tokens and
--          versions, with spaces between
-- Keeps    what topic_publish keeps; a relay is known by its UID for the next 100 of its partition
local home, uid, now, seed, max_events, timeout, wait_until, max_opened, numbers_of =
  unpack(ARGV, 2, 10)
local KNOWN, FIRST_RUN = 100, 11
if redis.call('LPOS', relayed_key(home), uid) then return { 1 } end

-- Where subscriptions start, if any have to be heeded: see starts_note. A count that the home began
-- before it lost its data is ignored.
local starts, passed = redis.pcall('HLEN', relay_starts_key()), {}
local has_starts = type(starts) == 'number' and starts > 0

-- The tokens of subscribers that started before the first event of a run. Nil if one starts amid
-- the run.
local function started(topic, tokens, before, events)
  local all, fields = {}, {}
  for i, token in ipairs(tokens) do fields[i] = topic .. ' ' .. token end
  for i, token in ipairs(tokens) do
    local start = redis.call('HGET', relay_starts_key(), fields[i])
    local id, at = string.match(start or '', '^(%S+) (%d+)$')
    at = id == numbers_of and tonumber(at) or 0
    if before < at and at < before + events then return nil end
    if before >= at then
      table.insert(all, token)
      if start then table.insert(passed, fields[i]) end
    end
  end
  return all
end

local appending = {
  now = now, seed = seed, max_events = tonumber(max_events), timeout = tonumber(timeout),
  wait_until = wait_until, traceparents = '', opened = 0,
}
local runs, unwanted, stale, opening, events = {}, {}, { 0, 'lanes' }, 0, 0
local has_extras, next = redis.call('HLEN', plans_key()) > 0, FIRST_RUN
while next <= #ARGV do
  local topic, first_lane = ARGV[next], next + 4
  local first = first_lane + ARGV[next + 1]
  local run = { first = first, last = first + ARGV[next + 2] - 1, laned = {} }
  run.subscribers = redis.call('SMEMBERS', topic_subscribers_key(topic))
  if not run.subscribers[1] then table.insert(unwanted, topic) end
  local subscribers = run.subscribers
  if has_starts then
    run.subscribers =
      started(topic, subscribers, tonumber(ARGV[next + 3]), tonumber(ARGV[next + 2]))
    if not run.subscribers then return { 0, 'too many batches' } end
  end
  if has_extras then
    local extras = publish_extras(topic, subscribers)
    run.laned = extras.lanes(first_lane, first)
    if not run.laned then
      table.insert(stale, topic)
      table.insert(stale, extras.stale()[3])
    end
  end
  if run.laned then
    run.tokens = read_receivers(appending, run.subscribers, run.laned, run.first, run.last)
    opening = opening + appending.opening
  end
  events = events + run.last - run.first + 1
  table.insert(runs, run)
  next = run.last + 1
end
if stale[3] then return stale end
if opening > tonumber(max_opened) and events > 1 then return { 0, 'too many batches' } end
local written = {}
written_with_batches(written)
local wrong = wrong_type(written)
if wrong then return wrong end

local received = {}
for i, run in ipairs(runs) do
  -- Of several runs, only the last one's reads were kept, and earlier runs may have changed them.
  if #runs > 1 then read_receivers(appending, run.subscribers, run.laned, run.first, run.last) end
  append_events(appending)
  for _, token in ipairs(run.tokens) do
    received[token] = (received[token] or 0) + run.last - run.first + 1
  end
end
for _, field in ipairs(passed) do redis.call('HDEL', relay_starts_key(), field) end
-- Last, so that a script that fails before this does not count as done.
redis.call('LPUSH', relayed_key(home), uid)
redis.call('LTRIM', relayed_key(home), 0, KNOWN - 1)
local done = { 1, table.concat(unwanted, ' ') }
for token, number in pairs(received) do
  table.insert(done, token)
  table.insert(done, number)
end
return done
