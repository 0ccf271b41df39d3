-- The owners of topics: for each topic the name of the client that publishes to it or, before the
-- first publish, that named it first. The number of topics of each client is counted, too. Both
-- change only here.

-- Scripts that need them create them, as in setbacks.lua.
local function owners()
  local self = {}

  -- How many topics a client has.
  function self.count(name)
    return tonumber(redis.call('HGET', owned_key(), name)) or 0
  end

  function self.clear(topic)
    local before = redis.call('HGET', owners_key(), topic)
    if not before then return end
    redis.call('HDEL', owners_key(), topic)
    change_gauge(owned_key(), before, -1)
  end

  function self.set(topic, name)
    local before = redis.call('HGET', owners_key(), topic)
    if before == name then return end
    if before then change_gauge(owned_key(), before, -1) end
    redis.call('HSET', owners_key(), topic, name)
    change_gauge(owned_key(), name, 1)
  end

  -- The limit that a client would exceed with more topics, of which new are new to the bus; nil if
  -- none. A limit of 0 is none.
  function self.over_limit(name, more, new, max_of_client, max_of_bus)
    if max_of_client > 0 and more > 0 and self.count(name) + more > max_of_client then
      return "client's topics"
    end
    if max_of_bus > 0 and new > 0 then
      -- A partition also knows topics whose home is another.
      local all = KEYS[1] and redis.call('HLEN', owners_key()) or redis.call('SCARD', topics_key())
      if all + new > max_of_bus then return "bus's topics" end
    end
    return nil
  end

  return self
end

-- The name of the client that a topic belongs to, given the token of its publisher: of a token that
-- is gone, only the noted name is left. False when it is not known.
local function owner_name(topic, publisher)
  local name = redis.call('HGET', tokens_key(), publisher)
  if name then return name end
  return redis.call('HGET', owners_key(), topic)
end

-- Whether a client may delete a topic or keep a history of it: the one that publishes to it, given
-- by one of its tokens, and root, given by none.
local function may_manage(topic, by)
  if by == '' then return true end
  local publisher = redis.call('HGET', topic_key(topic), 'publisher')
  if not publisher or publisher == '' then return false end
  if publisher == by then return true end
  local client = redis.call('HGET', tokens_key(), by)
  return client and client == owner_name(topic, publisher)
end

local function remove_topic(topic)
  for _, token in ipairs(redis.call('SMEMBERS', topic_subscribers_key(topic))) do
    redis.call('SREM', subscriber_topics_key(token), topic)
  end
  redis.call('DEL', topic_subscribers_key(topic), topic_key(topic))
  redis.call('SREM', topics_key(), topic)
  owners().clear(topic)
  redis.call('HDEL', unused_key(), topic)
  remove_history(topic)
end
