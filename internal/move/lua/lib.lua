-- What the scripts of a move share.

-- Sets the signing secrets of a subscriber (JSON, empty for none), and renews its plan if they
-- change.
local function put_secrets(token, secrets, version)
  if (redis.call('HGET', options_key(token), 'secrets') or '') == secrets then return end
  if secrets == '' then
    redis.call('HDEL', options_key(token), 'secrets')
  else
    redis.call('HSET', options_key(token), 'secrets', secrets)
  end
  renew_plan(token, version)
end

-- Has a subscriber have those of uuid, timeout and max_events that the arguments name from an index
-- on, with their values, and no others: a subscription only adds to them.
local function put_fields(token, from)
  redis.call('HDEL', subscriber_key(token), 'uuid', 'timeout', 'max_events')
  for i = from, #ARGV, 2 do redis.call('HSET', subscriber_key(token), ARGV[i], ARGV[i + 1]) end
end

-- Sets what the deliveries to a subscriber have shown: how many events it has acknowledged, its
-- health, and when it was last tried (ms). What is empty stays as it is.
local function put_record(token, sent, health, tried)
  if sent ~= '' then redis.call('HSET', delivery_key(token), 'events_sent', sent) end
  if health ~= '' then redis.call('HSET', subscriber_key(token), 'health_points', health) end
  if tried ~= '' then redis.call('HSET', subscriber_key(token), 'last_attempted_at', tried) end
end
