-- What the checks share. Each looks at one thing, or a few of a kind, and says what is wrong with it; asked to
-- fix it, it does that in the same step. Asked only to look, it writes nothing.
local fix = ARGV[2] == '1'
if fix then allow_when_full() end

local function is_list(key) return redis.call('TYPE', key).ok == 'list' end

-- Whether the Ruby original has a batch of this UID: then what points to it is not ours to judge.
local function is_original(bid) return redis.call('EXISTS', original_key(bid)) == 1 end

-- What names of the bus look like, as in bus/names.go. In a Redis that others use too, what looks otherwise is theirs.
local function is_topic_name(text) return #text <= 64 and string.match(text, '^[a-z_]+$') ~= nil end
local function is_token(text) return #text <= 64 and string.match(text, '^[a-z0-9:_-]+$') ~= nil end
local function is_uid(text) return #text == 20 and string.match(text, '^[A-Za-z0-9_-]+$') ~= nil end

-- Whether a hash has no other fields than these.
local function has_only(key, fields)
  if redis.call('HLEN', key) > #fields then return false end
  local known = {}
  for _, field in ipairs(fields) do known[field] = true end
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if not known[field] then return false end
  end
  return true
end

-- Whether a topic's hash is there, and one that the bus writes.
local function is_topic_hash(name)
  local key = topic_key(name)
  if not is_topic_name(name) or not has_only(key, { 'publisher', 'counter', 'last_event' }) then return false end
  return redis.call('HEXISTS', key, 'publisher') == 1 or redis.call('HEXISTS', key, 'counter') == 1
end

local function is_topic(name)
  return redis.call('SISMEMBER', topics_key(), name) == 1 or is_topic_hash(name)
end

-- Whether publish finds a subscriber. A key of another type is none.
local function has_callback(token)
  local callback = redis.pcall('HGET', subscriber_key(token), 'callback')
  return type(callback) == 'string' and callback ~= ''
end

-- Whether a subscriber is there, if only in part: what is missing is checked, and mended, by itself.
local function is_subscriber(token)
  return redis.call('SISMEMBER', subscribers_key(), token) == 1 or has_callback(token)
end

-- Whether the bus knows a token apart from what is named after it.
local function is_known(token)
  return redis.call('HEXISTS', tokens_key(), token) == 1 or redis.call('SISMEMBER', subscribers_key(), token) == 1
    or redis.call('HEXISTS', event_gauge_key(), token) == 1 or redis.call('HEXISTS', batch_gauge_key(), token) == 1
end

-- Whether a list is a batch: it begins with a token that the bus knows and two numbers. If the bus lists it, the token
-- may be unknown or empty, and the header be cut off.
local function is_batch(bid)
  if not is_uid(bid) then return false end
  local header = redis.call('LRANGE', batch_key(bid), 0, 2)
  for i = 2, #header do
    if not string.match(header[i], '^%d+$') then return false end
  end
  if #header > 0 and header[1] ~= '' and not is_token(header[1]) then return false end
  if redis.call('ZSCORE', batches_index_key(), bid) then return true end
  if #header < 3 or header[1] == '' then return false end
  return is_known(header[1]) or has_callback(header[1])
end
